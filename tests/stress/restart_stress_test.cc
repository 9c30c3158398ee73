// spanprof_shutdown and spanprof_init again, while other threads set and read.

#include <array>
#include <csignal>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

#include "outside_reader.h"
#include "scripted_writer.h"
#include "signal_storm.h"
#include "stress_run.h"

// By design: the configuration of an earlier start is left to whoever may be reading it.
extern "C" __attribute__((visibility("default"))) const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() { return "leak:PublishConfiguration"; }

namespace spanprof::stress {
namespace {

constexpr unsigned kThreads = 3;

spanprof_context EmptyContext() {
  spanprof_context context = {};
  context.size = sizeof context;
  return context;
}

// None, or a context that the writer set by one update of a number up to `newest`.
Verdict JudgeUpdate(const Fields& seen, uint32_t key, uint64_t newest) {
  if (seen.IsNone()) return Verdict::kRight;
  const uint32_t seen_key = KeyOfSpan(seen.span_id);
  const uint64_t number = StepOfSpan(seen.span_id);
  if (!(FullFields(seen_key, number) == seen)) return Verdict::kTorn;
  if (seen_key != key) return Verdict::kForeign;
  return number <= newest ? Verdict::kRight : Verdict::kFuture;
}

struct Writer {
  Progress progress;
  Tally own;
  std::atomic<uint64_t> busy{0};
  std::atomic<uint64_t> number{1};
  bool right_at_the_end = false;
  int result_at_the_end = 0;

  void Run(uint32_t key, const std::atomic<bool>& stop, const std::atomic<bool>& final_check);
};

void Writer::Run(uint32_t key, const std::atomic<bool>& stop,
                 const std::atomic<bool>& final_check) {
  progress.tid = CurrentTid();
  while (!stop.load(std::memory_order_relaxed)) {
    const uint64_t now = number.fetch_add(1) + 1;
    const spanprof_context context = ToContext(key, FullFields(key, now));
    if (now % 3 == 0) {
      spanprof_context_swap(&context, nullptr);
    } else {
      spanprof_context_update(&context);
    }
    spanprof_context seen = EmptyContext();
    const int result = spanprof_context_get(&seen);
    if (result == 0) own.Add(JudgeUpdate(FromContext(seen), key, now));
    if (result == -EAGAIN) ++busy;
  }
  while (!final_check) SleepMilliseconds(1);
  const spanprof_context last = ToContext(key, FullFields(key, number + 1));
  const bool set = spanprof_context_update(&last) == 0;
  spanprof_context seen = EmptyContext();
  const bool own_right = spanprof_context_get(&seen) == 0 && FromContext(seen) == FromContext(last);
  result_at_the_end = spanprof_context_get_by_tid(CurrentTid(), &seen);
  right_at_the_end =
      set && own_right && result_at_the_end == 0 && FromContext(seen) == FromContext(last);
}

class RestartStress : public ::testing::TestWithParam<std::tuple<const char*, const char*>> {};

TEST_P(RestartStress, ContextsStayWholeAndWorkAfterTheLastStart) {
  const auto [first_storage, second_storage] = GetParam();
  ASSERT_EQ(InitForStress(first_storage), 0) << spanprof_error();
  std::array<Writer, kThreads> writers;
  std::atomic<bool> stop{false}, final_check{false};
  Tally by_tid;
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] { writers[i].Run(i + 1, stop, final_check); });
  }
  std::thread reader([&] {
    for (unsigned i = 0; !stop; i = (i + 1) % kThreads) {
      spanprof_context seen = EmptyContext();
      const int result = spanprof_context_get_by_tid(writers[i].progress.tid, &seen);
      if (result == 0) {
        by_tid.Add(JudgeUpdate(FromContext(seen), i + 1, writers[i].number));
      } else {
        ++by_tid.refused;
      }
    }
  });

  uint64_t restarts = 0, failed = 0;
  const StressRun run;
  while (!run.Done(restarts >= kEnoughSignals && by_tid.right >= kEnoughReads)) {
    spanprof_shutdown();
    if (InitForStress(restarts % 2 == 0 ? second_storage : first_storage) != 0) ++failed;
    ++restarts;
    usleep(1000);  // of work between two restarts
  }
  stop = true;
  reader.join();
  spanprof_shutdown();
  ASSERT_EQ(InitForStress("otel"), 0) << spanprof_error();
  final_check = true;
  for (std::thread& thread : threads) thread.join();

  run.ReportRate("restarts", restarts);
  run.Report("reads_by_tid", by_tid.right);
  EXPECT_EQ(failed, 0u);
  EXPECT_GE(restarts, kEnoughSignals);
  EXPECT_EQ(by_tid.wrong(), 0u) << by_tid.Text();
  uint64_t updates = 0, own_reads = 0, busy = 0;
  for (uint32_t i = 0; i < kThreads; ++i) {
    EXPECT_EQ(writers[i].own.wrong(), 0u) << writers[i].own.Text();
    EXPECT_TRUE(writers[i].right_at_the_end)
        << "thread " << i << " after the last start; by tid " << writers[i].result_at_the_end;
    updates += writers[i].number;
    own_reads += writers[i].own.right;
    busy += writers[i].busy;
  }
  run.ReportRate("updates", updates);
  run.Report("own_reads", own_reads);
  run.Report("own_reads_refused", busy);
  EXPECT_GE(own_reads, kEnoughReads);
  // A read that a shutdown overtakes may find the record closed.
  EXPECT_LE(busy, restarts * kThreads) << "reads of threads that interrupt nobody";
  EXPECT_EQ(CounterNamed("read_torn"), 0u);
}

INSTANTIATE_TEST_SUITE_P(Storages, RestartStress,
                         ::testing::Values(std::make_tuple("otel", "otel"),
                                           std::make_tuple("profiler", "otel")),
                         [](const auto& parameter) {
                           return std::string(std::get<0>(parameter.param)) + "And" +
                                  std::get<1>(parameter.param);
                         });

// Everything that was published is withdrawn by a shutdown, and does not come back.
TEST(RestartStressContext, IsGoneAfterARestart) {
  ASSERT_EQ(InitForStress("otel"), 0);
  const spanprof_context context = ToContext(1, FullFields(1, 1));
  ASSERT_EQ(spanprof_context_update(&context), 0);
  OutsideReader reader(getpid());
  OutsideContext outside;
  ASSERT_EQ(reader.Read(CurrentTid(), &outside), OutsideStatus::kAccepted);
  spanprof_shutdown();
  EXPECT_NE(reader.Read(CurrentTid(), &outside), OutsideStatus::kAccepted);
  ASSERT_EQ(InitForStress("otel"), 0);

  spanprof_context seen = EmptyContext();
  EXPECT_EQ(spanprof_context_get(&seen), 0);
  EXPECT_TRUE(FromContext(seen).IsNone());
  seen = EmptyContext();
  spanprof_context_get_by_tid(CurrentTid(), &seen);
  EXPECT_TRUE(FromContext(seen).IsNone()) << "by tid";
  if (reader.Read(CurrentTid(), &outside) == OutsideStatus::kAccepted) {
    EXPECT_TRUE(outside.fields.IsNone()) << "from outside";
  }
}

// ---- A write that is going on all the time that a restart takes ------------------------------

std::atomic<bool> wait_in_handler{false}, waiting_in_write{false};

void WaitInsideAWrite(int) {
  spanprof_context seen = EmptyContext();
  if (!wait_in_handler || spanprof_context_get(&seen) != -EAGAIN) return;
  waiting_in_write = true;
  while (wait_in_handler) SleepMilliseconds(1);
}

// A thread that got no time at all during the restart, as under a debugger or on a busy machine,
// publishes like any other once it goes on.
TEST(RestartStressContext, OfAThreadThatSleptThroughARestartWorks) {
  if (kThreadSanitizer) {
    GTEST_SKIP() << "the thread sanitizer delays signals to a point where no write is going on";
  }
  ASSERT_EQ(InitForStress("profiler"), 0);
  const SignalHandler handler(SIGUSR1, &WaitInsideAWrite);
  wait_in_handler = true;
  std::atomic<bool> ok{false};
  std::thread sleeper([&ok] {
    Progress progress;
    ScriptedWriter writer(progress, 1);
    {
      const SignalStorm storm(SIGUSR1);
      while (wait_in_handler) writer.RunCycle();
    }
    const spanprof_context context = ToContext(2, FullFields(2, 1));
    spanprof_context_update(&context);
    spanprof_context own = EmptyContext(), by_tid = EmptyContext();
    ok = spanprof_context_get(&own) == 0 && FromContext(own) == FullFields(2, 1) &&
         spanprof_context_get_by_tid(CurrentTid(), &by_tid) == 0 &&
         FromContext(by_tid) == FullFields(2, 1);
  });
  while (!waiting_in_write) SleepMilliseconds(1);
  spanprof_shutdown();
  EXPECT_EQ(InitForStress("otel"), 0);
  wait_in_handler = false;
  sleeper.join();
  EXPECT_TRUE(ok);
}

}  // namespace
}  // namespace spanprof::stress
