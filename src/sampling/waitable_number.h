#pragma once

// SIGNAL-SAFE. A number that others wait for to change: no lock that a fork, a signal handler or a
// thread that died could leave taken.

#include <atomic>
#include <climits>
#include <cstdint>
#include <time.h>
#include <unistd.h>

#include <linux/futex.h>
#include <sys/syscall.h>

namespace spanprof::sampling {

class WaitableNumber {
 public:
  uint32_t Get() const { return value_.load(std::memory_order_acquire); }
  void Set(uint32_t value) {
    value_.store(value, std::memory_order_release);
    WakeAll();
  }
  void Increment() {
    value_.fetch_add(1, std::memory_order_acq_rel);
    WakeAll();
  }
  // Waits until the number is not `seen` any more, or `deadline_ns` of the monotonic clock. It may
  // return early.
  void WaitWhile(uint32_t seen, uint64_t deadline_ns) {
    const timespec deadline = {static_cast<time_t>(deadline_ns / 1'000'000'000u),
                               static_cast<long>(deadline_ns % 1'000'000'000u)};
    // WAIT_BITSET takes an absolute time, of the monotonic clock unless told otherwise.
    syscall(SYS_futex, &value_, FUTEX_WAIT_BITSET_PRIVATE, seen, &deadline, nullptr,
            FUTEX_BITSET_MATCH_ANY);
  }

 private:
  void WakeAll() { syscall(SYS_futex, &value_, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0); }

  std::atomic<uint32_t> value_{0};
  static_assert(sizeof(std::atomic<uint32_t>) == 4);
};

}  // namespace spanprof::sampling
