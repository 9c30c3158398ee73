// `spanprof coro export`: a recording for other tools.

#include <cerrno>
#include <fcntl.h>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "base/printable_text.h"
#include "base/unique_fd.h"
#include "cli/coro_command.h"
#include "cli/output_file.h"
#include "cli/report_error.h"
#include "coroutine/event_export.h"
#include "coroutine/perfetto_trace.h"
#include "coroutine/postgres_script.h"
#include "coroutine/sqlite_file.h"

namespace spanprof::cli {
namespace {

struct CoroExportOptions {
  std::string file;
  std::string output = "-";
  std::string format = "jsonl";
};

using Take = std::function<Result<void>(std::string_view)>;

Result<void> Export(const CoroExportOptions& options, const Take& take) {
  if (options.format == "perfetto") return coroutine::ExportPerfetto(options.file, take);
  if (options.format == "postgres") return coroutine::ExportPostgres(options.file, take);
  return coroutine::ExportEvents(
      options.file,
      options.format == "csv" ? coroutine::ExportFormat::kCsv : coroutine::ExportFormat::kJsonLines,
      take);
}

// A new file that is filled piece by piece: an export may be larger than memory.
Result<void> ExportToFile(const CoroExportOptions& options) {
  const UniqueFd file(
      open(options.output.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  const auto failed = [&](int error_number) {
    return Fail(error_number,
                Quoted(options.output) +
                    " cannot be written: " + std::generic_category().message(error_number),
                error_number == EEXIST ? "give another name, or remove that file" : "");
  };
  if (!file.valid()) return failed(errno);
  Result<void> done = Export(options, [&](std::string_view text) -> Result<void> {
    while (!text.empty()) {
      const ssize_t written = write(file.get(), text.data(), text.size());
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) return failed(errno);
      text.remove_prefix(static_cast<std::size_t>(written));
    }
    return {};
  });
  if (!done) unlink(options.output.c_str());
  return done;
}

int RunCoroExport(const CoroExportOptions& options) {
  const bool to_output = options.output == "-";
  Result<void> done;
  if (options.format == "sqlite") {
    if (to_output) {
      return ReportFailure(
          Error{EINVAL, "a database needs a file",
                "give one: spanprof coro export -f sqlite -o run.db " + Quoted(options.file)});
    }
    done = coroutine::ExportSqlite(options.file, options.output);
  } else if (to_output) {
    done = Export(options, [](std::string_view text) { return WriteOutput("-", text); });
  } else {
    done = ExportToFile(options);
  }
  return done ? 0 : ReportFailure(done.error());
}

}  // namespace

void AddCoroExportCommand(CLI::App& coro, std::function<int()>& run) {
  auto options = std::make_shared<CoroExportOptions>();
  CLI::App* command = coro.add_subcommand("export", "Write a recording for other tools");
  command->add_option("FILE", options->file, "A recording")->required()->type_name("FILE");
  command
      ->add_option("-f,--format", options->format,
                   "jsonl (default), csv, sqlite, postgres (a script for psql), perfetto")
      ->check(CLI::IsMember({"jsonl", "csv", "sqlite", "postgres", "perfetto"}));
  command
      ->add_option("-o,--output", options->output,
                   "Where to write: a new file, or - (default) for the standard output")
      ->type_name("FILE");
  command->footer(
      "Examples:\n"
      "  spanprof coro export -f perfetto -o run.pftrace run.coro\n"
      "  spanprof coro export -f sqlite -o run.db run.coro\n"
      "  spanprof coro export -f postgres run.coro | psql mydatabase");
  command->callback([options, &run] { run = [options] { return RunCoroExport(*options); }; });
}

}  // namespace spanprof::cli
