#include <gtest/gtest.h>

#include <spanprof/internal/records.hpp>

namespace spanprof::internal {
namespace {

// Values computed by the seed's own formula, in Java, with unlimited integers.
TEST(RecordChecksum, FollowsTheSeed) {
  EXPECT_EQ(RecordChecksum(1, 0), 0x9E3779B97F4A7C15u);
  EXPECT_EQ(RecordChecksum(0, 0x100000000u), 0x9E3779B97F4A7C15u);
  EXPECT_EQ(RecordChecksum(123, 456),
            (123u * 0x9E3779B97F4A7C15u) ^ ((uint64_t{456} << 32) * 0x9E3779B97F4A7C15u));
}

TEST(RecordChecksum, IsNeverZero) {
  EXPECT_EQ(RecordChecksum(0, 0), ~uint64_t{0});
  // The pairs that the hash maps to zero: root is span with its halves swapped.
  EXPECT_EQ(RecordChecksum(0x0000000100000002u, 0x0000000200000001u), ~uint64_t{0});
}

TEST(SlotWord, KeepsOwnerAndSequenceApart) {
  const uint64_t idle = SlotWordWithOwner(uint64_t{6} << 32, 0xABCDEF);
  EXPECT_EQ(SlotOwner(idle), 0xABCDEFu);
  EXPECT_FALSE(SlotIsBusy(idle));
  EXPECT_TRUE(SlotIsBusy(idle + kSlotBeginWrite));
  EXPECT_EQ(SlotOwner(idle + kSlotBeginWrite), 0xABCDEFu);
  EXPECT_EQ((idle + kSlotBeginWrite) >> 32, 7u);
  EXPECT_EQ(idle + kSlotFinishWrite, SlotWordWithOwner(uint64_t{8} << 32, 0xABCDEF));
}

TEST(SlotWord, SequenceWrapsWithoutTouchingTheOwner) {
  const uint64_t last = SlotWordWithOwner(uint64_t{0xFFFFFFFE} << 32, 42);
  EXPECT_EQ(last + kSlotFinishWrite, SlotWordWithOwner(0, 42));
}

TEST(SlotTable, SizesAreThoseOfTheSeed) {
  EXPECT_EQ(SlotTableRecordPointersOffset(65536), 2u * 1024 * 1024 + 32);
}

}  // namespace
}  // namespace spanprof::internal
