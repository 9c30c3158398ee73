#pragma once

// What the signal handler notes of each signal, in memory that is there before the first one.
//
// SIGNAL-SAFE: Reserve, Commit and the counter. Everything else is for the thread that the handler
// interrupts. The two take turns and never run at the same time: fences of the compiler are enough.

#include <atomic>
#include <cstddef>
#include <cstdint>

#include <sys/mman.h>

namespace spanprof::node {

// Where the store of a record is.
enum class StoreState : uint8_t {
  kNone,     // no store was active
  kRaw,      // `store` is a tagged word of V8, true until the next garbage collection
  kHandle,   // `store` is a number of StoreHandles
  kUnknown,  // the frame could not be read at that moment; counted by reason
};

struct SampleRecord {
  int64_t from_ns = 0;  // CLOCK_MONOTONIC before V8's handler ran
  int64_t to_ns = 0;    // and after it
  int64_t cpu_ns = 0;   // CPU time of the thread
  uint64_t store = 0;
  StoreState state = StoreState::kNone;
  bool in_garbage_collection = false;
};

class RecordRing {
 public:
  RecordRing() = default;
  RecordRing(const RecordRing&) = delete;
  RecordRing& operator=(const RecordRing&) = delete;
  ~RecordRing() {
    if (records_ != nullptr) munmap(records_, capacity_ * sizeof(SampleRecord));
  }

  // Pages are given by the system when they are first used. False: no memory.
  [[nodiscard]] bool Create(size_t capacity) {
    void* memory = mmap(nullptr, capacity * sizeof(SampleRecord), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return false;
    records_ = static_cast<SampleRecord*>(memory);
    capacity_ = capacity;
    return true;
  }

  // Null, and counted: the ring is full.
  SampleRecord* Reserve() {
    const uint64_t end = end_.load(std::memory_order_relaxed);
    if (end - begin_.load(std::memory_order_relaxed) >= capacity_) {
      dropped_.store(dropped_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
      return nullptr;
    }
    return &records_[end % capacity_];
  }

  void Commit() {
    // Pairs with size(): the thread sees the record before it counts.
    std::atomic_signal_fence(std::memory_order_release);
    end_.store(end_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }

  size_t size() const {
    const uint64_t end = end_.load(std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_acquire);
    return static_cast<size_t>(end - begin_.load(std::memory_order_relaxed));
  }
  size_t capacity() const { return capacity_; }

  // The oldest is 0; below size().
  SampleRecord& operator[](size_t index) {
    return records_[(begin_.load(std::memory_order_relaxed) + index) % capacity_];
  }

  // Gives the room of the oldest records back.
  void RemoveOldest(size_t count) {
    std::atomic_signal_fence(std::memory_order_release);
    begin_.store(begin_.load(std::memory_order_relaxed) + count, std::memory_order_relaxed);
  }

  uint64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }

 private:
  SampleRecord* records_ = nullptr;
  size_t capacity_ = 0;
  std::atomic<uint64_t> begin_{0};
  std::atomic<uint64_t> end_{0};
  std::atomic<uint64_t> dropped_{0};
};

}  // namespace spanprof::node
