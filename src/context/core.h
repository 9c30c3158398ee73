#pragma once

// The context core of a process: its configuration, its records, and the threads that are attached
// to it. There is one active core a process, whatever copies of the library are loaded; see
// core_election.h.
//
// The operations on the calling thread's context are signal-safe once the thread is attached. The
// others are not, unless they say so.

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/options.h"
#include "context/endpoint_table.h"
#include "context/latency_histogram.h"
#include "context/process_context.h"
#include "context/slot_table.h"
#include "context/tag_dictionary.h"
#include "context/thread_context_reader.h"
#include "context/thread_registry.h"
#include <spanprof/context.h>
#include <spanprof/internal/thread_context.hpp>

namespace spanprof::context {

// Never changed once it is published; a new one takes its place.
struct Configuration {
  const Configuration* previous = nullptr;  // never freed: somebody may still be reading it
  ContextStorage requested_storage = ContextStorage::kProfiler;
  std::vector<std::string> attributes;       // as given to init
  std::vector<std::string> attribute_names;  // those, and the ones added since
  std::vector<ResourceAttribute> resource;
  LogTarget log = LogTarget::kStderr;
  uint32_t resource_changes = 0;
};

class Core {
 public:
  // ---- Lifecycle (core.cc) ----
  Result<void> Init(std::string_view options);
  void Shutdown();
  bool initialized() const { return generation_.load(std::memory_order_acquire) != 0; }
  bool publishes_outside() const {
    return initialized() && outside_.load(std::memory_order_acquire);
  }
  // Null before the first Init. Valid for ever.
  const Configuration* configuration() const {
    return configuration_.load(std::memory_order_acquire);
  }
  // The position of an attribute, or a negative errno value.
  int AddAttribute(std::string_view name);
  int SetResource(std::string_view key, std::string_view value);

  // ---- Threads (core_threads.cc) ----
  // The calling thread's object, ready to be written. Null, and counted: a write of this thread was
  // interrupted, the thread is on its way out, or there is no memory. Null: not initialised.
  // `stack_pointer` is that of the call as near to its caller as can be had: it tells a handler's
  // call, on top of the write that it interrupted, from one after a longjmp.
  internal::ThreadContext* AttachCurrentThread(uintptr_t stack_pointer);
  // Any thread's object, for a signal handler: never attaches, takes no lock, touches no TLS.
  internal::ThreadContext* FindThread(uint32_t tid) const { return registry_.Find(tid); }

  // False for the object of a thread that has not called since the last Init or unannounced fork.
  bool IsOfThisGeneration(const internal::ThreadContext& context) const {
    return context.registered.load(std::memory_order_relaxed) ==
           generation_.load(std::memory_order_relaxed);
  }

  // ---- The context of an attached thread (context_operations.cc) ----
  void Set(uint64_t span_id, uint64_t root_span_id);
  void SetTrace(uint64_t trace_id_high, uint64_t trace_id_low, uint64_t span_id,
                uint64_t root_span_id);
  int SetTag(unsigned slot, std::string_view value);
  int SetTagId(unsigned slot, uint32_t id);
  int Update(const spanprof_context& next);
  void Swap(const spanprof_context* in, spanprof_context* out);
  void Clear();
  int GetByTid(int tid, spanprof_context* out) const;

  uint32_t Intern(std::string_view value) { return initialized() ? dictionary_.Intern(value) : 0; }
  std::string_view TagValue(uint32_t id) const { return dictionary_.Find(id); }
  int SetEndpoint(uint64_t root_span_id, std::string_view name);
  uint32_t FindEndpoint(uint64_t root_span_id) const { return endpoints_.Find(root_span_id); }

  LatencyHistogram& write_latency() { return write_latency_; }
  LatencyHistogram& read_latency() { return read_latency_; }
  bool measures_latency() const { return timed_.load(std::memory_order_relaxed); }

 private:
  friend struct ForkHandlers;
  class TimedWrite;

  Result<void> CreateRecords(const Options& options);
  Result<void> InstallHandlers();
  Result<void> CheckSameConfiguration(const Options& options) const;
  void PublishConfiguration(const Configuration& next);

  void PrepareThread(internal::ThreadContext& context, uint32_t generation);
  // Before the object of a thread is set up anew: whatever it or a namesake that is gone published
  // must not be taken for current while the fields change.
  void WithdrawThread(uint32_t tid);
  static void OnThreadExit(void* context);
  void DetachThread(internal::ThreadContext& context);
  // In a child that nobody told us of (_Fork, clone): makes this its core.
  void RecogniseUnannouncedFork();
  void ShelterForFork();
  void LeaveShelter();
  void ContinueInForkedChild(bool announced);

  // What AttachCurrentThread gives, without a call in the usual case.
  internal::ThreadContext* CurrentThread(uintptr_t stack_pointer);
  void WriteAll(internal::ThreadContext& context, const spanprof_context& next);

  // 0: not initialised. Each Init has its own number, so that an object from before a Shutdown is
  // told from one of now.
  std::atomic<uint32_t> generation_{0};
  std::atomic<uint32_t> last_generation_{0};
  // Stored with release when the slot table is there, loaded with acquire before the table is used:
  // the generation that a thread saw may be that of an earlier start, which had no table.
  std::atomic<bool> outside_{false};
  std::atomic<bool> timed_{false};
  std::atomic<bool> handlers_installed_{false};
  std::atomic<const Configuration*> configuration_{nullptr};
  ThreadRegistry registry_;
  SlotTable slots_;
  TagDictionary dictionary_;
  EndpointTable endpoints_;
  ProcessContextPublisher process_context_;
  LatencyHistogram write_latency_;
  LatencyHistogram read_latency_;
};

// This copy's core, whether it is the active one or not. It is never destroyed: other threads may
// still call while the process exits.
Core& ThisCore();

}  // namespace spanprof::context
