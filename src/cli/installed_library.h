#pragma once

// Libraries that come with the command: beside it, as it is built and as it is installed.

#include <string>

#include "base/result.h"

namespace spanprof::cli {

// The absolute path without links of, say, "libspanprof-jvm.so". ENOENT names where it was looked
// for. Any thread may call it.
[[nodiscard]] Result<std::string> FindInstalledLibrary(const std::string& name);

}  // namespace spanprof::cli
