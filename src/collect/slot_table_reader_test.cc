#include "collect/slot_table_reader.h"

#include <vector>

#include <gtest/gtest.h>

#include "collect/slot_table_fixture.h"

namespace spanprof::collect {
namespace {

constexpr uint32_t kTid = 100;
constexpr uint64_t kWord = offsetof(internal::Slot, word);

class SlotTableReaderTest : public testing::Test {
 protected:
  explicit SlotTableReaderTest(const FakeTableOptions& options = {})
      : publisher_(memory_, options) {}

  SlotReading Read(uint32_t tid, std::vector<uint32_t> live = {kTid}) {
    const auto search = FindSlotTable(memory_, ParseProcessMaps(publisher_.MapsLine()), kFakePid);
    EXPECT_TRUE(search.table);
    return SlotTableReader(memory_, search.table.value_or(SlotTable{}), std::move(live)).Read(tid);
  }
  // Counts how often the slot's word is copied, and calls `then` after that many.
  template <class Function>
  void BeforeEachWordCopy(Function function) {
    memory_.before_copy = [this, function](const MemoryRange& range) {
      if (range.address == publisher_.SlotAddress(kTid) + kWord) function();
    };
  }

  FakeMemory memory_;
  FakePublisher publisher_;
};

TEST_F(SlotTableReaderTest, ReadsIdsAndRecord) {
  publisher_.SetIds(kTid, 1, 2, 3);
  publisher_.SetWord(kTid, kTid, 4);
  const uint64_t record = publisher_.AddRecord(kTid, 1, 2, 3, "");
  const SlotReading reading = Read(kTid);
  EXPECT_EQ(reading.outcome, SlotOutcome::kRead);
  EXPECT_EQ(reading.trace_id_high, 1u);
  EXPECT_EQ(reading.trace_id_low, 2u);
  EXPECT_EQ(reading.span_id, 3u);
  EXPECT_TRUE(reading.sequenced);
  ASSERT_TRUE(reading.has_record);
  EXPECT_FALSE(reading.bad_record_pointer);
  EXPECT_EQ(
      std::memcmp(reading.record.data(), memory_.Find(record, internal::kOtelRecordBytes).data(),
                  internal::kOtelRecordBytes),
      0);
}

TEST_F(SlotTableReaderTest, GivesUpOnASlotThatStaysBusy) {
  publisher_.SetWord(kTid, kTid, 5);
  unsigned copies = 0;
  BeforeEachWordCopy([&] { ++copies; });
  EXPECT_EQ(Read(kTid).outcome, SlotOutcome::kInProgress);
  EXPECT_EQ(copies, SlotTableReader::kMaxAttempts);
}

TEST_F(SlotTableReaderTest, RefusesASlotThatChangesEachTime) {
  publisher_.AddRecord(kTid, 1, 2, 3, "");
  uint32_t sequence = 2;
  unsigned copies = 0;
  BeforeEachWordCopy([&] {
    ++copies;
    publisher_.SetWord(kTid, kTid, sequence += 2);
  });
  EXPECT_EQ(Read(kTid).outcome, SlotOutcome::kChanged);
  EXPECT_EQ(copies, 2 * SlotTableReader::kMaxAttempts);
}

TEST_F(SlotTableReaderTest, ReadsAgainAfterAChange) {
  publisher_.AddRecord(kTid, 1, 2, 3, "");
  publisher_.SetIds(kTid, 1, 2, 3);
  publisher_.SetWord(kTid, kTid, 2);
  unsigned copies = 0;
  BeforeEachWordCopy([&] {
    if (++copies != 2) return;
    publisher_.SetIds(kTid, 7, 8, 9);
    publisher_.SetWord(kTid, kTid, 4);
  });
  const SlotReading reading = Read(kTid);
  EXPECT_EQ(reading.outcome, SlotOutcome::kRead);
  EXPECT_EQ(reading.span_id, 9u);
}

TEST_F(SlotTableReaderTest, TellsOwnersApart) {
  EXPECT_EQ(Read(kTid).outcome, SlotOutcome::kNeverWritten);
  publisher_.SetWord(kTid, 0, 8);
  EXPECT_EQ(Read(kTid).outcome, SlotOutcome::kNeverWritten);
  const uint32_t neighbour = kTid + 64;  // the same slot
  publisher_.SetWord(kTid, neighbour, 8);
  EXPECT_EQ(Read(kTid, {kTid, neighbour}).outcome, SlotOutcome::kCollision);
  EXPECT_EQ(Read(kTid, {kTid}).outcome, SlotOutcome::kStaleOwner);
  publisher_.SetWord(kTid, kTid + 1, 8);
  EXPECT_EQ(Read(kTid, {kTid, kTid + 1}).outcome, SlotOutcome::kForeignOwner);
  // Whose it is decides, also while it is being written.
  publisher_.SetWord(kTid, neighbour, 9);
  EXPECT_EQ(Read(kTid, {kTid, neighbour}).outcome, SlotOutcome::kCollision);
}

TEST_F(SlotTableReaderTest, FallsBackToTheSlotWhenTheRecordCannotBeRead) {
  publisher_.SetIds(kTid, 1, 2, 3);
  publisher_.SetWord(kTid, kTid, 4);
  memory_.AddZeros(0x9000, 100);  // shorter than a record
  for (const uint64_t pointer : {uint64_t{0}, uint64_t{1}, uint64_t{0x9000}, UINT64_MAX}) {
    publisher_.SetPointer(kTid, pointer);
    const SlotReading reading = Read(kTid);
    EXPECT_EQ(reading.outcome, SlotOutcome::kRead);
    EXPECT_EQ(reading.span_id, 3u);
    EXPECT_FALSE(reading.has_record);
    EXPECT_TRUE(reading.bad_record_pointer);
  }
}

TEST_F(SlotTableReaderTest, RefusesAChangedSlotAlsoWithoutARecord) {
  uint32_t sequence = 2;
  BeforeEachWordCopy([&] { publisher_.SetWord(kTid, kTid, sequence += 2); });
  publisher_.SetPointer(kTid, 1);
  EXPECT_EQ(Read(kTid).outcome, SlotOutcome::kChanged);
}

TEST_F(SlotTableReaderTest, SaysWhyItCannotRead) {
  const auto search = FindSlotTable(memory_, ParseProcessMaps(publisher_.MapsLine()), kFakePid);
  memory_.fail_with = ReadStatus::kNoSuchProcess;
  SlotTableReader reader(memory_, *search.table, {kTid});
  EXPECT_EQ(reader.Read(kTid).outcome, SlotOutcome::kUnreadable);
  EXPECT_EQ(reader.Read(kTid).status, ReadStatus::kNoSuchProcess);
}

FakeTableOptions SeedOptions() {
  FakeTableOptions options;
  options.features = 0;
  return options;
}

class SeedTableReaderTest : public SlotTableReaderTest {
 protected:
  SeedTableReaderTest() : SlotTableReaderTest(SeedOptions()) {}
};

TEST_F(SeedTableReaderTest, ReadsIdsTwiceAndMarksThem) {
  publisher_.SetIds(kTid, 0, 2, 3);
  const SlotReading reading = Read(kTid);
  EXPECT_EQ(reading.outcome, SlotOutcome::kRead);
  EXPECT_EQ(reading.trace_id_low, 2u);
  EXPECT_FALSE(reading.sequenced);
  EXPECT_FALSE(reading.has_record);
  EXPECT_FALSE(reading.bad_record_pointer);
}

TEST_F(SeedTableReaderTest, RefusesWhatIsInUseOrChanges) {
  publisher_.SetIds(kTid, 0, 2, 3);
  memory_.Store(publisher_.SlotAddress(kTid) + kWord, uint8_t{1});
  EXPECT_EQ(Read(kTid).outcome, SlotOutcome::kInProgress);
  memory_.Store(publisher_.SlotAddress(kTid) + kWord, uint8_t{0});
  uint64_t span = 3;
  BeforeEachWordCopy([&] { publisher_.SetIds(kTid, 0, 2, ++span); });
  EXPECT_EQ(Read(kTid).outcome, SlotOutcome::kChanged);
}

TEST_F(SeedTableReaderTest, ShowsNobodyASlotThatTwoLiveThreadsShare) {
  publisher_.SetIds(kTid, 0, 2, 3);
  EXPECT_EQ(Read(kTid, {kTid, kTid + 64}).outcome, SlotOutcome::kCollision);
  EXPECT_EQ(Read(kTid + 64, {kTid, kTid + 64}).outcome, SlotOutcome::kCollision);
  EXPECT_EQ(Read(kTid + 1).outcome, SlotOutcome::kNeverWritten);
}

}  // namespace
}  // namespace spanprof::collect
