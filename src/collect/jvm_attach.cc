#include "collect/jvm_attach.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fcntl.h>
#include <initializer_list>
#include <optional>
#include <poll.h>
#include <signal.h>
#include <unistd.h>
#include <utility>

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/printable_text.h"
#include "collect/acting_as.h"
#include "collect/target_folder.h"

namespace spanprof::collect {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// A JVM that has just begun catches SIGQUIT a little later.
constexpr milliseconds kBeginning{1000};
constexpr milliseconds kEnding{1000};
constexpr milliseconds kShortestPause{10};
constexpr milliseconds kLongestPause{200};

constexpr const char* kStartWithAgent =
    "start the JVM with the agent: java -agentpath:libspanprof-jvm.so=start,...";

bool Interrupted(const AttachLimits& limits) {
  return limits.interrupted != nullptr && limits.interrupted->load();
}

Error InterruptedError() { return {EINTR, "interrupted", {}}; }

// Growing pauses until a deadline.
class Pauses {
 public:
  explicit Pauses(milliseconds limit) : deadline_(steady_clock::now() + limit) {}
  // False: the time is over.
  bool Wait() {
    const auto left = std::chrono::duration_cast<milliseconds>(deadline_ - steady_clock::now());
    if (left.count() <= 0) return false;
    poll(nullptr, 0, static_cast<int>(std::min(left, pause_).count()));
    pause_ = std::min(pause_ * 2, kLongestPause);
    return true;
  }
  [[nodiscard]] steady_clock::time_point deadline() const { return deadline_; }

 private:
  steady_clock::time_point deadline_;
  milliseconds pause_ = kShortestPause;
};

std::string SocketName(const JvmProcess& jvm) {
  return ".java_pid" + std::to_string(jvm.namespace_pid());
}

// Nothing: nobody listens yet.
Result<std::optional<UniqueFd>> TryConnect(const JvmProcess& jvm) {
  const std::string name = SocketName(jvm);
  const std::string shown = "/tmp/" + name + " of " + jvm.Title();
  const UniqueFd folder = OpenBeneathRoot(jvm.root(), "tmp", O_PATH | O_DIRECTORY);
  const UniqueFd file(
      folder.valid() ? openat(folder.get(), name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC) : -1);
  if (!file.valid()) {
    if (errno == ENOENT) return std::optional<UniqueFd>();
    const int code = errno;
    return Fail(code, "cannot look at " + shown + ": " + std::strerror(code));
  }
  struct stat status = {};
  if (fstat(file.get(), &status) != 0 || !S_ISSOCK(status.st_mode)) {
    return Fail(EPROTO, shown + " is not a socket", "remove it, and try again");
  }
  if (status.st_uid != jvm.uid() && status.st_uid != 0) {
    return Fail(EPERM,
                shown + " belongs to user " + std::to_string(status.st_uid) +
                    ", and the JVM to user " + std::to_string(jvm.uid()) +
                    ": it is not used, somebody may have put it there",
                "find out who did, remove it, and try again");
  }
  UniqueFd connection(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!connection.valid()) return Fail(errno, std::string("no socket: ") + std::strerror(errno));
  // The very file that was looked at, whatever has the name by now.
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  const std::string path = "/proc/self/fd/" + std::to_string(file.get());
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  if (connect(connection.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    // Left by another that had the number; or too many are before us.
    if (errno == ECONNREFUSED || errno == EAGAIN) return std::optional<UniqueFd>();
    const int code = errno;
    return Fail(code, "cannot connect to " + shown + ": " + std::strerror(code));
  }
  ucred peer = {};
  socklen_t size = sizeof peer;
  if (getsockopt(connection.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 ||
      peer.pid != jvm.pid()) {
    return Fail(EPERM,
                "behind " + shown + " is process " + std::to_string(peer.pid) + ", not the JVM",
                "find out what that is, remove the socket, and try again");
  }
  return std::optional<UniqueFd>(std::move(connection));
}

// The file that tells a JVM at a SIGQUIT that somebody wants to attach. Removed at the end.
class AttachFile {
 public:
  static Result<AttachFile> Create(const JvmProcess& jvm) {
    const std::string name = ".attach_pid" + std::to_string(jvm.namespace_pid());
    // The JVM looks in its working folder first, and no further if there is one.
    UniqueFd folder(jvm.working_folder() < 0 ? -1
                                             : fcntl(jvm.working_folder(), F_DUPFD_CLOEXEC, 0));
    int code = ENOENT;
    if (folder.valid()) {
      code = MakeIn(folder.get(), name, jvm.uid());
      if (code == 0) return AttachFile(std::move(folder), name);
    }
    if (code != EEXIST) {
      folder = OpenBeneathRoot(jvm.root(), "tmp", O_PATH | O_DIRECTORY);
      code = folder.valid() ? MakeIn(folder.get(), name, jvm.uid()) : errno;
      if (code == 0) return AttachFile(std::move(folder), name);
    }
    // Somebody else attaches at this moment, or was killed when they did: it serves us too.
    if (code == EEXIST && IsGood(folder.get(), name, jvm.uid())) return AttachFile();
    return Fail(code,
                "cannot make " + name + " in the working folder or /tmp of " + jvm.Title() + ": " +
                    std::strerror(code),
                code == EEXIST ? "it is another user's: find out whose, and remove it"
                               : "make its /tmp writable for the JVM's user");
  }
  AttachFile(AttachFile&& other) noexcept = default;
  AttachFile& operator=(AttachFile&&) = delete;
  ~AttachFile() {
    if (folder_.valid()) unlinkat(folder_.get(), name_.c_str(), 0);
  }

 private:
  AttachFile() = default;
  AttachFile(UniqueFd folder, std::string name)
      : folder_(std::move(folder)), name_(std::move(name)) {}

  static int MakeIn(int folder, const std::string& name, uid_t owner) {
    const UniqueFd file(
        openat(folder, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!file.valid()) return errno;
    struct stat status = {};
    // Some network filesystems give files to whom they like; the JVM would not heed it.
    if (fstat(file.get(), &status) == 0 && status.st_uid == owner) return 0;
    unlinkat(folder, name.c_str(), 0);
    return EPERM;
  }
  static bool IsGood(int folder, const std::string& name, uid_t owner) {
    struct stat status = {};
    return fstatat(folder, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
           S_ISREG(status.st_mode) && (status.st_uid == owner || status.st_uid == 0);
  }

  UniqueFd folder_;  // not valid: the file is not ours
  std::string name_;
};

// A process that does not catch SIGQUIT would die of it.
Result<void> WaitUntilQuitIsSafe(const JvmProcess& jvm, const AttachLimits& limits) {
  Pauses pauses(kBeginning);
  for (;;) {
    const Result<ProcessStatus> status = jvm.Status();
    if (!status) return tl::make_unexpected(status.error());
    if (status->state == 'T' || status->state == 't') {
      return Fail(EAGAIN, jvm.Title() + " is stopped, so its JVM cannot answer",
                  "let it go on: kill -CONT " + std::to_string(jvm.pid()));
    }
    if (status->Catches(SIGQUIT)) return {};
    if (Interrupted(limits)) return tl::make_unexpected(InterruptedError());
    if (!pauses.Wait()) break;
  }
  return Fail(ENOTSUP,
              "the JVM of " + jvm.Title() + " has no socket /tmp/" + SocketName(jvm) +
                  ", and would die of the SIGQUIT that asks for one: it does not catch it (-Xrs)",
              "restart it: with -Xrs it has a socket from its start, unless /tmp is tidied; or " +
                  std::string(kStartWithAgent));
}

Result<UniqueFd> MakeListen(const JvmProcess& jvm, const AttachLimits& limits) {
  if (jvm.forbids_attaching()) {
    return Fail(ENOTSUP,
                "the JVM of " + jvm.Title() + " was started with -XX:+DisableAttachMechanism",
                "start it without that; or " + std::string(kStartWithAgent));
  }
  if (Result<void> safe = WaitUntilQuitIsSafe(jvm, limits); !safe) {
    return tl::make_unexpected(safe.error());
  }
  const Result<AttachFile> file = AttachFile::Create(jvm);
  if (!file) return tl::make_unexpected(file.error());
  if (Result<void> sent = jvm.SendQuit(); !sent) return tl::make_unexpected(sent.error());
  Pauses pauses(limits.connect);
  const auto second_try = pauses.deadline() - limits.connect / 2;
  bool tried_again = false;
  while (pauses.Wait()) {
    if (Interrupted(limits)) return tl::make_unexpected(InterruptedError());
    Result<std::optional<UniqueFd>> connection = TryConnect(jvm);
    if (!connection) return tl::make_unexpected(connection.error());
    if (*connection) return std::move(**connection);
    const Result<ProcessStatus> status = jvm.Status();
    if (!status) return tl::make_unexpected(status.error());
    // Two signals that come close together are one.
    if (!tried_again && steady_clock::now() > second_try && status->Catches(SIGQUIT)) {
      tried_again = true;
      if (Result<void> sent = jvm.SendQuit(); !sent) return tl::make_unexpected(sent.error());
    }
  }
  return Fail(ETIMEDOUT,
              "the JVM of " + jvm.Title() + " did not open its socket /tmp/" + SocketName(jvm) +
                  " within " + std::to_string(limits.connect.count()) + " ms",
              "see whether it hangs, or was started with -XX:+DisableAttachMechanism; if so, " +
                  std::string(kStartWithAgent));
}

std::string HintFor(std::string_view reason) {
  const auto says = [reason](std::string_view words) {
    return reason.find(words) != std::string_view::npos;
  };
  if (says("Dynamic agent loading is not enabled")) {
    return std::string("start it with -XX:+EnableDynamicAgentLoading; or ") + kStartWithAgent;
  }
  if (says("Agent_OnAttach is not available")) return "give libspanprof-jvm.so by --library";
  if (says("failed to map segment")) {
    return "the file is on a mount that is noexec: put it on another, and give it by --library";
  }
  if (says("Permission denied")) return "make the file readable for the JVM's user";
  if (says("version `GLIBC") || says("wrong ELF class") || says("musl") ||
      says("symbol not found")) {
    return "give a libspanprof-jvm.so that was built for the JVM's system by --library";
  }
  return {};
}

std::string OneLine(std::string_view text) {
  std::string line(text);
  while (line.ends_with('\n')) line.pop_back();
  std::replace(line.begin(), line.end(), '\n', ' ');
  return line;
}

std::optional<int> ParseCode(std::string_view text) {
  int code = 0;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, code);
  if (parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  return code;
}

}  // namespace

Result<int> ParseLoadAnswer(std::string_view answer, const std::string& library) {
  constexpr std::string_view kReturnCode = "return code: ";
  constexpr int kOtherProtocol = 101;
  const std::string_view first = answer.substr(0, answer.find('\n'));
  const std::optional<int> status = ParseCode(first);
  if (!status) {
    return Fail(EPROTO, "the JVM's answer cannot be understood: " + Quoted(answer));
  }
  std::string_view rest = answer.substr(std::min(first.size() + 1, answer.size()));
  if (*status == kOtherProtocol) {
    return Fail(EPROTONOSUPPORT, "the JVM speaks another version of the attach protocol");
  }
  if (*status == 0) {
    std::string_view line = rest;
    if (line.ends_with('\n')) line.remove_suffix(1);
    // JDK 8 has the number alone.
    if (line.starts_with(kReturnCode)) line.remove_prefix(kReturnCode.size());
    if (const std::optional<int> code = ParseCode(line)) return *code;
  }
  std::string reason = OneLine(rest);
  if (reason.empty()) reason = "it gave no reason, and the code " + std::to_string(*status);
  return Fail(ENOEXEC, "the JVM did not load " + library + ": " + reason, HintFor(reason));
}

Result<JvmConnection> JvmConnection::Open(const JvmProcess& jvm, const AttachLimits& limits) {
  // The JVM takes nobody else; and files in folders of others are made with its rights only.
  const Result<ActingAs> user = ActingAs::User(jvm.uid(), jvm.gid());
  if (!user) return tl::make_unexpected(user.error());
  Result<std::optional<UniqueFd>> connection = TryConnect(jvm);
  if (!connection) return tl::make_unexpected(connection.error());
  if (*connection) return JvmConnection(jvm, limits, std::move(**connection));
  Result<UniqueFd> made = MakeListen(jvm, limits);
  if (!made) return tl::make_unexpected(made.error());
  return JvmConnection(jvm, limits, *std::move(made));
}

Result<int> JvmConnection::Load(const std::string& library, const std::string& options) {
  std::string request;
  for (const std::string& part :
       {std::string("1"), std::string("load"), library, std::string("true"), options}) {
    if (part.size() > kMaxAttachArgument) {
      return Fail(E2BIG,
                  "the JVM takes " + std::to_string(kMaxAttachArgument) +
                      " bytes of options or path at most, and these are " +
                      std::to_string(part.size()),
                  "shorten them; or " + std::string(kStartWithAgent));
    }
    request.append(part) += '\0';
  }
  if (Result<void> sent = Send(request); !sent) return tl::make_unexpected(sent.error());
  const Result<std::string> answer = Receive();
  if (!answer) return tl::make_unexpected(answer.error());
  if (answer->empty()) {
    // A process that ends closes its sockets first.
    if (jvm_->EndsWithin(kEnding)) return Fail(ESRCH, jvm_->Title() + " has ended");
    return Fail(EPROTO,
                "the JVM of " + jvm_->Title() +
                    " closed the connection without an answer; it takes its own user and group "
                    "only, " +
                    std::to_string(jvm_->uid()) + " and " + std::to_string(jvm_->gid()),
                "run it as these, or as root");
  }
  return ParseLoadAnswer(*answer, library);
}

Result<void> JvmConnection::WaitFor(short events, steady_clock::time_point deadline) {
  for (;;) {
    if (Interrupted(limits_)) return tl::make_unexpected(InterruptedError());
    const auto left = std::chrono::duration_cast<milliseconds>(deadline - steady_clock::now());
    if (left.count() <= 0) {
      return Fail(ETIMEDOUT,
                  "the JVM of " + jvm_->Title() + " did not answer within " +
                      std::to_string(limits_.answer.count()) +
                      " ms; what was asked may still be done",
                  "see whether it hangs; or give it more time by --timeout");
    }
    pollfd ready = {socket_.get(), events, 0};
    // In slices, so that a signal just before it is not missed.
    if (poll(&ready, 1, static_cast<int>(std::min(left, kLongestPause).count())) > 0) return {};
  }
}

Result<void> JvmConnection::Send(std::string_view request) {
  const auto deadline = steady_clock::now() + limits_.answer;
  while (!request.empty()) {
    const ssize_t sent = send(socket_.get(), request.data(), request.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      request.remove_prefix(static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN || errno == EINTR) {
      if (Result<void> ready = WaitFor(POLLOUT, deadline); !ready) return ready;
    } else {
      break;  // closed: what there is to read says why
    }
  }
  return {};
}

Result<std::string> JvmConnection::Receive() {
  const auto deadline = steady_clock::now() + limits_.answer;
  std::string answer;
  for (;;) {
    char buffer[4096];
    const ssize_t got = recv(socket_.get(), buffer, sizeof buffer, 0);
    if (got > 0) {
      answer.append(buffer, static_cast<std::size_t>(got));
      if (answer.size() > kMaxAttachAnswer) {
        return Fail(EMSGSIZE, "the answer of " + jvm_->Title() + " is too long: " +
                                  std::to_string(answer.size()) + " bytes so far");
      }
    } else if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
      if (Result<void> ready = WaitFor(POLLIN, deadline); !ready) {
        return tl::make_unexpected(ready.error());
      }
    } else {
      return answer;
    }
  }
}

}  // namespace spanprof::collect
