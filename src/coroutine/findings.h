#pragma once

// What is wrong with a scheduler, by a recording of its coroutines. Every finding names the
// coroutine, the place and the evidence.

#include <cstdint>
#include <string>
#include <vector>

#include "coroutine/coroutine_history.h"

namespace spanprof::coroutine {

enum class FindingKind {
  kStuck,  // suspended, and nobody resumes it: a lost wakeup
  kHog,    // ran for long without a suspension
  kLeak,   // at its end, and its frame is not destroyed
  kLate,   // was ready for long before it was resumed
};

struct FindingLimits {
  uint64_t stuck_nanoseconds = 1'000'000'000;
  uint64_t hog_nanoseconds = 100'000'000;
  uint64_t leak_nanoseconds = 1'000'000'000;
  uint64_t late_nanoseconds = 100'000'000;
};

struct Finding {
  FindingKind kind = FindingKind::kStuck;
  std::size_t coroutine = 0;  // index
  std::string who;
  std::string where;
  std::string evidence;
};

[[nodiscard]] std::string FindingKindText(FindingKind kind);

// The worst first, kind by kind. A wait counts as stuck when it is longer than the limit and ten
// times longer than the longest that ever ended at that place.
[[nodiscard]] std::vector<Finding> FindProblems(const CoroutineHistory& history,
                                                const FindingLimits& limits);

// "1.25 s", "30 ms", "450 ns"
[[nodiscard]] std::string DurationText(uint64_t nanoseconds);

}  // namespace spanprof::coroutine
