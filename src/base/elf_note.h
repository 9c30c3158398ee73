#pragma once

// The build id among ELF notes, in a file's section or in a segment of a loaded object.
//
// The bytes are whatever somebody wrote: every length is checked. Any thread may call this; it is
// not for a signal handler.

#include <cstddef>
#include <span>
#include <string>

namespace spanprof {

inline constexpr std::size_t kMaxBuildIdBytes = 64;

// The NT_GNU_BUILD_ID note in lower-case hex; empty if there is none, or none of a sensible size.
[[nodiscard]] std::string BuildIdOfNotes(std::span<const std::byte> notes);

}  // namespace spanprof
