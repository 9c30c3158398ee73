#pragma once

// `spanprof record`: runs a command under the profiler and writes one profile of it and of what it
// started.

#include <functional>

#include <CLI/CLI.hpp>

namespace spanprof::cli {

void AddRecordCommand(CLI::App& app, std::function<int()>& run);

}  // namespace spanprof::cli
