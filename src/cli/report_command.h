#pragma once

// `spanprof report FILE...`: where the time of a profile went, as a table.

#include <functional>

#include <CLI/CLI.hpp>

namespace spanprof::cli {

// Adds the command to `app`. When it was chosen, `run` is set: call it after parsing, it returns
// the exit code.
void AddReportCommand(CLI::App& app, std::function<int()>& run);

}  // namespace spanprof::cli
