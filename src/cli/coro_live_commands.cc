// `spanprof coro ps` and `spanprof coro tree`: the coroutines of a running process.

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "cli/coro_command.h"
#include "cli/coro_function_names.h"
#include "cli/output_file.h"
#include "cli/report_error.h"
#include "cli/terminal_text.h"
#include "coroutine/findings.h"
#include "coroutine/live_coroutines.h"

namespace spanprof::cli {
namespace {

using coroutine::LiveCoroutine;
using coroutine::LiveCoroutines;

constexpr int kMaxPid = 1 << 22;  // PID_MAX_LIMIT

struct CoroLiveOptions {
  pid_t pid = 0;
  unsigned milliseconds = 500;
};

std::string NameText(const LiveCoroutine& coroutine) {
  const std::string name = coroutine.name.empty() ? "coroutine" : TerminalText(coroutine.name);
  return fmt::format("{} #{}.{}", name, coroutine.probe_id & 0xFFFFFF, coroutine.probe_id >> 24);
}

std::string List(const LiveCoroutines& live) {
  std::string text =
      fmt::format("{:<10} {:>9} {:>9}  {:<28} {}\n", "STATE", "FOR", "AGE", "AT", "COROUTINE");
  for (const LiveCoroutine& each : live.coroutines) {
    text += fmt::format("{:<10} {:>9} {:>9}  {:<28} {}", coroutine::StatusText(each.status),
                        coroutine::DurationText(each.since_nanoseconds),
                        coroutine::DurationText(each.age_nanoseconds), TerminalText(each.place),
                        NameText(each));
    if (each.awaited_by) text += ", awaited by " + NameText(live.coroutines[*each.awaited_by]);
    text += '\n';
  }
  return text;
}

void AppendTree(const LiveCoroutines& live, const std::vector<std::vector<std::size_t>>& awaited,
                std::size_t index, unsigned depth, std::string& text) {
  const LiveCoroutine& each = live.coroutines[index];
  text += std::string(std::size_t{2} * depth, ' ') +
          fmt::format("{} {} {}{}\n", NameText(each), coroutine::StatusText(each.status),
                      coroutine::DurationText(each.since_nanoseconds),
                      each.place.empty() ? "" : " at " + TerminalText(each.place));
  // A target may claim a circle, or a chain of any length.
  constexpr unsigned kDeepest = 100;
  if (depth == kDeepest) return;
  for (const std::size_t child : awaited[index]) AppendTree(live, awaited, child, depth + 1, text);
}

std::string Tree(const LiveCoroutines& live) {
  std::vector<std::vector<std::size_t>> awaited(live.coroutines.size());
  for (std::size_t i = 0; i < live.coroutines.size(); ++i) {
    if (live.coroutines[i].awaited_by) awaited[*live.coroutines[i].awaited_by].push_back(i);
  }
  std::string text;
  for (std::size_t i = 0; i < live.coroutines.size(); ++i) {
    if (!live.coroutines[i].awaited_by) AppendTree(live, awaited, i, 0, text);
  }
  return text;
}

int RunLive(const CoroLiveOptions& options, std::string (*show)(const LiveCoroutines&)) {
  Result<LiveCoroutines> live = coroutine::ReadLiveCoroutines(options.pid, options.milliseconds);
  if (!live) return ReportFailure(live.error());
  CoroFunctionNames names(options.pid);
  for (LiveCoroutine& each : live->coroutines) {
    if (each.name.empty()) each.name = names.NameOf(each.resume_function);
  }
  if (const Result<void> written = WriteOutput("-", show(*live)); !written) {
    return ReportFailure(written.error());
  }
  if (live->unreadable != 0) {
    ReportNote(fmt::format("{} coroutines changed while they were read and are left out",
                           live->unreadable));
  }
  if (live->coroutines.empty()) {
    ReportNote(fmt::format("no coroutine was resumed within {} ms; --for waits longer",
                           options.milliseconds));
  }
  return 0;
}

void AddLive(CLI::App& coro, std::function<int()>& run, const std::string& name,
             const std::string& description, std::string (*show)(const LiveCoroutines&)) {
  auto options = std::make_shared<CoroLiveOptions>();
  CLI::App* command = coro.add_subcommand(name, description);
  command->add_option("PID", options->pid, "The process")
      ->required()
      ->type_name("PID")
      ->check(CLI::Range(1, kMaxPid));
  command
      ->add_option("--for", options->milliseconds,
                   "How long to trace a process that nobody records, in milliseconds (500): "
                   "coroutines from before appear when they are resumed")
      ->type_name("MILLISECONDS")
      ->check(CLI::Range(1, 3'600'000));
  command->callback(
      [options, show, &run] { run = [options, show] { return RunLive(*options, show); }; });
}

}  // namespace

void AddCoroLiveCommands(CLI::App& coro, std::function<int()>& run) {
  AddLive(coro, run, "ps", "List the coroutines of a running process and where they wait", List);
  AddLive(coro, run, "tree", "Show who awaits whom in a running process", Tree);
}

}  // namespace spanprof::cli
