// Threads that leave: nobody sees them any more, they cannot set a context on their way out, and
// their memory serves the next ones.

#include <array>
#include <pthread.h>
#include <set>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

#include "child_process.h"
#include "context/core.h"
#include "outside_reader.h"
#include "scripted_writer.h"
#include "stress_run.h"

namespace spanprof::stress {
namespace {

constexpr uint32_t kKey = 7;

// What a thread that has ended left behind, from the parent's view; a child publishes.
struct Exits {
  std::atomic<int> dead_tid{0};
  std::atomic<uint64_t> threads{0}, seen_by_tid{0};
  std::atomic<bool> stop{false};
};

int PublishAndExitThreads(Exits& exits) {
  if (InitForStress("otel") != 0) return 2;
  Progress progress;
  while (!exits.stop) {
    std::thread thread([&progress] {
      ScriptedWriter writer(progress, kKey);
      writer.RunCycle();
    });
    thread.join();
    spanprof_context seen = {};
    seen.size = sizeof seen;
    if (spanprof_context_get_by_tid(progress.tid, &seen) != -ESRCH) ++exits.seen_by_tid;
    exits.dead_tid = progress.tid.load();
    ++exits.threads;
    // The next thread has another tid; this one is looked at until then.
    while (exits.dead_tid != 0 && !exits.stop) usleep(20);
  }
  return 0;
}

TEST(ThreadExitStress, NobodySeesADeadThread) {
  const Shared<Exits> exits;
  ChildProcess child([&exits] { return PublishAndExitThreads(*exits); });
  OutsideReader reader(child.pid());
  uint64_t looked = 0, still_owner = 0;
  const StressRun run;
  while (!run.Done(looked >= kEnoughSignals)) {
    const int tid = exits->dead_tid;
    if (tid == 0) continue;
    OutsideContext seen;
    if (reader.ReadWithRetries(tid, &seen) != OutsideStatus::kNotOwner) ++still_owner;
    ++looked;
    exits->dead_tid = 0;
  }
  exits->stop = true;
  EXPECT_EQ(child.Wait(), 0) << child.problem();
  run.ReportRate("threads", exits->threads);
  EXPECT_GE(looked, kEnoughSignals);
  EXPECT_EQ(still_owner, 0u);
  EXPECT_EQ(exits->seen_by_tid, 0u);
}

// ---- A thread's last words ---------------------------------------------------------------------

std::atomic<uint64_t> late_calls{0}, late_successes{0};

void SetAtExit(void*) {
  const Fields fields = FullFields(kKey, 1);
  spanprof_context_set(fields.span_id, fields.root_span_id);
  if (spanprof_context_set_tag(0, "late", 4) == 0) ++late_successes;
  spanprof_context seen = {};
  seen.size = sizeof seen;
  spanprof_context_get(&seen);
  if (seen.span_id != 0) ++late_successes;
  if (spanprof_is_otel_mode() != 0 && spanprof_context_get_by_tid(CurrentTid(), &seen) == 0) {
    ++late_successes;
  }
  late_calls += 2;
}

class LateSetStress : public ::testing::TestWithParam<const char*> {};

TEST_P(LateSetStress, IsRefusedAndCounted) {
  ASSERT_EQ(InitForStress(GetParam()), 0) << spanprof_error();
  // Created behind the library's own key, so that its destructor runs behind the library's.
  pthread_key_t key;
  ASSERT_EQ(pthread_key_create(&key, &SetAtExit), 0);
  const StressRun run;
  while (!run.Done(late_calls >= kEnoughSignals)) {
    std::vector<std::thread> threads;
    for (uint32_t i = 0; i < 4; ++i) {
      threads.emplace_back([key, i] {
        pthread_setspecific(key, &late_calls);
        Progress progress;
        ScriptedWriter writer(progress, i + 1);
        writer.RunCycle();
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  run.ReportRate("late_calls", late_calls);
  EXPECT_GE(late_calls, kEnoughSignals);
  EXPECT_EQ(late_successes, 0u);
  EXPECT_EQ(CounterNamed("exiting_thread_refused"), late_calls);
}

INSTANTIATE_TEST_SUITE_P(Storages, LateSetStress, ::testing::Values("profiler", "otel"),
                         [](const auto& parameter) { return std::string(parameter.param); });

// ---- Memory ------------------------------------------------------------------------------------

// How many different objects a number of threads, one after the other, were given.
size_t ObjectsOfThreads(unsigned threads) {
  std::set<const void*> objects;
  for (unsigned i = 0; i < threads; ++i) {
    std::thread thread([&objects, i] {
      spanprof_context_set(i + 1, 1);
      objects.insert(context::ThisCore().FindThread(static_cast<uint32_t>(CurrentTid())));
    });
    thread.join();
  }
  return objects.size();
}

constexpr unsigned kManyThreads = 2000;
constexpr size_t kFewObjects = 50;

TEST(ThreadMemoryStress, ObjectsServeTheNextThreads) {
  ASSERT_EQ(InitForStress("otel"), 0);
  EXPECT_LE(ObjectsOfThreads(kManyThreads), kFewObjects);
}

// The first thread of a process may leave by pthread_exit; the system keeps its tid until the
// process ends.
TEST(ThreadMemoryStress, ObjectsServeTheNextThreadsAfterTheFirstThreadLeft) {
  if (kThreadSanitizer) GTEST_SKIP() << "the thread sanitizer cannot start threads after this fork";
  const Shared<std::atomic<uint64_t>> objects;
  const auto leave = [&objects]() -> int {
    if (InitForStress("otel") != 0) return 2;
    spanprof_context_set(1, 1);
    std::thread([&objects] {
      SleepMilliseconds(50);
      *objects = ObjectsOfThreads(kManyThreads);
      _exit(0);
    }).detach();
    pthread_exit(nullptr);
  };
  // Forked by a thread whose stack has no frame of GoogleTest, which would stop the exit.
  std::thread([&leave] {
    ChildProcess child(leave);
    EXPECT_EQ(child.Wait(), 0) << child.problem();
  }).join();
  EXPECT_GT(*objects, 0u);
  EXPECT_LE(*objects, kFewObjects);
}

}  // namespace
}  // namespace spanprof::stress
