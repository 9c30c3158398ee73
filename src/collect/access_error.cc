#include "collect/access_error.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <sys/stat.h>

#include "base/unique_fd.h"

namespace spanprof::collect {
namespace {

constexpr char kPtraceScope[] = "/proc/sys/kernel/yama/ptrace_scope";

std::optional<std::string> ReadPtraceScope() {
  const UniqueFd file(open(kPtraceScope, O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return std::nullopt;
  char text[16];
  const ssize_t got = read(file.get(), text, sizeof(text));
  if (got <= 0) return std::nullopt;
  std::string value(text, static_cast<std::size_t>(got));
  while (value.ends_with('\n')) value.pop_back();
  return value;
}

}  // namespace

AccessFacts GatherAccessFacts(pid_t pid) {
  AccessFacts facts;
  facts.own_uid = geteuid();
  struct stat target = {};
  if (stat(("/proc/" + std::to_string(pid)).c_str(), &target) == 0) {
    facts.target_uid = target.st_uid;
  }
  facts.ptrace_scope = ReadPtraceScope();
  return facts;
}

Error AccessError(pid_t pid, int error_number, const AccessFacts& facts, std::string_view command) {
  const std::string process = "process " + std::to_string(pid);
  const std::string sudo = "sudo " + std::string(command);
  if (error_number == ESRCH || error_number == ENOENT) {
    return {ESRCH, "there is no " + process, "list the processes that run: ps -e"};
  }
  if (error_number != EPERM && error_number != EACCES) {
    return {error_number, "cannot read " + process + ": " + std::strerror(error_number), {}};
  }
  std::string message = "not permitted to read " + process + ": ";
  const bool other_user = facts.target_uid && *facts.target_uid != facts.own_uid;
  if (other_user) {
    message += "it belongs to uid " + std::to_string(*facts.target_uid) +
               ", this command runs as uid " + std::to_string(facts.own_uid) +
               " without CAP_SYS_PTRACE; ";
  } else {
    message +=
        "this command runs as uid " + std::to_string(facts.own_uid) + " without CAP_SYS_PTRACE; ";
  }
  message += kPtraceScope;
  message += facts.ptrace_scope ? " is " + *facts.ptrace_scope : " is absent";
  std::string hint = "run it as root: " + sudo;
  if (!other_user && facts.ptrace_scope && *facts.ptrace_scope == "1") {
    hint += ", or allow it to every process of a user: sudo sysctl kernel.yama.ptrace_scope=0";
  }
  return {error_number, std::move(message), std::move(hint)};
}

Error ExplainAccessError(pid_t pid, int error_number, std::string_view command) {
  if (error_number == ESRCH || error_number == ENOENT) {
    // A /proc mounted with hidepid hides the processes of others.
    const bool hidden = kill(pid, 0) != 0 && errno == EPERM;
    if (hidden) error_number = EPERM;
  }
  return AccessError(pid, error_number, GatherAccessFacts(pid), command);
}

}  // namespace spanprof::collect
