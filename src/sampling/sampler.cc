// The part of the sampler that runs on its own thread, and starting and stopping it.

#include "sampling/sampler.h"

#include <algorithm>
#include <errno.h>
#include <new>
#include <pthread.h>
#include <signal.h>
#include <system_error>
#include <unistd.h>

#include "context/platform.h"
#include "sampling/perf_event.h"
#include "sampling/signal_dispatch.h"
#include "sampling/thread_hooks.h"
#include "sampling/threads_lock.h"

namespace spanprof::sampling {
namespace {

constexpr uint64_t kDrainIntervalNs = 100'000'000;
constexpr uint64_t kScanIntervalNs = 100'000'000;
constexpr uint64_t kBudgetIntervalNs = 1'000'000'000;
constexpr int kThreadTries = 5;
constexpr useconds_t kThreadRetryMicroseconds = 10'000;

}  // namespace

Sampler& Sampler::Instance() {
  // Never destroyed: a late signal may come while the process exits.
  static Sampler* const kSampler = new Sampler();
  return *kSampler;
}

Result<void> Sampler::UseRuntime(Runtime& runtime) {
  if (runtime_ != nullptr) return Fail(EEXIST, "the process's runtime has an agent already");
  if (running()) return Fail(EBUSY, "sampling is on already", "stop it first");
  runtime_ = &runtime;
  return {};
}

Result<void> Sampler::Start(const SamplerOptions& options, SampleSink& sink) {
  if (running()) return Fail(EBUSY, "sampling is on already", "stop it first");
  if (options.cpu_interval_ns == 0 && options.wall_interval_ns == 0 && !options.events) {
    return Fail(EINVAL, "neither cpu= nor wall= was given", "give one of them, e.g. cpu=10ms");
  }
  if (!threads_.Create() || !buffer_.Create(options.buffer_bytes)) {
    return Fail(ENOMEM, "there is no memory for the sample buffer");
  }
  options_ = options;
  sink_ = &sink;
  walker_ = runtime_ == nullptr ? &native_walker_ : &runtime_->walker();
  pid_ = context::CurrentProcessId();
  uid_ = getuid();
  for (auto& counter : counters_) counter.store(0, std::memory_order_relaxed);
  cpu_signals_ = 0;
  cpu_value_ns_ = 0;
  late_cpu_ns_ = 0;
  scan_ = 0;  // the first one finds who was there before
  own_cpu_ns_ = 0;
  sampled_cpu_ns_ = 0;
  handler_ns_ = 0;
  budget_ = CpuBudget(options.max_cpu_percent);
  slowdown_ = 1;
  if (Result<void> mapped = code_map_.Refresh(); !mapped) return mapped;
  ConfigureCpuClock();
  ConfigureWallClock();
  if (Result<void> installed = InstallSignalHandler(&Sampler::TakeSignal); !installed) {
    return installed;
  }
  process_cpu_at_start_ns_ = ProcessCpuNanoseconds();
  PatchThreadCreation();
  stop_.store(false, std::memory_order_relaxed);
  running_.store(true, std::memory_order_release);
  Result<void> started = StartThread();
  if (started) return {};
  const ThreadsLock lock(threads_lock_);
  threads_.ForEach([this](SampledThread& thread) { RemoveThread(thread); });
  running_.store(false, std::memory_order_release);
  return started;
}

// An interval that the kernel's tick would lengthen is kept to by perf events, unless these alone
// took more than the program has allowed.
void Sampler::ConfigureCpuClock() {
  const uint64_t interval =
      options_.cpu_interval_ns == 0 ? kDrainIntervalNs : options_.cpu_interval_ns;
  const bool below_tick = interval < KernelTickNanoseconds();
  perf_event_ns_ = budget_.has_limit() && below_tick ? PerfEventNanoseconds() : 0;
  perf_is_too_dear_ = perf_event_ns_ * 100 > interval * options_.max_cpu_percent;
  cpu_clock_.Configure(interval, !perf_is_too_dear_);
}

// Timers of CPU clocks are looked at once a tick of the kernel. Where sampling may take what it
// takes, all is given that was asked for.
void Sampler::ConfigureWallClock() {
  const uint64_t interval = options_.wall_interval_ns;
  const uint64_t tick = KernelTickNanoseconds();
  wall_by_timers_ =
      interval != 0 && options_.wall_by_cpu_timers && (interval >= tick || budget_.has_limit());
  wall_interval_ns_ =
      wall_by_timers_ && interval < tick ? (tick + interval - 1) / interval * interval : interval;
  wall_rests_ = false;
}

Result<void> Sampler::StartThread() {
  // The sampler's thread never gets a signal of ours, or of anybody else's.
  const context::SignalBlocker no_signals;
  std::atomic<bool> ready{false};
  for (int tries_left = kThreadTries;; --tries_left) {
    try {
      thread_ = std::thread([this, &ready] {
        pthread_setname_np(pthread_self(), "spanprof");
        IgnoreCurrentThread();
        ready.store(true, std::memory_order_release);
        if (runtime_ != nullptr) runtime_->EnterSamplerThread();
        Run();
        Finish();
        if (runtime_ != nullptr) runtime_->LeaveSamplerThread();
      });
      break;
    } catch (const std::system_error& error) {
      if (tries_left == 0) {
        return Fail(error.code().value(), "the sampler's thread cannot be started",
                    "look at the limit of processes (ulimit -u)");
      }
      // While another thread is in exec the kernel makes none, and soon ends this one.
      usleep(kThreadRetryMicroseconds);
    }
  }
  while (!ready.load(std::memory_order_acquire)) sched_yield();
  return {};
}

void Sampler::Stop() {
  if (!running()) return;
  own_cpu_ns_.store(OwnThreadsCpu(), std::memory_order_relaxed);
  stop_.store(true, std::memory_order_release);
  wake_up_.Increment();
  thread_.join();
}

// The last of it, on the sampler's thread too: a runtime tells names only there.
void Sampler::Finish() {
  EndWallTime();
  {
    const ThreadsLock lock(threads_lock_);
    threads_.ForEach([this](SampledThread& thread) { RemoveThread(thread); });
    running_.store(false, std::memory_order_release);
  }
  // Handlers that had begun: they are in the buffer for microseconds.
  for (int i = 0; i < 1000 && !Drain(); ++i) usleep(1000);
  Drain();
  sink_->AfterDrain();
}

void Sampler::Flush() {
  const uint32_t number = flushes_asked_.fetch_add(1, std::memory_order_acq_rel) + 1;
  wake_up_.Increment();
  while (running()) {
    const uint32_t done = flushes_done_.Get();
    if (static_cast<int32_t>(done - number) >= 0) return;
    flushes_done_.WaitWhile(done, MonotonicNanoseconds() + kDrainIntervalNs);
  }
}

void Sampler::Run() {
  uint64_t now = MonotonicNanoseconds();
  uint64_t next_drain = now + kDrainIntervalNs;
  // On the instants at which there is other work to do, as far as possible.
  const uint64_t interval = wall_interval_ns_;
  const uint64_t first_tick = interval == 0 ? now : now - now % interval;
  uint64_t tick = 0;
  uint64_t next_tick = 0;
  started_ns_ = now;
  next_budget_ns_ = now + kBudgetIntervalNs;
  next_scan_ns_ = now;
  next_learn_ns_ = ~uint64_t{0};
  LearnStackBoundsSoon();
  for (;;) {
    const uint32_t wake_ups = wake_up_.Get();
    if (stop_.load(std::memory_order_acquire)) return;
    now = MonotonicNanoseconds();
    if (now >= next_scan_ns_) {
      ScanThreads();
      // With very many threads a scan takes long: never more than a fiftieth of the time.
      const uint64_t took = MonotonicNanoseconds() - now;
      next_scan_ns_ = std::max(NextMultiple(now, kScanIntervalNs), now + took * 50);
    }
    if (interval != 0) {
      const uint64_t soonest = tick + slowdown();
      next_tick = wall_rests_ ? std::max(next_tick, soonest) : soonest;
      const uint64_t due = (now - first_tick) / interval;
      if (due >= next_tick) {
        tick = due;
        wall_rests_ = true;  // before it looks: a thread may begin meanwhile
        next_tick = std::max(TickWall(tick), tick + slowdown());
        if (next_tick == tick + slowdown()) wall_rests_ = false;
      }
    }
    const uint32_t flushes_asked = flushes_asked_.load(std::memory_order_acquire);
    if (now >= next_drain || flushes_asked != flushes_done_.Get()) {
      next_drain = NextMultiple(now, kDrainIntervalNs);
      // If a handler is still at work in there, what it and others wrote comes with the next.
      if (Drain()) flushes_done_.Set(flushes_asked);
      sink_->AfterDrain();
      if (code_map_.RefreshIfNeeded()) PatchThreadCreation();  // of what was loaded since
      if (!SignalHandlerIsInPlace()) Count(kHandlersReplaced);
    }
    if (now >= next_learn_ns_) LearnStackBounds();
    if (budget_.has_limit() && now >= next_budget_ns_) KeepWithinBudget(now);
    uint64_t wake = std::min({next_drain, next_scan_ns_, next_learn_ns_});
    if (interval != 0) wake = std::min(wake, first_tick + next_tick * interval);
    wake_up_.WaitWhile(wake_ups, std::min(wake, MonotonicNanoseconds() + kDrainIntervalNs));
  }
}

// Samples that come less often stand for more time, so sums stay what they were.
void Sampler::KeepWithinBudget(uint64_t now) {
  const unsigned before = slowdown();
  if (before > 1) Count(kSlowedDownNs, now + kBudgetIntervalNs - next_budget_ns_);
  next_budget_ns_ = now + kBudgetIntervalNs;
  const unsigned slowdown =
      budget_.Update(now - started_ns_, ProcessCpuNanoseconds() - process_cpu_at_start_ns_,
                     handler_ns_.load(std::memory_order_relaxed), OwnThreadsCpu());
  if (slowdown == before) return;
  if (slowdown > before) Count(kSlowedDown);
  slowdown_.store(slowdown, std::memory_order_relaxed);
  const ThreadsLock lock(threads_lock_);
  if (options_.cpu_interval_ns != 0) {
    cpu_clock_.ChangeInterval(options_.cpu_interval_ns * slowdown);
    threads_.ForEach([this](const SampledThread& thread) { cpu_clock_.Rearm(thread); });
  }
  threads_.ForEach([this, slowdown](const SampledThread& thread) {
    CpuClock::RearmWallTimer(thread, wall_interval_ns_ * slowdown);
  });
}

bool Sampler::Drain() {
  return buffer_.Drain([this](const RawSample& sample) { sink_->Take(sample); });
}

Sampler::Counters Sampler::counters() const {
  static constexpr const char* kNames[kCounterCount] = {"sampler.reentered",
                                                        "sampler.late_signals",
                                                        "sampler.wall_not_queued",
                                                        "sampler.thread_not_armed",
                                                        "sampler.threads_over_limit",
                                                        "sampler.handlers_replaced",
                                                        "sampler.wall_waits_for_signals",
                                                        "sampler.slowed_down",
                                                        "sampler.slowed_down_ns"};
  Counters result;
  for (unsigned i = 0; i < kCounterCount; ++i) {
    if (const uint64_t value = counters_[i].load(std::memory_order_relaxed); value != 0) {
      result[kNames[i]] = value;
    }
  }
  if (perf_is_too_dear_) result["sampler.perf_event_too_dear_ns"] = perf_event_ns_;
  if (buffer_.dropped() != 0) result["sampler.buffer_full"] = buffer_.dropped();
  if (late_cpu_ns_ != 0) result["sampler.late_thread_cpu_ns"] = late_cpu_ns_;
  if (options_.cpu_interval_ns != 0 && !running()) {
    const uint64_t used = ProcessCpuNanoseconds() - process_cpu_at_start_ns_;
    const uint64_t accounted = sampled_cpu_ns_ + own_cpu_ns_;
    if (used > accounted) result["sampler.unsampled_cpu_ns"] = used - accounted;
    result["sampler.own_cpu_ns"] = own_cpu_ns_;
  }
  return result;
}

uint64_t Sampler::actual_cpu_interval_ns() const {
  const uint64_t signals = cpu_signals_.load(std::memory_order_relaxed);
  return signals == 0 ? 0 : cpu_value_ns_.load(std::memory_order_relaxed) / signals;
}

void Sampler::FinishForkInChild() {
  CodeMap::FinishFork();
  threads_lock_.store(0, std::memory_order_relaxed);
  for (std::atomic<uint32_t>& own : own_tids_) own.store(0, std::memory_order_relaxed);
  if (!running()) return;
  running_.store(false, std::memory_order_relaxed);
  // The thread exists only in the parent; its handle must not be joined, nor complained about.
  new (&thread_) std::thread();
  threads_.ForEach([this](SampledThread& thread) {
    thread.timer_id.store(-1, std::memory_order_relaxed);  // timers stay with the parent
    thread.wall_timer_id.store(-1, std::memory_order_relaxed);
    RemoveThread(thread);
  });
  new (&buffer_) SampleBuffer();  // a handler of another thread may have been in the old one
  code_map_.ResetAfterFork();
  pid_ = context::CurrentProcessId();
}

}  // namespace spanprof::sampling
