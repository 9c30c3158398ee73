#include "cli/record_command.h"

#include <cerrno>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <unistd.h>

#include <fmt/format.h>

#include "base/options.h"
#include "base/printable_text.h"
#include "base/quantity.h"
#include "cli/installed_library.h"
#include "cli/output_file.h"
#include "cli/profile_input.h"
#include "cli/progress.h"
#include "cli/recorded_command.h"
#include "cli/report_error.h"
#include "cli/sampling_options.h"
#include "format/format.h"

namespace spanprof::cli {
namespace {

struct RecordOptions {
  SamplingOptions sampling;
  std::string output = "profile.pb.gz";
  std::string duration;
  bool no_symbols = false;
};

// `30` and `30s`: a number without a unit is in seconds.
Result<std::optional<std::chrono::nanoseconds>> ParseLimit(const std::string& text) {
  if (text.empty()) return std::optional<std::chrono::nanoseconds>();
  const bool has_unit = text.find_first_not_of("0123456789.") != std::string::npos;
  std::optional<std::chrono::nanoseconds> parsed = ParseDuration(has_unit ? text : text + "s");
  if (!parsed || parsed->count() <= 0) {
    return Fail(EINVAL, "--duration " + Quoted(text) + " is not a duration",
                "give seconds, or a unit too: 30, 500ms, 2m");
  }
  return parsed;
}

void ReportNoSamples(const RecordOptions& options) {
  ReportNote(options.sampling.wall.empty()
                 ? "there are no samples: the command used too little CPU time for one; sample "
                   "more often (--cpu 1ms), or waiting threads too (--wall 20ms)"
                 : "there are no samples");
}

// Of everything that the command's processes wrote, one profile.
Result<void> WriteMerged(const RecordedCommand& command, const RecordOptions& options,
                         OutputFormat format) {
  InputOptions input;
  input.files = command.ProfileFiles();
  input.no_symbols = options.no_symbols;
  if (input.files.empty()) {
    return Fail(ENODATA, "the command left no profile: the profiler was not loaded into it",
                "look at what it said above, and at `spanprof doctor -- " +
                    options.sampling.command.front() + "`");
  }
  const Result<InputProfile> read = ReadInput(input);
  if (!read) return tl::make_unexpected(read.error());
  for (const std::string& note : read->notes) ReportNote(note);
  Progress progress;
  progress.Show("writing " + options.output);
  const Result<std::string> bytes = format::WriteProfile(read->profile, format, {});
  progress.Clear();
  if (!bytes) return tl::make_unexpected(bytes.error());
  if (Result<void> written = WriteOutput(options.output, *bytes); !written) return written;
  if (const auto user = UserBehindSudo(); user && options.output != "-") {
    if (lchown(options.output.c_str(), user->uid, user->gid) != 0) {
      ReportNote("the profile belongs to root: it could not be given to the user behind sudo");
    }
  }
  std::uint64_t samples = 0;
  for (const profile::Sample& sample : read->profile.samples()) samples += sample.count;
  if (samples == 0) {
    ReportNoSamples(options);
    return {};
  }
  ReportNote(fmt::format("{} samples of {} {} are in {}; look at them: spanprof report {}", samples,
                         input.files.size(), input.files.size() == 1 ? "process" : "processes",
                         Quoted(options.output), options.output));
  return {};
}

// What the JVM compiles has no names for a native recording, and its agent knows them.
void HintAtAgent(const std::vector<std::string>& command) {
  const std::string& program = command.front();
  if (program.substr(program.rfind('/') + 1) != "java") return;
  const Result<std::string> agent = FindInstalledLibrary("libspanprof-jvm.so");
  if (!agent) return;
  ReportNote("Java methods have no names in a native recording; with them: " + program +
             " -agentpath:" + *agent + "=start,cpu=10ms,file=profile.jfr ...");
}

int RunRecord(const RecordOptions& options) {
  const Result<OutputFormat> format = format::FormatOfFile(options.output);
  if (!format) return ReportFailure(format.error());
  if (const Result<void> place = CheckOutputFolder(options.output); !place) {
    return ReportFailure(place.error());
  }
  const auto limit = ParseLimit(options.duration);
  if (!limit) return ReportFailure(limit.error());
  Result<Options> sampling = ToOptions(options.sampling);
  if (!sampling) return ReportFailure(sampling.error());

  RecordedCommand::Settings settings;
  settings.children = !options.sampling.no_children;
  Result<RecordedCommand> command =
      RecordedCommand::Start(options.sampling.command, *std::move(sampling), settings);
  if (!command) return ReportFailure(command.error());
  HintAtAgent(options.sampling.command);
  const int status = command->Wait(*limit);
  if (RecordedCommand::LeftProcessesBehind()) {
    ReportNote("processes that the command started are still running; they are not in the profile");
  }
  if (const Result<void> written = WriteMerged(*command, options, *format); !written) {
    const int failure = ReportFailure(written.error());
    return status == 0 ? failure : status;
  }
  return status;
}

}  // namespace

void AddRecordCommand(CLI::App& app, std::function<int()>& run) {
  auto options = std::make_shared<RecordOptions>();
  CLI::App* command = app.add_subcommand(
      "record", "Run a command and write a profile of it, each sample with its span");
  command
      ->add_option("-o,--output", options->output,
                   "Where to write (default profile.pb.gz); the name's end says the format: .pb.gz "
                   ".pprof .otlp .jfr .folded .html .json.gz .pftrace")
      ->type_name("FILE");
  command
      ->add_option("-d,--duration", options->duration,
                   "End the command after this time: 30, 500ms, 2m")
      ->type_name("DURATION");
  command->add_flag("--no-symbols", options->no_symbols,
                    "Leave out what debug files say: lines and inlined functions");
  AddSamplingOptions(*command, options->sampling);
  command->footer(
      "The exit code is the command's. Ctrl-C ends the command, and the profile is written.\n"
      "Examples:\n"
      "  spanprof record -- ./server --port 8080\n"
      "  spanprof record -o profile.html --cpu 1ms --wall 20ms -d 30 -- ./server");
  command->callback([options, &run] { run = [options] { return RunRecord(*options); }; });
}

}  // namespace spanprof::cli
