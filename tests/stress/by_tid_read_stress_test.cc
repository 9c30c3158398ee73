// Other threads of the process read contexts by tid while the writers run, come and go, and get
// tids that dead threads had.

#include <array>
#include <cstdio>
#include <fcntl.h>
#include <sched.h>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

#include "child_process.h"
#include "scripted_writer.h"
#include "stress_run.h"

namespace spanprof::stress {
namespace {

constexpr unsigned kLanes = 3;  // of threads that follow each other
constexpr unsigned kReaders = 2;
constexpr uint32_t kMaxKeys = 1 << 16;  // all threads of a run

struct Churn {
  std::atomic<bool> stop{false};
  std::atomic<uint32_t> next_key{1};
  std::array<std::atomic<uint32_t>, kLanes + 1> key_of_lane = {};
  std::array<Progress, kMaxKeys> progress;
  std::atomic<uint32_t> last_start{0};
  std::array<std::atomic<uint32_t>, kMaxKeys> start_order = {};  // of the threads, by key
  Tally tally;
  std::atomic<uint64_t> reads{0}, no_thread{0}, read_after_exit{0}, reused_tids{0};
  std::atomic<uint64_t> steps{0}, wrong_swaps{0};

  int Run(bool reuse_tids);

 private:
  void RunLane(unsigned lane, bool reuse_tids);
  void ReadAll();
  void ReadOne(uint32_t key);
};

// The next thread of this pid namespace will get `tid`, if it is free.
void WishForTid(int tid) {
  const int fd = open("/proc/sys/kernel/ns_last_pid", O_WRONLY | O_CLOEXEC);
  if (fd < 0) return;
  char text[16];
  const int length = snprintf(text, sizeof text, "%d", tid - 1);
  if (write(fd, text, static_cast<size_t>(length)) < 0) perror("ns_last_pid");
  close(fd);
}

void Churn::RunLane(unsigned lane, bool reuse_tids) {
  int last_tid = 0;
  for (unsigned round = 0; !stop; ++round) {
    const uint32_t key = next_key.fetch_add(1);
    if (key >= kMaxKeys) return;
    if (reuse_tids && last_tid != 0) WishForTid(last_tid);
    std::thread thread([this, lane, key, round] {
      start_order[key] = ++last_start;
      ScriptedWriter writer(progress[key], key);
      key_of_lane[lane].store(key, std::memory_order_release);
      for (unsigned cycle = 0; cycle < 1 + round % 64; ++cycle) writer.RunCycle();
      // From here on "no context" is right: of this thread on its way out, or of the next one.
      progress[key].started.store(~uint64_t{0}, std::memory_order_release);
      steps += writer.steps();
      wrong_swaps += writer.wrong_swaps();
    });
    thread.join();
    // The key is the thread's own: a later one with the same tid has another.
    progress[key].gone.store(true, std::memory_order_release);
    const int tid = progress[key].tid;
    if (tid == last_tid) ++reused_tids;
    last_tid = tid;
  }
}

void Churn::ReadOne(uint32_t key) {
  Progress& of_key = progress[key];
  const int tid = of_key.tid.load(std::memory_order_acquire);
  if (tid == 0) return;
  const bool gone = of_key.gone.load(std::memory_order_acquire);
  const uint64_t completed = of_key.completed.load(std::memory_order_acquire);
  spanprof_context seen = {};
  seen.size = sizeof seen;
  const int result = spanprof_context_get_by_tid(tid, &seen);
  ++reads;
  if (result == -ESRCH) ++no_thread;
  if (result == -EAGAIN) ++tally.refused;
  if (result != 0) return;
  const Fields fields = FromContext(seen);
  const uint32_t seen_key = KeyOfSpan(fields.span_id);
  if (!fields.IsNone() && seen_key != key && seen_key > 0 && seen_key < kMaxKeys &&
      progress[seen_key].tid == tid) {
    // Another thread of this tid: one that came later, or else it was gone before the read.
    const bool is_later = start_order[seen_key] > start_order[key];
    tally.Add(is_later ? Judge(fields, seen_key, 0, ~uint64_t{0}) : Verdict::kStale);
    return;
  }
  if (gone && !fields.IsNone()) ++read_after_exit;
  tally.Add(Judge(fields, key, gone ? 0 : completed, of_key.started));
}

void Churn::ReadAll() {
  uint32_t previous[kLanes + 1] = {};
  while (!stop) {
    for (unsigned lane = 0; lane <= kLanes; ++lane) {
      const uint32_t key = key_of_lane[lane].load(std::memory_order_acquire);
      if (key != 0) ReadOne(key);
      if (previous[lane] != 0) ReadOne(previous[lane]);
      previous[lane] = key;
    }
  }
}

int Churn::Run(bool reuse_tids) {
  if (InitForStress("otel") != 0) return 2;
  std::vector<std::thread> threads;
  threads.emplace_back([this] {  // one that stays
    const uint32_t key = next_key.fetch_add(1);
    ScriptedWriter writer(progress[key], key);
    key_of_lane[kLanes].store(key, std::memory_order_release);
    writer.RunUntil(stop);
    steps += writer.steps();
  });
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    threads.emplace_back([this, lane, reuse_tids] { RunLane(lane, reuse_tids); });
  }
  for (unsigned i = 0; i < kReaders; ++i) threads.emplace_back([this] { ReadAll(); });
  for (std::thread& thread : threads) thread.join();
  return CounterNamed("abandoned_write") == 0 && CounterNamed("thread_not_attached") == 0 ? 0 : 3;
}

class ByTidReadStress : public ::testing::Test {
 protected:
  void Watch(Churn& churn, ChildProcess& child) {
    const StressRun run;
    while (!run.Done(churn.tally.right >= kEnoughReads)) SleepMilliseconds(20);
    churn.stop = true;
    EXPECT_EQ(child.Wait(), 0) << child.problem();
    run.ReportRate("updates", churn.steps);
    run.ReportRate("threads", churn.next_key);
    run.ReportRate("reads", churn.reads);
    run.Report("reads_accepted", churn.tally.right);
    run.Report("reads_refused", churn.tally.refused);
    run.Report("reads_no_thread", churn.no_thread);
    run.Report("tids_used_again_at_once", churn.reused_tids);
    EXPECT_GE(churn.tally.right, kEnoughReads);
    EXPECT_EQ(churn.tally.wrong(), 0u) << churn.tally.Text();
    EXPECT_EQ(churn.read_after_exit, 0u) << "contexts of threads that were joined before";
    EXPECT_EQ(churn.wrong_swaps, 0u);
  }
};

TEST_F(ByTidReadStress, NeverSeesAnotherThreadsContext) {
  const Shared<Churn> churn;
  ChildProcess child([&churn] { return churn->Run(false); });
  Watch(*churn, child);
}

// In a pid namespace of its own, where the test may choose the next tid.
TEST_F(ByTidReadStress, NeverSeesTheContextOfAnEarlierThreadWithTheSameTid) {
  if (kThreadSanitizer) GTEST_SKIP() << "the thread sanitizer cannot start threads after two forks";
  const Shared<Churn> churn;
  const Shared<std::atomic<int>> refused;
  ChildProcess outer([&churn, &refused] {
    if (unshare(CLONE_NEWPID) != 0) {
      *refused = errno;
      return 0;
    }
    ChildProcess inner([&churn] { return churn->Run(true); });
    return inner.Wait(600);
  });
  SleepMilliseconds(50);
  if (*refused != 0) GTEST_SKIP() << "a pid namespace needs privileges, errno " << *refused;
  Watch(*churn, outer);
  EXPECT_GT(churn->reused_tids, 0u);
}

}  // namespace
}  // namespace spanprof::stress
