#pragma once

// What the C interface asks of the profiler, which is a layer above the context core: it fills this
// in when it is linked into the same library. Without it the calls say so.

#include <atomic>
#include <signal.h>

namespace spanprof::sampling {
class Runtime;
}

namespace spanprof::context {

struct ProfilerInterface {
  // 0 or a negative errno value; the reason goes to SetLastError.
  int (*start)(const char* options);
  int (*stop)();
  int (*dump)(const char* file);
  int (*is_running)();
  // SIGNAL-SAFE: writes what was recorded, within a bound. The process is about to end.
  void (*finish_before_exit)();
  // It did not end: an exec failed.
  void (*resume)();
  // The calling thread begins or ends.
  void (*thread_started)();
  void (*thread_ended)();
  // SIGNAL-SAFE: 1 if the call was answered, because the signal is one that the profiler uses.
  int (*answer_sigaction)(int signal, const struct sigaction* action, struct sigaction* previous);
  // 1 if a signal that the calling thread has waited for is the profiler's, and not the program's.
  int (*take_waited_signal)(int signal, const siginfo_t* info);
  // The process runs more than native code. Before a start.
  int (*use_runtime)(sampling::Runtime& runtime);
};

// Of a copy without a profiler: what a caller hears of it is -ENOTSUP.
extern const ProfilerInterface kNoProfiler;

inline std::atomic<const ProfilerInterface*> profiler_interface{&kNoProfiler};

// What spanprof_error() says next.
void SetLastError(const char* text);

}  // namespace spanprof::context
