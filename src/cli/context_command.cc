#include "cli/context_command.h"

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <memory>
#include <poll.h>
#include <signal.h>
#include <string>
#include <string_view>
#include <unistd.h>

#include <fmt/format.h>
#include <sys/syscall.h>

#include "base/quantity.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "cli/context_output.h"
#include "cli/report_error.h"
#include "collect/access_error.h"
#include "collect/context_snapshot.h"
#include "collect/process_directory.h"
#include "collect/remote_memory.h"

namespace spanprof::cli {
namespace {

using std::chrono::milliseconds;

constexpr int kMaxPid = 1 << 22;  // PID_MAX_LIMIT
constexpr milliseconds kShortestInterval{10};
constexpr milliseconds kLongestInterval{24LL * 60 * 60 * 1000};

struct ContextOptions {
  pid_t pid = 0;
  bool watch = false;
  bool json = false;
  bool all = false;
  milliseconds interval{1000};
};

// `2`, `2s`, `500ms`: a number without a unit is in seconds, as for `-d`.
std::string ParseInterval(const std::string& text, milliseconds& interval) {
  const bool has_unit = text.find_first_not_of("0123456789") != std::string::npos;
  const auto parsed = ParseDuration(has_unit ? text : text + "s");
  if (!parsed) return "'" + text + "' is not a duration such as 1s or 500ms";
  const auto rounded = std::chrono::duration_cast<milliseconds>(*parsed);
  if (rounded < kShortestInterval || rounded > kLongestInterval) {
    return "'" + text + "' is not between 10ms and 24h";
  }
  interval = rounded;
  return {};
}

// A watch has nothing to clean up, so Ctrl-C may end it wherever it is, even in a blocked write.
void EndOnInterrupt() {
  struct sigaction action = {};
  action.sa_handler = [](int) { _exit(0); };
  sigaction(SIGINT, &action, nullptr);
}

// Waits for the end of the process, but no longer than `timeout`. True: it has ended. Without a
// pidfd (a kernel before 5.3) nobody knows, and the next read finds out.
bool WaitForEnd(const UniqueFd& process, milliseconds timeout) {
  pollfd ended = {process.get(), POLLIN, 0};
  const int ready = poll(&ended, process.valid() ? 1 : 0, static_cast<int>(timeout.count()));
  return ready > 0;
}

void Show(const collect::ContextSnapshot& snapshot, const ContextOptions& options, bool first) {
  const ThreadFilter filter = options.all ? ThreadFilter::kAll : ThreadFilter::kWithContext;
  std::string text;
  if (options.json) {
    text = ContextJson(snapshot, filter, options.watch ? -1 : 2) + '\n';
    // The document's shape is fixed; what is only for people goes beside it.
    for (const std::string& note : snapshot.notes) {
      if (first) ReportNote(note);
    }
  } else {
    if (options.watch && isatty(STDOUT_FILENO) != 0) {
      text = "\033[H\033[2J";
    } else if (!first) {
      text = "\n";
    }
    text += ContextTable(snapshot, filter);
  }
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

int RunContext(const ContextOptions& options) {
  const std::string command = fmt::format("spanprof context {}", options.pid);
  const auto directory = collect::ProcessDirectory::Open(options.pid);
  if (!directory) {
    return ReportFailure(collect::ExplainAccessError(options.pid, directory.error().code, command));
  }
  const pid_t pid = directory->pid();
  collect::ProcessMemory memory(pid);
  const UniqueFd process(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (options.watch) EndOnInterrupt();
  for (bool first = true;; first = false) {
    const auto snapshot = collect::ReadContextSnapshot(*directory, memory, command);
    if (!snapshot) {
      // Until its parent has waited for it, a process that has ended is there without its memory.
      const bool ended =
          snapshot.error().code == ESRCH || WaitForEnd(process, milliseconds::zero());
      if (!first && ended) return 0;
      return ReportFailure(snapshot.error());
    }
    Show(*snapshot, options, first);
    if (std::ferror(stdout) != 0) {
      return ReportFailure(Error{EIO, "cannot write to the standard output", {}});
    }
    if (!options.watch) return 0;
    (void)WaitForEnd(process, options.interval);
  }
}

}  // namespace

void AddContextCommand(CLI::App& app, std::function<int()>& run) {
  auto options = std::make_shared<ContextOptions>();
  CLI::App* command = app.add_subcommand(
      "context", "Show which context records a process publishes, and each thread's active span");
  command->add_option("PID", options->pid, "The process, or one of its threads")
      ->required()
      ->type_name("PID")
      ->check(CLI::Range(1, kMaxPid));
  command->add_flag("-w,--watch", options->watch,
                    "Show it again and again until Ctrl-C or its end");
  command
      ->add_option_function<std::string>(
          "-i,--interval",
          [options](const std::string& text) {
            const std::string problem = ParseInterval(text, options->interval);
            if (!problem.empty()) throw CLI::ValidationError("--interval", problem);
          },
          "Time between two looks with --watch: 1s (default), 500ms, ...")
      ->type_name("DURATION");
  command->add_flag("--json", options->json, "JSON; with --watch one document a line");
  command->add_flag("-a,--all", options->all, "Show threads without a context too");
  command->callback([options, &run] { run = [options] { return RunContext(*options); }; });
}

}  // namespace spanprof::cli
