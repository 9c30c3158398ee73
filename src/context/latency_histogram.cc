#include "context/latency_histogram.h"

#include <time.h>

namespace spanprof::context {
namespace {

uint64_t MonotonicNanoseconds() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

std::atomic<uint64_t> first_ticks{0};
std::atomic<uint64_t> first_nanoseconds{0};

}  // namespace

uint64_t Ticks() {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
  uint64_t ticks;
  __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
  return ticks;
#else
  return MonotonicNanoseconds();
#endif
}

double NanosecondsPerTick() {
  if (first_ticks.load(std::memory_order_acquire) == 0) {
    first_nanoseconds.store(MonotonicNanoseconds(), std::memory_order_relaxed);
    first_ticks.store(Ticks(), std::memory_order_release);
  }
  const uint64_t ticks = Ticks() - first_ticks.load(std::memory_order_relaxed);
  const uint64_t nanoseconds =
      MonotonicNanoseconds() - first_nanoseconds.load(std::memory_order_relaxed);
  return ticks == 0 ? 1.0 : static_cast<double>(nanoseconds) / static_cast<double>(ticks);
}

unsigned LatencyHistogram::BucketOf(uint64_t ticks) {
  if (ticks < (1u << kSubBits)) return static_cast<unsigned>(ticks);
  const unsigned exponent = 63u - static_cast<unsigned>(__builtin_clzll(ticks));
  const unsigned sub =
      static_cast<unsigned>(ticks >> (exponent - kSubBits)) & ((1u << kSubBits) - 1);
  return ((exponent - kSubBits + 1) << kSubBits) + sub;
}

uint64_t LatencyHistogram::UpperBound(unsigned bucket) {
  if (bucket < (1u << kSubBits)) return bucket;
  const unsigned shift = (bucket >> kSubBits) - 1;
  const uint64_t mantissa = (uint64_t{1} << kSubBits) + (bucket & ((1u << kSubBits) - 1));
  return ((mantissa + 1) << shift) - 1;
}

void LatencyHistogram::Record(uint64_t ticks) {
  buckets_[BucketOf(ticks)].fetch_add(1, std::memory_order_relaxed);
}

uint64_t LatencyHistogram::count() const {
  uint64_t total = 0;
  for (const auto& bucket : buckets_) total += bucket.load(std::memory_order_relaxed);
  return total;
}

uint64_t LatencyHistogram::Quantile(double share) const {
  const auto wanted = static_cast<uint64_t>(share * static_cast<double>(count()));
  uint64_t seen = 0;
  for (unsigned bucket = 0; bucket < kBuckets; ++bucket) {
    seen += buckets_[bucket].load(std::memory_order_relaxed);
    if (seen > wanted || (seen == wanted && seen != 0)) return UpperBound(bucket);
  }
  return 0;
}

}  // namespace spanprof::context
