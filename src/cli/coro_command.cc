#include "cli/coro_command.h"

namespace spanprof::cli {

void AddCoroCommand(CLI::App& app, std::function<int()>& run) {
  CLI::App* coro = app.add_subcommand(
      "coro", "Record C++ coroutines, look at them while they run, find what is stuck");
  coro->require_subcommand(1);
  AddCoroRecordCommand(*coro, run);
  AddCoroDumpCommand(*coro, run);
  AddCoroReportCommand(*coro, run);
  AddCoroExportCommand(*coro, run);
  AddCoroLiveCommands(*coro, run);
  coro->footer(
      "The program's promises are traced by one line: see docs/coroutines.md.\n"
      "\n"
      "Examples:\n"
      "  spanprof coro record -o run.coro -- ./server\n"
      "  spanprof coro report run.coro\n"
      "  spanprof coro tree 8134");
}

}  // namespace spanprof::cli
