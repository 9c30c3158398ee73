#include "sampling/unwind_table.h"

#include <cstdint>
#include <map>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "sampling/unwind_table_builder.h"

namespace spanprof::sampling {
namespace {

UnwindRule RuleOf(int offset) {
  UnwindRule rule;
  rule.cfa = CfaKind::kRegister;
  rule.cfa_register = 7;
  rule.cfa_offset = offset;
  return rule;
}

constexpr std::size_t kRoom = std::size_t{1} << 24;

TEST(UnwindTable, EveryAddressHasTheRowBeforeIt) {
  std::mt19937 random(1);
  for (int round = 0; round < 50; ++round) {
    const uint64_t begin = 0x1000 + random() % 5000;
    const uint64_t end = begin + 1 + random() % 20000;
    UnwindTableBuilder builder(begin, end, kRoom);
    std::map<uint64_t, int> expected;  // an oracle that is simple
    uint64_t address = begin;
    while (address < end) {
      const int offset = static_cast<int>(random() % 40);
      ASSERT_TRUE(builder.Add(address, RuleOf(offset)));
      expected[address] = offset;
      // Dense, sparse, and holes of several blocks.
      const unsigned step[] = {1, 7, 300, 3000};
      address += 1 + random() % step[random() % 4];
    }
    const auto table = builder.Finish();
    EXPECT_EQ(table->Find(begin - 1), nullptr);
    EXPECT_EQ(table->Find(end), nullptr);
    EXPECT_EQ(table->Find(0), nullptr);
    EXPECT_EQ(table->Find(UINT64_MAX), nullptr);
    for (uint64_t at = begin; at < end; ++at) {
      const UnwindRule* rule = table->Find(at);
      ASSERT_NE(rule, nullptr);
      ASSERT_EQ(rule->cfa_offset, std::prev(expected.upper_bound(at))->second) << at - begin;
    }
  }
}

TEST(UnwindTable, BeforeTheFirstRowThereIsNoInformation) {
  UnwindTableBuilder builder(1000, 5000, kRoom);
  ASSERT_TRUE(builder.Add(3000, RuleOf(8)));
  const auto table = builder.Finish();
  EXPECT_EQ(table->Find(2999)->cfa, CfaKind::kNoInformation);
  EXPECT_EQ(table->Find(3000)->cfa, CfaKind::kRegister);
  EXPECT_EQ(table->Find(4999)->cfa, CfaKind::kRegister);
}

TEST(UnwindTable, RowsOutOfOrderOrOutsideAreLeftOut) {
  UnwindTableBuilder builder(1000, 2000, kRoom);
  EXPECT_TRUE(builder.Add(1500, RuleOf(8)));
  EXPECT_TRUE(builder.Add(1400, RuleOf(16)));
  EXPECT_TRUE(builder.Add(2000, RuleOf(24)));
  EXPECT_TRUE(builder.Add(10, RuleOf(32)));
  const auto table = builder.Finish();
  EXPECT_EQ(table->row_count(), 2u);
  EXPECT_EQ(table->Find(1450)->cfa, CfaKind::kNoInformation);
  EXPECT_EQ(table->Find(1999)->cfa_offset, 8);
}

TEST(UnwindTable, MemoryIsBounded) {
  constexpr std::size_t kSmall = 20000;
  UnwindTableBuilder builder(0, 1 << 18, kSmall);
  uint64_t address = 0;
  while (builder.Add(address, RuleOf(static_cast<int>(address % 64)))) address += 4;
  ASSERT_GT(address, 1000u);
  const auto table = builder.Finish();
  EXPECT_LT(table->memory_bytes(), 2 * kSmall);
  EXPECT_NE(table->Find(address - 1), nullptr);
  EXPECT_EQ(table->Find(address), nullptr);

  UnwindTableBuilder none(0, uint64_t{1} << 31, kSmall);
  EXPECT_FALSE(none.Add(0, RuleOf(8)));
  EXPECT_EQ(none.Finish()->Find(0), nullptr);
}

TEST(UnwindTable, TooManyDifferentRulesAreSaidToBeUnsupported) {
  UnwindTableBuilder builder(0, 1 << 20, kRoom);
  for (int i = 0; i < 70000; ++i) ASSERT_TRUE(builder.Add(static_cast<uint64_t>(i) * 8, RuleOf(i)));
  EXPECT_GT(builder.excess_rules(), 4000u);
  const auto table = builder.Finish();
  EXPECT_EQ(table->Find(8 * 100)->cfa_offset, 100);
  EXPECT_EQ(table->Find(uint64_t{8} * 69999)->cfa, CfaKind::kUnsupported);
}

}  // namespace
}  // namespace spanprof::sampling
