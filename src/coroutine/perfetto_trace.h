#pragma once

// A recording as a Perfetto trace: a track for each thread, with what ran on it; a track for each
// coroutine, with what it did and where it waited; and arrows from one run of a coroutine, by way
// of whoever made it ready, to the next.
//
// Times are CLOCK_MONOTONIC: the one clock snapshot says that boot time, which readers take them to
// be in, is the same.

#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace spanprof::coroutine {

// Hands the trace to `take`, piece by piece; what that returns ends the export if it is an error.
[[nodiscard]] Result<void> ExportPerfetto(
    const std::string& path, const std::function<Result<void>(std::string_view)>& take);

}  // namespace spanprof::coroutine
