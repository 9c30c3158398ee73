#pragma once

// One thread of JavaScript (an environment of Node.js) and what spanprof has in it: its sampler,
// its contexts, and the handle by which other threads wake it. Made when the module is loaded in
// the thread, gone with the thread.

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <node.h>
#include <string>
#include <utility>
#include <uv.h>
#include <v8.h>
#include <vector>

#include "base/result.h"
#include "context_copies.h"
#include "context_objects.h"
#include "heap_sampler.h"
#include "outside_readers.h"
#include "process_recording.h"
#include "sample_converter.h"
#include "source_positions.h"
#include "store_contexts.h"
#include "thread_sampler.h"

namespace spanprof::node {

enum class ContextWay : uint8_t { kNone, kFrame, kSlot };

class ThreadEnvironment final : public Participant {
 public:
  // Null: no handle of the event loop can be had.
  static ThreadEnvironment* Make(v8::Isolate* isolate, v8::Local<v8::Context> context);

  // ---- Any thread ----
  void Wake() override;
  void Complete(uint64_t ticket, Result<std::string> answer) override;

  // ---- This thread ----
  v8::Isolate* isolate() const { return isolate_; }
  void Join(std::string name);
  // Does what the process's recording wants of this thread: begins, cuts, ends.
  void Follow(bool may_call);
  // Takes over what V8 has sampled so far, and has processed.
  void Cut(bool may_call);
  // The same, and takes no part any more.
  void Leave(bool may_call);
  void Rejoin();

  // The callback hears of the answer to a request with this number.
  uint64_t NewTicket(v8::Local<v8::Function> callback);

  Result<void> UseOwnStorage(v8::Local<v8::Object> storage, v8::Local<v8::Value> probe);
  Result<void> Attach(v8::Local<v8::Object> storage, v8::Local<v8::Value> probe,
                      v8::Local<v8::Function> read);
  void AttachSlot(v8::Local<v8::Function> read);
  void Detach();
  // What SetSlot gets of setContext() and runWithContext().
  void UseContextCopies(v8::Local<v8::Object> prototype) { copies_.Use(isolate_, prototype); }
  void SetSlot(v8::Local<v8::Value> store) { sampler_->SetSlot(store); }

  // A context with memory of its own, which readers outside see too where that is possible. Empty:
  // V8 throws, or too many are alive (counted).
  v8::MaybeLocal<v8::Object> NewContext(v8::Local<v8::Context> context,
                                        const ContextFields& fields);
  // What readers outside see, for people.
  const std::string& outside_readers() const { return outside_readers_text_; }

  ContextObjects& contexts() { return *contexts_; }
  SourcePositions& positions() { return positions_; }
  StoreCounts& store_counts() { return store_counts_; }
  bool sampling() const { return sampler_->running() || heap_sampler_.running(); }
  ContextWay way() const { return way_; }
  const std::string& way_reason() const { return way_reason_; }

 private:
  struct Handles;

  explicit ThreadEnvironment(v8::Isolate* isolate, v8::Local<v8::Context> context);
  bool OpenHandles(uv_loop_t* loop);
  void OnWake();
  // A cut in two steps, so that V8 has time to process what it sampled before the first.
  void BeginCut();
  void FinishCut();
  void DeliverAnswers();
  void StartSampling(const RecordingSettings& settings);
  void StopSampling(bool may_call);
  // Gives the samples of `take` to the process's recording.
  template <class Take>
  void Collect(bool may_call, Take&& take);
  // Does what was asked for by JavaScript that ran meanwhile.
  void FollowAfterCollecting(bool may_call);
  void AddCounters(profile::Profile& part);
  void PublishKeys();
  static void OnCleanup(void* environment, void (*done)(void*), void* done_data);

  v8::Isolate* const isolate_;
  v8::Global<v8::Context> context_;
  ::node::async_context async_context_ = {};
  ::node::AsyncCleanupHookHandle cleanup_;
  Handles* handles_ = nullptr;

  std::string thread_name_;
  uint32_t thread_id_ = 0;
  bool joined_ = false;
  uint64_t flush_ = 0;       // to be answered when the cut is finished
  uint64_t generation_ = 0;  // of the recording that this thread takes part in
  RecordingSettings settings_;
  ThreadClocks last_;
  bool collecting_ = false;   // V8's profile is being read, and JavaScript may run
  bool stop_wanted_ = false;  // by such JavaScript

  std::unique_ptr<ThreadSampler> sampler_;
  HeapSampler heap_sampler_;
  std::unique_ptr<ContextObjects> contexts_;
  ContextCopies copies_;
  OutsideReaders outside_readers_;
  bool outside_readers_tried_ = false;
  std::string outside_readers_text_ =
      "see nothing: setContext() and runWithContext() were not used";
  SourcePositions positions_;
  StoreCounts store_counts_;
  std::map<std::string, uint64_t> counters_given_;  // what parts already have

  ContextWay way_ = ContextWay::kNone;
  std::string way_reason_ = "no context was set yet";
  MapLayout layout_;
  v8::Global<v8::Object> own_storage_;
  v8::Global<v8::Object> attached_storage_;
  v8::Global<v8::Function> read_;

  uint64_t last_ticket_ = 0;
  std::map<uint64_t, v8::Global<v8::Function>> callbacks_;
  std::mutex answers_mutex_;
  std::vector<std::pair<uint64_t, Result<std::string>>> answers_;
};

}  // namespace spanprof::node
