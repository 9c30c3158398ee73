#pragma once

// Writing and reading the event slots of a station.
//
// A writer marks a slot with sequence 0, writes it, and publishes it with 2k, for its event k. A
// reader that follows the specification's text takes every sequence above the last one it saw, one
// that follows the discipline in use takes only even ones: neither takes 0. So both can read what
// is written here. One that does not look at the sequence again afterwards may still get a mixture.
//
// Lock-free, no allocation. One writer a station at a time.

#include <atomic>
#include <cstdint>

#include <spanprof/internal/coroutine_layout.hpp>

namespace spanprof::internal::coroutine {

struct SlotEvent {
  uint64_t timestamp = 0;
  uint64_t tid = 0;
  uint64_t addr = 0;
  uint64_t tail[4] = {};  // payload, and is_active in the highest byte
  uint64_t sequence = 0;

  [[nodiscard]] bool active() const { return (tail[3] >> kActiveShift) != 0; }
};

inline void WriteSlot(StationData& station, uint64_t event, const SlotEvent& values) {
  Epoch& slot = station.slots[(event - 1) % kSlotCount];
  slot.seq.store(0, std::memory_order_relaxed);
  // With the reader's acquire fence: who has seen one of the values below finds 0 or a later
  // sequence when looking again.
  std::atomic_thread_fence(std::memory_order_release);
  slot.timestamp.store(values.timestamp, std::memory_order_relaxed);
  slot.tid.store(values.tid, std::memory_order_relaxed);
  slot.addr.store(values.addr, std::memory_order_relaxed);
  for (int i = 0; i < 4; ++i) slot.tail[i].store(values.tail[i], std::memory_order_relaxed);
  // Pairs with the reader's first load of seq.
  slot.seq.store(2 * event, std::memory_order_release);
}

// False: it was being written, or has changed meanwhile. A sequence that says "being written" by
// the numbering is refused too.
inline bool ReadSlot(const Epoch& slot, Numbering numbering, SlotEvent& out) {
  const uint64_t sequence = slot.seq.load(std::memory_order_acquire);  // pairs with the last store
  if (sequence == 0) return false;
  if (numbering != kNumberingText && (sequence & 1) != 0) return false;
  out.timestamp = slot.timestamp.load(std::memory_order_relaxed);
  out.tid = slot.tid.load(std::memory_order_relaxed);
  out.addr = slot.addr.load(std::memory_order_relaxed);
  for (int i = 0; i < 4; ++i) out.tail[i] = slot.tail[i].load(std::memory_order_relaxed);
  // Pairs with the writer's release fence behind its first store.
  std::atomic_thread_fence(std::memory_order_acquire);
  out.sequence = sequence;
  return slot.seq.load(std::memory_order_relaxed) == sequence;
}

}  // namespace spanprof::internal::coroutine
