#pragma once

// How long context writes and handler reads take, when latency=on. Recording is one relaxed
// addition: signal-safe. Values are cycle counter ticks, turned into nanoseconds when asked for.

#include <atomic>
#include <cstdint>

namespace spanprof::context {

// The cycle counter; a clock in nanoseconds where there is none.
uint64_t Ticks();
// Nanoseconds a tick, from two looks at both clocks: one when the process first asked, one now.
double NanosecondsPerTick();

class LatencyHistogram {
 public:
  void Record(uint64_t ticks);
  uint64_t count() const;
  // The upper bound of the bucket that holds the given share of all values, in ticks: at most one
  // eighth too large.
  uint64_t Quantile(double share) const;

 private:
  // Eight buckets for each power of two.
  static constexpr unsigned kSubBits = 3;
  static constexpr unsigned kBuckets = 64u << kSubBits;
  static unsigned BucketOf(uint64_t ticks);
  static uint64_t UpperBound(unsigned bucket);

  std::atomic<uint64_t> buckets_[kBuckets] = {};
};

}  // namespace spanprof::context
