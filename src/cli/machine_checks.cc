#include "cli/machine_checks.h"

#include <array>
#include <cerrno>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "base/quantity.h"

namespace spanprof::cli {
namespace {

constexpr std::uint64_t kUnlimited = ~std::uint64_t{0};

// linux/capability.h
constexpr unsigned kCapSysPtrace = 19;
constexpr unsigned kCapSysAdmin = 21;
constexpr unsigned kCapSyslog = 34;
constexpr unsigned kCapPerfmon = 38;
constexpr unsigned kCapBpf = 39;

struct CapabilityName {
  unsigned number;
  std::string_view name;
};
constexpr std::array kCapabilityNames = {
    CapabilityName{kCapSysPtrace, "SYS_PTRACE"}, CapabilityName{kCapPerfmon, "PERFMON"},
    CapabilityName{kCapSysAdmin, "SYS_ADMIN"}, CapabilityName{kCapBpf, "BPF"},
    CapabilityName{kCapSyslog, "SYSLOG"}};

bool Has(const MachineFacts& facts, unsigned capability) {
  return (facts.capabilities >> capability & 1) != 0;
}

std::string ErrorText(int error_number) { return std::generic_category().message(error_number); }

std::string NumberText(const std::optional<std::int64_t>& number) {
  return number ? std::to_string(*number) : "absent";
}

std::string LimitText(std::uint64_t limit) {
  return limit == kUnlimited ? "unlimited" : std::to_string(limit);
}

std::string InContainer(const MachineFacts& facts, std::string_view options) {
  if (facts.container.empty()) return {};
  return fmt::format("start the container with {}", options);
}

Check CheckTimer(const MachineFacts& facts) {
  Check check{.name = "CPU timers",
              .value = "they work",
              .meaning = "CPU time is sampled with them",
              .fix = {}};
  if (facts.cpu_timer_error != 0) {
    check.status = CheckStatus::kFailed;
    check.value = ErrorText(facts.cpu_timer_error);
    check.meaning = "timer_create on a thread's CPU clock fails, so CPU time cannot be sampled";
    check.fix = facts.cpu_timer_error == EAGAIN
                    ? "raise the limit on pending signals: ulimit -i unlimited"
                    : InContainer(facts, "--security-opt seccomp=unconfined");
  }
  return check;
}

Check CheckTick(const MachineFacts& facts) {
  const double milliseconds = static_cast<double>(facts.tick_ns) / 1e6;
  Check check{.name = "kernel tick",
              .value = fmt::format("{:g} ms", milliseconds),
              .meaning = {},
              .fix = {}};
  check.meaning =
      fmt::format("CPU timers reach {:g} samples a CPU second (cpu={} and longer); ",
                  1000 / milliseconds, FormatDuration(std::chrono::nanoseconds(facts.tick_ns)));
  check.meaning += facts.perf_error == 0 ? "shorter intervals use perf, which works here"
                                         : "shorter intervals need perf, which does not work here";
  return check;
}

Check CheckPerf(const MachineFacts& facts) {
  Check check{.name = "perf cpu-clock",
              .value = "it opens",
              .meaning = "CPU intervals below the kernel's tick are exact",
              .fix = {}};
  if (facts.perf_error == 0) return check;
  check.status = CheckStatus::kLimited;
  check.value = ErrorText(facts.perf_error);
  check.meaning = "CPU intervals below the kernel's tick give one sample a tick";
  const bool is_denied = facts.perf_error == EACCES || facts.perf_error == EPERM;
  if (is_denied && facts.perf_event_paranoid.value_or(2) > 2) {
    check.fix = "sudo sysctl kernel.perf_event_paranoid=2";
  } else if (is_denied) {
    check.fix =
        facts.container.empty()
            ? "a seccomp filter or security module forbids perf_event_open: allow it there"
            : "start the container with --cap-add=PERFMON --security-opt seccomp=unconfined";
  } else if (facts.perf_error == ENOSYS) {
    check.fix = "use a kernel with CONFIG_PERF_EVENTS";
  } else if (facts.perf_error == EMFILE) {
    check.fix = "ulimit -n 65536";
  }
  return check;
}

Check CheckParanoid(const MachineFacts& facts) {
  Check check{.name = "kernel.perf_event_paranoid",
              .value = NumberText(facts.perf_event_paranoid),
              .meaning = "a process may sample itself with perf",
              .fix = {}};
  const bool is_privileged = Has(facts, kCapPerfmon) || Has(facts, kCapSysAdmin);
  if (!facts.perf_event_paranoid) {
    check.status = CheckStatus::kLimited;
    check.meaning = "the kernel has no perf events";
  } else if (*facts.perf_event_paranoid > 2 && !is_privileged) {
    check.status = CheckStatus::kLimited;
    check.meaning = "without CAP_PERFMON a process may not even sample itself with perf";
    check.fix = "sudo sysctl kernel.perf_event_paranoid=2";
  } else if (is_privileged) {
    check.meaning = "does not matter with CAP_PERFMON";
  }
  return check;
}

Check CheckPtraceScope(const MachineFacts& facts) {
  Check check{.name = "kernel.yama.ptrace_scope",
              .value = NumberText(facts.ptrace_scope),
              .meaning = "processes of the same user can be read",
              .fix = {}};
  const std::int64_t scope = facts.ptrace_scope.value_or(0);
  if (scope >= 3) {
    check.status = CheckStatus::kLimited;
    check.meaning = "nobody can read another process (`spanprof context PID`), not even root";
    check.fix = "put kernel.yama.ptrace_scope=1 into /etc/sysctl.d and restart the machine";
  } else if (scope > 0 && Has(facts, kCapSysPtrace)) {
    check.meaning = "does not matter with CAP_SYS_PTRACE";
  } else if (scope == 2) {
    check.status = CheckStatus::kLimited;
    check.meaning = "only root can read another process (`spanprof context PID`)";
    check.fix = "sudo spanprof context PID";
  } else if (scope == 1) {
    check.status = CheckStatus::kLimited;
    check.meaning = "only its parent and root can read another process (`spanprof context PID`)";
    check.fix = "sudo sysctl kernel.yama.ptrace_scope=0";
  }
  return check;
}

Check CheckKptr(const MachineFacts& facts) {
  Check check{.name = "kernel.kptr_restrict",
              .value = NumberText(facts.kptr_restrict),
              .meaning = "functions of the kernel can have names",
              .fix = {}};
  const std::int64_t restrict = facts.kptr_restrict.value_or(0);
  if (restrict >= 2 || (restrict == 1 && !Has(facts, kCapSyslog))) {
    check.status = CheckStatus::kLimited;
    check.meaning = "functions of the kernel have no names; those of programs do";
    check.fix = "sudo sysctl kernel.kptr_restrict=0";
  }
  return check;
}

Check CheckOpenFiles(const MachineFacts& facts) {
  Check check{.name = "limit on open files",
              .value = LimitText(facts.open_files),
              .meaning = {},
              .fix = {}};
  check.meaning = facts.open_files == kUnlimited
                      ? "perf can follow as many threads as there are"
                      : fmt::format("perf can follow {} threads of a program that is started here",
                                    facts.open_files / 4);
  if (facts.open_files < 1024) {
    check.status = CheckStatus::kLimited;
    check.fix = facts.open_files_hard > facts.open_files
                    ? "ulimit -n " + (facts.open_files_hard == kUnlimited
                                          ? std::string("65536")
                                          : std::to_string(facts.open_files_hard))
                    : "raise `nofile` in /etc/security/limits.conf and log in again";
  }
  return check;
}

Check CheckLockedMemory(const MachineFacts& facts) {
  Check check{
      .name = "limit on locked memory",
      .value = facts.locked_memory == kUnlimited ? "unlimited" : FormatSize(facts.locked_memory),
      .meaning = "enough for perf's buffers",
      .fix = {}};
  constexpr std::uint64_t kEnough = std::uint64_t{1} << 20;
  if (facts.locked_memory < kEnough && !facts.is_root) {
    check.status = CheckStatus::kLimited;
    check.meaning = "too little for perf's buffers, where a sampler outside the process needs them";
    check.fix = "ulimit -l 8192, or raise `memlock` in /etc/security/limits.conf";
  }
  return check;
}

Check CheckPendingSignals(const MachineFacts& facts) {
  Check check{.name = "limit on pending signals",
              .value = LimitText(facts.pending_signals),
              .meaning = "each sampled thread takes one, for its timer",
              .fix = {}};
  if (facts.pending_signals < 1024) {
    check.status = CheckStatus::kLimited;
    check.meaning = "each sampled thread takes one for its timer; further threads get none";
    check.fix = "ulimit -i 65536, or raise `sigpending` in /etc/security/limits.conf";
  }
  return check;
}

Check CheckTried(std::string name, int error_number, std::string meaning, std::string without,
                 std::string fix) {
  Check check{
      .name = std::move(name), .value = "it works", .meaning = std::move(meaning), .fix = {}};
  if (error_number == 0) return check;
  check.status = CheckStatus::kLimited;
  check.value = ErrorText(error_number);
  check.meaning = std::move(without);
  check.fix = std::move(fix);
  return check;
}

Check CheckPrivileges(const MachineFacts& facts) {
  Check check{.name = "privileges", .value = {}, .meaning = {}, .fix = {}};
  for (const CapabilityName& capability : kCapabilityNames) {
    if (!Has(facts, capability.number)) continue;
    check.value += (check.value.empty() ? "CAP_" : ", CAP_") + std::string(capability.name);
  }
  if (check.value.empty()) check.value = facts.is_root ? "root without capabilities" : "none";
  check.meaning = "programs that are started here need none; reading those of others does";
  if (facts.no_new_privileges && !facts.is_root) {
    check.status = CheckStatus::kLimited;
    check.value += ", no_new_privs";
    check.meaning = "sudo does not work from here";
    check.fix = "run spanprof from a shell outside of the sandbox";
  }
  return check;
}

Check CheckSandbox(const MachineFacts& facts) {
  Check check{.name = "container",
              .value = facts.container.empty() ? "none" : facts.container,
              .meaning = "processes are seen as they are numbered here",
              .fix = {}};
  if (facts.own_pid_namespace) {
    check.value += ", own pid namespace";
    check.meaning = "only this container's processes are seen, under its own numbers";
  }
  if (facts.seccomp_mode != 0) {
    check.value += ", seccomp";
    check.meaning +=
        "; system calls are filtered, and what is said above was tried under the filter";
  }
  return check;
}

}  // namespace

std::vector<Check> CheckMachine(const MachineFacts& facts) {
  return {
      {.name = "kernel", .value = facts.kernel, .meaning = {}, .fix = {}},
      CheckTimer(facts),
      CheckTick(facts),
      CheckPerf(facts),
      CheckParanoid(facts),
      CheckPtraceScope(facts),
      CheckKptr(facts),
      CheckOpenFiles(facts),
      CheckLockedMemory(facts),
      CheckPendingSignals(facts),
      CheckTried("process_vm_readv", facts.memory_read_error,
                 "stacks and records of other processes can be read",
                 "the records of other processes cannot be read (`spanprof context PID`)",
                 InContainer(facts, "--cap-add=SYS_PTRACE")),
      CheckTried("memfd_create", facts.memfd_error,
                 "ctxstorage=otel can publish its table under a name",
                 "ctxstorage=otel falls back to ctxstorage=profiler: other processes see no spans",
                 InContainer(facts, "--security-opt seccomp=unconfined")),
      CheckTried("membarrier", facts.membarrier_error, "cheap fences between threads are there",
                 "what would be ordered by membarrier takes slower fences",
                 InContainer(facts, "--security-opt seccomp=unconfined")),
      CheckPrivileges(facts),
      CheckSandbox(facts),
  };
}

}  // namespace spanprof::cli
