#pragma once

// `spanprof man` and `spanprof completion`: what is made from the command tree itself.

#include <functional>

#include <CLI/CLI.hpp>

namespace spanprof::cli {

// Add the commands to `app`, which they describe when they are run: with all commands that were
// added, before or after. When one was chosen, `run` is set: call it after parsing, it returns the
// exit code.
void AddManCommand(CLI::App& app, std::function<int()>& run);
void AddCompletionCommand(CLI::App& app, std::function<int()>& run);

}  // namespace spanprof::cli
