// `spanprof coro dump`: asks the flight recorder of a process for what it has.

#include <cerrno>
#include <memory>
#include <poll.h>
#include <string>
#include <system_error>
#include <unistd.h>

#include <sys/socket.h>
#include <sys/un.h>

#include "base/printable_text.h"
#include "base/unique_fd.h"
#include "cli/coro_command.h"
#include "cli/output_file.h"
#include "cli/report_error.h"
#include "coroutine/target_area.h"
#include "coroutine/wake_listener.h"

namespace spanprof::cli {
namespace {

constexpr int kMaxPid = 1 << 22;   // PID_MAX_LIMIT
constexpr int kPatience = 60'000;  // milliseconds
constexpr std::size_t kMostAnswerBytes = 8192;

Error NoFlightRecorder(pid_t pid) {
  return {ENOENT, "process " + std::to_string(pid) + " has no flight recorder",
          "start one: spanprof coro record --flight 30s -p " + std::to_string(pid)};
}

// The path is what the target's memory says: whoever listens there must be of our own user.
Result<UniqueFd> Connect(pid_t pid, const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.empty() || path[0] != '/' || path.size() >= sizeof address.sun_path) {
    return tl::make_unexpected(NoFlightRecorder(pid));
  }
  path.copy(address.sun_path, path.size());
  UniqueFd connection(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!connection.valid() ||
      connect(connection.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return tl::make_unexpected(NoFlightRecorder(pid));
  }
  ucred peer = {};
  socklen_t size = sizeof peer;
  if (getsockopt(connection.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 ||
      (peer.uid != geteuid() && peer.uid != 0)) {
    return Fail(EPERM, "who listens at " + Quoted(path) + " is another user");
  }
  return connection;
}

Result<std::string> Ask(pid_t pid) {
  Result<std::vector<coroutine::TargetArea>> areas = coroutine::TargetArea::FindInProcess(pid);
  if (!areas) return tl::make_unexpected(areas.error());
  const auto& header = areas->front().header();
  if (header.harvester_pid.load(std::memory_order_relaxed) == 0) {
    return tl::make_unexpected(NoFlightRecorder(pid));
  }
  char path[sizeof header.harvester_socket + 1] = {};
  std::copy(std::begin(header.harvester_socket), std::end(header.harvester_socket), path);
  const Result<UniqueFd> connection = Connect(pid, path);
  if (!connection) return tl::make_unexpected(connection.error());
  if (send(connection->get(), &coroutine::kDumpRequest, 1, MSG_NOSIGNAL) != 1) {
    return tl::make_unexpected(NoFlightRecorder(pid));
  }
  std::string answer;
  while (answer.size() < kMostAnswerBytes && answer.find('\n') == std::string::npos) {
    pollfd waited = {connection->get(), POLLIN, 0};
    if (poll(&waited, 1, kPatience) <= 0) {
      return Fail(ETIMEDOUT, "the recorder of process " + std::to_string(pid) + " does not answer");
    }
    char bytes[512];
    const ssize_t got = read(connection->get(), bytes, sizeof bytes);
    if (got <= 0) break;
    answer.append(bytes, static_cast<std::size_t>(got));
  }
  if (answer.size() < 2 || answer.back() != '\n') {
    return tl::make_unexpected(NoFlightRecorder(pid));
  }
  answer.pop_back();
  if (answer[0] != '+') return Fail(EIO, "the recorder says: " + Quoted(answer.substr(1)));
  return answer.substr(1);
}

}  // namespace

void AddCoroDumpCommand(CLI::App& coro, std::function<int()>& run) {
  auto pid = std::make_shared<pid_t>(0);
  CLI::App* command =
      coro.add_subcommand("dump", "Have the flight recorder of a process write what it has");
  command->add_option("PID", *pid, "The process that is being recorded")
      ->required()
      ->type_name("PID")
      ->check(CLI::Range(1, kMaxPid));
  command->footer(
      "Prints the name of the file, as the recorder has it.\n"
      "\n"
      "Example:\n"
      "  spanprof coro record --flight 30s -o server.coro -p 8134 &\n"
      "  spanprof coro report $(spanprof coro dump 8134)");
  command->callback([pid, &run] {
    run = [pid] {
      const Result<std::string> name = Ask(*pid);
      if (!name) return ReportFailure(name.error());
      const Result<void> shown = WriteOutput("-", *name + "\n");
      return shown ? 0 : ReportFailure(shown.error());
    };
  });
}

}  // namespace spanprof::cli
