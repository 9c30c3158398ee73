#pragma once

// `spanprof doctor`: what limits profiling here, of a process, or of a program, and how to mend it.

#include <functional>

#include <CLI/CLI.hpp>

namespace spanprof::cli {

// Adds the command to `app`. When it was chosen, `run` is set: call it after parsing, it returns
// the exit code.
void AddDoctorCommand(CLI::App& app, std::function<int()>& run);

}  // namespace spanprof::cli
