#pragma once

// The "did you mean" of error messages.
//
//   NearestName("ctxstorge", {"cpu", "ctxstorage"});  // "ctxstorage"
//
// Any thread may call this; it is not for a signal handler.

#include <span>
#include <string_view>

namespace spanprof {

// Returns the name that `word` was most likely meant to be: the one fewest edits away (a letter
// added, left out, changed, or swapped with its neighbour; case does not count), the earlier of
// equals. Empty if none is within a third of its length.
[[nodiscard]] std::string_view NearestName(std::string_view word,
                                           std::span<const std::string_view> names);

}  // namespace spanprof
