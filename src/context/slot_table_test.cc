#include "context/slot_table.h"

#include <fstream>
#include <string>
#include <unistd.h>

#include <gtest/gtest.h>
#include <sys/wait.h>

#include "context/platform.h"
#include "context/process_state.h"

namespace spanprof::context {
namespace {

using internal::Slot;

uint64_t Word(const Slot& slot) { return slot.word.load(std::memory_order_relaxed); }

// A tid that no thread of the process has: a forked child's, which has ended.
uint32_t DeadThreadId() {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  waitpid(child, nullptr, 0);
  return static_cast<uint32_t>(child);
}

class SlotTableTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(EnsureProcessState());
    ASSERT_TRUE(table_.Create(8));
    table_.Announce();
  }
  SlotTable table_;
  int record_ = 0;
};

TEST_F(SlotTableTest, ClaimMakesTheThreadTheOwnerOfAnEmptySlot) {
  const uint32_t tid = CurrentThreadId();
  Slot* slot = table_.Claim(tid, &record_);
  ASSERT_NE(slot, nullptr);
  EXPECT_EQ(internal::SlotOwner(Word(*slot)), tid);
  EXPECT_FALSE(internal::SlotIsBusy(Word(*slot)));
  EXPECT_EQ(slot->span_id.load(), 0u);
}

TEST_F(SlotTableTest, ASecondLiveClaimantGetsNothingAndTheFirstKeepsItsSlot) {
  const uint32_t tid = CurrentThreadId();
  Slot* slot = table_.Claim(tid, &record_);
  ASSERT_NE(slot, nullptr);
  const uint64_t before = Word(*slot);
  EXPECT_EQ(table_.Claim(tid + 8, &record_), nullptr);
  EXPECT_EQ(Word(*slot), before);
  EXPECT_EQ(CounterValue(static_cast<unsigned>(Counter::kSlotCollision)), 1u);
}

TEST_F(SlotTableTest, TheSlotOfADeadThreadIsTakenOverEvenInMidWrite) {
  const uint32_t tid = CurrentThreadId();
  uint32_t dead = DeadThreadId();
  while (dead % 8 != tid % 8) dead = DeadThreadId();
  Slot* slot = table_.Claim(dead, &record_);
  ASSERT_NE(slot, nullptr);
  slot->word.store(Word(*slot) + internal::kSlotBeginWrite);
  slot->span_id.store(77);
  const uint64_t abandoned = Word(*slot);
  EXPECT_EQ(table_.Claim(tid, &record_), slot);
  EXPECT_EQ(internal::SlotOwner(Word(*slot)), tid);
  EXPECT_FALSE(internal::SlotIsBusy(Word(*slot)));
  EXPECT_EQ(slot->span_id.load(), 0u);
  EXPECT_GT(Word(*slot) >> 32, abandoned >> 32);
}

TEST_F(SlotTableTest, ReleaseLeavesNoIdsAndNoOwnerAndGoesOnCounting) {
  const uint32_t tid = CurrentThreadId();
  Slot* slot = table_.Claim(tid, &record_);
  ASSERT_NE(slot, nullptr);
  slot->span_id.store(77);
  const uint64_t before = Word(*slot);
  table_.Release(tid);
  EXPECT_EQ(internal::SlotOwner(Word(*slot)), 0u);
  EXPECT_EQ(slot->span_id.load(), 0u);
  EXPECT_GT(Word(*slot) >> 32, before >> 32);
}

TEST_F(SlotTableTest, ReleaseOfASlotOfSomebodyElseDoesNothing) {
  const uint32_t tid = CurrentThreadId();
  Slot* slot = table_.Claim(tid, &record_);
  ASSERT_NE(slot, nullptr);
  const uint64_t before = Word(*slot);
  table_.Release(tid + 8);
  EXPECT_EQ(Word(*slot), before);
}

#if defined(__linux__)
TEST_F(SlotTableTest, IsFoundByNameAndMagicInTheListOfMappings) {
  std::ifstream maps("/proc/self/maps");
  std::string line, found;
  while (std::getline(maps, line)) {
    if (line.find(internal::kSlotTableName) != std::string::npos) found = line;
  }
  ASSERT_NE(found, "");
  const auto* bytes = reinterpret_cast<const unsigned char*>(std::stoull(found, nullptr, 16));
  EXPECT_EQ(bytes[0], 0x4C);
  EXPECT_EQ(bytes[1], 0x45);
  EXPECT_EQ(bytes[2], 0x54);
  EXPECT_EQ(bytes[3], 0x4F);
}

TEST_F(SlotTableTest, AChildOfForkFindsAllSlotsFreeAndItselfThePublisher) {
  ASSERT_NE(table_.Claim(CurrentThreadId(), &record_), nullptr);
  const uint32_t parents_tid = CurrentThreadId();
  const pid_t child = fork();
  if (child == 0) {
    table_.ResetInForkedChild();
    // The parent's thread lives, but not here: its slot is free.
    const bool free = table_.Claim(parents_tid, &record_) != nullptr;
    _exit(free && CounterValue(static_cast<unsigned>(Counter::kSlotCollision)) == 0 ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}
#endif

}  // namespace
}  // namespace spanprof::context
