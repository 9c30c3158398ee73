// `spanprof coro export`: the events of a recording as text.

#include <memory>
#include <string>
#include <string_view>

#include "cli/coro_command.h"
#include "cli/output_file.h"
#include "cli/report_error.h"
#include "coroutine/event_export.h"

namespace spanprof::cli {
namespace {

struct CoroExportOptions {
  std::string file;
  std::string format = "jsonl";
};

int RunCoroExport(const CoroExportOptions& options) {
  const auto format =
      options.format == "csv" ? coroutine::ExportFormat::kCsv : coroutine::ExportFormat::kJsonLines;
  const Result<void> done = coroutine::ExportEvents(
      options.file, format,
      [](std::string_view text) -> Result<void> { return WriteOutput("-", text); });
  return done ? 0 : ReportFailure(done.error());
}

}  // namespace

void AddCoroExportCommand(CLI::App& coro, std::function<int()>& run) {
  auto options = std::make_shared<CoroExportOptions>();
  CLI::App* command =
      coro.add_subcommand("export", "Write the events of a recording to the standard output");
  command->add_option("FILE", options->file, "A recording")->required()->type_name("FILE");
  command->add_option("-f,--format", options->format, "jsonl (default) or csv")
      ->check(CLI::IsMember({"jsonl", "csv"}));
  command->callback([options, &run] { run = [options] { return RunCoroExport(*options); }; });
}

}  // namespace spanprof::cli
