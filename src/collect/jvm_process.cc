#include "collect/jvm_process.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fcntl.h>
#include <optional>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <sys/stat.h>
#include <sys/syscall.h>

#include "collect/access_error.h"

namespace spanprof::collect {
namespace {

constexpr std::size_t kMaxStatusBytes = std::size_t{64} << 10;
constexpr std::size_t kMaxArgumentBytes = std::size_t{4} << 20;

std::optional<std::string_view> LineOf(std::string_view status, std::string_view name) {
  while (!status.empty()) {
    const std::string_view line = status.substr(0, status.find('\n'));
    if (line.size() > name.size() && line.starts_with(name) && line[name.size()] == ':') {
      return line.substr(name.size() + 1);
    }
    status.remove_prefix(std::min(line.size() + 1, status.size()));
  }
  return std::nullopt;
}

std::string_view Word(std::string_view line, int index) {
  for (;; --index) {
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    const std::string_view word = line.substr(0, line.find_first_of(" \t"));
    if (index == 0 || word.empty()) return word;
    line.remove_prefix(word.size());
  }
}

template <class T>
bool ParseNumber(std::string_view word, int base, T& number) {
  const char* const end = word.data() + word.size();
  const auto parsed = std::from_chars(word.data(), end, number, base);
  return parsed.ec == std::errc() && parsed.ptr == end;
}

// The kernel's numbers are /proc's only where /proc is that of our own pid namespace.
bool ProcIsOurs() {
  char self[32];
  const ssize_t length = readlink("/proc/self", self, sizeof self);
  return length > 0 &&
         std::string_view(self, static_cast<std::size_t>(length)) == std::to_string(getpid());
}

bool SameFile(const std::string& left, const std::string& right) {
  struct stat one = {};
  struct stat other = {};
  return stat(left.c_str(), &one) == 0 && stat(right.c_str(), &other) == 0 &&
         one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

Error NotAJvm(const std::string& process) {
  return {ENOEXEC, process + " is not a JVM: it has not loaded libjvm.so",
          "list the JVMs that run: pgrep -a java"};
}

}  // namespace

Result<ProcessStatus> ParseProcessStatus(std::string_view text) {
  const auto state = LineOf(text, "State");
  const auto uid = LineOf(text, "Uid");
  const auto gid = LineOf(text, "Gid");
  const auto caught = LineOf(text, "SigCgt");
  ProcessStatus status;
  if (!state || Word(*state, 0).empty() || !uid || !ParseNumber(Word(*uid, 1), 10, status.uid) ||
      !gid || !ParseNumber(Word(*gid, 1), 10, status.gid) || !caught ||
      !ParseNumber(Word(*caught, 0), 16, status.caught_signals)) {
    return Fail(EPROTO, "the process's status file cannot be understood");
  }
  status.state = Word(*state, 0).front();
  return status;
}

JvmMappings FindJvm(const ProcessMaps& maps) {
  JvmMappings found;
  for (const Mapping& mapping : maps.mappings) {
    const std::string_view name = FileBaseName(mapping);
    if (name == "libjvm.so" && found.machine == VirtualMachine::kNone) {
      found.machine = VirtualMachine::kHotSpot;
    } else if (name.starts_with("libj9vm")) {
      found.machine = VirtualMachine::kOpenJ9;
    } else if (name.starts_with("ld-musl-") || name.starts_with("libc.musl-")) {
      found.uses_musl = true;
    } else if (name == kAgentLibraryName && mapping.executable && found.agent_library.empty()) {
      found.agent_library = mapping.name;
    }
  }
  return found;
}

bool ForbidsAttaching(std::string_view arguments) {
  // Said twice, the last one counts.
  const std::size_t forbidden = arguments.rfind("-XX:+DisableAttachMechanism");
  const std::size_t allowed = arguments.rfind("-XX:-DisableAttachMechanism");
  if (forbidden == std::string_view::npos) return false;
  return allowed == std::string_view::npos || allowed < forbidden;
}

Result<JvmProcess> JvmProcess::Open(pid_t pid, std::string_view command) {
  auto directory = ProcessDirectory::Open(pid);
  if (!directory) {
    return tl::make_unexpected(ExplainAccessError(pid, directory.error().code, command));
  }
  if (!ProcIsOurs()) {
    return Fail(ENOTSUP, "/proc shows the processes of another pid namespace",
                "run the command where /proc is its own, e.g. on the host");
  }
  JvmProcess jvm(*std::move(directory));
  jvm.handle_ = UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, jvm.pid(), 0)));
  // Read after the handle was taken: so both are of the same process.
  const Result<ProcessStatus> status = jvm.Status();
  if (!status) return tl::make_unexpected(status.error());
  jvm.uid_ = status->uid;
  jvm.gid_ = status->gid;
  if (Result<void> seen = jvm.LookAtMappings(command); !seen) {
    return tl::make_unexpected(seen.error());
  }
  if (Result<void> opened = jvm.OpenFolders(command); !opened) {
    return tl::make_unexpected(opened.error());
  }
  jvm.LookAtArguments();
  return jvm;
}

Result<ProcessStatus> JvmProcess::Status() const {
  const auto ended = [this] { return Fail(ESRCH, Title() + " has ended"); };
  const auto text = directory_.ReadFile("status", kMaxStatusBytes);
  if (!text) return text.error().code == ESRCH ? ended() : tl::make_unexpected(text.error());
  Result<ProcessStatus> status = ParseProcessStatus(text->text);
  // Until its parent has waited for it, it has a number and nothing else.
  if (status && (status->state == 'Z' || status->state == 'X')) return ended();
  return status;
}

bool JvmProcess::EndsWithin(std::chrono::milliseconds time) const {
  pollfd ended = {handle_.get(), POLLIN, 0};
  // Without a handle (a kernel before 5.3) only the time is waited for.
  (void)poll(&ended, handle_.valid() ? 1 : 0, static_cast<int>(time.count()));
  const Result<ProcessStatus> status = Status();
  return !status && status.error().code == ESRCH;
}

Result<void> JvmProcess::SendQuit() const {
  const long sent = handle_.valid()
                        ? syscall(SYS_pidfd_send_signal, handle_.get(), SIGQUIT, nullptr, 0)
                        : kill(pid(), SIGQUIT);  // a kernel before 5.3
  if (sent == 0) return {};
  const int code = errno;
  if (code == ESRCH) return Fail(ESRCH, Title() + " has ended");
  return Fail(code, "cannot send SIGQUIT to " + Title() + ": " + std::strerror(code),
              "run it as the JVM's user, or as root");
}

Result<void> JvmProcess::LookAtMappings(std::string_view command) {
  const auto text = directory_.ReadFile("maps", kMaxMapsBytes);
  if (!text) {
    return tl::make_unexpected(ExplainAccessError(pid(), text.error().code, command));
  }
  JvmMappings found = FindJvm(ParseProcessMaps(text->text));
  if (found.machine == VirtualMachine::kNone) {
    // A process that ends loses its mappings first.
    if (const auto status = Status(); !status) return tl::make_unexpected(status.error());
    return tl::make_unexpected(NotAJvm(Title()));
  }
  if (found.machine == VirtualMachine::kOpenJ9) {
    return Fail(ENOTSUP, Title() + " is an OpenJ9 JVM, and spanprof knows HotSpot only",
                "run the program on a HotSpot JVM, such as OpenJDK's");
  }
  uses_musl_ = found.uses_musl;
  agent_library_ = std::move(found.agent_library);
  // The maps are told from our root; of a chroot the process does not know what is above it.
  char root[4096];
  const std::string link = "/proc/" + std::to_string(pid()) + "/root";
  const ssize_t length = readlink(link.c_str(), root, sizeof root);
  if (length > 1) {
    const std::string prefix = std::string(root, static_cast<std::size_t>(length)) + "/";
    if (agent_library_.starts_with(prefix)) agent_library_.erase(0, prefix.size() - 1);
  }
  return {};
}

Result<void> JvmProcess::OpenFolders(std::string_view command) {
  const std::string folder = "/proc/" + std::to_string(pid());
  root_ = UniqueFd(open((folder + "/root").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root_.valid()) {
    return tl::make_unexpected(ExplainAccessError(pid(), errno, command));
  }
  // May fail: the folder may have been removed.
  working_folder_ = UniqueFd(open((folder + "/cwd").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  shares_files_ =
      SameFile("/proc/self/ns/mnt", folder + "/ns/mnt") && SameFile("/", folder + "/root");
  // These were opened by number: they are its own if it is still there.
  if (const auto status = Status(); !status) return tl::make_unexpected(status.error());
  return {};
}

void JvmProcess::LookAtArguments() {
  // In the order in which the JVM takes them.
  std::string words;
  std::string last;
  if (const auto environment = directory_.ReadFile("environ", kMaxArgumentBytes)) {
    std::string_view rest = environment->text;
    while (!rest.empty()) {
      const std::string_view entry = rest.substr(0, rest.find('\0'));
      rest.remove_prefix(std::min(entry.size() + 1, rest.size()));
      if (entry.starts_with("JAVA_TOOL_OPTIONS=") || entry.starts_with("JDK_JAVA_OPTIONS=")) {
        words.append(entry) += '\0';
      } else if (entry.starts_with("_JAVA_OPTIONS=")) {
        last.append(entry);
      }
    }
  }
  if (const auto arguments = directory_.ReadFile("cmdline", kMaxArgumentBytes)) {
    words += arguments->text;
  }
  forbids_attaching_ = ForbidsAttaching(words + last);
}

}  // namespace spanprof::collect
