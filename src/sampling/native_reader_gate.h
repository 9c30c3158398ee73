#pragma once

// SIGNAL-SAFE. Lets signal handlers use an object that another thread replaces, and tells that
// thread when the old one can be freed. Neither waits for the other.
//
// A handler counts itself in, loads the pointer, uses the object, counts itself out. The writer
// stores the new pointer and then looks at the counters: a handler that may still have the old
// pointer counted itself in before that store, and stays counted until it is done. So when each
// counter has been seen at 0 once after the store, nobody has it. New handlers may come and go
// meanwhile; there are several counters so that each is at 0 often, and so that threads do not
// fight for one cache line.
//
// All operations are sequentially consistent: the handler's "count in, then load" against the
// writer's "store, then look" is a pattern that nothing weaker orders.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace spanprof::sampling {

class NativeReaderGate {
 public:
  static constexpr unsigned kCounters = 16;

  // Which counter serves a handler whose stack is about here. Both calls take the same number.
  [[nodiscard]] static unsigned CounterFor(const void* place_on_stack) noexcept {
    const auto page = reinterpret_cast<uintptr_t>(place_on_stack) >> 12;
    return static_cast<unsigned>((page ^ (page >> 8) ^ (page >> 16)) % kCounters);
  }
  void Enter(unsigned counter) noexcept { counters_[counter].readers.fetch_add(1); }
  void Leave(unsigned counter) noexcept { counters_[counter].readers.fetch_sub(1); }

  // For the writer: the counters that were not yet seen at 0. Start with AllCounters() after the
  // store; when Remaining() gives 0 the old object is free.
  [[nodiscard]] static constexpr uint32_t AllCounters() { return (1u << kCounters) - 1; }
  [[nodiscard]] uint32_t Remaining(uint32_t not_seen) const noexcept {
    for (unsigned i = 0; i < kCounters; ++i) {
      if ((not_seen & (1u << i)) != 0 && counters_[i].readers.load() == 0) not_seen &= ~(1u << i);
    }
    return not_seen;
  }

  // In a forked child, which has none of the other threads: nobody is inside.
  void Reset() noexcept {
    for (Counter& counter : counters_) counter.readers.store(0);
  }

 private:
  struct alignas(64) Counter {
    std::atomic<uint32_t> readers{0};
  };
  std::array<Counter, kCounters> counters_;
};

}  // namespace spanprof::sampling
