#pragma once

// The coroutines of a running process, from outside: their stations are read, and from the target's
// memory the last event of each. No code runs in the target. What is not consistent while it is
// being read is left out and counted.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/result.h"
#include "coroutine/coroutine_history.h"

namespace spanprof::coroutine {

struct LiveCoroutine {
  uint64_t probe_id = 0;
  uint64_t identity = 0;         // station and generation, as in records
  std::string name;              // its name, else the function it is suspended in; may be empty
  uint64_t resume_function = 0;  // an address in the target; 0: not known
  CoroutineStatus status = CoroutineStatus::kNew;
  uint64_t age_nanoseconds = 0;           // since its birth, or since it was first seen
  uint64_t since_nanoseconds = 0;         // in this status
  std::string place;                      // "file:line"; empty: none
  std::optional<std::size_t> awaited_by;  // index
};

struct LiveCoroutines {
  std::vector<LiveCoroutine> coroutines;
  uint64_t unreadable = 0;  // changed while they were read, or out of reach
  bool recorded_by_another = false;
};

// If nobody records the process, its tracing is turned on for `milliseconds`: coroutines that were
// born before appear when they are resumed in that time.
[[nodiscard]] Result<LiveCoroutines> ReadLiveCoroutines(pid_t pid, unsigned milliseconds);

}  // namespace spanprof::coroutine
