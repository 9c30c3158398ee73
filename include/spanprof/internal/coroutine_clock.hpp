#pragma once

// The clocks of coroutine events: CLOCK_MONOTONIC, and the processor's cycle counter where it runs
// evenly on all cores. Any thread, any context.

#include <cstdint>
#include <ctime>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace spanprof::internal::coroutine {

inline uint64_t MonotonicNanoseconds() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

inline uint64_t CycleCounter() {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
  uint64_t count;
  asm volatile("mrs %0, cntvct_el0" : "=r"(count));
  return count;
#else
  return MonotonicNanoseconds();
#endif
}

// Whether the counter keeps its rate, whatever the core does.
inline bool CycleCounterIsUsable() {
#if defined(__x86_64__)
  constexpr unsigned kPowerManagement = 0x80000007;
  constexpr unsigned kInvariantCounter = 1u << 8;
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  return __get_cpuid(kPowerManagement, &a, &b, &c, &d) != 0 && (d & kInvariantCounter) != 0;
#elif defined(__aarch64__)
  return true;
#else
  return false;
#endif
}

}  // namespace spanprof::internal::coroutine
