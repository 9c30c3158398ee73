// The part of the sampler that runs in threads: starting, stopping, finding threads, the wall
// clock.

#include "sampling/sampler.h"

#include <algorithm>
#include <cstdio>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <new>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>
#include <vector>

#include <linux/futex.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "context/platform.h"
#include "sampling/signal_dispatch.h"
#include "sampling/thread_hooks.h"

namespace spanprof::sampling {
namespace {

constexpr uint64_t kDrainIntervalNs = 100'000'000;
constexpr uint64_t kScanIntervalNs = 100'000'000;
// Until a thread's stack is known, walking it costs a system call a frame: so it is looked for soon
// after a thread was found, then less and less often.
constexpr uint64_t kFirstLearnIntervalNs = 2'000'000;
constexpr uint64_t kLastLearnIntervalNs = 100'000'000;
// A thread that used less than this between two looks is taken to have slept: that much goes into
// returning from the last signal.
constexpr uint64_t kReturnFromSignalNs = 10'000;

// Held with signals blocked: a handler of the same thread must not meet it. Who has to wait sleeps:
// thousands of threads may start at once, and all that they would burn is the program's.
class ThreadsLock {
 public:
  explicit ThreadsLock(std::atomic<uint32_t>& lock) : lock_(lock) {
    uint32_t seen = kFree;
    if (lock_.compare_exchange_strong(seen, kHeld, std::memory_order_acquire)) return;
    while (lock_.exchange(kHeldAndAwaited, std::memory_order_acquire) != kFree) {
      syscall(SYS_futex, &lock_, FUTEX_WAIT_PRIVATE, kHeldAndAwaited, nullptr, nullptr, 0);
    }
  }
  ~ThreadsLock() {
    if (lock_.exchange(kFree, std::memory_order_release) == kHeldAndAwaited) {
      syscall(SYS_futex, &lock_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
    }
  }
  ThreadsLock(const ThreadsLock&) = delete;
  ThreadsLock& operator=(const ThreadsLock&) = delete;

 private:
  enum : uint32_t { kFree, kHeld, kHeldAndAwaited };

  const context::SignalBlocker no_signals_;
  std::atomic<uint32_t>& lock_;
};

struct StackBounds {
  uint64_t low = 0;
  uint64_t high = 0;  // 0: not known
};

// Of the calling thread, unless it is the first one, whose stack grows.
StackBounds OwnStackBounds(uint32_t tid) {
  StackBounds bounds;
  pthread_attr_t attributes;
  if (tid == context::CurrentProcessId() || pthread_getattr_np(pthread_self(), &attributes) != 0) {
    return bounds;
  }
  void* low = nullptr;
  size_t bytes = 0;
  if (pthread_attr_getstack(&attributes, &low, &bytes) == 0) {
    bounds.low = reinterpret_cast<uintptr_t>(low);
    bounds.high = bounds.low + bytes;
  }
  pthread_attr_destroy(&attributes);
  return bounds;
}

struct Range {
  uint64_t low;
  uint64_t high;
  bool is_main_stack;
};

std::vector<Range> ReadableMappings() {
  std::vector<Range> ranges;
  FILE* maps = fopen("/proc/self/maps", "re");
  if (maps == nullptr) return ranges;
  char* line = nullptr;
  size_t capacity = 0;
  while (getline(&line, &capacity, maps) > 0) {
    unsigned long long low = 0, high = 0;
    char permissions[5] = {};
    if (sscanf(line, "%llx-%llx %4s", &low, &high, permissions) != 3 || permissions[0] != 'r') {
      continue;
    }
    ranges.push_back({low, high, strstr(line, "[stack]") != nullptr});
  }
  free(line);
  fclose(maps);
  return ranges;
}

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
  for (auto& counter : counters_) counter.store(0, std::memory_order_relaxed);
  cpu_signals_ = 0;
  cpu_value_ns_ = 0;
  late_cpu_ns_ = 0;
  own_cpu_ns_ = 0;
  sampled_cpu_ns_ = 0;
  if (Result<void> mapped = code_map_.Refresh(); !mapped) return mapped;
  cpu_clock_.Configure(options.cpu_interval_ns == 0 ? kDrainIntervalNs : options.cpu_interval_ns);
  if (Result<void> installed = InstallSignalHandler(&Sampler::TakeSignal); !installed) {
    return installed;
  }
  process_cpu_at_start_ns_ = ProcessCpuNanoseconds();
  PatchThreadCreation();
  stop_.store(false, std::memory_order_relaxed);
  running_.store(true, std::memory_order_release);
  {
    // The sampler's thread never gets a signal of ours, or of anybody else's.
    const context::SignalBlocker no_signals;
    std::atomic<bool> ready{false};
    thread_ = std::thread([this, &ready] {
      pthread_setname_np(pthread_self(), "spanprof");
      IgnoreCurrentThread();
      ready.store(true, std::memory_order_release);
      if (runtime_ != nullptr) runtime_->EnterSamplerThread();
      Run();
      Finish();
      if (runtime_ != nullptr) runtime_->LeaveSamplerThread();
    });
    while (!ready.load(std::memory_order_acquire)) sched_yield();
  }
  return {};
}

void Sampler::Stop() {
  if (!running()) return;
  CountOwnCpu();
  stop_.store(true, std::memory_order_release);
  wake_up_.Increment();
  thread_.join();
}

// The last of it, on the sampler's thread too: a runtime tells names only there.
void Sampler::Finish() {
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
  const uint64_t first_tick = now;
  uint64_t tick = 0;
  next_scan_ns_ = now;
  learn_interval_ns_ = kFirstLearnIntervalNs;
  next_learn_ns_ = now + learn_interval_ns_;
  for (;;) {
    const uint32_t wake_ups = wake_up_.Get();
    if (stop_.load(std::memory_order_acquire)) return;
    now = MonotonicNanoseconds();
    if (now >= next_scan_ns_) {
      ScanThreads();
      // With very many threads a scan takes long: never more than a fiftieth of the time.
      const uint64_t took = MonotonicNanoseconds() - now;
      next_scan_ns_ = now + std::max(kScanIntervalNs, took * 50);
    }
    if (options_.wall_interval_ns != 0) {
      const uint64_t due = (now - first_tick) / options_.wall_interval_ns;
      if (due > tick) {
        tick = due;
        TickWall(tick);
      }
    }
    const uint32_t flushes_asked = flushes_asked_.load(std::memory_order_acquire);
    if (now >= next_drain || flushes_asked != flushes_done_.Get()) {
      next_drain = now + kDrainIntervalNs;
      // If a handler is still at work in there, what it and others wrote comes with the next.
      if (Drain()) flushes_done_.Set(flushes_asked);
      sink_->AfterDrain();
      if (code_map_.RefreshIfNeeded()) PatchThreadCreation();  // of what was loaded since
      if (!SignalHandlerIsInPlace()) Count(kHandlersReplaced);
    }
    if (now >= next_learn_ns_) {
      LearnStackBounds();
      learn_interval_ns_ = std::min(2 * learn_interval_ns_, kLastLearnIntervalNs);
      next_learn_ns_ = now + learn_interval_ns_;
    }
    uint64_t wake = std::min({next_drain, next_scan_ns_, next_learn_ns_});
    if (options_.wall_interval_ns != 0) {
      wake = std::min(wake, first_tick + (tick + 1) * options_.wall_interval_ns);
    }
    wake_up_.WaitWhile(wake_ups, std::min(wake, MonotonicNanoseconds() + kDrainIntervalNs));
  }
}

void Sampler::IgnoreCurrentThread() {
  const uint32_t tid = context::CurrentThreadId();
  OnThreadEnd();  // a preloaded pthread_create may have announced it
  for (std::atomic<uint32_t>& own : own_tids_) {
    uint32_t expected = 0;
    const bool gone = own != 0 && !context::ThreadExists(own);
    if (gone) expected = own;
    if (own.compare_exchange_strong(expected, tid)) return;
  }
}

bool Sampler::IsOwnThread(uint32_t tid) const {
  for (const std::atomic<uint32_t>& own : own_tids_) {
    if (own.load(std::memory_order_relaxed) == tid) return true;
  }
  return false;
}

void Sampler::CountOwnCpu() {
  uint64_t used = 0;
  for (const std::atomic<uint32_t>& own : own_tids_) {
    if (own != 0) used += ThreadCpuNanoseconds(own);
  }
  own_cpu_ns_.store(used, std::memory_order_relaxed);
}

void Sampler::ScanThreads() {
  DIR* tasks = opendir("/proc/self/task");
  if (tasks == nullptr) return;
  {
    const ThreadsLock lock(threads_lock_);  // threads that begin meanwhile read it
    ++scan_;
  }
  // In portions: a thread that starts or ends meanwhile waits for the lock.
  constexpr size_t kPortion = 64;
  std::vector<uint32_t> tids;
  while (const dirent* entry = readdir(tasks)) {
    const auto tid = static_cast<uint32_t>(strtoul(entry->d_name, nullptr, 10));
    if (tid == 0 || IsOwnThread(tid)) continue;
    tids.push_back(tid);
    if (tids.size() < kPortion) continue;
    LookAtThreads(tids);
    tids.clear();
  }
  closedir(tasks);
  LookAtThreads(tids);
  const ThreadsLock lock(threads_lock_);
  threads_.ForEach([this](SampledThread& thread) {
    if (thread.scan != scan_) RemoveThread(thread);
  });
}

void Sampler::LookAtThreads(const std::vector<uint32_t>& tids) {
  const ThreadsLock lock(threads_lock_);
  for (const uint32_t tid : tids) {
    const uint64_t cpu = ThreadCpuNanoseconds(tid);
    if (cpu == 0) continue;  // it has gone since
    SampledThread* thread = threads_.Find(tid);
    if (thread == nullptr) {
      AddThread(tid, false);
      thread = threads_.Find(tid);
      learn_interval_ns_ = kFirstLearnIntervalNs;
      next_learn_ns_ = std::min(next_learn_ns_, MonotonicNanoseconds() + learn_interval_ns_);
    }
    if (thread == nullptr) continue;
    thread->scan = scan_;
    thread->cpu_ns_last_seen = cpu;
  }
}

void Sampler::AddThread(uint32_t tid, bool from_its_start) {
  SampledThread* thread = threads_.Add(tid);
  if (thread == nullptr) {
    Count(kThreadsOverLimit);
    return;
  }
  thread->scan = scan_;
  thread->cpu_ns_when_found = from_its_start ? 0 : ThreadCpuNanoseconds(tid);
  thread->cpu_ns_last_seen = thread->cpu_ns_when_found;
  // Threads that were there before us owe nothing; the others were running unseen.
  if (scan_ > 1) late_cpu_ns_.fetch_add(thread->cpu_ns_when_found, std::memory_order_relaxed);
  if (options_.cpu_interval_ns != 0 && cpu_clock_.Arm(*thread) == CpuClock::Source::kNone) {
    Count(kThreadNotArmed);
  }
}

void Sampler::RemoveThread(SampledThread& thread) {
  cpu_clock_.Disarm(thread);
  sampled_cpu_ns_.fetch_add(thread.cpu_ns_last_seen - thread.cpu_ns_when_found,
                            std::memory_order_relaxed);
  threads_.Remove(thread);
}

void Sampler::OnThreadStart() {
  if (!running()) return;
  const uint32_t tid = context::CurrentThreadId();
  const StackBounds stack = OwnStackBounds(tid);
  const ThreadsLock lock(threads_lock_);
  if (!running() || IsOwnThread(tid)) return;
  // A scan has found it already, or a namesake went without telling.
  if (SampledThread* thread = threads_.Find(tid)) RemoveThread(*thread);
  AddThread(tid, true);
  if (SampledThread* thread = threads_.Find(tid)) {
    thread->stack_low.store(stack.low, std::memory_order_relaxed);
    thread->stack_high.store(stack.high, std::memory_order_release);
  }
}

void Sampler::OnThreadEnd() {
  if (!running()) return;
  const ThreadsLock lock(threads_lock_);
  const uint32_t tid = context::CurrentThreadId();
  if (SampledThread* thread = threads_.Find(tid); running() && thread != nullptr) {
    thread->cpu_ns_last_seen = ThreadCpuNanoseconds(tid);
    RemoveThread(*thread);
  }
}

void Sampler::LearnStackBounds() {
  std::vector<Range> ranges;
  const ThreadsLock lock(threads_lock_);
  threads_.ForEach([&ranges](SampledThread& thread) {
    const uint64_t seen = thread.seen_stack_pointer.load(std::memory_order_relaxed);
    if (seen == 0 || thread.stack_high.load(std::memory_order_relaxed) != 0) return;
    if (ranges.empty()) ranges = ReadableMappings();
    for (const Range& range : ranges) {
      if (seen < range.low || seen >= range.high) continue;
      // The main thread's stack grows on its own as far as its limit.
      rlimit limit = {};
      uint64_t low = range.low;
      if (range.is_main_stack && getrlimit(RLIMIT_STACK, &limit) == 0 &&
          limit.rlim_cur < range.high) {
        low = std::min(low, range.high - static_cast<uint64_t>(limit.rlim_cur));
      }
      thread.stack_low.store(low, std::memory_order_relaxed);
      thread.stack_high.store(range.high, std::memory_order_release);
      return;
    }
  });
}

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
  // Whatever little it did, it did not change its context: a write would have left another mark.
  const internal::ThreadContext* context =
      context::ThisCore().FindThread(thread.tid.load(std::memory_order_relaxed));
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

bool Sampler::Drain() {
  return buffer_.Drain([this](const RawSample& sample) { sink_->Take(sample); });
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

Sampler::Counters Sampler::counters() const {
  static constexpr const char* kNames[kCounterCount] = {"sampler.reentered",
                                                        "sampler.late_signals",
                                                        "sampler.wall_not_queued",
                                                        "sampler.thread_not_armed",
                                                        "sampler.threads_over_limit",
                                                        "sampler.handlers_replaced",
                                                        "sampler.wall_waits_for_signals"};
  Counters result;
  for (unsigned i = 0; i < kCounterCount; ++i) {
    if (const uint64_t value = counters_[i].load(std::memory_order_relaxed); value != 0) {
      result[kNames[i]] = value;
    }
  }
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
    RemoveThread(thread);
  });
  new (&buffer_) SampleBuffer();  // a handler of another thread may have been in the old one
  code_map_.ResetAfterFork();
  pid_ = context::CurrentProcessId();
}

}  // namespace spanprof::sampling
