// Wall-clock samples: some threads a tick are asked for one, unless they have slept since the last.

#include <algorithm>
#include <signal.h>
#include <unistd.h>
#include <vector>

#include <sys/syscall.h>

#include "sampling/sampler.h"
#include "sampling/signal_dispatch.h"
#include "sampling/threads_lock.h"

namespace spanprof::sampling {
namespace {

// A thread that used less than this between two looks is taken to have slept: that much goes into
// returning from the last signal.
constexpr uint64_t kReturnFromSignalNs = 10'000;

}  // namespace

void Sampler::ForgetWallSamples() {
  const ThreadsLock lock(threads_lock_);
  threads_.ForEach([](SampledThread& thread) {
    thread.runs_at_wall_sample.store(0, std::memory_order_relaxed);
  });
}

bool Sampler::SleptSinceWallSample(const SampledThread& thread, uint64_t cpu_ns) const {
  const uint64_t runs = thread.runs_at_wall_sample.load(std::memory_order_acquire);
  if (runs == 0 || thread.handler_runs.load(std::memory_order_relaxed) != runs) return false;
  const uint64_t cpu_then = thread.cpu_ns_at_wall_sample.load(std::memory_order_relaxed);
  if (cpu_ns < cpu_then || cpu_ns - cpu_then > kReturnFromSignalNs) return false;
  const uint32_t tid = thread.tid.load(std::memory_order_relaxed);
  if (runtime_ != nullptr && runtime_->StateMark(tid) !=
                                 thread.state_mark_at_wall_sample.load(std::memory_order_relaxed)) {
    return false;
  }
  // Whatever little it did, it did not change its context: a write would have left another mark.
  const internal::ThreadContext* context = context::ThisCore().FindThread(tid);
  const uintptr_t mark = context == nullptr ? 0 : context->mark.load(std::memory_order_relaxed);
  return mark == thread.mark_at_wall_sample.load(std::memory_order_relaxed);
}

void Sampler::AskForWallSample(SampledThread& thread, uint64_t ticks) {
  // If the last signal has not been taken yet, its sample stands for more time.
  if (thread.wall_ticks_due.load(std::memory_order_acquire) != 0) {
    if (thread.wall_ticks_due.fetch_add(ticks, std::memory_order_release) != 0) return;
    thread.wall_ticks_due.store(0, std::memory_order_relaxed);  // taken just now
  }
  const uint32_t tid = thread.tid.load(std::memory_order_relaxed);
  BlockedCall call;
  ReadBlockedCall(tid, &call);
  if (WaitsForSignal(call, kSamplingSignal)) {
    Count(kWaitsForSignals, ticks);
    return;
  }
  thread.blocked_call = call;
  thread.wall_ticks_due.store(ticks, std::memory_order_release);
  siginfo_t info = {};
  info.si_signo = kSamplingSignal;
  info.si_code = SI_QUEUE;
  info.si_pid = static_cast<pid_t>(pid_);
  info.si_uid = getuid();
  info.si_value.sival_ptr = &thread;
  if (syscall(SYS_rt_tgsigqueueinfo, pid_, tid, kSamplingSignal, &info) != 0) {
    thread.wall_ticks_due.store(0, std::memory_order_relaxed);
    Count(kWallNotQueued);
  }
}

void Sampler::TickWall(uint64_t tick) {
  // The sink must have a thread's last sample before it hears that nothing has changed since.
  if (!Drain()) return;
  const ThreadsLock lock(threads_lock_);
  std::vector<SampledThread*> all;
  all.reserve(threads_.size());
  threads_.ForEach([&all](SampledThread& thread) { all.push_back(&thread); });
  if (all.empty()) return;
  const uint64_t now = MonotonicNanoseconds();
  const auto chosen = std::min<size_t>(all.size(), options_.wall_threads);
  for (size_t i = 0; i < chosen; ++i) {
    SampledThread& thread = *all[wall_cursor_++ % all.size()];
    const uint64_t ticks = thread.wall_tick == 0 ? 1 : tick - thread.wall_tick;
    thread.wall_tick = tick;
    const uint32_t tid = thread.tid.load(std::memory_order_relaxed);
    const uint64_t cpu_ns = ThreadCpuNanoseconds(tid);
    if (SleptSinceWallSample(thread, cpu_ns)) {
      sink_->TakeAsleep(tid, now, ticks, ticks * options_.wall_interval_ns);
    } else {
      AskForWallSample(thread, ticks);
    }
  }
}

}  // namespace spanprof::sampling
