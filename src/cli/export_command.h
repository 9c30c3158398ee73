#pragma once

// `spanprof export FILE... -o OUT`: profiles in another format, merged, filtered, with names.

#include <functional>

#include <CLI/CLI.hpp>

namespace spanprof::cli {

// Adds the command to `app`. When it was chosen, `run` is set: call it after parsing, it returns
// the exit code.
void AddExportCommand(CLI::App& app, std::function<int()>& run);

}  // namespace spanprof::cli
