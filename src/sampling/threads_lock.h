#pragma once

// The lock of the sampler's list of threads.

#include <atomic>
#include <cstdint>
#include <unistd.h>

#include <linux/futex.h>
#include <sys/syscall.h>

#include "context/platform.h"

namespace spanprof::sampling {

// Held with signals blocked: a handler of the same thread must not meet it. Who has to wait sleeps:
// thousands of threads may start at once, and all that they would burn is the program's.
class ThreadsLock {
 public:
  explicit ThreadsLock(std::atomic<uint32_t>& lock) : lock_(lock) {
    uint32_t seen = kFree;
    if (lock_.compare_exchange_strong(seen, kHeld, std::memory_order_acquire)) return;
    while (lock_.exchange(kHeldAndAwaited, std::memory_order_acquire) != kFree) {
      syscall(SYS_futex, &lock_, FUTEX_WAIT_PRIVATE, kHeldAndAwaited, nullptr, nullptr, 0);
    }
  }
  ~ThreadsLock() {
    if (lock_.exchange(kFree, std::memory_order_release) == kHeldAndAwaited) {
      syscall(SYS_futex, &lock_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
    }
  }
  ThreadsLock(const ThreadsLock&) = delete;
  ThreadsLock& operator=(const ThreadsLock&) = delete;

 private:
  enum : uint32_t { kFree, kHeld, kHeldAndAwaited };

  const context::SignalBlocker no_signals_;
  std::atomic<uint32_t>& lock_;
};

}  // namespace spanprof::sampling
