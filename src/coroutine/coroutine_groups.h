#pragma once

// The coroutines of a recording by what they are: how many, how long they ran and how long they
// lived.

#include <cstdint>
#include <string>
#include <vector>

#include "coroutine/coroutine_history.h"

namespace spanprof::coroutine {

// Coroutines of one name, or without one of one function.
struct CoroutineGroup {
  std::string name;
  uint64_t coroutines = 0;
  uint64_t finished = 0;  // came to their end, as far as their promise tells
  uint64_t destroyed = 0;
  uint64_t resumes = 0;
  uint64_t migrations = 0;
  uint64_t run_nanoseconds = 0;
  uint64_t longest_run = 0;
  LatencyHistogram lifetimes;  // of those that were destroyed, and whose birth was seen
};

// The one that ran longest first.
[[nodiscard]] std::vector<CoroutineGroup> GroupCoroutines(const CoroutineHistory& history);

}  // namespace spanprof::coroutine
