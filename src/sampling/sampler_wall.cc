// Wall-clock samples: some threads a tick are asked for one, unless they have slept since the last,
// or run and have a timer for it.

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

// A thread that has a timer and is in no call may just have woken up, and be in the next call when
// the signal comes, of which nothing would be known then. So it is asked only if it has been seen
// so for long: it waits for a processor.
constexpr uint64_t kWaitForProcessorTicks = 10;

// Whether the clock has gone on since it was read just before. It says so for less than the file
// that tells a thread's call.
bool IsRunning(uint32_t tid, uint64_t cpu_ns) { return ThreadCpuNanoseconds(tid) != cpu_ns; }

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

void Sampler::AskForWallSample(SampledThread& thread, uint64_t ticks, const BlockedCall& call) {
  // If the last signal has not been taken yet, its sample stands for more time.
  if (thread.wall_ticks_due.load(std::memory_order_acquire) != 0) {
    if (thread.wall_ticks_due.fetch_add(ticks, std::memory_order_release) != 0) return;
    thread.wall_ticks_due.store(0, std::memory_order_relaxed);  // taken just now
  }
  const uint32_t tid = thread.tid.load(std::memory_order_relaxed);
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
  info.si_uid = uid_;
  info.si_value.sival_ptr = &thread;
  if (syscall(SYS_rt_tgsigqueueinfo, pid_, tid, kSamplingSignal, &info) != 0) {
    thread.wall_ticks_due.store(0, std::memory_order_relaxed);
    Count(kWallNotQueued);
  }
}

// A thread that is asked for each sample, whatever it does.
void Sampler::LookByTicks(SampledThread& thread, uint64_t tick, uint64_t now) {
  const uint64_t ticks = thread.wall_tick == 0 ? 1 : tick - thread.wall_tick;
  thread.wall_tick = tick;
  const uint32_t tid = thread.tid.load(std::memory_order_relaxed);
  const uint64_t cpu_ns = ThreadCpuNanoseconds(tid);
  if (SleptSinceWallSample(thread, cpu_ns)) {
    sink_->TakeAsleep(tid, now, ticks, ticks * wall_interval_ns_);
  } else {
    BlockedCall call;
    if (!IsRunning(tid, cpu_ns)) ReadBlockedCall(tid, &call);
    AskForWallSample(thread, ticks, call);
  }
}

// A thread whose timer samples what it runs. The rest of its time is sampled when it is seen not to
// run.
void Sampler::LookBesideTimer(SampledThread& thread, uint64_t tick, uint64_t now) {
  WallLooks& looks = thread.wall_looks;
  const uint32_t tid = thread.tid.load(std::memory_order_relaxed);
  const uint64_t cpu_ns = ThreadCpuNanoseconds(tid);
  looks.Account(now, cpu_ns);
  bool sleeps = false;
  const uint64_t ticks = looks.WholeTicksOff(wall_interval_ns_);
  if (ticks >= slowdown()) {
    const uint64_t value = ticks * wall_interval_ns_;
    if (SleptSinceWallSample(thread, cpu_ns)) {
      sink_->TakeAsleep(tid, now, ticks, value);
      looks.TakeOff(value);
      sleeps = true;
    } else if (!IsRunning(tid, cpu_ns)) {
      BlockedCall call;
      if (ReadBlockedCall(tid, &call) || ticks >= kWaitForProcessorTicks * slowdown()) {
        AskForWallSample(thread, ticks, call);
        looks.TakeOff(value);
      }
    }
  }
  looks.Schedule(tick, sleeps);
}

// Threads that sleep may not have been looked at for a while.
void Sampler::EndWallTime() {
  if (!wall_by_timers_ || !Drain()) return;
  const ThreadsLock lock(threads_lock_);
  const uint64_t now = MonotonicNanoseconds();
  threads_.ForEach([this, now](SampledThread& thread) {
    const uint32_t tid = thread.tid.load(std::memory_order_relaxed);
    const uint64_t cpu_ns = ThreadCpuNanoseconds(tid);
    if (thread.wall_timer_id.load(std::memory_order_relaxed) < 0) return;
    thread.wall_looks.Account(now, cpu_ns);
    const uint64_t ticks = thread.wall_looks.WholeTicksOff(wall_interval_ns_);
    if (ticks == 0 || !SleptSinceWallSample(thread, cpu_ns)) return;
    sink_->TakeAsleep(tid, now, ticks, ticks * wall_interval_ns_);
  });
}

void Sampler::ArmWallTimer(SampledThread& thread) {
  if (!CpuClock::ArmWallTimer(thread, wall_interval_ns_ * slowdown())) {
    Count(kThreadNotArmed);  // it is asked for its samples
    return;
  }
  thread.wall_looks.Begin(MonotonicNanoseconds(), thread.cpu_ns_when_found);
}

// Returns the tick on which a thread is to be looked at next.
uint64_t Sampler::TickWall(uint64_t tick) {
  // The sink must have a thread's last sample before it hears that nothing has changed since.
  if (!Drain()) return tick + 1;
  const ThreadsLock lock(threads_lock_);
  uint64_t next_tick = ~uint64_t{0};
  std::vector<SampledThread*> due;
  due.reserve(threads_.size());
  threads_.ForEach([&due, &next_tick, tick](SampledThread& thread) {
    const bool has_timer = thread.wall_timer_id.load(std::memory_order_relaxed) >= 0;
    if (has_timer && !thread.wall_looks.IsDue(tick)) {
      next_tick = std::min(next_tick, thread.wall_looks.next_tick());
    } else {
      due.push_back(&thread);
    }
  });
  const uint64_t now = MonotonicNanoseconds();
  const auto chosen = std::min<size_t>(due.size(), options_.wall_threads);
  if (chosen < due.size()) next_tick = tick + 1;
  for (size_t i = 0; i < chosen; ++i) {
    SampledThread& thread = *due[wall_cursor_++ % due.size()];
    if (thread.wall_timer_id.load(std::memory_order_relaxed) >= 0) {
      LookBesideTimer(thread, tick, now);
      next_tick = std::min(next_tick, thread.wall_looks.next_tick());
    } else {
      LookByTicks(thread, tick, now);
      next_tick = tick + 1;
    }
  }
  return std::min(next_tick, tick + WallLooks::kMaxTicks);
}

}  // namespace spanprof::sampling
