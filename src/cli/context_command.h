#pragma once

// `spanprof context PID`: which records a process publishes, and what each thread works on.

#include <functional>

#include <CLI/CLI.hpp>

namespace spanprof::cli {

// Adds the command to `app`. When it was chosen, `run` is set: call it after parsing, it returns
// the exit code.
void AddContextCommand(CLI::App& app, std::function<int()>& run);

}  // namespace spanprof::cli
