#include "collect/node_thread_context.h"

#include <cstring>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "collect/fake_memory.h"
#include "collect/otel_record.h"

namespace spanprof::collect {
namespace {

constexpr NodeLayout kLayout = {32, 8, 24, 16};
constexpr uint64_t kVariable = 0x1000, kContinuation = 0x2000, kHandle = 0x2008, kMap = 0x3000,
                   kClass = 0x3100, kTable = 0x4000, kObject = 0x5000, kRecord = 0x6000;
constexpr uint64_t kStorage = 0x7001, kUndefined = 0x8001;  // tagged
constexpr int32_t kHash = 5;

constexpr uint64_t Small(int64_t value) { return static_cast<uint64_t>(value) << 32; }

// A thread whose storage has a store with a record, in a table of two buckets.
class NodeThread : public testing::Test {
 protected:
  NodeThread() {
    for (const uint64_t page : {kVariable, kContinuation, kMap, kTable, kObject}) {
      memory_.AddZeros(page, 0x1000);
    }
    // To the last byte: what is behind it cannot be read.
    memory_.AddZeros(kRecord, internal::kOtelAttributesOffset + 3);
    memory_.Store(kVariable,
                  internal::NodeThreadVariable{kContinuation, kHandle, kHash, 0, kUndefined});
    memory_.Store(kContinuation, kMap | 1);
    memory_.Store(kHandle, kStorage);
    memory_.Store(kMap, kClass | 1);
    memory_.Store(kMap + 24, kTable | 1);
    const int64_t words[] = {3 + 7 * 2, 1, 0, 2, -1, 0};
    for (unsigned i = 0; i < 6; ++i) memory_.Store(kTable + 8 + i * 8, Small(words[i]));
    memory_.Store(kEntry, kStorage);
    memory_.Store(kEntry + 8, kObject | 1);
    memory_.Store(kEntry + 16, Small(-1));
    memory_.Store(kObject + 32, kRecord);
    memory_.Store(kRecord + internal::kOtelSpanIdOffset, __builtin_bswap64(77));
    memory_.Store(kRecord + internal::kOtelValidOffset, internal::OtelRecordState(1, 0, 3));
    const uint8_t attribute[] = {1, 1, 'x'};
    std::memcpy(memory_.Find(kRecord + internal::kOtelAttributesOffset, 3).data(), attribute, 3);
  }

  NodeReading Read(const NodeLayout& layout = kLayout) {
    return ReadNodeContext(memory_, layout, kVariable);
  }
  NodeOutcome Outcome(const NodeLayout& layout = kLayout) { return Read(layout).outcome; }
  void TellRecordOffset(uint32_t offset) {
    memory_.Store(kVariable,
                  internal::NodeThreadVariable{kContinuation, kHandle, kHash, offset, kUndefined});
  }

  static constexpr uint64_t kEntry = kTable + 40 + 2 * 8;
  FakeMemory memory_;
};

TEST_F(NodeThread, HasTheRecordOfItsStore) {
  const NodeReading reading = Read();
  ASSERT_EQ(reading.outcome, NodeOutcome::kRecord);
  const auto record = ParseOtelRecord(reading.record());
  ASSERT_TRUE(record);
  EXPECT_EQ(record->span_id, 77u);
  ASSERT_EQ(record->attributes.size(), 1u);
  EXPECT_EQ(record->attributes[0].value, "x");
}

TEST_F(NodeThread, WithoutAContextHasNone) {
  memory_.Store(kEntry + 8, kUndefined);  // the storage was left
  EXPECT_EQ(Outcome(), NodeOutcome::kNoContext);
  memory_.Store(kEntry, kStorage + 8);  // another storage alone
  EXPECT_EQ(Outcome(), NodeOutcome::kNoContext);
  memory_.Store(kContinuation, kUndefined);  // no storage at all
  EXPECT_EQ(Outcome(), NodeOutcome::kNoContext);
  memory_.Store(kVariable, uint64_t{0});  // the gate is closed
  EXPECT_EQ(Outcome(), NodeOutcome::kNothingPublished);
}

TEST_F(NodeThread, AnObjectWhoseRecordIsGoneHasNone) {
  memory_.Store(kObject + 32, uint64_t{0});
  EXPECT_EQ(Outcome(), NodeOutcome::kNoContext);
}

TEST_F(NodeThread, EveryWordMayBeAnything) {
  const uint64_t words[] = {kVariable,   kVariable + 8, kVariable + 16, kContinuation, kHandle,
                            kMap,        kMap + 24,     kTable + 8,     kTable + 16,   kTable + 24,
                            kTable + 32, kTable + 40,   kTable + 48,    kEntry,        kEntry + 8,
                            kEntry + 16, kObject + 32,  kRecord + 24};
  const uint64_t values[] = {0,
                             1,
                             3,
                             UINT64_MAX,
                             UINT64_MAX - 6,
                             Small(1),
                             Small(-1),
                             Small(INT32_MAX),
                             Small(INT32_MIN),
                             kTable | 1,
                             kRecord};
  std::map<NodeOutcome, unsigned> outcomes;
  for (const uint64_t address : words) {
    uint64_t before = 0;
    const auto bytes = memory_.Find(address, 8);
    const std::size_t size = bytes.size();
    if (size != 8) continue;
    std::memcpy(&before, bytes.data(), size);
    for (const uint64_t value : values) {
      memory_.Store(address, value);
      memory_.calls = 0;
      const NodeReading reading = Read();
      ++outcomes[reading.outcome];
      EXPECT_LT(memory_.calls, 40u);
      if (reading.outcome == NodeOutcome::kRecord) (void)ParseOtelRecord(reading.record());
    }
    memory_.Store(address, before);
  }
  EXPECT_GT(outcomes[NodeOutcome::kUnreadable], 10u);
  EXPECT_GT(outcomes[NodeOutcome::kMalformed], 10u);
  EXPECT_EQ(Outcome(), NodeOutcome::kRecord);
}

TEST_F(NodeThread, MayTellItselfWhereARecordIs) {
  const NodeLayout told_nothing = *CompleteNodeLayout({});
  EXPECT_EQ(Outcome(told_nothing), NodeOutcome::kMalformed) << "nobody tells";
  TellRecordOffset(32);
  EXPECT_EQ(Outcome(told_nothing), NodeOutcome::kRecord);
  EXPECT_EQ(Outcome({24, 8, 24, 16}), NodeOutcome::kRecord) << "the thread knows better";
  for (const uint32_t offset : {1u, 33u, 4096u, UINT32_MAX - 7}) {
    TellRecordOffset(offset);
    EXPECT_EQ(Outcome(told_nothing), NodeOutcome::kMalformed) << offset;
  }
}

TEST(NodeLayout, WhatIsNotToldIsAsTheSchemaHasIt) {
  const auto layout = CompleteNodeLayout({});
  ASSERT_TRUE(layout);
  EXPECT_EQ(layout->record_offset, -1);
  EXPECT_EQ(layout->tagged_size, 8);
  EXPECT_EQ(layout->map_table_offset, 24);
  EXPECT_EQ(layout->table_header_size, 16);
  EXPECT_EQ(CompleteNodeLayout({40, -1, 32, -1})->record_offset, 40);
  EXPECT_EQ(CompleteNodeLayout({40, -1, 32, -1})->map_table_offset, 32);
}

TEST(NodeLayout, OnlyWhatCanBeReadIsAccepted) {
  EXPECT_TRUE(CompleteNodeLayout(kLayout));
  for (const NodeLayout& layout :
       {NodeLayout{32, 4, 24, 16}, NodeLayout{32, 8, 24, 8}, NodeLayout{0, 8, 24, 16},
        NodeLayout{32, 8, 1 << 20, 16}, NodeLayout{33, 8, 24, 16}, NodeLayout{-1, 4, -1, -1}}) {
    const auto checked = CompleteNodeLayout(layout);
    ASSERT_FALSE(checked);
    EXPECT_NE(checked.error().message.find("tagged_size"), std::string::npos);
  }
}

}  // namespace
}  // namespace spanprof::collect
