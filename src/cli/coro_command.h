#pragma once

// `spanprof coro`: recording coroutines, looking at them while they run, and what is wrong with
// their scheduler.

#include <functional>

#include <CLI/CLI.hpp>

namespace spanprof::cli {

// Adds the command to `app`. When it was chosen, `run` is set: call it after parsing, it returns
// the exit code.
void AddCoroCommand(CLI::App& app, std::function<int()>& run);

// Its parts, each in a file of its own.
void AddCoroRecordCommand(CLI::App& coro, std::function<int()>& run);
void AddCoroDumpCommand(CLI::App& coro, std::function<int()>& run);
void AddCoroExportCommand(CLI::App& coro, std::function<int()>& run);
void AddCoroReportCommand(CLI::App& coro, std::function<int()>& run);
void AddCoroLiveCommands(CLI::App& coro, std::function<int()>& run);

}  // namespace spanprof::cli
