#pragma once

// Samples one thread of JavaScript: V8's CPU profiler, and beside it what our handler notes of each
// signal. For the thread of the isolate.
//
// A profile of V8 grows as long as it runs. So one is cut off now and then, and the next begins
// before the last ends: V8 never stops sampling, and the few samples that both have are taken once.
// V8 processes its samples in a thread of its own, and a profile that begins takes none from before
// its beginning: so there should be a moment between BeginCut and FinishCut.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <v8.h>
#include <vector>

#include <v8-profiler.h>

#include "base/result.h"
#include "signal_state.h"
#include "store_handles.h"

namespace spanprof::node {

// Why samples and records did not come together, and what was lost, since the sampler was made.
struct SamplerCounts {
  uint64_t samples = 0;
  // V8 adds samples of its own accord: when a profile begins, and where optimised code is given up.
  // They stand for no time and are left out. So would be those whose record found no room.
  uint64_t samples_without_record = 0;
  uint64_t samples_with_two_records = 0;
  uint64_t records_without_sample = 0;
  uint64_t cuts_displaced = 0;  // somebody else had taken SIGPROF when samples were fetched
};

// One sample of V8, with the record that belongs to it; null if there is none.
struct JoinedSample {
  const v8::CpuProfileNode* node = nullptr;
  v8::StateTag state = v8::StateTag::OTHER;
  int64_t time_ns = 0;  // CLOCK_MONOTONIC
  const SampleRecord* record = nullptr;
};
using JoinedSampleSink = std::function<void(const JoinedSample&)>;

class ThreadSampler {
 public:
  explicit ThreadSampler(v8::Isolate* isolate);
  ~ThreadSampler();
  ThreadSampler(const ThreadSampler&) = delete;
  ThreadSampler& operator=(const ThreadSampler&) = delete;

  Result<void> Start(int64_t interval_ns);
  bool running() const { return profiler_ != nullptr; }

  void BeginCut();
  bool cut_is_begun() const { return ending_id_.has_value(); }
  // Takes what V8 sampled since the last cut, and goes on. The sink may run JavaScript.
  void FinishCut(const JoinedSampleSink& sink);
  // The same at once, and ends. Without a sink everything is thrown away.
  void Stop(const JoinedSampleSink& sink);

  // The storages to look for, in this order; both may be absent. Any time.
  void UseKeys(const std::vector<v8::Local<v8::Object>>& storages, const MapLayout& layout);
  void UseSlot();
  void SetSlot(v8::Local<v8::Value> store);

  const StoreHandles& handles() const { return handles_; }
  SamplerCounts counts() const { return counts_; }
  uint64_t records_dropped() const { return signals_.ring.dropped(); }
  uint64_t frames_malformed() const {
    return signals_.frames_malformed.load(std::memory_order_relaxed);
  }
  // Of the clocks when it was started.
  int64_t start_ns() const { return start_ns_; }
  int64_t start_cpu_ns() const { return start_cpu_ns_; }

 private:
  struct KeySet;

  bool StartProfile();
  void Take(v8::CpuProfile* profile, const JoinedSampleSink& sink);
  static void BeforeCollection(v8::Isolate* isolate, v8::GCType type, v8::GCCallbackFlags flags,
                               void* sampler);
  static void AfterCollection(v8::Isolate* isolate, v8::GCType type, v8::GCCallbackFlags flags,
                              void* sampler);

  v8::Isolate* const isolate_;
  SignalState signals_;
  StoreHandles handles_;
  size_t taken_over_ = 0;                          // records before this one hold no raw words
  std::vector<std::unique_ptr<KeySet>> key_sets_;  // the last is current

  v8::CpuProfiler* profiler_ = nullptr;
  v8::ProfilerId profile_id_ = 0;
  std::optional<v8::ProfilerId> ending_id_;  // the one before, while both run
  int64_t last_sample_us_ = 0;
  int64_t start_ns_ = 0;
  int64_t start_cpu_ns_ = 0;
  SamplerCounts counts_;
};

}  // namespace spanprof::node
