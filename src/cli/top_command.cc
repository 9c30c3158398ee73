#include "cli/top_command.h"

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include "base/quantity.h"
#include "base/result.h"
#include "cli/grouping_option.h"
#include "cli/recorded_command.h"
#include "cli/report_error.h"
#include "cli/report_output.h"
#include "cli/report_rows.h"
#include "cli/sampling_options.h"
#include "cli/terminal_size.h"
#include "format/jfr_file.h"
#include "profile/profile_query.h"

namespace spanprof::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

struct TopOptions {
  SamplingOptions sampling;
  std::string file;               // of a recording; empty: a command is run
  std::string log = "/dev/null";  // where the command's own output goes
  std::vector<Grouping> by;       // empty: the default
  unsigned interval_s = 1;
  unsigned window_s = 10;
  unsigned count = 0;  // 0: until its end
};

// Profiles as they came, of the last seconds.
class Window {
 public:
  explicit Window(seconds length) : length_(length) {}

  void Add(profile::Profile profile) {
    parts_.emplace_back(steady_clock::now(), std::move(profile));
  }
  profile::Profile Merged() {
    while (!parts_.empty() && parts_.front().first + length_ < steady_clock::now()) {
      parts_.pop_front();
    }
    profile::Profile merged;
    for (const auto& [time, part] : parts_) profile::Merge(merged, part);
    return merged;
  }

 private:
  const seconds length_;
  std::deque<std::pair<steady_clock::time_point, profile::Profile>> parts_;
};

bool Show(const profile::Profile& profile, const TopOptions& options, bool first) {
  const TerminalSize size = SizeOfTerminal();
  ReportOptions report;
  report.by = options.by.empty() ? DefaultGroupings(profile) : options.by;
  report.kind = MainKind(profile);
  if (size.rows > 16) report.limit = size.rows - 12;  // for what stands above and below the rows
  if (report.by.size() > 1) report.limit = std::max<std::size_t>(report.limit / 6, 2);
  std::string text;
  if (size.rows != 0) {
    text = "\033[H\033[2J";
  } else if (!first) {
    text = "\n";
  }
  text += profile.samples().empty()
              ? "no samples in the last " + std::to_string(options.window_s) + " s\n"
              : ReportTable(MakeReport(profile, report), profile, {}, size.columns);
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
  return std::ferror(stdout) == 0;
}

// Each process writes a file a second; what was read is removed.
void TakeNewFiles(const RecordedCommand& command, Window& window) {
  for (const std::string& file : command.ProfileFiles()) {
    Result<format::JfrFileContents> contents = format::ReadJfrFile(file, {});
    if (!contents) continue;  // not finished; it will be there next time
    window.Add(std::move(contents->profile));
    unlink(file.c_str());
  }
}

int WatchCommand(const TopOptions& options) {
  Result<Options> sampling = ToOptions(options.sampling);
  if (!sampling) return ReportFailure(sampling.error());
  sampling->every = seconds(options.interval_s);
  const RecordedCommand::Settings settings = {
      .children = !options.sampling.no_children, .file = "%p-%n.jfr", .output = options.log};
  Result<RecordedCommand> command =
      RecordedCommand::Start(options.sampling.command, *std::move(sampling), settings);
  if (!command) return ReportFailure(command.error());
  Window window{seconds(options.window_s)};
  bool first = true;
  for (unsigned shown = 0; options.count == 0 || shown < options.count; ++shown) {
    const bool ended = command->WaitFor(seconds(options.interval_s));
    TakeNewFiles(*command, window);
    if (!Show(window.Merged(), options, std::exchange(first, false))) break;
    if (ended) return command->Wait(std::nullopt);
  }
  // Whoever asked for a number of looks, or closed our output, has seen enough.
  return command->Wait(milliseconds(0));
}

int WatchFile(const TopOptions& options) {
  bool first = true;
  for (unsigned shown = 0; options.count == 0 || shown < options.count; ++shown) {
    if (!first) std::this_thread::sleep_for(seconds(options.interval_s));
    const Result<format::JfrFileContents> contents = format::ReadJfrFile(options.file, {});
    if (!contents) return ReportFailure(contents.error());
    profile::Filter filter;
    const auto now = std::chrono::duration_cast<std::chrono::nanoseconds>(
                         std::chrono::system_clock::now().time_since_epoch())
                         .count();
    filter.from_ns = static_cast<std::uint64_t>(now) - options.window_s * 1'000'000'000ull;
    if (!Show(profile::Select(contents->profile, filter), options, std::exchange(first, false))) {
      break;
    }
  }
  return 0;
}

int RunTop(const TopOptions& options) {
  if (options.file.empty() == options.sampling.command.empty()) {
    return ReportFailure(Error{EINVAL, "give either a command to run or --file", {}});
  }
  return options.file.empty() ? WatchCommand(options) : WatchFile(options);
}

}  // namespace

void AddTopCommand(CLI::App& app, std::function<int()>& run) {
  auto options = std::make_shared<TopOptions>();
  CLI::App* command =
      app.add_subcommand("top", "Show where the time goes while it goes: the last seconds");
  command
      ->add_option("--file", options->file,
                   "Watch a recording that a program is writing (file=NAME.jfr) instead of running "
                   "a command; it is up to five seconds behind")
      ->type_name("FILE");
  AddGroupingOption(*command, options->by);
  command->add_option("-i,--interval", options->interval_s, "Seconds between two looks (default 1)")
      ->check(CLI::Range(1, 3600));
  command->add_option("-w,--window", options->window_s, "Seconds that a look is of (default 10)")
      ->check(CLI::Range(1, 3600));
  command->add_option("-n,--count", options->count, "End after so many looks")
      ->check(CLI::Range(1, 1000000));
  command
      ->add_option("--log", options->log, "Where the command's own output goes (default: nowhere)")
      ->type_name("FILE");
  AddSamplingOptions(*command, options->sampling);
  command->get_option("COMMAND")->required(false);
  command->footer(
      "Examples:\n"
      "  spanprof top -- ./server --port 8080\n"
      "  spanprof top --by endpoint --file /var/log/shop/profile.jfr");
  command->callback([options, &run] { run = [options] { return RunTop(*options); }; });
}

}  // namespace spanprof::cli
