#include "cli/coro_flight.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <system_error>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/printable_text.h"
#include "cli/report_error.h"
#include "coroutine/findings.h"

namespace spanprof::cli {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::milliseconds kStuckInterval(250);
constexpr std::size_t kMaxWriters = 4;

volatile std::sig_atomic_t dump_wanted = 0;

Result<void> WriteDump(const coroutine::FlightBuffer& buffer, const std::string& name) {
  Result<coroutine::RecordingWriter> writer = coroutine::RecordingWriter::Create(name);
  if (!writer) return tl::make_unexpected(writer.error());
  if (auto written = buffer.WriteTo(*writer); !written) return written;
  return writer->WriteEnd();
}

void Answer(const std::vector<UniqueFd>& askers, const std::string& text) {
  for (const UniqueFd& asker : askers) {
    // Whoever has gone away meanwhile does not stop the others.
    (void)send(asker.get(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }
}

}  // namespace

CoroFlight::~CoroFlight() { WaitForWriters(true); }

void CoroFlight::CatchSignal() {
  struct sigaction action = {};
  action.sa_handler = [](int) { dump_wanted = 1; };
  action.sa_flags = SA_RESTART;
  sigaction(SIGUSR1, &action, nullptr);
}

bool CoroFlight::TakeSignal() { return std::exchange(dump_wanted, 0) != 0; }

std::string CoroFlight::NextName() {
  // run.coro, run-2.coro, run-3.coro: those that exist are left alone.
  const std::size_t slash = output_.rfind('/');
  std::size_t dot = output_.rfind('.');
  if (dot == std::string::npos || (slash != std::string::npos && dot < slash)) dot = output_.size();
  for (;;) {
    ++dumps_;
    const std::string number = dumps_ == 1 ? "" : "-" + std::to_string(dumps_);
    std::string name = output_.substr(0, dot) + number + output_.substr(dot);
    if (access(name.c_str(), F_OK) != 0) return name;
  }
}

Result<void> CoroFlight::Dump(coroutine::Harvester& harvester, std::string_view reason,
                              std::vector<UniqueFd> askers) {
  WaitForWriters(false);
  if (writers_.size() >= kMaxWriters) {
    Answer(askers, "-too many dumps are being written\n");
    ReportNote("too many dumps are being written; this one is left out");
    return {};
  }
  if (auto written = harvester.Checkpoint(); !written) return written;
  const std::string name = NextName();
  // A child writes what there is at this moment; meanwhile the rings are being emptied.
  const pid_t child = fork();
  if (child < 0) {
    const int error_number = errno;
    return Fail(error_number,
                "no process for a dump: " + std::generic_category().message(error_number));
  }
  if (child != 0) {
    writers_.push_back(child);
    return {};
  }
  setpriority(PRIO_PROCESS, 0, 0);
  const Result<void> written = WriteDump(buffer_, name);
  if (written) {
    ReportNote(fmt::format("{}: the last {} are in {}", reason,
                           coroutine::DurationText(static_cast<uint64_t>(options_.window.count())),
                           Quoted(name)));
    Answer(askers, "+" + name + "\n");
  } else {
    ReportFailure(written.error());
    Answer(askers, "-" + TextOf(written.error()) + "\n");
  }
  _exit(written ? 0 : 1);
}

Result<void> CoroFlight::LookForStuck(coroutine::Harvester& harvester) {
  const steady_clock::time_point now = steady_clock::now();
  if (now - last_look_ < kStuckInterval) return {};
  last_look_ = now;
  const std::vector<coroutine::StuckCoroutine> stuck = harvester.FindStuck(options_.stuck_after);
  if (stuck.empty()) return {};
  // One file has all that the window has: a scheduler that gets stuck as a whole fills no disk.
  const bool first = last_stuck_dump_ == steady_clock::time_point();
  if (!first && now - last_stuck_dump_ < options_.window) {
    stuck_not_dumped_ += stuck.size();
    return {};
  }
  last_stuck_dump_ = now;
  const coroutine::StuckCoroutine& one = stuck.front();
  const std::string more = stuck.size() == 1 ? "" : fmt::format(", and {} more", stuck.size() - 1);
  return Dump(harvester,
              fmt::format("{} of process {} is stuck at {} since {}{}",
                          one.who.empty() ? "a coroutine" : Quoted(one.who), one.pid,
                          Quoted(one.where), coroutine::DurationText(one.nanoseconds), more),
              {});
}

Result<void> CoroFlight::Work(coroutine::Harvester& harvester) {
  std::vector<UniqueFd> askers = harvester.TakeDumpRequests();
  if (!askers.empty()) {
    if (auto dumped = Dump(harvester, "asked for", std::move(askers)); !dumped) return dumped;
  }
  if (TakeSignal()) {
    if (auto dumped = Dump(harvester, "asked for by SIGUSR1", {}); !dumped) return dumped;
  }
  if (!writers_.empty()) WaitForWriters(false);
  return options_.stuck_after.count() == 0 ? Result<void>() : LookForStuck(harvester);
}

Result<void> CoroFlight::Finish() {
  WaitForWriters(true);
  const std::string name = NextName();
  if (auto written = WriteDump(buffer_, name); !written) return written;
  ReportNote(fmt::format("at the end: the last {} are in {}",
                         coroutine::DurationText(static_cast<uint64_t>(options_.window.count())),
                         Quoted(name)));
  if (stuck_not_dumped_ != 0) {
    ReportNote(
        fmt::format("{} more coroutines were stuck, within {} of a dump", stuck_not_dumped_,
                    coroutine::DurationText(static_cast<uint64_t>(options_.window.count()))));
  }
  return {};
}

void CoroFlight::WaitForWriters(bool all) {
  std::erase_if(writers_,
                [all](pid_t writer) { return waitpid(writer, nullptr, all ? 0 : WNOHANG) != 0; });
}

}  // namespace spanprof::cli
