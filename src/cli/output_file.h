#pragma once

// Where a command leaves what it made: a file that is there whole or not at all, or the standard
// output.

#include <string>
#include <string_view>

#include "base/result.h"

namespace spanprof::cli {

// Whether there is a folder for such a file, which can be written to: to ask before the long work,
// not after it.
[[nodiscard]] Result<void> CheckOutputFolder(const std::string& path);

// Writes a file, mode 0600, by way of a temporary one beside it that takes its name; a symbolic
// link of that name is not followed. `-` is the standard output.
[[nodiscard]] Result<void> WriteOutput(const std::string& path, std::string_view bytes);

}  // namespace spanprof::cli
