// The command `spanprof`: one file per command, each adds itself to the command tree here.
// Exit codes: 0, 1 for a failure, 2 for a command line that cannot be understood.

#include <exception>
#include <functional>
#include <iostream>

#include <CLI/CLI.hpp>

#include "base/result.h"
#include "cli/context_command.h"
#include "cli/coro_command.h"
#include "cli/doctor_command.h"
#include "cli/documentation_commands.h"
#include "cli/export_command.h"
#include "cli/jvm_command.h"
#include "cli/record_command.h"
#include "cli/report_command.h"
#include "cli/report_error.h"
#include "cli/top_command.h"

namespace {

constexpr int kUsageError = 2;

int Run(int argc, char** argv) {
  CLI::App app("A profiler that knows whose work it samples.", "spanprof");
  app.set_version_flag("--version", "spanprof " SPANPROF_VERSION);
  app.require_subcommand(1);
  std::function<int()> run;
  spanprof::cli::AddRecordCommand(app, run);
  spanprof::cli::AddContextCommand(app, run);
  spanprof::cli::AddCoroCommand(app, run);
  spanprof::cli::AddDoctorCommand(app, run);
  spanprof::cli::AddExportCommand(app, run);
  spanprof::cli::AddReportCommand(app, run);
  spanprof::cli::AddTopCommand(app, run);
  spanprof::cli::AddJvmCommand(app, run);
  spanprof::cli::AddManCommand(app, run);
  spanprof::cli::AddCompletionCommand(app, run);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error, std::cout, std::cerr);
    return code == 0 ? 0 : kUsageError;
  }
  return run();
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return Run(argc, argv);
  } catch (const std::exception& error) {
    return spanprof::cli::ReportFailure(spanprof::Error{0, error.what(), {}});
  }
}
