#pragma once

// Warnings of a guest in another's program: one line on its standard error, or nothing (log=none).
// Not for signal handlers.

#include <string_view>

#include "base/options.h"

namespace spanprof {

void LogWarning(LogTarget target, std::string_view message);

}  // namespace spanprof
