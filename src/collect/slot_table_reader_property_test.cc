// The reader against a publisher that takes any number of steps between any two copies: what is
// accepted was published together.

#include <algorithm>
#include <array>
#include <rapidcheck.h>
#include <vector>

#include <gtest/gtest.h>

#include "collect/otel_record.h"
#include "collect/slot_table_fixture.h"
#include "collect/slot_table_reader.h"

namespace spanprof::collect {
namespace {

constexpr uint32_t kTid = 77;
constexpr unsigned kFinish = 99;

// Publishes 1, 2, 3, ... in all fields, a store a step.
class SteppingPublisher {
 public:
  SteppingPublisher(FakeMemory& memory, FakePublisher& table) : memory_(memory), table_(table) {
    record_ = table_.AddRecord(kTid, 0, 0, 0, "");
    table_.SetWord(kTid, kTid, 0);
  }

  void Finish() {
    while (step_ != 0) Step();
  }

  void Step() {
    const uint64_t slot = table_.SlotAddress(kTid);
    const uint64_t value = publication_ + 1;
    switch (step_++) {
      case 0:
        return table_.SetWord(kTid, kTid, sequence_ + 1);
      case 1:
        return memory_.Store(record_ + internal::kOtelValidOffset, uint32_t{0});
      case 2:
        return memory_.Store(record_ + internal::kOtelSpanIdOffset, __builtin_bswap64(value));
      case 3:
        return memory_.Store(slot + 16, value);
      case 4:
        return memory_.Store(slot + 8, value);
      case 5:
        return memory_.Store(record_, __builtin_bswap64(value));
      case 6:
        return memory_.Store(slot, value);
      case 7:
        return memory_.Store(record_ + 8, __builtin_bswap64(value));
      case 8:
        return memory_.Store(record_ + internal::kOtelValidOffset,
                             internal::OtelRecordState(1, 0, 0));
      default:
        ++publication_;
        sequence_ += 2;
        step_ = 0;
        return table_.SetWord(kTid, kTid, sequence_);
    }
  }

 private:
  FakeMemory& memory_;
  FakePublisher& table_;
  uint64_t record_ = 0;
  uint64_t publication_ = 0;
  uint32_t sequence_ = 0;
  unsigned step_ = 0;
};

TEST(SlotTableReaderProperty, AcceptsOnlyWhatWasPublishedTogether) {
  EXPECT_TRUE(rc::check([] {
    // Steps before each copy. Ten are one whole publication, the change that two looks at a flag
    // would miss; kFinish are as many as the present one still needs.
    const auto pace = *rc::gen::container<std::vector<unsigned>>(
        60, rc::gen::element(0u, 0u, 0u, 0u, 4u, 10u, kFinish, kFinish));
    FakeMemory memory;
    FakePublisher table(memory, {});
    SteppingPublisher publisher(memory, table);
    const auto search = FindSlotTable(memory, ParseProcessMaps(table.MapsLine()), kFakePid);
    RC_ASSERT(search.table.has_value());
    std::size_t copy = 0;
    memory.before_copy = [&](const MemoryRange&) {
      const unsigned steps = copy < pace.size() ? pace[copy] : 0;
      ++copy;
      if (steps == kFinish) publisher.Finish();
      for (unsigned i = 0; i < steps && steps != kFinish; ++i) publisher.Step();
    };
    SlotTableReader reader(memory, *search.table, {kTid});
    unsigned accepted = 0;
    while (copy < pace.size()) {
      const SlotReading reading = reader.Read(kTid);
      if (reading.outcome != SlotOutcome::kRead) continue;
      ++accepted;
      RC_ASSERT(reading.trace_id_high == reading.span_id);
      RC_ASSERT(reading.trace_id_low == reading.span_id);
      const auto record = ParseOtelRecord(reading.record);
      RC_ASSERT(record.has_value());
      RC_ASSERT(record->span_id == reading.span_id);
      RC_ASSERT(record->trace_id_high == reading.span_id);
      RC_ASSERT(record->trace_id_low == reading.span_id);
    }
    RC_CLASSIFY(accepted > 0, "some accepted");
  }));
}

TEST(SlotTableReaderProperty, AnyBytesAreHandled) {
  EXPECT_TRUE(rc::check([](const std::array<uint64_t, 4>& slot, uint64_t pointer, uint32_t tid,
                           const std::vector<uint32_t>& live) {
    FakeMemory memory;
    FakePublisher table(memory, {});
    for (std::size_t i = 0; i < slot.size(); ++i) {
      memory.Store(table.SlotAddress(tid) + i * 8, slot[i]);
    }
    table.SetPointer(tid, pointer);
    const auto search = FindSlotTable(memory, ParseProcessMaps(table.MapsLine()), kFakePid);
    RC_ASSERT(search.table.has_value());
    SlotTableReader reader(memory, *search.table, live);
    const SlotReading reading = reader.Read(tid);
    if (reading.outcome != SlotOutcome::kRead) return;
    RC_ASSERT(internal::SlotOwner(slot[3]) == tid);
    RC_ASSERT(!internal::SlotIsBusy(slot[3]));
  }));
}

}  // namespace
}  // namespace spanprof::collect
