#include "collect/slot_table_discovery.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "collect/slot_table_fixture.h"

namespace spanprof::collect {
namespace {

using internal::SlotTableHeader;

SlotTableSearch Find(FakeMemory& memory, const std::string& maps) {
  return FindSlotTable(memory, ParseProcessMaps(maps), kFakePid);
}

TEST(SlotTableDiscovery, FindsATableByEachOfItsNames) {
  for (const char* name :
       {"/memfd:DD_OTEL_CTX (deleted)", "[anon:DD_OTEL_CTX]", "[anon_shmem:DD_OTEL_CTX]"}) {
    FakeMemory memory;
    FakeTableOptions options;
    options.name = name;
    const FakePublisher publisher(memory, options);
    const auto search = Find(memory, publisher.MapsLine());
    ASSERT_TRUE(search.table) << name;
    EXPECT_EQ(search.table->address, kFakeTableAddress);
    EXPECT_EQ(search.table->capacity, 64u);
    EXPECT_TRUE(search.table->sequenced);
    EXPECT_EQ(search.table->RecordPointerAddress(65), publisher.PointerAddress(1));
    EXPECT_EQ(search.table->SlotAddress(65), publisher.SlotAddress(1));
  }
}

TEST(SlotTableDiscovery, ScansAnonymousMemoryForTheMagic) {
  FakeMemory memory;
  FakeTableOptions options;
  options.name = "";
  const FakePublisher publisher(memory, options);
  EXPECT_TRUE(Find(memory, publisher.MapsLine()).table);

  // The kernel has merged it with memory below: it starts in the middle of a region. A page in
  // between has gone.
  memory.AddZeros(kFakeTableAddress - 0x3000, 0x1000);
  memory.AddZeros(kFakeTableAddress - 0x1000, 0x1000);
  const auto search = Find(memory, "7efffffd0000-7f0000010000 rw-p 00000000 00:00 0 \n");
  ASSERT_TRUE(search.table);
  EXPECT_EQ(search.table->address, kFakeTableAddress);

  EXPECT_FALSE(Find(memory, "7f0000000000-7f0000010000 r--p 00000000 00:00 0 \n").table);
  EXPECT_FALSE(Find(memory, "7f0000000000-7f0000010000 rw-p 00000000 00:00 9 /tmp/file\n").table);
}

TEST(SlotTableDiscovery, StopsTheScanAtItsLimit) {
  FakeMemory memory;
  const auto search = Find(memory, "100000000000-200000000000 rw-p 00000000 00:00 0 \n");
  EXPECT_FALSE(search.table);
  EXPECT_TRUE(search.scan_truncated);
  EXPECT_LT(memory.calls, 100000u);
}

TEST(SlotTableDiscovery, ReadsTablesOfASeedPublisher) {
  FakeMemory memory;
  FakeTableOptions options;
  options.features = 0;
  const FakePublisher publisher(memory, options);
  const auto search = Find(memory, publisher.MapsLine());
  ASSERT_TRUE(search.table);
  EXPECT_FALSE(search.table->sequenced);
  EXPECT_EQ(search.table->record_pointers, 0u);
}

struct HeaderCase {
  const char* what;
  std::size_t offset;
  uint32_t value;
  HeaderProblem problem;
};

class InvalidHeader : public testing::TestWithParam<HeaderCase> {};

TEST_P(InvalidHeader, IsRefused) {
  FakeMemory memory;
  FakePublisher publisher(memory, {});
  publisher.Store32(GetParam().offset, GetParam().value);
  const auto search = Find(memory, publisher.MapsLine());
  EXPECT_FALSE(search.table);
  if (GetParam().problem == HeaderProblem::kOtherPublisher) {
    EXPECT_EQ(search.stale_tables, 1u);
    return;
  }
  ASSERT_TRUE(search.refusal);
  EXPECT_EQ(search.refusal->problem, GetParam().problem) << HeaderRefusalText(*search.refusal);
  EXPECT_EQ(search.invalid_tables, GetParam().problem == HeaderProblem::kMagic ? 0u : 1u);
}

INSTANTIATE_TEST_SUITE_P(
    SlotTableDiscovery, InvalidHeader,
    testing::Values(
        HeaderCase{"Magic", offsetof(SlotTableHeader, magic), 0x4C45544F, HeaderProblem::kMagic},
        HeaderCase{"Withdrawn", offsetof(SlotTableHeader, magic), 0, HeaderProblem::kMagic},
        HeaderCase{"Version", offsetof(SlotTableHeader, version), 2, HeaderProblem::kVersion},
        HeaderCase{"SlotSize", offsetof(SlotTableHeader, slot_size), 64, HeaderProblem::kSlotSize},
        HeaderCase{"NoSlots", offsetof(SlotTableHeader, capacity), 0, HeaderProblem::kCapacity},
        HeaderCase{"TooManySlots", offsetof(SlotTableHeader, capacity),
                   internal::kMaxSlotCapacity + 1, HeaderProblem::kCapacity},
        HeaderCase{"MoreSlotsThanMemory", offsetof(SlotTableHeader, capacity),
                   internal::kMaxSlotCapacity, HeaderProblem::kMappingTooSmall},
        HeaderCase{"UnknownFeature", offsetof(SlotTableHeader, features), 7,
                   HeaderProblem::kFeatures},
        HeaderCase{"PointersWithoutSequence", offsetof(SlotTableHeader, features),
                   internal::kFeatureRecordPointers, HeaderProblem::kFeatures},
        HeaderCase{"ReservedBytesWithoutFeatures", offsetof(SlotTableHeader, features), 0,
                   HeaderProblem::kReservedBytes},
        HeaderCase{"PointersInTheSlots", offsetof(SlotTableHeader, record_pointers_offset), 64,
                   HeaderProblem::kRecordPointers},
        HeaderCase{"PointersNotAligned", offsetof(SlotTableHeader, record_pointers_offset), 2084,
                   HeaderProblem::kRecordPointers},
        HeaderCase{"PointersBehindTheMemory", offsetof(SlotTableHeader, record_pointers_offset),
                   4096 - 8, HeaderProblem::kMappingTooSmall},
        HeaderCase{"PointersFarAway", offsetof(SlotTableHeader, record_pointers_offset), 0xFFFFFFF8,
                   HeaderProblem::kMappingTooSmall},
        HeaderCase{"OtherPublisher", offsetof(SlotTableHeader, publisher_pid), kFakePid + 1,
                   HeaderProblem::kOtherPublisher}),
    [](const testing::TestParamInfo<HeaderCase>& header) { return header.param.what; });

TEST(SlotTableDiscovery, PrefersTheProcessesOwnAndNewestTable) {
  FakeMemory memory;
  FakeTableOptions inherited;
  inherited.publisher_pid = kFakePid - 1;
  const FakePublisher stale(memory, inherited, 0x10000);
  FakePublisher older(memory, {}, 0x20000);
  FakePublisher newer(memory, {}, 0x30000);
  FakePublisher middle(memory, {}, 0x40000);
  older.Store32(offsetof(SlotTableHeader, published_at_seconds), 5);
  newer.Store32(offsetof(SlotTableHeader, published_at_seconds), 9);
  middle.Store32(offsetof(SlotTableHeader, published_at_seconds), 7);
  const auto search =
      Find(memory, stale.MapsLine() + older.MapsLine() + newer.MapsLine() + middle.MapsLine());
  ASSERT_TRUE(search.table);
  EXPECT_EQ(search.table->address, 0x30000u);
  EXPECT_EQ(search.stale_tables, 1u);
}

TEST(SlotTableDiscovery, TellsThatTheProcessCannotBeRead) {
  FakeMemory memory;
  const FakePublisher publisher(memory, {});
  memory.fail_with = ReadStatus::kNotPermitted;
  const auto search = Find(memory, publisher.MapsLine());
  EXPECT_EQ(search.status, ReadStatus::kNotPermitted);
  EXPECT_EQ(memory.calls, 1u);
}

}  // namespace
}  // namespace spanprof::collect
