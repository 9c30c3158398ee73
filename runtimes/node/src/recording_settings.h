#pragma once

// What the options of a recording are for Node.js, as its threads have to know it.

#include <cstddef>
#include <cstdint>

#include "base/options.h"
#include "base/result.h"

namespace spanprof::node {

// A new generation is a new recording.
struct RecordingSettings {
  uint64_t generation = 0;
  bool running = false;
  int64_t interval_ns = 0;
  bool wall = false;
  bool cpu = false;
  uint64_t allocation_bytes = 0;  // 0: allocations are not sampled
  size_t max_memory = 0;
};

// EINVAL, ENOTSUP: options that V8 or Node.js has nothing for.
Result<RecordingSettings> SettingsOf(const Options& options);

}  // namespace spanprof::node
