#pragma once

// Stations for coroutines and rings for threads, out of the process's area. The slow path of an
// event: any thread, not for signal handlers.

#include <atomic>
#include <cstdint>
#include <mutex>
#include <unistd.h>

#include <sys/syscall.h>

#include <spanprof/internal/coroutine_layout.hpp>
#include <spanprof/internal/coroutine_process.hpp>

namespace spanprof::internal::coroutine {

// ---- Stations ----

inline StationData* StationAt(uint32_t index) {
  char* chunk = process.chunks[index / kStationsPerChunk].load(std::memory_order_acquire);
  if (chunk == nullptr) return nullptr;
  return reinterpret_cast<StationData*>(chunk + kStationsOffset) + index % kStationsPerChunk;
}

// Takes a station that the harvester gave back. The counter in the upper half makes sure that the
// one taken still has the successor that was read from it.
inline StationData* TakeFreeStation(GlobalHeader& header, uint32_t& index) {
  uint64_t top = header.free_stations.load(std::memory_order_acquire);
  for (;;) {
    const uint32_t entry = static_cast<uint32_t>(top);
    if (entry == 0 || entry > header.allocated_count.load(std::memory_order_relaxed))
      return nullptr;
    StationData* station = StationAt(entry - 1);
    if (station == nullptr) return nullptr;
    const uint64_t next = station->next_free.load(std::memory_order_relaxed);
    const uint64_t wanted = (((top >> 32) + 1) << 32) | next;
    if (header.free_stations.compare_exchange_weak(top, wanted, std::memory_order_acquire,
                                                   std::memory_order_acquire)) {
      index = entry - 1;
      return station;
    }
  }
}

inline StationData* TakeNewStation(GlobalHeader& header, uint32_t& index) {
  uint32_t next = header.allocated_count.load(std::memory_order_relaxed);
  if (process.foreign) {
    // As the specification has it: the cursor goes on past the end.
    next = header.allocated_count.fetch_add(1, std::memory_order_relaxed);
    index = next;
    if (next >= header.max_stations.load(std::memory_order_relaxed) || next >= kMaxStations) {
      return nullptr;
    }
    return StationAt(next);
  }
  do {
    if (next >= kMaxStations) return nullptr;
    if (next >= header.max_stations.load(std::memory_order_acquire)) {
      const std::lock_guard guard(process.lock);
      const uint32_t capacity = header.max_stations.load(std::memory_order_relaxed);
      if (next >= capacity) {
        constexpr uint64_t kChunkBytes = uint64_t{kStationsPerChunk} * sizeof(StationData);
        const uint32_t chunk = capacity / kStationsPerChunk;
        char* memory = MapArea(chunk * kChunkBytes, kChunkBytes + kPageBytes);
        if (memory == nullptr) return nullptr;
        process.chunks[chunk].store(memory, std::memory_order_release);
        header.max_stations.store(capacity + kStationsPerChunk, std::memory_order_release);
      }
    }
  } while (
      !header.allocated_count.compare_exchange_weak(next, next + 1, std::memory_order_relaxed));
  index = next;
  return StationAt(next);
}

// ---- Rings ----

// Gives the thread's ring back when the thread ends.
struct ThreadRingOwner {
  bool used = false;
  ~ThreadRingOwner() {
    if (thread_ring.control == nullptr) return;
    thread_ring.control->state.store(kRingAbandoned, std::memory_order_release);
    thread_ring = ThreadRing{};
  }
};
inline thread_local ThreadRingOwner thread_ring_owner;

inline bool TakeRing(GlobalHeader& header) {
  const std::lock_guard guard(process.lock);
  const uint32_t count = header.ring_count.load(std::memory_order_relaxed);
  uint32_t index = 0;
  char* memory = nullptr;
  for (; index < count; ++index) {
    memory = process.rings[index].load(std::memory_order_relaxed);
    auto* control = reinterpret_cast<RingControl*>(memory);
    // Acquire: the harvester freed it when it had read everything.
    if (control->state.load(std::memory_order_acquire) == kRingFree) break;
  }
  if (index == count) {
    if (count == kMaxRings) return false;
    const uint64_t stride = RingStride(process.ring_records);
    memory = MapArea(kRingsOffset + index * stride, stride);
    if (memory == nullptr) return false;
    process.rings[index].store(memory, std::memory_order_relaxed);
  }
  auto* control = reinterpret_cast<RingControl*>(memory);
  control->tid.store(static_cast<uint32_t>(syscall(SYS_gettid)), std::memory_order_relaxed);
  control->state.store(kRingOwned, std::memory_order_release);
  if (index == count) header.ring_count.store(count + 1, std::memory_order_release);
  thread_ring.control = control;
  thread_ring.records = reinterpret_cast<Record*>(memory + kRingControlBytes);
  thread_ring.mask = process.ring_records - 1;
  thread_ring.head = control->head.load(std::memory_order_relaxed);
  thread_ring.limit = thread_ring.head;
  thread_ring_owner.used = true;  // so that its destructor runs
  return true;
}

// Called when head has reached limit. False: the ring is full, which was counted.
[[gnu::noinline, gnu::cold]] inline bool MakeRoom(GlobalHeader& header) {
  ThreadRing& ring = thread_ring;
  if (ring.control == nullptr && !TakeRing(header)) {
    header.lost_no_ring.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  // Pairs with the harvester's release store: it has read what is to be overwritten.
  const uint64_t tail = ring.control->tail.load(std::memory_order_acquire);
  ring.limit = tail + ring.mask + 1;
  if (ring.head < ring.limit) return true;
  ring.limit = ring.head;
  ring.control->lost.store(ring.control->lost.load(std::memory_order_relaxed) + 1,
                           std::memory_order_relaxed);
  return false;
}

}  // namespace spanprof::internal::coroutine
