#pragma once

// The two sources of a signal every so much CPU time of one thread. A POSIX timer on the thread's
// CPU clock is looked at by the kernel once a tick, so below the tick's length it gives fewer
// signals, each with the number of expirations it stands for. A perf event on the CPU clock is
// exact.
//
// Arm and Disarm may be called from any thread of the process, for any of its threads.

#include <atomic>
#include <cstdint>

#include "sampling/sampled_threads.h"

namespace spanprof::sampling {

// How long the kernel's tick is.
uint64_t KernelTickNanoseconds();

// CPU time of a thread of this process; 0 when it has gone.
uint64_t ThreadCpuNanoseconds(uint32_t tid);
uint64_t ProcessCpuNanoseconds();
uint64_t MonotonicNanoseconds();

// The next multiple of the interval. What is done every so often is done at these instants, so that
// a thread wakes up once for all of it.
constexpr uint64_t NextMultiple(uint64_t now_ns, uint64_t interval_ns) {
  return (now_ns / interval_ns + 1) * interval_ns;
}

class CpuClock {
 public:
  // `may_use_perf`: where the interval is shorter than a tick.
  void Configure(uint64_t interval_ns, bool may_use_perf);
  // Signal-safe.
  uint64_t interval_ns() const { return interval_ns_.load(std::memory_order_relaxed); }
  // Of signals to come, also of those that are armed: Rearm has to follow for each. The source
  // stays. A signal that is on its way is taken for one of the new interval.
  void ChangeInterval(uint64_t interval_ns) {
    interval_ns_.store(interval_ns, std::memory_order_relaxed);
  }
  void Rearm(const SampledThread& thread) const;

  // A timer of the thread's CPU clock for wall samples, beside the source of its CPU samples.
  // False: the kernel gives none.
  static bool ArmWallTimer(SampledThread& thread, uint64_t interval_ns);
  static void RearmWallTimer(const SampledThread& thread, uint64_t interval_ns);

  enum class Source { kNone, kTimer, kPerf };
  // Starts the thread's signals: from a timer with the thread in its value, or from perf.
  Source Arm(SampledThread& thread);
  // Ends its signals, those for wall samples too.
  void Disarm(SampledThread& thread);

  // In the handler of a perf event: how many intervals passed since the last one, at least 1.
  // Signal-safe.
  uint64_t TakePerfCount(SampledThread& thread, uint64_t now_ns) const;
  // Whether the event's signal has been sent, or swallowed by another one. Signal-safe.
  bool PerfIsDue(const SampledThread& thread) const;
  // The thread whose perf event has this descriptor. Signal-safe.
  static bool IsPerfSignal(int si_code);

 private:
  bool ArmPerf(SampledThread& thread);

  std::atomic<uint64_t> interval_ns_{0};
  bool use_perf_ = false;
  uint32_t perf_events_ = 0;
  uint32_t perf_limit_ = 0;
};

}  // namespace spanprof::sampling
