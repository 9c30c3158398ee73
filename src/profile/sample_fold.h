#pragma once

// Makes a list of samples shorter without losing any of what they count.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "profile/profile.h"

namespace spanprof::profile {

inline constexpr uint64_t kFoldNanoseconds = 60'000'000'000;  // a minute

inline uint64_t MinuteOf(uint64_t time_ns) { return time_ns - time_ns % kFoldNanoseconds; }

// What samples must have in common to be merged, and so what a merged one still knows.
enum class FoldLevel : uint8_t {
  kExact,    // minute, thread, context, stack, kind, state
  kContext,  // as kExact, less the context: in practice it is what makes samples differ
  kMinute,   // minute, kind, state
  kTotal,    // kind
};
inline constexpr FoldLevel kFoldLevels[] = {FoldLevel::kExact, FoldLevel::kContext,
                                            FoldLevel::kMinute, FoldLevel::kTotal};

struct FoldResult {
  uint64_t folded_away = 0;  // how many samples fewer there are now
  uint64_t coarsened = 0;    // how many lost something that kExact keeps
};

// Sorts the samples by time, and merges those which are equal at this level, the oldest minutes
// first, until no more than `goal` are left or there is nothing more to merge. A merged sample has
// folded = true, the minute's start as its time, and the sums of count and value; two whose sums
// would overflow are not merged. Needs no memory.
FoldResult FoldSamples(std::vector<Sample>& samples, FoldLevel level, size_t goal);

}  // namespace spanprof::profile
