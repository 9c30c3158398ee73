// Another process reads the contexts of running threads by process_vm_readv, with a reader that is
// written from the protocol's description alone, and with the one that users run.

#include <array>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "child_process.h"
#include "outside_reader.h"
#include "scripted_writer.h"
#include "stress_run.h"
#ifdef SPANPROF_STRESS_COLLECT
#include <unistd.h>

#include "collect/context_snapshot.h"
#include "collect/process_directory.h"
#include "collect/remote_memory.h"
#endif

namespace spanprof::stress {
namespace {

constexpr unsigned kWriters = 2;      // threads that stay
constexpr unsigned kVisitors = 4096;  // threads that come and go, one after the other

struct Publisher {
  std::atomic<bool> ready{false}, stop{false};
  std::atomic<uint32_t> last_visitor{0};
  std::array<Progress, kWriters + kVisitors> progress;
  std::atomic<uint64_t> wrong_swaps{0};

  // In the publishing process.
  int Run();
};

int Publisher::Run() {
  if (InitForStress("otel") != 0 || spanprof_is_otel_mode() != 1) return 2;
  std::vector<std::thread> writers;
  for (unsigned i = 0; i < kWriters; ++i) {
    writers.emplace_back([this, i] {
      ScriptedWriter writer(progress[i], i + 1);
      writer.RunUntil(stop);
      wrong_swaps += writer.wrong_swaps();
    });
  }
  ready = true;
  for (unsigned i = kWriters; !stop; ++i) {
    if (i == progress.size()) {
      SleepMilliseconds(1);
      --i;
      continue;
    }
    std::thread visitor([this, i] {
      ScriptedWriter writer(progress[i], i + 1);
      for (int cycle = 0; cycle < 200 && !stop; ++cycle) writer.RunCycle();
      wrong_swaps += writer.wrong_swaps();
    });
    visitor.join();
    progress[i].gone = true;
    last_visitor = i;
  }
  for (std::thread& writer : writers) writer.join();
  return 0;
}

TEST(OutsideReadStress, IdsAndAttributesOfRunningThreadsAreOneContext) {
  const Shared<Publisher> publisher;
  ChildProcess child([&publisher] { return publisher->Run(); });
  while (!publisher->ready) SleepMilliseconds(1);

  OutsideReader reader(child.pid());
  Tally tally;
  std::array<uint64_t, 8> statuses = {};
  uint64_t after_exit = 0;
  const StressRun run;
  for (unsigned round = 0; round % 16 != 0 || !run.Done(tally.right >= kEnoughReads); ++round) {
    // The threads that stay, the newest visitor and one that has just left.
    const uint32_t visitor = publisher->last_visitor;
    const unsigned choices[] = {0, 1, visitor < kWriters ? 0 : visitor, visitor + 1};
    const unsigned index = choices[round % 4] % (kWriters + kVisitors);
    Progress& progress = publisher->progress[index];
    const int tid = progress.tid.load(std::memory_order_acquire);
    if (tid == 0) continue;
    const bool gone = progress.gone.load(std::memory_order_acquire);
    const uint64_t completed = progress.completed.load(std::memory_order_acquire);
    OutsideContext seen;
    const OutsideStatus status = reader.Read(tid, &seen);
    ++statuses[static_cast<unsigned>(status)];
    if (status != OutsideStatus::kAccepted) continue;
    const uint64_t started = progress.started.load(std::memory_order_acquire);
    // A tid that was given to a later thread: judged when that one is chosen.
    const uint32_t key = KeyOfSpan(seen.fields.span_id);
    const bool reused = !seen.fields.IsNone() && key != index + 1 && key >= 1 &&
                        key <= publisher->progress.size() &&
                        publisher->progress[key - 1].tid == tid;
    if (reused) continue;
    if (gone) ++after_exit;
    tally.Add(Judge(seen.fields, index + 1, completed, started));
  }
  publisher->stop = true;
  EXPECT_EQ(child.Wait(), 0) << child.problem();

  uint64_t steps = 0;
  for (unsigned i = 0; i < kWriters; ++i) steps += publisher->progress[i].completed;
  run.ReportRate("updates", steps);
  run.ReportRate("reads_accepted", tally.right);
  for (unsigned i = 0; i < statuses.size(); ++i) {
    run.Report(OutsideStatusName(static_cast<OutsideStatus>(i)), statuses[i]);
  }
  run.Report("visitors", publisher->last_visitor.load());
  EXPECT_GE(tally.right, kEnoughReads);
  EXPECT_EQ(tally.wrong(), 0u) << tally.Text();
  EXPECT_EQ(after_exit, 0u) << "contexts of threads that were joined before";
  EXPECT_EQ(statuses[static_cast<unsigned>(OutsideStatus::kInconsistent)], 0u);
  EXPECT_EQ(statuses[static_cast<unsigned>(OutsideStatus::kUnreadable)], 0u);
  EXPECT_EQ(statuses[static_cast<unsigned>(OutsideStatus::kNoTable)], 0u);
  EXPECT_EQ(publisher->wrong_swaps, 0u);
}

#ifdef SPANPROF_STRESS_COLLECT
Fields FromSnapshot(const collect::ThreadContextSnapshot& thread) {
  Fields fields = {
      thread.trace_id_high, thread.trace_id_low, thread.span_id, thread.root_span_id, 0, {}};
  for (unsigned i = 0; i < kTags; ++i) {
    const auto found = thread.attributes.find("a" + std::to_string(i));
    if (found == thread.attributes.end()) continue;
    fields.tag_classes[i] = ClassOfText(KeyOfSpan(thread.span_id), found->second);
  }
  return fields;
}

// A snapshot has no trace flags: takes those of the step that fits but for them.
Fields WithFlagsOfStep(Fields seen, uint32_t key) {
  const uint64_t base = StepOfSpan(seen.span_id) / kCycle * kCycle;
  for (uint64_t step = base; seen.span_id != 0 && step < base + kCycle; ++step) {
    Fields state = StateAt(key, step);
    const uint32_t flags = state.trace_flags;
    state.trace_flags = 0;
    if (!(state == seen)) continue;
    seen.trace_flags = flags;
    break;
  }
  return seen;
}

TEST(OutsideReadStress, SnapshotsOfTheCommandsReaderAreRight) {
  const Shared<Publisher> publisher;
  ChildProcess child([&publisher] { return publisher->Run(); });
  while (!publisher->ready) SleepMilliseconds(1);
  for (unsigned i = 0; i < kWriters; ++i) {
    while (publisher->progress[i].completed < kCycle) SleepMilliseconds(1);
  }

  const auto directory = collect::ProcessDirectory::Open(child.pid());
  ASSERT_TRUE(directory);
  collect::ProcessMemory memory(child.pid());
  Tally tally;
  uint64_t snapshots = 0, failed = 0;
  const StressRun run;
  while (!run.Done(tally.right >= kEnoughReads)) {
    std::array<uint64_t, kWriters> completed;
    for (unsigned i = 0; i < kWriters; ++i) completed[i] = publisher->progress[i].completed;
    const auto snapshot = collect::ReadContextSnapshot(*directory, memory, "stress");
    if (!snapshot) {
      ++failed;
      continue;
    }
    ++snapshots;
    for (const collect::ThreadContextSnapshot& thread : snapshot->threads) {
      for (unsigned i = 0; i < kWriters; ++i) {
        if (publisher->progress[i].tid != thread.tid) continue;
        const Fields seen = WithFlagsOfStep(FromSnapshot(thread), i + 1);
        // Nothing to show: cleared, or refused each time.
        if (seen.IsNone()) {
          tally.refused.fetch_add(1, std::memory_order_relaxed);
        } else {
          tally.Add(Judge(seen, i + 1, completed[i], publisher->progress[i].started));
        }
      }
    }
  }
  publisher->stop = true;
  EXPECT_EQ(child.Wait(), 0) << child.problem();
  run.ReportRate("snapshots", snapshots);
  run.Report("failed_snapshots", failed);
  run.Report("contexts_right", tally.right);
  run.Report("contexts_none_or_refused", tally.refused);
  EXPECT_GE(tally.right, kEnoughReads);
  EXPECT_EQ(tally.wrong(), 0u) << tally.Text();
}
#endif

}  // namespace
}  // namespace spanprof::stress
