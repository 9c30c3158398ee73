#pragma once

// `spanprof jvm PID COMMAND`: starts, stops and asks the profiler in a JVM that runs.

#include <functional>

#include <CLI/CLI.hpp>

namespace spanprof::cli {

// Adds the command to `app`. When it was chosen, `run` is set: call it after parsing, it returns
// the exit code.
void AddJvmCommand(CLI::App& app, std::function<int()>& run);

}  // namespace spanprof::cli
