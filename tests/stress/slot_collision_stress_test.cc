// More threads than slots: one thread owns a slot, the others are invisible from outside, and all
// of them are right inside the process.

#include <array>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "child_process.h"
#include "outside_reader.h"
#include "scripted_writer.h"
#include "stress_run.h"

namespace spanprof::stress {
namespace {

constexpr unsigned kThreads = 5;
constexpr unsigned kGenerations = 64;  // of threads that follow when the crowd is gone

struct Crowd {
  std::atomic<bool> ready{false}, stop{false};
  std::array<Progress, kThreads> progress;
  std::array<Progress, kGenerations> visitors;
  std::atomic<uint32_t> visitor{0};
  Tally by_tid;
  std::atomic<uint64_t> by_tid_missing{0}, collisions{0}, taken_from_dead{0};

  int Run(const char* slots);

 private:
  void ReadByTid();
};

void Crowd::ReadByTid() {
  for (unsigned i = 0; !stop; i = (i + 1) % kThreads) {
    const uint64_t completed = progress[i].completed.load(std::memory_order_acquire);
    spanprof_context seen = {};
    seen.size = sizeof seen;
    const int result = spanprof_context_get_by_tid(progress[i].tid, &seen);
    // A writer ends only after `stop`, which may have come since it was looked at above.
    if (result == -ESRCH && completed >= kCycle && !stop) ++by_tid_missing;
    if (result == -EAGAIN) ++by_tid.refused;
    if (result == 0) {
      by_tid.Add(Judge(FromContext(seen), i + 1, completed, progress[i].started));
    }
  }
}

int Crowd::Run(const char* slots) {
  if (InitForStress("otel", (std::string(",ctxslots=") + slots).c_str()) != 0) return 2;
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < kThreads; ++i) {
    threads.emplace_back([this, i] {
      ScriptedWriter writer(progress[i], i + 1);
      writer.RunUntil(stop);
    });
  }
  threads.emplace_back([this] { ReadByTid(); });
  ready = true;
  while (!stop) SleepMilliseconds(1);
  for (std::thread& thread : threads) thread.join();

  // All owners are gone: whoever comes next gets a slot, one after the other.
  stop = false;
  for (uint32_t i = 0; i < kGenerations && !stop; ++i) {
    std::thread thread([this, i] {
      ScriptedWriter writer(visitors[i], 1000 + i);
      writer.RunCycle();
      visitor = i + 1;
      while (visitor == i + 1 && !stop) SleepMilliseconds(1);
    });
    thread.join();
  }
  collisions = CounterNamed("slot_collision");
  taken_from_dead = CounterNamed("slot_taken_from_dead");
  return 0;
}

class SlotCollisionStress : public ::testing::TestWithParam<unsigned> {};

TEST_P(SlotCollisionStress, OutsideReadersSeeOnlyOwners) {
  const unsigned slots = GetParam();
  const Shared<Crowd> crowd;
  ChildProcess child([&crowd, slots] { return crowd->Run(std::to_string(slots).c_str()); });
  while (!crowd->ready) SleepMilliseconds(1);
  for (Progress& progress : crowd->progress) {
    while (progress.completed < kCycle) SleepMilliseconds(1);
  }

  OutsideReader reader(child.pid());
  Tally outside;
  std::array<uint64_t, kThreads> seen_of_thread = {};
  uint64_t not_owner = 0, inconsistent = 0;
  const StressRun run;
  const auto enough = [&] {
    return outside.right >= kEnoughReads && crowd->by_tid.right >= kEnoughReads;
  };
  for (unsigned i = 0; i != 0 || !run.Done(enough()); i = (i + 1) % kThreads) {
    Progress& progress = crowd->progress[i];
    const uint64_t completed = progress.completed.load(std::memory_order_acquire);
    OutsideContext seen;
    const OutsideStatus status = reader.Read(progress.tid, &seen);
    if (status == OutsideStatus::kNotOwner) ++not_owner;
    if (status == OutsideStatus::kInconsistent) ++inconsistent;
    if (status != OutsideStatus::kAccepted) continue;
    ++seen_of_thread[i];
    outside.Add(Judge(seen.fields, i + 1, completed, progress.started));
  }
  crowd->stop = true;
  run.ReportRate("reads_outside", outside.right);
  run.ReportRate("reads_by_tid", crowd->by_tid.right);
  run.Report("reads_refused_not_owner", not_owner);
  EXPECT_EQ(outside.wrong(), 0u) << outside.Text();
  EXPECT_EQ(inconsistent, 0u);
  EXPECT_EQ(crowd->by_tid.wrong(), 0u) << crowd->by_tid.Text();
  EXPECT_EQ(crowd->by_tid_missing, 0u) << "threads without a slot must be found inside";
  EXPECT_GE(outside.right, kEnoughReads);
  EXPECT_GE(crowd->by_tid.right, kEnoughReads);
  unsigned owners = 0;
  for (const uint64_t count : seen_of_thread) owners += count > 0 ? 1 : 0;
  EXPECT_GE(owners, 1u);
  EXPECT_LE(owners, slots);

  // The slots are handed on.
  for (uint32_t i = 0; i < 20; ++i) {
    while (crowd->visitor != i + 1) SleepMilliseconds(1);
    OutsideContext seen;
    const Progress& progress = crowd->visitors[i];
    ASSERT_EQ(OutsideStatusName(reader.ReadWithRetries(progress.tid, &seen)),
              OutsideStatusName(OutsideStatus::kAccepted))
        << "thread " << i << " after the owners";
    EXPECT_TRUE(seen.fields == StateAt(1000 + i, 2 * kCycle - 1));
    if (i == 19) crowd->stop = true;
    crowd->visitor = 0;
  }
  EXPECT_EQ(child.Wait(), 0) << child.problem();
  run.Report("slot_collisions", crowd->collisions);
  EXPECT_EQ(crowd->collisions, kThreads - owners);
  EXPECT_EQ(crowd->taken_from_dead, 0u);
}

INSTANTIATE_TEST_SUITE_P(Slots, SlotCollisionStress, ::testing::Values(1u, 3u),
                         ::testing::PrintToStringParamName());

}  // namespace
}  // namespace spanprof::stress
