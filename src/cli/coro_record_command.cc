// `spanprof coro record`: events of a command's coroutines, or of running processes, to a file.

#include <cerrno>
#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <unistd.h>
#include <vector>

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/printable_text.h"
#include "base/quantity.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "cli/coro_command.h"
#include "cli/coro_flight.h"
#include "cli/output_file.h"
#include "cli/report_error.h"
#include "coroutine/harvester.h"

namespace spanprof::cli {
namespace {

constexpr int kMaxPid = 1 << 22;  // PID_MAX_LIMIT

struct CoroRecordOptions {
  std::string output = "coroutines.coro";
  std::string duration;
  std::vector<pid_t> pids;
  std::vector<std::string> command;
  uint32_t stations = 4096;
  std::string flight;
  std::string flight_memory;
  std::string on_stuck;
};

// Where events go: a file, or the memory of a flight recorder.
struct Destination {
  std::optional<coroutine::RecordingWriter> writer;
  std::unique_ptr<CoroFlight> flight;
};

volatile std::sig_atomic_t interrupted = 0;

// Ctrl-C ends the recording, not this process: the rest is to be written. A command gets it from
// the terminal by itself.
void CatchInterrupts() {
  struct sigaction action = {};
  action.sa_handler = [](int) { interrupted = 1; };
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGHUP, &action, nullptr);
}

Result<pid_t> StartCommand(const std::vector<std::string>& command,
                           const std::vector<std::string>& variables) {
  std::vector<std::string> arguments = command;
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  int problem[2];
  if (pipe2(problem, O_CLOEXEC) != 0) {
    return Fail(errno, "no pipe: " + std::generic_category().message(errno));
  }
  const UniqueFd read_end(problem[0]);
  UniqueFd write_end(problem[1]);
  const pid_t pid = fork();
  if (pid < 0) return Fail(errno, "no process: " + std::generic_category().message(errno));
  if (pid == 0) {
    for (const std::string& variable : variables) {
      const std::size_t equals = variable.find('=');
      setenv(variable.substr(0, equals).c_str(), variable.substr(equals + 1).c_str(), 1);
    }
    execvp(argv[0], argv.data());
    const int error_number = errno;
    if (write(problem[1], &error_number, sizeof error_number) < 0) _exit(126);
    _exit(127);
  }
  write_end = UniqueFd();
  int error_number = 0;
  if (read(read_end.get(), &error_number, sizeof error_number) == sizeof error_number) {
    waitpid(pid, nullptr, 0);
    return Fail(error_number, Quoted(command.front()) + " cannot be run: " +
                                  std::generic_category().message(error_number));
  }
  return pid;
}

void ReportTotals(const coroutine::HarvestTotals& totals, const CoroRecordOptions& options) {
  if (options.flight.empty()) {
    ReportNote(
        fmt::format("{} events of {} coroutines are in {}; look at them: spanprof coro report {}",
                    totals.received, totals.coroutines, Quoted(options.output), options.output));
  }
  if (totals.lost != 0) {
    ReportNote(fmt::format(
        "{} events were lost because a ring was full; a larger one: SPANPROF_CORO_RING_RECORDS",
        totals.lost));
  }
  if (totals.untraced != 0) {
    ReportNote(
        fmt::format("{} coroutines found no station and were not traced; foreign probes get "
                    "more by --stations",
                    totals.untraced));
  }
  if (totals.received == 0) {
    ReportNote(
        "there are no events: promises are traced by spanprof/coroutine.hpp, see "
        "docs/coroutines.md");
  }
}

Result<Destination> MakeDestination(const CoroRecordOptions& options,
                                    const CoroFlightOptions& flight) {
  Destination destination;
  if (flight.window.count() != 0) {
    if (auto possible = CheckOutputFolder(options.output); !possible) {
      return tl::make_unexpected(possible.error());
    }
    destination.flight = std::make_unique<CoroFlight>(flight, options.output);
    destination.writer.emplace(
        std::make_unique<coroutine::FlightSink>(destination.flight->buffer()));
    return destination;
  }
  Result<coroutine::RecordingWriter> writer = coroutine::RecordingWriter::Create(options.output);
  if (!writer) return tl::make_unexpected(writer.error());
  destination.writer = *std::move(writer);
  return destination;
}

Result<int> Record(const CoroRecordOptions& options, const CoroFlightOptions& flight_options,
                   std::optional<std::chrono::nanoseconds> limit) {
  CoroFlight::CatchSignal();
  Result<Destination> destination = MakeDestination(options, flight_options);
  if (!destination) return tl::make_unexpected(destination.error());
  CoroFlight* flight = destination->flight.get();
  Result<coroutine::Harvester> harvester = coroutine::Harvester::Create(&*destination->writer);
  if (!harvester) return tl::make_unexpected(harvester.error());
  if (flight_options.stuck_after.count() != 0) harvester->WatchForStuck();
  CatchInterrupts();
  const auto remove_file = [&] {
    if (flight == nullptr) unlink(options.output.c_str());
  };
  for (const pid_t pid : options.pids) {
    if (auto attached = harvester->AttachProcess(pid); !attached) {
      remove_file();
      return tl::make_unexpected(attached.error());
    }
  }
  pid_t child = 0;
  if (!options.command.empty()) {
    const auto variables = harvester->Environment(options.stations);
    if (!variables) return tl::make_unexpected(variables.error());
    const Result<pid_t> started = StartCommand(options.command, *variables);
    if (!started) {
      remove_file();
      return tl::make_unexpected(started.error());
    }
    child = *started;
  }
  coroutine::Harvester::RaisePriority();  // the command was started without it
  int status = 0;
  const auto begin = std::chrono::steady_clock::now();
  bool told_to_end = false;
  for (;;) {
    if (auto worked = harvester->Work(); !worked) return tl::make_unexpected(worked.error());
    if (flight != nullptr) {
      if (auto worked = flight->Work(*harvester); !worked) {
        return tl::make_unexpected(worked.error());
      }
    } else {
      (void)harvester->TakeDumpRequests();  // closed: who asks hears that there is no such recorder
      if (CoroFlight::TakeSignal()) {
        ReportNote("SIGUSR1 asks for a dump, and this is no flight recorder: give --flight 30s");
      }
    }
    const bool over =
        (limit && std::chrono::steady_clock::now() - begin >= *limit) || interrupted != 0;
    if (child != 0) {
      if (waitpid(child, &status, WNOHANG) == child) break;
      if (over && !told_to_end) kill(child, SIGTERM);
      told_to_end |= over;
    } else if (over || harvester->live_targets() == 0) {
      break;
    }
  }
  if (auto finished = harvester->Finish(); !finished) return tl::make_unexpected(finished.error());
  if (flight != nullptr) {
    if (auto finished = flight->Finish(); !finished) return tl::make_unexpected(finished.error());
  }
  ReportTotals(harvester->Totals(), options);
  if (child == 0) return 0;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// Seconds, where there is no unit.
Result<std::chrono::nanoseconds> ParseTime(const std::string& option, const std::string& text) {
  const bool has_unit = text.find_first_not_of("0123456789.") != std::string::npos;
  const auto parsed = ParseDuration(has_unit ? text : text + "s");
  if (parsed && parsed->count() > 0) return *parsed;
  return Fail(EINVAL, option + " " + Quoted(text) + " is not a duration",
              "give seconds, or a unit too: 30, 500ms, 2m");
}

Result<CoroFlightOptions> ParseFlight(const CoroRecordOptions& options) {
  CoroFlightOptions flight;
  if (options.flight.empty()) {
    if (options.on_stuck.empty() && options.flight_memory.empty()) return flight;
    return Fail(EINVAL, "--on-stuck and --flight-memory are for a flight recorder",
                "give --flight too: --flight 30s");
  }
  const auto window = ParseTime("--flight", options.flight);
  if (!window) return tl::make_unexpected(window.error());
  flight.window = *window;
  if (!options.on_stuck.empty()) {
    const auto stuck_after = ParseTime("--on-stuck", options.on_stuck);
    if (!stuck_after) return tl::make_unexpected(stuck_after.error());
    flight.stuck_after = *stuck_after;
  }
  if (!options.flight_memory.empty()) {
    const auto bytes = ParseSize(options.flight_memory);
    if (!bytes || *bytes < (uint64_t{1} << 20)) {
      return Fail(EINVAL,
                  "--flight-memory " + Quoted(options.flight_memory) + " is not a size from 1m on",
                  "give 64m, 1g");
    }
    flight.max_bytes = *bytes;
  }
  return flight;
}

int RunCoroRecord(const CoroRecordOptions& options) {
  if (options.pids.empty() == options.command.empty()) {
    return ReportFailure(
        Error{EINVAL, "give either -p PID or a command",
              "spanprof coro record -- ./server, or spanprof coro record -p 8134"});
  }
  const Result<CoroFlightOptions> flight = ParseFlight(options);
  if (!flight) return ReportFailure(flight.error());
  std::optional<std::chrono::nanoseconds> limit;
  if (!options.duration.empty()) {
    const auto duration = ParseTime("--duration", options.duration);
    if (!duration) return ReportFailure(duration.error());
    limit = *duration;
  }
  const Result<int> status = Record(options, *flight, limit);
  return status ? *status : ReportFailure(status.error());
}

}  // namespace

void AddCoroRecordCommand(CLI::App& coro, std::function<int()>& run) {
  auto options = std::make_shared<CoroRecordOptions>();
  CLI::App* command = coro.add_subcommand(
      "record", "Record every event of coroutines, of a command or of processes");
  command->add_option("-o,--output", options->output, "Where to write (default coroutines.coro)")
      ->type_name("FILE");
  command->add_option("-p,--pid", options->pids, "A process that runs already; may be repeated")
      ->type_name("PID")
      ->check(CLI::Range(1, kMaxPid));
  command
      ->add_option("-d,--duration", options->duration,
                   "End after this time: 30, 500ms, 2m. A command is asked to end")
      ->type_name("DURATION");
  command
      ->add_option("--stations", options->stations,
                   "For probes that are not spanprof's: how many coroutines they can trace")
      ->type_name("COUNT")
      ->check(CLI::Range(1, 1 << 24));
  command
      ->add_option("--flight", options->flight,
                   "Keep the last so many seconds in memory, and write them at the end, on SIGUSR1 "
                   "and when `spanprof coro dump` asks")
      ->type_name("DURATION");
  command
      ->add_option("--on-stuck", options->on_stuck,
                   "With --flight: write them too when a coroutine has been suspended for this "
                   "long, and ten times longer than any before at its place")
      ->type_name("DURATION");
  command
      ->add_option("--flight-memory", options->flight_memory,
                   "With --flight: keep less if it would be more than this (256m)")
      ->type_name("SIZE");
  command->add_option("COMMAND", options->command, "What to run, behind --")->type_name("COMMAND");
  command->footer(
      "The exit code is the command's. Ctrl-C ends the recording.\n"
      "\n"
      "Examples:\n"
      "  spanprof coro record -o run.coro -- ./server --port 8080\n"
      "  spanprof coro record -p 8134 -p 8140 -d 10\n"
      "  spanprof coro record --flight 30s --on-stuck 5s -o server.coro -p 8134");
  command->callback([options, &run] { run = [options] { return RunCoroRecord(*options); }; });
}

}  // namespace spanprof::cli
