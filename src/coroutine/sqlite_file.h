#pragma once

// A recording as an SQLite database.

#include <string>

#include "base/result.h"

namespace spanprof::coroutine {

// Makes a new file, mode 0600; an existing name or a symbolic link is refused. On failure there is
// no file.
[[nodiscard]] Result<void> ExportSqlite(const std::string& path, const std::string& database);

}  // namespace spanprof::coroutine
