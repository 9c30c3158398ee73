#pragma once

// Samples the threads of its own process: CPU time, wall time, or both. Handlers walk the stack,
// read the context and put both into a buffer; the sampler's own thread empties the buffer into a
// sink, finds new threads, and sends the wall clock's signals.
//
// One a process. Start and Stop are not for signal handlers.

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <signal.h>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "context/core.h"
#include "sampling/code_map.h"
#include "sampling/cpu_budget.h"
#include "sampling/cpu_clock.h"
#include "sampling/native_walker.h"
#include "sampling/runtime.h"
#include "sampling/sample_buffer.h"
#include "sampling/sampled_threads.h"
#include "sampling/waitable_number.h"

namespace spanprof::sampling {

struct SamplerOptions {
  uint64_t cpu_interval_ns = 0;   // 0: no CPU samples
  uint64_t wall_interval_ns = 0;  // 0: no wall samples
  uint32_t wall_threads = 16;     // at most so many threads are looked at each tick
  // Threads that run get their wall samples from timers of their CPU clocks. An interval shorter
  // than the kernel's tick becomes as long as that; or, if there is no limit to what sampling may
  // take, is kept to without timers.
  bool wall_by_cpu_timers = false;
  // The share of the CPU that sampling may take; 0: as much as it takes. See cpu_budget.h.
  unsigned max_cpu_percent = 0;
  bool events = false;  // a runtime's events are taken, with or without the other two
  unsigned max_depth = 512;
  size_t buffer_bytes = size_t{8} << 20;
};

// Takes what was sampled; on the sampler's own thread.
class SampleSink {
 public:
  virtual ~SampleSink() = default;
  virtual void Take(const RawSample& sample) = 0;
  // The thread has slept since its last wall sample: the same stack and context once more.
  virtual void TakeAsleep(uint32_t tid, uint64_t monotonic_ns, uint64_t count, uint64_t value) = 0;
  // After each time the buffer was emptied: about every 100 ms.
  virtual void AfterDrain() {}
};

class Sampler final : public RuntimeEvents {
 public:
  // The counters of a run, by reason. Not for handlers.
  using Counters = std::map<std::string, uint64_t>;

  static Sampler& Instance();

  // What this process runs besides native code. For all recordings to come; EBUSY during one,
  // EEXIST if there is one already.
  Result<void> UseRuntime(Runtime& runtime);
  [[nodiscard]] Runtime* runtime() const { return runtime_; }
  [[nodiscard]] const StackWalker& walker() const { return *walker_; }

  Result<void> Start(const SamplerOptions& options, SampleSink& sink);
  // No sample reaches the sink after it.
  void Stop();
  bool running() const { return running_.load(std::memory_order_acquire); }

  Counters counters() const;
  // Nanoseconds between CPU samples as they really came.
  uint64_t actual_cpu_interval_ns() const;
  // Nanoseconds between wall samples, as long as nothing is slowed down.
  uint64_t actual_wall_interval_ns() const { return wall_interval_ns_; }
  // How many times longer than asked for intervals are at the moment, so as to cost no more than
  // max_cpu_percent.
  unsigned slowdown() const { return slowdown_.load(std::memory_order_relaxed); }
  const CodeMap& code_map() const { return code_map_; }
  const SamplerOptions& options() const { return options_; }

  // Everything that was sampled before the call is in the sink when it returns. Not for the sink.
  void Flush();

  bool RecordEvent(const RuntimeEvent& event) override;

  // The sink has forgotten the last wall samples: take each thread's anew, asleep or not.
  void ForgetWallSamples();

  // For a preloaded pthread_create, and for runtimes: the calling thread begins or ends.
  void OnThreadStart();
  void OnThreadEnd();
  // The calling thread is the profiler's own: it is not sampled. At most kMaxOwnThreads.
  void IgnoreCurrentThread();
  // It is the program's from now on: a runtime may use its native threads for one after the other.
  void StopIgnoringCurrentThread();

  // For a preloaded sigwait(): whether the signal that it took on the calling thread is ours, and
  // not what the program waits for.
  bool TakeWaitedSignal(int signal, const siginfo_t& info);

  // Around a fork, on the forking thread. In the child nothing of the parent's sampling is left;
  // it may Start again.
  void PrepareFork() { CodeMap::PrepareFork(); }
  void FinishForkInParent() { CodeMap::FinishFork(); }
  void FinishForkInChild();

 private:
  Sampler() = default;
  static bool TakeSignal(int signal, siginfo_t* info, void* ucontext);
  bool IsOurs(int signal, const siginfo_t& info, const SampledThread* own) const;
  bool TakeOurSignal(int signal, const siginfo_t& info, ucontext_t& at);
  void GoOnWithCall(uint32_t tid, uint32_t index, const BlockedCall& seen, uint64_t now,
                    ucontext_t& at);
  void RecordTimer(SampledThread& thread, const siginfo_t& info, uint64_t now,
                   const ucontext_t& at);
  void RecordCpu(SampledThread& thread, uint64_t count, uint64_t now, const ucontext_t& at);
  void Record(SampledThread& thread, uint8_t kind, uint64_t count, uint64_t value, uint64_t now,
              const ucontext_t& at);
  void ReadContext(uint32_t tid, RawSample& sample) const;

  void ConfigureCpuClock();
  void ConfigureWallClock();
  Result<void> StartThread();
  void Run();
  void Finish();
  void ScanThreads();
  void LookAtThreads(const std::vector<uint32_t>& tids);
  void AddThread(uint32_t tid, bool from_its_start);
  bool IsOwnThread(uint32_t tid) const;
  uint64_t OwnThreadsCpu() const;
  void CountHandlerTime(uint64_t began_ns, bool from_perf);
  void KeepWithinBudget(uint64_t now);
  void RemoveThread(SampledThread& thread);
  void LearnStackBounds();
  void LearnStackBoundsSoon();
  uint64_t TickWall(uint64_t tick);
  void EndWallTime();
  void LookByTicks(SampledThread& thread, uint64_t tick, uint64_t now);
  void LookBesideTimer(SampledThread& thread, uint64_t tick, uint64_t now);
  void ArmWallTimer(SampledThread& thread);
  bool SleptSinceWallSample(const SampledThread& thread, uint64_t cpu_ns) const;
  bool Drain();
  // `call`: what it waits in, and the signal would end.
  void AskForWallSample(SampledThread& thread, uint64_t ticks, const BlockedCall& call);

  // In counters_, by index.
  enum Counter : unsigned {
    kReentered,
    kLateSignals,
    kWallNotQueued,
    kThreadNotArmed,
    kThreadsOverLimit,
    kHandlersReplaced,
    kWaitsForSignals,
    kSlowedDown,
    kSlowedDownNs,
    kCounterCount
  };
  void Count(Counter counter, uint64_t amount = 1) {
    counters_[counter].fetch_add(amount, std::memory_order_relaxed);
  }

  SamplerOptions options_;
  SampleSink* sink_ = nullptr;
  CodeMap code_map_;
  NativeWalker native_walker_{code_map_};
  Runtime* runtime_ = nullptr;
  const StackWalker* walker_ = &native_walker_;
  SampleBuffer buffer_;
  SampledThreads threads_;
  CpuClock cpu_clock_;
  uint64_t perf_event_ns_ = 0;  // what one takes; 0: nobody asked
  bool perf_is_too_dear_ = false;
  uint32_t pid_ = 0;
  uid_t uid_ = 0;
  static constexpr unsigned kMaxOwnThreads = 4;
  std::atomic<uint32_t> own_tids_[kMaxOwnThreads] = {};
  uint32_t scan_ = 0;
  uint32_t wall_cursor_ = 0;
  uint64_t wall_interval_ns_ = 0;  // as it is, when it is not slowed down
  bool wall_by_timers_ = false;
  // No thread is to be looked at on the next tick. A thread that begins sets it to false.
  std::atomic<bool> wall_rests_{false};
  uint64_t next_scan_ns_ = 0;
  uint64_t next_learn_ns_ = 0;
  uint64_t learn_interval_ns_ = 0;
  uint64_t process_cpu_at_start_ns_ = 0;
  CpuBudget budget_;
  std::atomic<unsigned> slowdown_{1};
  uint64_t next_budget_ns_ = 0;
  uint64_t started_ns_ = 0;
  std::atomic<uint64_t> handler_ns_{0};      // counted where there is a budget
  std::atomic<uint64_t> late_cpu_ns_{0};     // what threads had used before they were found
  std::atomic<uint64_t> sampled_cpu_ns_{0};  // of threads that are gone, while they were sampled
  std::atomic<uint64_t> own_cpu_ns_{0};      // of the profiler's threads, once it has stopped
  std::atomic<uint64_t> cpu_signals_{0};
  std::atomic<uint64_t> cpu_value_ns_{0};
  std::atomic<uint64_t> counters_[kCounterCount] = {};
  std::atomic<bool> running_{false};
  std::atomic<bool> stop_{false};
  WaitableNumber wake_up_;
  std::atomic<uint32_t> flushes_asked_{0};
  WaitableNumber flushes_done_;
  std::atomic<uint32_t> threads_lock_{0};
  std::thread thread_;
};

}  // namespace spanprof::sampling
