#pragma once

// A recording as a script for psql: tables, their rows by COPY, and indexes, in one transaction.

#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace spanprof::coroutine {

// Hands the script to `take`, piece by piece; what that returns ends the export if it is an error.
[[nodiscard]] Result<void> ExportPostgres(
    const std::string& path, const std::function<Result<void>(std::string_view)>& take);

}  // namespace spanprof::coroutine
