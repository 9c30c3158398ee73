// SIGNAL-SAFE. The part of the sampler that runs in signal handlers.

#include <algorithm>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <sys/prctl.h>
#include <sys/syscall.h>

#include "context/platform.h"
#include "context/thread_context_reader.h"
#include "profile/profile.h"
#include "sampling/handler_guard.h"
#include "sampling/native_registers.h"
#include "sampling/sampler.h"
#include "sampling/signal_dispatch.h"

namespace spanprof::sampling {
namespace {

constexpr uint64_t kNameLifetimeNs = 100'000'000;
// A handler that seems to take longer was interrupted: another thread had its processor.
constexpr uint64_t kLongestHandlerNs = 100'000;
// What the kernel takes for a timer's signal besides, which a process cannot measure by the way.
constexpr uint64_t kSignalNs = 2'000;

uint64_t OwnCpuNanoseconds() {
  timespec time = {};
  syscall(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(time.tv_nsec);
}

}  // namespace

#if defined(SPANPROF_CHECK_HANDLERS)
thread_local int handler_depth = 0;
#endif

bool Sampler::TakeSignal(int signal, siginfo_t* info, void* ucontext) {
  [[maybe_unused]] const HandlerGuard guard;
  return Instance().TakeOurSignal(signal, *info, *static_cast<ucontext_t*>(ucontext));
}

bool Sampler::IsOurs(int signal, const siginfo_t& info, const SampledThread* own) const {
  if (signal != kSamplingSignal) return false;
  if (info.si_code == SI_TIMER) return threads_.Owns(info.si_value.sival_ptr);
  if (info.si_code == SI_QUEUE) {
    return static_cast<uint32_t>(info.si_pid) == pid_ && threads_.Owns(info.si_value.sival_ptr);
  }
  return CpuClock::IsPerfSignal(info.si_code) && own != nullptr &&
         own->perf_fd.load(std::memory_order_acquire) == info.si_fd;
}

bool Sampler::TakeOurSignal(int signal, const siginfo_t& info, ucontext_t& at) {
  // By the thread that runs and not by the signal's value alone: the signal may be a late one,
  // whose entry has become another thread's.
  const auto tid = static_cast<uint32_t>(syscall(SYS_gettid));
  SampledThread* thread = threads_.Find(tid);
  const bool ours = IsOurs(signal, info, thread);
  const bool from_timer = ours && info.si_code == SI_TIMER;
  const bool from_perf = ours && CpuClock::IsPerfSignal(info.si_code);
  if (!running() || thread == nullptr || (from_timer && info.si_value.sival_ptr != thread)) {
    if (ours) {
      Count(kLateSignals);
      // Its thread has no entry any more, and yet is not to notice.
      GoOnWithCall(tid, threads_.SpareCallTimeout(tid), BlockedCall(), MonotonicNanoseconds(), at);
    }
    return ours;
  }

  const uint64_t now = MonotonicNanoseconds();
  // All signals are blocked in here, so this is a handler that was left by longjmp, or a fork of
  // one.
  if (thread->in_handler.exchange(1, std::memory_order_acquire) != 0) Count(kReentered);
  if (from_timer) RecordTimer(*thread, info, now, at);
  // Of signals with one number the kernel keeps one: this may stand for others, of ours too.
  if (from_perf || cpu_clock_.PerfIsDue(*thread)) {
    RecordCpu(*thread, cpu_clock_.TakePerfCount(*thread, now), now, at);
  }
  BlockedCall call;
  // While ticks are due nobody writes the call. Pairs with AskForWallSample's store.
  if (thread->wall_ticks_due.load(std::memory_order_acquire) != 0) {
    call = thread->blocked_call;
    const uint64_t ticks = thread->wall_ticks_due.exchange(0, std::memory_order_acq_rel);
    Record(*thread, static_cast<uint8_t>(profile::SampleKind::kWall), ticks,
           ticks * wall_interval_ns_, now, at);
  }
  if (ours) GoOnWithCall(tid, threads_.IndexOf(*thread), call, now, at);
  CountHandlerTime(now, from_perf);
  thread->in_handler.store(0, std::memory_order_release);
  return ours;
}

void Sampler::CountHandlerTime(uint64_t began_ns, bool from_perf) {
  if (options_.max_cpu_percent == 0) return;
  const uint64_t took = std::min(MonotonicNanoseconds() - began_ns, kLongestHandlerNs);
  const uint64_t signal = from_perf ? std::max(perf_event_ns_, kSignalNs) : kSignalNs;
  handler_ns_.fetch_add(took + signal, std::memory_order_relaxed);
}

// A call that our signal has ended early.
void Sampler::GoOnWithCall(uint32_t tid, uint32_t index, const BlockedCall& seen, uint64_t now,
                           ucontext_t& at) {
  const CallTimeouts timeouts = threads_.call_timeouts();
  if (ContinueCall(seen, now, tid, timeouts, index, at)) return;
  BlockedCall found;
  if (FindInterruptedCall(at, &found)) ContinueCall(found, now, tid, timeouts, index, at);
}

bool Sampler::TakeWaitedSignal(int signal, const siginfo_t& info) {
  SampledThread* thread = threads_.Find(static_cast<uint32_t>(syscall(SYS_gettid)));
  if (!IsOurs(signal, info, thread)) return false;
  Count(kWaitsForSignals);
  if (thread != nullptr) {
    // The next ones are to come.
    thread->wall_ticks_due.store(0, std::memory_order_release);
    if (cpu_clock_.PerfIsDue(*thread)) {
      (void)cpu_clock_.TakePerfCount(*thread, MonotonicNanoseconds());
    }
  }
  return true;
}

// Each of the thread's timers counts its own CPU clock.
void Sampler::RecordTimer(SampledThread& thread, const siginfo_t& info, uint64_t now,
                          const ucontext_t& at) {
  // Only a timer's signal has an overrun in these bytes.
  const uint64_t expirations = 1 + static_cast<uint64_t>(info.si_overrun);
  if (info.si_timerid == thread.wall_timer_id.load(std::memory_order_acquire)) {
    const uint64_t ticks = expirations * slowdown();
    Record(thread, static_cast<uint8_t>(profile::SampleKind::kWall), ticks,
           ticks * wall_interval_ns_, now, at);
  } else if (thread.timer_id.load(std::memory_order_acquire) >= 0) {
    RecordCpu(thread, expirations, now, at);
  } else {
    Count(kLateSignals);
  }
}

void Sampler::RecordCpu(SampledThread& thread, uint64_t count, uint64_t now, const ucontext_t& at) {
  const uint64_t value = count * cpu_clock_.interval_ns();
  cpu_signals_.fetch_add(1, std::memory_order_relaxed);
  cpu_value_ns_.fetch_add(value, std::memory_order_relaxed);
  Record(thread, static_cast<uint8_t>(profile::SampleKind::kCpu), count, value, now, at);
}

void Sampler::Record(SampledThread& thread, uint8_t kind, uint64_t count, uint64_t value,
                     uint64_t now, const ucontext_t& at) {
  const bool is_wall = kind == static_cast<uint8_t>(profile::SampleKind::kWall);
  const uint64_t runs = thread.handler_runs.load(std::memory_order_relaxed) + 1;
  thread.handler_runs.store(runs, std::memory_order_relaxed);
  const SampleBuffer::Reservation sample = buffer_.Reserve(options_.max_depth);
  if (!sample) return;  // counted by the buffer
  const uint32_t tid = thread.tid.load(std::memory_order_relaxed);
  sample->monotonic_ns = now;
  sample->count = count;
  sample->value = value;
  sample->tid = tid;
  sample->kind = kind;
  sample->state = static_cast<uint8_t>(profile::ThreadState::kRunning);
  uint64_t state_mark = 0;
  if (is_wall) {
    if (runtime_ != nullptr) state_mark = runtime_->StateMark(tid);
    sample->state = static_cast<uint8_t>(runtime_ == nullptr ? profile::ThreadState::kUnknown
                                                             : runtime_->CurrentThreadState());
  }
  ReadContext(tid, *sample.sample);

  if (now - thread.name_taken_ns > kNameLifetimeNs) {
    prctl(PR_GET_NAME, thread.name);
    thread.name_taken_ns = now;
  }
  memcpy(sample->thread_name, thread.name, sizeof sample->thread_name);

  const uint64_t stack_pointer = StackPointerOf(at);
  const uint64_t high = thread.stack_high.load(std::memory_order_acquire);
  if (high == 0) thread.seen_stack_pointer.store(stack_pointer, std::memory_order_relaxed);
  const WalkedStack stack = walker_->Walk(
      at, TrustedStackHigh(stack_pointer, thread.stack_low.load(std::memory_order_relaxed), high),
      sample->pcs(), options_.max_depth);
  sample->complete = stack.complete;
  sample->walk_failure = stack.failure;
  if (is_wall) {
    const internal::ThreadContext* context = context::ThisCore().FindThread(tid);
    thread.mark_at_wall_sample.store(
        context == nullptr ? 0 : context->mark.load(std::memory_order_relaxed),
        std::memory_order_relaxed);
    thread.cpu_ns_at_wall_sample.store(OwnCpuNanoseconds(), std::memory_order_relaxed);
    thread.state_mark_at_wall_sample.store(state_mark, std::memory_order_relaxed);
    thread.runs_at_wall_sample.store(runs, std::memory_order_release);
  }
  buffer_.Commit(sample, stack.depth);
}

bool Sampler::RecordEvent(const RuntimeEvent& event) {
  if (!running()) return false;
  const unsigned depth = std::min(event.depth, options_.max_depth);
  const SampleBuffer::Reservation sample = buffer_.Reserve(depth);
  if (!sample) return false;  // counted by the buffer
  sample->monotonic_ns = MonotonicNanoseconds();
  sample->count = 1;
  sample->value = event.value;
  sample->tid = context::CurrentThreadId();
  sample->kind = static_cast<uint8_t>(event.kind);
  sample->state = static_cast<uint8_t>(event.state);
  ReadContext(sample->tid, *sample.sample);
  memset(sample->thread_name, 0, sizeof sample->thread_name);
  prctl(PR_GET_NAME, sample->thread_name);
  memcpy(sample->pcs(), event.frames, depth * sizeof(uint64_t));
  sample->complete = depth == event.depth;
  sample->walk_failure = static_cast<uint8_t>(WalkFailure::kDepthLimit);
  buffer_.Commit(sample, depth);
  return true;
}

void Sampler::ReadContext(uint32_t tid, RawSample& sample) const {
  sample.context_status = ContextStatus::kNone;
  if (runtime_ != nullptr && !runtime_->ContextIsCurrent()) return;
  internal::ThreadContext* context = context::ThisCore().FindThread(tid);
  if (context == nullptr) return;
  switch (context::ReadOwnContext(*context, &sample.context)) {
    case context::ReadStatus::kOk:
      sample.context_status = ContextStatus::kPresent;
      break;
    case context::ReadStatus::kTorn:
      sample.context_status = ContextStatus::kTorn;
      break;
    default:
      sample.context_status = ContextStatus::kInProgress;
  }
}

}  // namespace spanprof::sampling
