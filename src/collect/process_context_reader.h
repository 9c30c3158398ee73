#pragma once

// Finding and reading the OTEP 4719 process context of another process, which may replace it while
// we read: what is returned was published together.

#include <cerrno>
#include <cstdint>

#include "base/result.h"
#include "collect/process_context_payload.h"
#include "collect/process_maps.h"
#include "collect/remote_memory.h"

namespace spanprof::collect {

struct ProcessContextReading {
  bool found = false;  // there is a mapping of that name
  // The context; without a value, why it cannot be read (EAGAIN: it changed each time that we
  // looked; EPERM and ESRCH: the process cannot be read at all).
  Result<ProcessContext> context = Fail(ENOENT, "the process publishes no process context");
};

inline constexpr unsigned kProcessContextAttempts = 8;

[[nodiscard]] ProcessContextReading ReadProcessContext(MemoryReader& memory,
                                                       const ProcessMaps& maps);

}  // namespace spanprof::collect
