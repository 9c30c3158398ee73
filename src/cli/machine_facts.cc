#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <signal.h>
#include <sstream>
#include <string_view>
#include <time.h>
#include <unistd.h>

#include <linux/membarrier.h>
#include <linux/perf_event.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/utsname.h>

#include "base/unique_fd.h"
#include "cli/machine_checks.h"

namespace spanprof::cli {
namespace {

std::string ReadText(const char* path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::optional<std::int64_t> ReadNumber(const char* path) {
  const std::string text = ReadText(path);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  return number;
}

std::uint64_t TickNanoseconds() {
  timespec resolution = {};
  if (clock_getres(CLOCK_MONOTONIC_COARSE, &resolution) != 0) return 4'000'000;
  return static_cast<std::uint64_t>(resolution.tv_sec) * 1'000'000'000u +
         static_cast<std::uint64_t>(resolution.tv_nsec);
}

// As the sampler makes it, but without a signal.
int TryCpuTimer() {
  sigevent event = {};
  event.sigev_notify = SIGEV_NONE;
  timer_t timer = {};
  if (timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer) != 0) return errno;
  timer_delete(timer);
  return 0;
}

int TryPerf() {
  perf_event_attr attributes = {};
  attributes.size = sizeof attributes;
  attributes.type = PERF_TYPE_SOFTWARE;
  attributes.config = PERF_COUNT_SW_CPU_CLOCK;
  attributes.sample_period = 1'000'000;
  attributes.disabled = 1;
  attributes.exclude_kernel = 1;
  attributes.exclude_hv = 1;
  const UniqueFd fd(
      static_cast<int>(syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC)));
  return fd.valid() ? 0 : errno;
}

int TryMemoryRead() {
  char from = 'x';
  char to = 0;
  const iovec local = {&to, 1};
  const iovec remote = {&from, 1};
  return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == 1 ? 0 : errno;
}

int TryMemfd() {
  const UniqueFd fd(static_cast<int>(syscall(SYS_memfd_create, "spanprof-doctor", MFD_CLOEXEC)));
  return fd.valid() ? 0 : errno;
}

int TryMembarrier() {
  const long commands = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
  if (commands < 0) return errno;
  return (commands & MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0 ? 0 : EOPNOTSUPP;
}

std::uint64_t Number(rlim_t limit) {
  return limit == RLIM_INFINITY ? ~std::uint64_t{0} : std::uint64_t{limit};
}

// The value of a line `name:` of a status file, in `base`.
std::uint64_t StatusNumber(std::string_view status, std::string_view name, int base) {
  const std::size_t line = status.find("\n" + std::string(name) + ":");
  if (line == std::string_view::npos) return 0;
  std::string_view rest = status.substr(line + name.size() + 2);
  rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
  std::uint64_t number = 0;
  std::from_chars(rest.data(), rest.data() + rest.size(), number, base);
  return number;
}

std::string Container() {
  if (const char* name = std::getenv("container"); name != nullptr) return name;
  if (access("/.dockerenv", F_OK) == 0) return "docker";
  if (access("/run/.containerenv", F_OK) == 0) return "podman";
  if (std::getenv("KUBERNETES_SERVICE_HOST") != nullptr) return "kubernetes";
  return {};
}

bool HasOwnPidNamespace() {
  // The number of the first one is fixed (PROC_PID_INIT_INO).
  char target[64] = {};
  const ssize_t length = readlink("/proc/self/ns/pid", target, sizeof(target) - 1);
  return length > 0 && std::string_view(target) != "pid:[4026531836]";
}

}  // namespace

MachineFacts GatherMachineFacts() {
  MachineFacts facts;
  utsname name = {};
  if (uname(&name) == 0) facts.kernel = std::string(name.release) + " " + name.machine;
  facts.tick_ns = TickNanoseconds();
  facts.perf_event_paranoid = ReadNumber("/proc/sys/kernel/perf_event_paranoid");
  facts.ptrace_scope = ReadNumber("/proc/sys/kernel/yama/ptrace_scope");
  facts.kptr_restrict = ReadNumber("/proc/sys/kernel/kptr_restrict");
  facts.cpu_timer_error = TryCpuTimer();
  facts.perf_error = TryPerf();
  facts.memory_read_error = TryMemoryRead();
  facts.memfd_error = TryMemfd();
  facts.membarrier_error = TryMembarrier();
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    facts.open_files = Number(limit.rlim_cur);
    facts.open_files_hard = Number(limit.rlim_max);
  }
  if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0) facts.locked_memory = Number(limit.rlim_cur);
  if (getrlimit(RLIMIT_SIGPENDING, &limit) == 0) facts.pending_signals = Number(limit.rlim_cur);
  facts.is_root = geteuid() == 0;
  const std::string status = ReadText("/proc/self/status");
  facts.capabilities = StatusNumber(status, "CapEff", 16);
  facts.seccomp_mode = static_cast<std::uint32_t>(StatusNumber(status, "Seccomp", 10));
  facts.no_new_privileges = StatusNumber(status, "NoNewPrivs", 10) != 0;
  facts.container = Container();
  facts.own_pid_namespace = HasOwnPidNamespace();
  return facts;
}

}  // namespace spanprof::cli
