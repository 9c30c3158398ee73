#pragma once

// What `spanprof doctor PID` says of a running process. The facts are gathered apart from the
// judgement, so that processes which are not at hand can be judged in tests.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/result.h"
#include "cli/doctor_check.h"

namespace spanprof::cli {

struct ProcessFacts {
  pid_t pid = 0;
  std::string name;  // any bytes
  std::uint64_t threads = 1;
  std::uint64_t caught_signals = 0;  // masks, as in /proc/PID/status
  std::uint64_t ignored_signals = 0;
  std::uint64_t open_files = ~std::uint64_t{0};  // its soft limits
  std::uint64_t pending_signals = ~std::uint64_t{0};
  std::uint32_t seccomp_mode = 0;
  bool own_pid_namespace = false;
  std::optional<Error> memory_error;   // why its memory cannot be read
  std::string records;                 // the context records that it publishes
  std::optional<Error> records_error;  // why there are none
};

// Fails with ESRCH if there is no such process.
[[nodiscard]] Result<ProcessFacts> GatherProcessFacts(pid_t pid);
[[nodiscard]] std::vector<Check> CheckProcess(const ProcessFacts& facts);

}  // namespace spanprof::cli
