#pragma once

// SIGNAL-SAFE. The time of a clock in nanoseconds.

#include <cstdint>
#include <ctime>

namespace spanprof::node {

inline int64_t Nanoseconds(clockid_t clock) {
  timespec time = {};
  clock_gettime(clock, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

}  // namespace spanprof::node
