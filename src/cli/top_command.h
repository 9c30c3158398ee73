#pragma once

// `spanprof top`: where the time goes, now: a report of the last seconds, again and again, of a
// command that it runs or of a recording that is being written.

#include <functional>

#include <CLI/CLI.hpp>

namespace spanprof::cli {

void AddTopCommand(CLI::App& app, std::function<int()>& run);

}  // namespace spanprof::cli
