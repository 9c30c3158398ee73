#pragma once

// Ruby as the core's sampler sees it: its walker, the names of its methods and threads.
//
// One a process, never destroyed: a handler or a hook may use it to the end.

#include <array>
#include <atomic>
#include <memory>

#include "allocation_sampler.h"
#include "collection_gate.h"
#include "fiber_contexts.h"
#include "frame_table.h"
#include "name_resolver.h"
#include "ruby_threads.h"
#include "ruby_walker.h"
#include "sampling/runtime.h"

namespace spanprof::ruby {

class RubyRuntime final : public sampling::Runtime {
 public:
  static RubyRuntime& Instance();

  // Installs all hooks and the object that keeps frames and threads alive. Once, when the extension
  // is loaded. May raise.
  void Install();

  // A call that moves objects begins, or has ended.
  void ExpectCompaction(bool begins);
  // GC.auto_compact is on or off.
  void ExpectAutomaticCompaction(bool on);
  // YJIT pushes frames without a program counter, and the VM would look up the line of whatever was
  // there before. From now on lines are those where methods begin.
  void ExpectJit() { traits_.lines_are_safe.store(false, std::memory_order_relaxed); }
  // Before the first Ractor begins. Ruby 3.1 calls the collector's hooks on a Ractor's new thread
  // that has no stack for them yet, and dies of it. So there are none from then on, and samples
  // that are taken while garbage is collected have no Ruby frames.
  void ExpectRactors();

  const sampling::StackWalker& walker() const override { return *walker_; }
  profile::ThreadState CurrentThreadState() const override;
  uint64_t StateMark(uint32_t tid) const override;
  bool ContextIsCurrent() const override { return walker_->ContextIsCurrent(); }
  [[nodiscard]] bool wall_by_cpu_timers() const override { return true; }
  [[nodiscard]] unsigned default_max_cpu_percent() const override { return 2; }
  Result<void> Prepare(const Options& options, const sampling::CodeMap& native_code) override;
  Result<void> StartEvents(const Options& options, sampling::RuntimeEvents& events) override;
  void StopEvents() override;
  void EnterSamplerThread() override {}
  void LeaveSamplerThread() override {}
  sampling::RuntimeFrame Describe(uint64_t frame) override;
  std::string ThreadName(uint32_t tid, uint64_t monotonic_ns, const char* os_name) override;
  std::map<std::string, uint64_t> counters() const override;
  std::vector<ResourceAttribute> resource() const override { return resource_; }

  FiberContexts& contexts() { return contexts_; }
  FrameTable& frames() { return frames_; }
  NameResolver& resolver() { return resolver_; }
  RubyThreads& threads() { return threads_; }
  AllocationSampler& allocations() { return allocations_; }

 private:
  static constexpr std::size_t kCounterCount = 13;
  using CounterValues = std::array<uint64_t, kCounterCount>;

  RubyRuntime() = default;
  // Since the extension was loaded, in a forked child since its parent did.
  [[nodiscard]] CounterValues AllCounts() const;
  static void OnCollection(VALUE tracepoint, void* self);
  void OnCollectionStep();
  void MakeCollectorHook();
  void FollowCompaction();
  void WatchForks();

  RubyThreads threads_;
  FrameTable frames_;
  CollectionGate gate_;
  VmTraits traits_;
  WalkerCounters walker_counters_;
  FiberContexts contexts_{threads_};
  NameResolver resolver_{frames_, threads_};
  AllocationSampler allocations_{frames_};
  std::unique_ptr<RubyWalker> walker_;
  // A recording counts from its own beginning.
  std::array<std::atomic<uint64_t>, kCounterCount> counts_at_start_ = {};
  AddressRange interpreter_;
  std::vector<ResourceAttribute> resource_;
  VALUE collector_hook_ = Qnil;
  int compactions_ = 0;  // calls that are going on
  bool automatic_compaction_ = false;
  bool has_ractors_ = false;
  std::atomic<bool> walker_ready_{false};  // walker_ is there, and stays
  std::atomic<bool> sampling_{false};
  uint32_t forking_tid_ = 0;

  friend struct RuntimeObject;
};

}  // namespace spanprof::ruby
