#include "workload.h"

#include <ctime>

namespace {

volatile uint64_t sink = 1;

[[gnu::noinline]] uint64_t Spin(uint64_t rounds) {
  uint64_t x = sink;
  for (uint64_t i = 0; i < rounds; ++i) {
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
  }
  sink = x | 1;
  return x;
}

// NOLINTNEXTLINE(misc-no-recursion): a deep stack is what it is for
[[gnu::noinline]] uint64_t Descend(unsigned depth, uint64_t rounds) {
  if (depth == 0) return Spin(rounds);
  const uint64_t result = Descend(depth - 1, rounds);
  __asm__ volatile("" ::: "memory");  // no tail call: each level has its frame
  return result + 1;
}

}  // namespace

uint64_t ThreadCpuNanoseconds() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

uint64_t RunWorkload(unsigned depth, uint64_t rounds) {
  const uint64_t before = ThreadCpuNanoseconds();
  sink = sink + Descend(depth, rounds);
  return ThreadCpuNanoseconds() - before;
}
