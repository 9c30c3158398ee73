#include "collect/context_snapshot.h"

#include <cerrno>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collect/fake_process_directory.h"
#include "collect/process_context_fixture.h"
#include "collect/slot_table_fixture.h"

namespace spanprof::collect {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr uint32_t kTid = kFakePid;

class ContextSnapshotTest : public testing::Test {
 protected:
  explicit ContextSnapshotTest(const FakeTableOptions& options = {})
      : publisher_(memory_, options) {
    directory_.AddTask(kFakePid, "main");
    context_.Publish(
        EncodeFakeContext({{"service.name", "shop"}}, {internal::kLocalRootKey, "http.route"}), 1);
    maps_ = kFakeContextMapsLine + publisher_.MapsLine();
  }

  Result<ContextSnapshot> Read() {
    directory_.Write("maps", maps_);
    const auto directory = directory_.Open();
    EXPECT_TRUE(directory);
    return ReadContextSnapshot(*directory, memory_, "spanprof context 4242");
  }
  ThreadContextSnapshot ReadMain() {
    auto snapshot = Read();
    EXPECT_TRUE(snapshot);
    if (!snapshot || snapshot->threads.empty()) return {};
    counters_ = snapshot->counters;
    return snapshot->threads[0];
  }
  uint64_t Count(ContextCounter counter) const { return counters_.Value(counter); }

  FakeMemory memory_;
  FakePublisher publisher_;
  FakeProcessContext context_{memory_};
  FakeProcessDirectory directory_{static_cast<pid_t>(kFakePid)};
  std::string maps_;
  ContextCounters counters_;
};

TEST_F(ContextSnapshotTest, ShowsIdsRootAndNamedAttributes) {
  publisher_.SetIds(kTid, 0xA, 0xB, 0xC);
  publisher_.SetWord(kTid, kTid, 2);
  publisher_.AddRecord(kTid, 0xA, 0xB, 0xC,
                       OtelEntry(0, "000000000000000d") + OtelEntry(1, "/cart"));
  const auto snapshot = Read();
  ASSERT_TRUE(snapshot);
  EXPECT_EQ(snapshot->pid, static_cast<pid_t>(kFakePid));
  EXPECT_THAT(snapshot->records,
              ElementsAre(RecordKind::kSlotTable, RecordKind::kOtep4947, RecordKind::kOtep4719));
  EXPECT_EQ(AttributeText(snapshot->resource.at("service.name")), "shop");
  ASSERT_EQ(snapshot->threads.size(), 1u);
  const ThreadContextSnapshot& thread = snapshot->threads[0];
  EXPECT_EQ(thread.name, "main");
  EXPECT_EQ(thread.trace_id_high, 0xAu);
  EXPECT_EQ(thread.trace_id_low, 0xBu);
  EXPECT_EQ(thread.span_id, 0xCu);
  EXPECT_EQ(thread.root_span_id, 0xDu);
  EXPECT_EQ(thread.source, RecordKind::kOtep4947);
  EXPECT_THAT(thread.attributes, ElementsAre(testing::Pair("http.route", "/cart")));
}

TEST_F(ContextSnapshotTest, NeverShowsARootAsATraceId) {
  // A plain set: the slot's trace_id_low is the local root.
  publisher_.SetIds(kTid, 0, 0xD, 0xC);
  publisher_.SetWord(kTid, kTid, 2);
  publisher_.AddRecord(kTid, 0, 0, 0xC, OtelEntry(0, "000000000000000d"));
  ThreadContextSnapshot thread = ReadMain();
  EXPECT_FALSE(thread.HasTraceId());
  EXPECT_EQ(thread.root_span_id, 0xDu);
  // The slot alone cannot tell, so it is a root ...
  publisher_.SetPointer(kTid, 1);
  thread = ReadMain();
  EXPECT_FALSE(thread.HasTraceId());
  EXPECT_EQ(thread.root_span_id, 0xDu);
  EXPECT_EQ(thread.source, RecordKind::kSlotTable);
  EXPECT_EQ(Count(ContextCounter::kBadRecordPointer), 1u);
  // ... unless it has an upper half.
  publisher_.SetIds(kTid, 0xA, 0xB, 0xC);
  thread = ReadMain();
  EXPECT_EQ(thread.trace_id_low, 0xBu);
  EXPECT_EQ(thread.root_span_id, 0u);
}

TEST_F(ContextSnapshotTest, ShowsA64BitTraceIdFromTheRecord) {
  publisher_.SetIds(kTid, 0, 0xB, 0xC);
  publisher_.SetWord(kTid, kTid, 2);
  publisher_.AddRecord(kTid, 0, 0xB, 0xC, "");
  const ThreadContextSnapshot thread = ReadMain();
  EXPECT_TRUE(thread.HasTraceId());
  EXPECT_EQ(thread.trace_id_low, 0xBu);
  EXPECT_EQ(thread.root_span_id, 0u);
}

TEST_F(ContextSnapshotTest, AnEmptyContextIsNone) {
  publisher_.SetWord(kTid, kTid, 2);
  publisher_.AddRecord(kTid, 0, 0, 0, "", 0);
  EXPECT_FALSE(ReadMain().HasContext());
  EXPECT_EQ(Count(ContextCounter::kRecordNotValid), 0u);
}

TEST_F(ContextSnapshotTest, DoesNotTrustARecordThatContradictsItsSlot) {
  publisher_.SetIds(kTid, 0, 0xD, 0xC);
  publisher_.SetWord(kTid, kTid, 2);
  publisher_.AddRecord(kTid, 1, 1, 0xBAD, OtelEntry(1, "another thread's"));
  ThreadContextSnapshot thread = ReadMain();
  EXPECT_EQ(thread.span_id, 0xCu);
  EXPECT_TRUE(thread.attributes.empty());
  EXPECT_EQ(Count(ContextCounter::kRecordMismatch), 1u);
  publisher_.AddRecord(kTid, 1, 1, 0xC, "", 0);
  thread = ReadMain();
  EXPECT_EQ(thread.source, RecordKind::kSlotTable);
  EXPECT_EQ(Count(ContextCounter::kRecordNotValid), 1u);
}

TEST_F(ContextSnapshotTest, CountsMalformedRootsAndUnknownKeys) {
  publisher_.SetIds(kTid, 0, 0, 0xC);
  publisher_.SetWord(kTid, kTid, 2);
  publisher_.AddRecord(kTid, 0, 0, 0xC, OtelEntry(0, "not hex") + OtelEntry(9, "x") + "\x05");
  const ThreadContextSnapshot thread = ReadMain();
  EXPECT_EQ(thread.root_span_id, 0u);
  EXPECT_THAT(thread.attributes, ElementsAre(testing::Pair("key:9", "x")));
  EXPECT_EQ(Count(ContextCounter::kMalformedRoot), 1u);
  EXPECT_EQ(Count(ContextCounter::kUnknownKey), 1u);
  EXPECT_EQ(Count(ContextCounter::kTruncatedRecord), 1u);
}

TEST_F(ContextSnapshotTest, ReadsTheKeyMapAgainForANewKey) {
  publisher_.SetIds(kTid, 0, 0, 0xC);
  publisher_.SetWord(kTid, kTid, 2);
  const uint64_t record = publisher_.AddRecord(kTid, 0, 0, 0xC, OtelEntry(2, "gold"));
  memory_.before_copy = [&](const MemoryRange& range) {
    if (range.address != record) return;
    context_.Publish(EncodeFakeContext({}, {internal::kLocalRootKey, "http.route", "tenant"}), 2);
  };
  EXPECT_THAT(ReadMain().attributes, ElementsAre(testing::Pair("tenant", "gold")));
  EXPECT_EQ(Count(ContextCounter::kUnknownKey), 0u);
}

TEST_F(ContextSnapshotTest, CountsWhatEachThreadCouldNotShow) {
  publisher_.SetWord(kTid, kTid, 3);  // in the middle of a write
  directory_.AddTask(kTid + 1, "silent");
  directory_.AddTask(kTid + 2, "owner");
  directory_.AddTask(kTid + 66, "loser");
  publisher_.SetWord(kTid + 2, kTid + 2, 2);
  publisher_.AddRecord(kTid + 2, 0, 0, 0, "", 0);
  directory_.AddTask(kTid + 3, "heir");
  publisher_.SetWord(kTid + 3, kTid + 3 + 64, 2);
  directory_.AddTask(kTid + 4, "foreign");
  publisher_.SetWord(kTid + 4, kTid, 2);
  EXPECT_FALSE(ReadMain().HasContext());
  EXPECT_EQ(Count(ContextCounter::kInProgress), 1u);
  EXPECT_EQ(Count(ContextCounter::kNeverWritten), 1u);
  EXPECT_EQ(Count(ContextCounter::kCollision), 1u);
  EXPECT_EQ(Count(ContextCounter::kStaleOwner), 1u);
  EXPECT_EQ(Count(ContextCounter::kForeignOwner), 1u);
}

TEST_F(ContextSnapshotTest, SaysWhatIsWrongWithATableOfAnotherVersion) {
  publisher_.Store32(offsetof(internal::SlotTableHeader, version), 7);
  maps_ = publisher_.MapsLine();
  const auto snapshot = Read();
  ASSERT_FALSE(snapshot);
  EXPECT_EQ(snapshot.error().code, ENODATA);
  EXPECT_THAT(snapshot.error().message, HasSubstr("version is 7"));
}

TEST_F(ContextSnapshotTest, RefusesATableInheritedThroughAFork) {
  publisher_.Store32(offsetof(internal::SlotTableHeader, publisher_pid), 1);
  auto snapshot = Read();
  ASSERT_TRUE(snapshot);  // for its process context
  EXPECT_THAT(snapshot->records, ElementsAre(RecordKind::kOtep4719));
  EXPECT_EQ(snapshot->counters.Value(ContextCounter::kStaleTable), 1u);
  maps_ = publisher_.MapsLine();
  snapshot = Read();
  ASSERT_FALSE(snapshot);
  EXPECT_THAT(snapshot.error().message, HasSubstr("inherited through a fork"));
}

TEST_F(ContextSnapshotTest, TellsProfilerModeFromNoSpanprofAtAll) {
  maps_ = "1000-2000 rw-p 00000000 00:01 5 /memfd:SPANPROF_CORE (deleted)\n";
  EXPECT_THAT(Read().error().message, HasSubstr("started with ctxstorage=profiler"));
  EXPECT_THAT(Read().error().hint, HasSubstr("restart with ctxstorage=otel"));
  maps_ = "1000-2000 r-xp 00000000 08:01 5 /opt/lib/libspanprof.so.0\n";
  EXPECT_THAT(Read().error().message, HasSubstr("ctxstorage=profiler"));
  EXPECT_THAT(Read().error().hint, HasSubstr("restart with ctxstorage=otel"));
  maps_ = "1000-2000 r-xp 00000000 08:01 5 /opt/lib/libother.so\n";
  EXPECT_THAT(Read().error().message, HasSubstr("spanprof is not loaded"));
  maps_ = "";
  EXPECT_THAT(Read().error().message, HasSubstr("has no memory"));
}

TEST_F(ContextSnapshotTest, ExplainsThatItMayNotRead) {
  memory_.fail_with = ReadStatus::kNotPermitted;
  const auto snapshot = Read();
  ASSERT_FALSE(snapshot);
  EXPECT_EQ(snapshot.error().code, EPERM);
  EXPECT_THAT(snapshot.error().message, HasSubstr("ptrace_scope"));
  EXPECT_THAT(snapshot.error().hint, HasSubstr("sudo spanprof context 4242"));
}

FakeTableOptions SeedOptions() {
  FakeTableOptions options;
  options.features = 0;
  return options;
}

class SeedSnapshotTest : public ContextSnapshotTest {
 protected:
  SeedSnapshotTest() : ContextSnapshotTest(SeedOptions()) {}
};

TEST_F(SeedSnapshotTest, MarksContextsWithoutASequence) {
  publisher_.SetIds(kTid, 0, 0xD, 0xC);
  const auto snapshot = Read();
  ASSERT_TRUE(snapshot);
  EXPECT_THAT(snapshot->records, ElementsAre(RecordKind::kSlotTable, RecordKind::kOtep4719));
  const ThreadContextSnapshot& thread = snapshot->threads.at(0);
  EXPECT_TRUE(thread.unsequenced);
  EXPECT_EQ(thread.span_id, 0xCu);
  EXPECT_EQ(thread.root_span_id, 0xDu);
  EXPECT_EQ(snapshot->counters.Value(ContextCounter::kUnsequenced), 1u);
}

}  // namespace
}  // namespace spanprof::collect
