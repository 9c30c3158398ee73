// Publishers that are stopped or killed in the middle of a write, read from outside: what is
// accepted is one whole context, and everything else is refused.

#include <array>
#include <csignal>
#include <cstdlib>
#include <string>
#include <thread>
#include <unistd.h>

#include <gtest/gtest.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "child_process.h"
#include "outside_reader.h"
#include "scripted_writer.h"
#include "stress_run.h"

namespace spanprof::stress {
namespace {

constexpr uint32_t kKey = 3;

struct Publisher {
  std::atomic<bool> stop{false};
  Progress progress;

  // On the process's only thread, so that the process is the writer.
  int Run() {
    if (InitForStress("otel") != 0) return 2;
    ScriptedWriter writer(progress, kKey);
    writer.RunUntil(stop);
    return 0;
  }
};

struct Readings {
  Tally tally;
  std::array<uint64_t, 8> statuses = {};

  void Read(OutsideReader& reader, Progress& progress) {
    const uint64_t completed = progress.completed.load(std::memory_order_acquire);
    OutsideContext seen;
    const OutsideStatus status = reader.Read(progress.tid, &seen);
    ++statuses[static_cast<unsigned>(status)];
    if (status == OutsideStatus::kAccepted) {
      tally.Add(Judge(seen.fields, kKey, completed, progress.started));
    }
  }
  uint64_t of(OutsideStatus status) const { return statuses[static_cast<unsigned>(status)]; }
  void Report(const StressRun& run) const {
    for (unsigned i = 0; i < statuses.size(); ++i) {
      run.Report(OutsideStatusName(static_cast<OutsideStatus>(i)), statuses[i]);
    }
  }
};

void WaitForWriter(const Publisher& publisher) {
  while (publisher.progress.completed.load() < kCycle) SleepMilliseconds(1);
}

TEST(StoppedWriterStress, StoppedInMidWriteIsWholeOrRefused) {
  const Shared<Publisher> publisher;
  ChildProcess child([&publisher] { return publisher->Run(); });
  WaitForWriter(*publisher);
  OutsideReader reader(child.pid());
  Readings readings;
  unsigned busy_rounds = 0;
  const StressRun run;
  constexpr unsigned kRounds = 200;
  unsigned round = 0;
  const auto enough = [&] { return round >= kRounds && busy_rounds > 0; };
  while (round < kRounds || !enough()) {
    if (run.Done(enough())) break;
    usleep(static_cast<useconds_t>(random() % 500));
    kill(child.pid(), SIGSTOP);
    int status = 0;
    ASSERT_EQ(waitpid(child.pid(), &status, WUNTRACED), child.pid());
    ASSERT_TRUE(WIFSTOPPED(status));
    const uint64_t busy_before = readings.of(OutsideStatus::kBusy);
    for (int i = 0; i < 5; ++i) readings.Read(reader, publisher->progress);
    // Nothing moves, so all five say the same.
    const uint64_t busy = readings.of(OutsideStatus::kBusy) - busy_before;
    EXPECT_TRUE(busy == 0 || busy == 5) << busy;
    if (busy != 0) ++busy_rounds;
    kill(child.pid(), SIGCONT);
    ++round;
  }
  publisher->stop = true;
  EXPECT_EQ(child.Wait(), 0) << child.problem();
  run.Report("rounds", round);
  run.Report("rounds_in_mid_write", busy_rounds);
  readings.Report(run);
  EXPECT_GE(round, kRounds);
  EXPECT_GT(busy_rounds, 0u) << "never stopped in the middle of a write";
  EXPECT_EQ(readings.tally.wrong(), 0u) << readings.tally.Text();
  EXPECT_EQ(readings.of(OutsideStatus::kInconsistent), 0u);
  EXPECT_EQ(readings.of(OutsideStatus::kChanged), 0u) << "of a stopped process";
}

// Every instruction boundary of some cycles, not only those that chance finds.
TEST(StoppedWriterStress, EveryInstructionOfAWriteIsWholeOrRefused) {
  const Shared<Publisher> publisher;
  ChildProcess child([&publisher] { return publisher->Run(); });
  WaitForWriter(*publisher);
  if (ptrace(PTRACE_SEIZE, child.pid(), nullptr, nullptr) != 0 ||
      ptrace(PTRACE_INTERRUPT, child.pid(), nullptr, nullptr) != 0) {
    GTEST_SKIP() << "ptrace is not permitted here, errno " << errno;
  }
  int status = 0;
  ASSERT_EQ(waitpid(child.pid(), &status, __WALL), child.pid());
  OutsideReader reader(child.pid());
  Readings readings;
  const uint64_t first_step = publisher->progress.completed;
  uint64_t instructions = 0;
  const StressRun run;
  const auto steps = [&] { return publisher->progress.completed - first_step; };
  // With a sanitizer's own instructions a step is some ten thousand.
  constexpr uint64_t kEnoughSteps = kSanitized ? 2 : kCycle;
  while (!run.Done(steps() >= kEnoughSteps)) {
    if (ptrace(PTRACE_SINGLESTEP, child.pid(), nullptr, nullptr) != 0) {
      GTEST_SKIP() << "single steps are not supported here, errno " << errno;
    }
    ASSERT_EQ(waitpid(child.pid(), &status, __WALL), child.pid());
    ASSERT_TRUE(WIFSTOPPED(status));
    ++instructions;
    readings.Read(reader, publisher->progress);
  }
  ptrace(PTRACE_DETACH, child.pid(), nullptr, nullptr);
  publisher->stop = true;
  EXPECT_EQ(child.Wait(), 0) << child.problem();
  run.ReportRate("instructions", instructions);
  run.Report("steps", steps());
  readings.Report(run);
  EXPECT_GE(steps(), kEnoughSteps);
  EXPECT_EQ(readings.tally.wrong(), 0u) << readings.tally.Text();
  EXPECT_EQ(readings.of(OutsideStatus::kInconsistent), 0u);
  EXPECT_GT(readings.of(OutsideStatus::kBusy), 0u);
  EXPECT_GE(readings.tally.right, kEnoughReads);
}

TEST(StoppedWriterStress, KilledInMidWriteIsWholeOrRefused) {
  if (kThreadSanitizer) {
    GTEST_SKIP() << "two hundred processes under the thread sanitizer take many minutes";
  }
  constexpr unsigned kRounds = kSanitized ? 20 : 200;
  Readings readings;
  const StressRun run;
  unsigned round = 0;
  for (; round < kRounds; ++round) {
    const Shared<Publisher> publisher;
    ChildProcess child([&publisher] { return publisher->Run(); });
    for (int i = 0; publisher->progress.completed < kCycle; ++i) {
      ASSERT_LT(i, 100000) << "the publisher does not start";
      usleep(100);
    }
    OutsideReader reader(child.pid());
    readings.Read(reader, publisher->progress);  // finds the table while there is one
    const pid_t pid = child.pid();
    std::thread killer([pid] {
      usleep(static_cast<useconds_t>(random() % 1000));
      kill(pid, SIGKILL);
    });
    const uint64_t unreadable = readings.of(OutsideStatus::kUnreadable);
    while (readings.of(OutsideStatus::kUnreadable) == unreadable) {
      readings.Read(reader, publisher->progress);
    }
    killer.join();
    // A zombie: nothing is left to be read.
    OutsideContext seen;
    EXPECT_NE(reader.Read(publisher->progress.tid, &seen), OutsideStatus::kAccepted);
  }
  run.Report("rounds", round);
  readings.Report(run);
  EXPECT_GE(readings.tally.right, kEnoughSignals);
  EXPECT_EQ(readings.tally.wrong(), 0u) << readings.tally.Text();
  EXPECT_EQ(readings.of(OutsideStatus::kInconsistent), 0u);
}

}  // namespace
}  // namespace spanprof::stress
