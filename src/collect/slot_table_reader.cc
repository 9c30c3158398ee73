#include "collect/slot_table_reader.h"

#include <algorithm>
#include <cstring>
#include <sched.h>
#include <span>
#include <utility>

namespace spanprof::collect {
namespace {

constexpr std::size_t kIdBytes = offsetof(internal::Slot, word);

SlotReading Refused(SlotOutcome outcome) {
  SlotReading reading;
  reading.outcome = outcome;
  return reading;
}

SlotReading Unreadable(ReadStatus status) {
  SlotReading reading;
  reading.status = status;
  return reading;
}

std::span<std::byte> Bytes(uint64_t& value) { return std::as_writable_bytes(std::span(&value, 1)); }

void TakeIds(const std::array<std::byte, kIdBytes>& ids, SlotReading& reading) {
  const auto load = [&](std::size_t offset) {
    uint64_t value = 0;
    std::memcpy(&value, ids.data() + offset, sizeof(value));
    return value;
  };
  reading.trace_id_high = load(offsetof(internal::Slot, trace_id_high));
  reading.trace_id_low = load(offsetof(internal::Slot, trace_id_low));
  reading.span_id = load(offsetof(internal::Slot, span_id));
}

}  // namespace

SlotTableReader::SlotTableReader(MemoryReader& memory, const SlotTable& table,
                                 std::vector<uint32_t> live_tids)
    : memory_(memory), table_(table), live_tids_(std::move(live_tids)) {
  std::sort(live_tids_.begin(), live_tids_.end());
  live_tids_.erase(std::unique(live_tids_.begin(), live_tids_.end()), live_tids_.end());
  if (!table_.sequenced) {
    for (const uint32_t tid : live_tids_) ++slot_sharers_[tid % table_.capacity];
  }
}

SlotReading SlotTableReader::Read(uint32_t tid) {
  SlotReading reading;
  for (unsigned attempt = 0; attempt < kMaxAttempts; ++attempt) {
    // A writer that lost its processor in the middle of a write needs one to finish.
    if (attempt != 0) sched_yield();
    reading = table_.sequenced ? TrySequenced(tid) : TryUnsequenced(tid);
    const bool again =
        reading.outcome == SlotOutcome::kInProgress || reading.outcome == SlotOutcome::kChanged;
    if (!again) break;
  }
  return reading;
}

SlotOutcome SlotTableReader::WhoseIsIt(uint32_t owner, uint32_t tid) const {
  if (owner == 0) return SlotOutcome::kNeverWritten;
  if (owner % table_.capacity != tid % table_.capacity) return SlotOutcome::kForeignOwner;
  const bool alive = std::binary_search(live_tids_.begin(), live_tids_.end(), owner);
  return alive ? SlotOutcome::kCollision : SlotOutcome::kStaleOwner;
}

SlotReading SlotTableReader::TrySequenced(uint32_t tid) {
  const uint64_t slot = table_.SlotAddress(tid);
  const uint64_t word_address = slot + offsetof(internal::Slot, word);
  uint64_t word = 0;
  uint64_t pointer = 0;
  std::array<std::byte, kIdBytes> ids{};
  const bool wants_record = table_.record_pointers != 0;
  const MemoryRange opening[] = {
      {word_address, Bytes(word)}, {slot, ids}, {table_.RecordPointerAddress(tid), Bytes(pointer)}};
  ReadStatus status = memory_.ReadInOrder(std::span(opening).first(wants_record ? 3 : 2));
  if (status != ReadStatus::kOk) return Unreadable(status);
  const uint32_t owner = internal::SlotOwner(word);
  if (owner != tid) return Refused(WhoseIsIt(owner, tid));
  if (internal::SlotIsBusy(word)) return Refused(SlotOutcome::kInProgress);

  SlotReading reading;
  reading.sequenced = true;
  TakeIds(ids, reading);
  uint64_t word_after = 0;
  const MemoryRange closing[] = {{pointer, reading.record}, {word_address, Bytes(word_after)}};
  reading.has_record = wants_record && pointer != 0;
  if (reading.has_record) {
    status = memory_.ReadInOrder(closing);
    // The pointer may lead anywhere. Then the slot's own ids are all there is.
    if (status == ReadStatus::kBadAddress || status == ReadStatus::kPartial) {
      reading.has_record = false;
      reading.record.fill(std::byte{0});
    } else if (status != ReadStatus::kOk) {
      return Unreadable(status);
    }
  }
  if (!reading.has_record) {
    reading.bad_record_pointer = wants_record;
    status = memory_.ReadInOrder(std::span(closing).last(1));
    if (status != ReadStatus::kOk) return Unreadable(status);
  }
  if (word_after != word) return Refused(SlotOutcome::kChanged);
  reading.outcome = SlotOutcome::kRead;
  return reading;
}

SlotReading SlotTableReader::TryUnsequenced(uint32_t tid) {
  const auto sharers = slot_sharers_.find(tid % table_.capacity);
  if (sharers != slot_sharers_.end() && sharers->second > 1) {
    return Refused(SlotOutcome::kCollision);
  }
  const uint64_t slot = table_.SlotAddress(tid);
  const uint64_t flag_address = slot + offsetof(internal::Slot, word);
  struct Look {
    std::array<std::byte, 1> flag_before;
    std::array<std::byte, kIdBytes> ids;
    std::array<std::byte, 1> flag_after;
  };
  std::array<Look, 2> looks{};
  for (Look& look : looks) {
    const MemoryRange ranges[] = {
        {flag_address, look.flag_before}, {slot, look.ids}, {flag_address, look.flag_after}};
    const ReadStatus status = memory_.ReadInOrder(ranges);
    if (status != ReadStatus::kOk) return Unreadable(status);
    if (look.flag_before[0] != std::byte{0} || look.flag_after[0] != std::byte{0}) {
      return Refused(SlotOutcome::kInProgress);
    }
  }
  if (looks[0].ids != looks[1].ids) return Refused(SlotOutcome::kChanged);
  SlotReading reading;
  TakeIds(looks[1].ids, reading);
  const bool empty = (reading.trace_id_high | reading.trace_id_low | reading.span_id) == 0;
  reading.outcome = empty ? SlotOutcome::kNeverWritten : SlotOutcome::kRead;
  return reading;
}

}  // namespace spanprof::collect
