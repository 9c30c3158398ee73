#pragma once

// The table of slots that other processes read: one slot a thread, at tid % capacity. Layout and
// protocol are in <spanprof/internal/records.hpp> and docs/protocols.md.
//
// Claim and Release are called by the registry with its lock held and signals blocked. The memory
// is never unmapped: a thread may be writing to its slot at any time.

#include <cstdint>

#include <spanprof/internal/records.hpp>

namespace spanprof::context {

class SlotTable {
 public:
  // False: there is no memory. The table is not announced before Announce.
  bool Create(uint32_t capacity);
  bool exists() const { return header_ != nullptr; }
  uint32_t capacity() const { return capacity_; }

  // Makes the header valid, so that readers find the table; or takes it away again.
  void Announce();
  void Withdraw();

  // The slot of that thread, with the thread as its owner and all ids zero; null when it belongs to
  // another thread that is alive. `otel_record` is what the table will lead readers to.
  internal::Slot* Claim(uint32_t tid, const void* otel_record);
  // Gives the slot back: ids zero, no owner.
  void Release(uint32_t tid);

  // Where that thread's context is, if it owns the slot.
  internal::Slot& SlotOf(uint32_t tid) const { return slots_[tid % capacity_]; }

  // Every slot is free and empty, and the table is not announced.
  void Erase();
  // In a forked child: every slot is free, and the publisher is this process.
  void ResetInForkedChild();

 private:
  uint32_t capacity_ = 0;
  internal::SlotTableHeader* header_ = nullptr;
  internal::Slot* slots_ = nullptr;
  std::atomic<uint64_t>* record_pointers_ = nullptr;
};

// A slot's ids as zero, under its sequence, with a new owner (0: none).
void ResetSlot(internal::Slot& slot, uint32_t owner);

}  // namespace spanprof::context
