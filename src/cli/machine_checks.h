#pragma once

// What on this machine limits profiling. The facts are gathered apart from the judgement, so that
// machines which are not at hand can be judged in tests.
//
//   const std::vector<Check> checks = CheckMachine(GatherMachineFacts());

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/doctor_check.h"

namespace spanprof::cli {

struct MachineFacts {
  std::string kernel;  // release and architecture
  std::uint64_t tick_ns = 4'000'000;
  // Of /proc/sys/kernel; absent: no such file.
  std::optional<std::int64_t> perf_event_paranoid = {};
  std::optional<std::int64_t> ptrace_scope = {};
  std::optional<std::int64_t> kptr_restrict = {};
  // What trying it said: errno, 0 if it works.
  int cpu_timer_error = 0;
  int perf_error = 0;  // perf cpu-clock on a thread of one's own, without the kernel's part
  int memory_read_error = 0;
  int memfd_error = 0;
  int membarrier_error = 0;
  // Limits of this process: soft and hard. The largest number is "unlimited".
  std::uint64_t open_files = 1024;
  std::uint64_t open_files_hard = 1024;
  std::uint64_t locked_memory = 8 << 20;
  std::uint64_t pending_signals = 65536;
  bool is_root = false;
  std::uint64_t capabilities = 0;  // effective, as in /proc/self/status
  std::uint32_t seccomp_mode = 0;
  bool no_new_privileges = false;
  std::string container;  // "docker", "podman", ...; empty: none was recognised
  bool own_pid_namespace = false;
};

[[nodiscard]] MachineFacts GatherMachineFacts();
[[nodiscard]] std::vector<Check> CheckMachine(const MachineFacts& facts);

}  // namespace spanprof::cli
