#include "context/slot_table.h"

#include "context/counters.h"
#include "context/platform.h"

namespace spanprof::context {

using internal::Slot;
using internal::SlotTableHeader;

bool SlotTable::Create(uint32_t capacity) {
  const NamedMapping mapping =
      MapNamed(internal::kSlotTableName, internal::SlotTableBytes(capacity));
  if (mapping.address == nullptr) return false;
  char* base = static_cast<char*>(mapping.address);
  capacity_ = capacity;
  header_ = reinterpret_cast<SlotTableHeader*>(base);
  slots_ = reinterpret_cast<Slot*>(base + internal::SlotTableSlotsOffset());
  record_pointers_ = reinterpret_cast<std::atomic<uint64_t>*>(
      base + internal::SlotTableRecordPointersOffset(capacity));
  return true;
}

void SlotTable::Announce() {
  header_->version = internal::kSlotTableVersion;
  header_->capacity = capacity_;
  header_->slot_size = sizeof(Slot);
  header_->features = internal::kFeatureSequencedWord | internal::kFeatureRecordPointers;
  header_->publisher_pid = CurrentProcessId();
  header_->record_pointers_offset =
      static_cast<uint32_t>(internal::SlotTableRecordPointersOffset(capacity_));
  header_->published_at_seconds = static_cast<uint32_t>(BootTimeNanoseconds() / 1'000'000'000u);
  // Release: a reader that sees the magic sees the header.
  header_->magic.store(internal::kSlotTableMagic, std::memory_order_release);
}

void SlotTable::Withdraw() { header_->magic.store(0, std::memory_order_release); }

Slot* SlotTable::Claim(uint32_t tid, const void* otel_record) {
  if (tid > internal::kMaxOwner) return nullptr;
  Slot& slot = SlotOf(tid);
  uint64_t word = slot.word.load(std::memory_order_acquire);
  for (;;) {
    const uint32_t owner = internal::SlotOwner(word);
    if (owner != 0 && owner != tid) {
      if (ThreadExists(owner)) {
        Count(Counter::kSlotCollision);
        return nullptr;
      }
      Count(Counter::kSlotTakenFromDead);
    }
    // Busy from the first moment, so that nobody reads the last owner's ids as ours. A dead owner
    // may have left the word odd: go to the next odd number, whatever it was.
    const uint64_t sequence = ((word >> 32) | 1) + (internal::SlotIsBusy(word) ? 2 : 0);
    const uint64_t claimed = internal::SlotWordWithOwner((sequence << 32) | 1, tid);
    if (slot.word.compare_exchange_strong(word, claimed, std::memory_order_acq_rel,
                                          std::memory_order_acquire)) {
      break;
    }
  }
  // Pairs with the reader's acquire fence: ids that we zero are never taken for the last owner's.
  std::atomic_thread_fence(std::memory_order_release);
  record_pointers_[tid % capacity_].store(reinterpret_cast<uint64_t>(otel_record),
                                          std::memory_order_relaxed);
  ResetSlot(slot, tid);
  return &slot;
}

void SlotTable::Release(uint32_t tid) {
  Slot& slot = SlotOf(tid);
  if (internal::SlotOwner(slot.word.load(std::memory_order_relaxed)) != tid) return;
  // The record pointer stays: without an owner nobody follows it, and a reader that is about to
  // will find the word changed.
  ResetSlot(slot, 0);
}

void SlotTable::Erase() { ZeroMapping(header_, internal::SlotTableBytes(capacity_)); }

void SlotTable::ResetInForkedChild() {
  Erase();
  Announce();
}

void ResetSlot(Slot& slot, uint32_t owner) {
  const uint64_t word = slot.word.load(std::memory_order_relaxed);
  const uint64_t odd = ((word >> 32) | 1) << 32;
  slot.word.store(internal::SlotWordWithOwner(odd | 1, internal::SlotOwner(word)),
                  std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  slot.trace_id_high.store(0, std::memory_order_relaxed);
  slot.trace_id_low.store(0, std::memory_order_relaxed);
  slot.span_id.store(0, std::memory_order_relaxed);
  slot.word.store(internal::SlotWordWithOwner(odd + (uint64_t{1} << 32), owner),
                  std::memory_order_release);
}

}  // namespace spanprof::context
