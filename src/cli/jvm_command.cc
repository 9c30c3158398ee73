#include "cli/jvm_command.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <signal.h>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/options.h"
#include "base/printable_text.h"
#include "base/quantity.h"
#include "cli/installed_library.h"
#include "cli/output_file.h"
#include "cli/report_error.h"
#include "cli/terminal_text.h"
#include "collect/jvm_agent.h"
#include "collect/jvm_process.h"

namespace spanprof::cli {
namespace {

using std::chrono::milliseconds;

constexpr int kMaxPid = 1 << 22;  // PID_MAX_LIMIT
constexpr milliseconds kLongestTimeout{60LL * 60 * 1000};

struct JvmOptions {
  pid_t pid = 0;
  std::string words;
  std::string library;
  milliseconds timeout{60'000};
};

std::string ParseTimeout(const std::string& text, milliseconds& timeout) {
  const bool has_unit = text.find_first_not_of("0123456789") != std::string::npos;
  const auto parsed = ParseDuration(has_unit ? text : text + "s");
  if (!parsed) return "'" + text + "' is not a duration such as 30s or 500ms";
  const auto rounded = std::chrono::duration_cast<milliseconds>(*parsed);
  if (rounded < milliseconds(100) || rounded > kLongestTimeout) {
    return "'" + text + "' is not between 100ms and 1h";
  }
  timeout = rounded;
  return {};
}

std::atomic<bool> interrupted{false};

// Who ends the command ends the waiting: what was put into the JVM's folders is removed first.
void CleanUpWhenInterrupted() {
  struct sigaction action = {};
  action.sa_handler = [](int) { interrupted.store(true); };
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaction(signal, &action, nullptr);
}

Result<Options> ParseRequest(const std::string& words) {
  Result<Options> request = ParseOptions(words);
  if (!request) return request;
  if (request->command == Command::kNone) {
    return Fail(EINVAL, Quoted(words) + " does not begin with a command",
                "say what to do: start,cpu=10ms,file=profile.jfr or stop, dump,file=now.jfr, "
                "status");
  }
  if (request->command == Command::kDump && !request->file) {
    return Fail(EINVAL, "dump needs a file", "say which, e.g. dump,file=profile.jfr");
  }
  return request;
}

// A name without a folder means ours, where the JVM sees the same files; else it means the JVM's.
Result<void> MakeAbsolute(const collect::JvmProcess& jvm, std::optional<std::string>& path) {
  if (!path || path->empty() || path->front() == '/' || !jvm.shares_files()) return {};
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::current_path(error);
  if (error) {
    return Fail(error.value(), "the current folder has no path: " + error.message(),
                "give an absolute path");
  }
  path = (folder / *path).lexically_normal().string();
  return {};
}

Result<collect::AgentLibrary> ChooseLibrary(const collect::JvmProcess& jvm,
                                            const std::string& given) {
  if (!jvm.agent_library().empty()) {
    if (!given.empty()) {
      ReportNote(
          fmt::format("the JVM has an agent already, which is used: {}", jvm.agent_library()));
    }
    return collect::AgentLibrary::Loaded(jvm);
  }
  if (!given.empty()) {
    std::error_code error;
    const std::filesystem::path path = std::filesystem::canonical(given, error);
    if (error) {
      return Fail(error.value(), "there is no library " + given + ": " + error.message(),
                  "give the path of libspanprof-jvm.so");
    }
    return collect::AgentLibrary::For(jvm, path.string());
  }
#if defined(__GLIBC__)
  if (jvm.uses_musl()) {
    return Fail(ENOTSUP,
                "the JVM of " + jvm.Title() + " uses musl, and this spanprof was built for glibc",
                "give a libspanprof-jvm.so that was built for musl by --library");
  }
#endif
  const Result<std::string> installed =
      FindInstalledLibrary(std::string(collect::kAgentLibraryName));
  if (!installed) return tl::make_unexpected(installed.error());
  return collect::AgentLibrary::For(jvm, *installed);
}

Result<std::string> AskJvm(const JvmOptions& options) {
  Result<Options> request = ParseRequest(options.words);
  if (!request) return tl::make_unexpected(request.error());
  // Not the options: a header may be a secret.
  const std::size_t comma = options.words.find(',');
  const std::string command =
      fmt::format("spanprof jvm {} {}{}", options.pid, options.words.substr(0, comma),
                  comma == std::string::npos ? "" : ",...");
  const Result<collect::JvmProcess> jvm = collect::JvmProcess::Open(options.pid, command);
  if (!jvm) return tl::make_unexpected(jvm.error());
  for (std::optional<std::string>* path : {&request->file, &request->spool}) {
    if (Result<void> made = MakeAbsolute(*jvm, *path); !made) {
      return tl::make_unexpected(made.error());
    }
  }
  // Only a start brings the agent in; without it there is nothing to ask.
  if (jvm->agent_library().empty() && request->command != Command::kStart) {
    if (request->command == Command::kStatus) {
      return "not recording: the agent is not loaded in " + jvm->Title();
    }
    return Fail(
        ENODATA, "nothing is recorded: the agent is not loaded in " + jvm->Title(),
        fmt::format("start it: spanprof jvm {} start,cpu=10ms,file=profile.jfr", jvm->pid()));
  }
  Result<collect::AgentLibrary> library = ChooseLibrary(*jvm, options.library);
  if (!library) return tl::make_unexpected(library.error());
  CleanUpWhenInterrupted();
  collect::AttachLimits limits;
  limits.connect = std::min(limits.connect, options.timeout);
  limits.answer = options.timeout;
  limits.interrupted = &interrupted;
  Result<std::string> answer = collect::AskAgent(*jvm, *library, ToString(*request), limits);
  if (answer && request->file && !jvm->shares_files()) {
    ReportNote(fmt::format("the file is in the filesystem of process {}: {}", jvm->pid(),
                           request->file->front() == '/'
                               ? fmt::format("/proc/{}/root{}", jvm->pid(), *request->file)
                               : fmt::format("/proc/{}/cwd/{}", jvm->pid(), *request->file)));
  }
  return answer;
}

// Line by line: what the agent says may hold names from anywhere.
std::string ShownLines(std::string_view text) {
  std::string shown;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    shown += TerminalText(line) + "\n";
    text.remove_prefix(std::min(line.size() + 1, text.size()));
  }
  return shown;
}

int RunJvm(const JvmOptions& options) {
  const Result<std::string> answer = AskJvm(options);
  if (!answer) return ReportFailure(answer.error());
  if (const Result<void> written = WriteOutput("-", ShownLines(*answer)); !written) {
    return ReportFailure(written.error());
  }
  return 0;
}

}  // namespace

void AddJvmCommand(CLI::App& app, std::function<int()>& run) {
  auto options = std::make_shared<JvmOptions>();
  CLI::App* command = app.add_subcommand(
      "jvm", "Start, stop and ask the profiler in a JVM that runs, without a restart");
  command->add_option("PID", options->pid, "The JVM's process, also one in a container")
      ->required()
      ->type_name("PID")
      ->check(CLI::Range(1, kMaxPid));
  command
      ->add_option("REQUEST", options->words,
                   "start, stop, dump or status, and options behind it, separated by commas")
      ->required()
      ->type_name("REQUEST");
  command
      ->add_option("--library", options->library,
                   "The agent to load (default: the libspanprof-jvm.so that came with the command)")
      ->type_name("FILE");
  command
      ->add_option_function<std::string>(
          "--timeout",
          [options](const std::string& text) {
            const std::string problem = ParseTimeout(text, options->timeout);
            if (!problem.empty()) throw CLI::ValidationError("--timeout", problem);
          },
          "How long the JVM may take to answer: 60s (default), 500ms, ...")
      ->type_name("DURATION");
  command->footer(
      "It has to run as the JVM's user or as root. A relative file= is one of the current folder; "
      "of a JVM in a container it is one of the JVM's working folder.\n"
      "\n"
      "Examples:\n"
      "  spanprof jvm 8134 start,cpu=1ms,wall=20ms,file=profile.jfr\n"
      "  spanprof jvm 8134 status\n"
      "  spanprof jvm 8134 dump,file=now.html\n"
      "  spanprof jvm 8134 stop");
  command->callback([options, &run] { run = [options] { return RunJvm(*options); }; });
}

}  // namespace spanprof::cli
