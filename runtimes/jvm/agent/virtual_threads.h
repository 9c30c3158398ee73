#pragma once

// Contexts that follow virtual threads: what is set while one is mounted is put away when it is
// unmounted, and is there again when it goes on, on whatever carrier. In between the carrier has
// none, so that no sample shows a span of another.

#include <atomic>
#include <cstdint>
#include <jvmti.h>

#include "base/result.h"

namespace spanprof::jvm {

class VirtualThreads {
 public:
  // ENOTSUP: this JVM has no virtual threads.
  static Result<void> Follow(JavaVM* vm);

  [[nodiscard]] static bool following();
  [[nodiscard]] static uint64_t kept_contexts();  // of threads that have been unmounted with one
  [[nodiscard]] static uint64_t refused_contexts();
};

}  // namespace spanprof::jvm
