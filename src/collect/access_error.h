#pragma once

// Why another process cannot be read, in words that say what to do about it: the cause, the present
// value of what decides, and the command to try.

#include <optional>
#include <string>
#include <string_view>

#include <sys/types.h>

#include "base/result.h"

namespace spanprof::collect {

// What decides whether a process may read another one.
struct AccessFacts {
  uid_t own_uid = 0;
  std::optional<uid_t> target_uid;          // the owner of /proc/PID
  std::optional<std::string> ptrace_scope;  // of the Yama module; nothing: no such file
};

[[nodiscard]] AccessFacts GatherAccessFacts(pid_t pid);

// `error_number` as the system gave it; `command` is what the user ran, e.g. "spanprof context 42".
[[nodiscard]] Error AccessError(pid_t pid, int error_number, const AccessFacts& facts,
                                std::string_view command);

// The same with the facts of this machine, at this moment.
[[nodiscard]] Error ExplainAccessError(pid_t pid, int error_number, std::string_view command);

}  // namespace spanprof::collect
