#pragma once

// In debug builds: knows that the calling thread is in one of the profiler's signal handlers, so
// that what must not be called there can abort (handler_guard_functions.cc, in tests). In
// other builds there is nothing of it.

namespace spanprof::sampling {

#if defined(SPANPROF_CHECK_HANDLERS)

// Initial-exec: reading it never allocates.
extern thread_local int handler_depth __attribute__((tls_model("initial-exec")));

class HandlerGuard {
 public:
  HandlerGuard() { ++handler_depth; }
  ~HandlerGuard() { --handler_depth; }
  HandlerGuard(const HandlerGuard&) = delete;
  HandlerGuard& operator=(const HandlerGuard&) = delete;
};

#else

class HandlerGuard {
 public:
  HandlerGuard() {}
};

#endif

}  // namespace spanprof::sampling
