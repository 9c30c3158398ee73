#pragma once

// SIGNAL-SAFE (Find, Owns, and the fields of SampledThread that say so). The threads that are being
// sampled: what a handler needs to know of its own thread, found by the signal's value or by tid.
// Entries are used again but never unmapped, so a late signal finds memory.

#include <atomic>
#include <cstdint>

#include "sampling/interrupted_call.h"
#include "sampling/sample_buffer.h"
#include "sampling/wall_looks.h"

namespace spanprof::sampling {

struct alignas(64) SampledThread {
  std::atomic<uint32_t> tid{0};  // 0: nobody's
  std::atomic<uint32_t> in_handler{0};
  // Bounds of the thread's own stack, once they are known: set by the sampler's thread from a stack
  // pointer that a handler left, or at the thread's start. Low is written first, high is the
  // switch.
  std::atomic<uint64_t> stack_low{0};
  std::atomic<uint64_t> stack_high{0};
  std::atomic<uint64_t> seen_stack_pointer{0};

  // Only the thread's own handlers.
  uint64_t name_taken_ns = 0;
  char name[17] = {};
  uint64_t perf_count = 0;     // as far as samples have been taken for it
  uint64_t perf_taken_ns = 0;  // when the last one was
  uint32_t perf_unread = 0;    // samples since the count was read

  // Set before the first signal can come, cleared after the last one can.
  std::atomic<int> timer_id{-1};
  std::atomic<int> wall_timer_id{-1};  // of the thread's CPU clock too, for wall samples
  std::atomic<int> perf_fd{-1};

  // Between the sampler's thread, which asks for a wall sample, and the handler, which takes it.
  std::atomic<uint64_t> wall_ticks_due{0};  // 0: none was asked for, or it was taken
  BlockedCall blocked_call;  // what the signal will interrupt; written while no ticks are due
  // What the last wall sample saw, so that a thread which slept since need not be disturbed: how
  // often a handler ran, the mark that its reading of the context left, and the thread's CPU time.
  std::atomic<uint64_t> handler_runs{0};
  std::atomic<uint64_t> runs_at_wall_sample{0};
  std::atomic<uintptr_t> mark_at_wall_sample{0};
  std::atomic<uint64_t> cpu_ns_at_wall_sample{0};
  std::atomic<uint64_t> state_mark_at_wall_sample{0};  // the runtime's

  // Only the sampler's thread.
  uint64_t cpu_ns_when_found = 0;
  uint64_t cpu_ns_last_seen = 0;
  uint64_t wall_tick = 0;  // of the last look, for a thread without a timer for wall samples
  WallLooks wall_looks;    // for one with a timer
  uint32_t scan = 0;       // the last scan that found the thread alive
};

class SampledThreads {
 public:
  static constexpr uint32_t kMaxThreads = 65536;
  static constexpr uint32_t kSpareCallTimeouts = 1024;
  static constexpr uint32_t kCallTimeouts = kMaxThreads + kSpareCallTimeouts;

  // False: no memory.
  bool Create();

  // Null: there are too many. Only one thread at a time may add and remove.
  SampledThread* Add(uint32_t tid);
  void Remove(SampledThread& thread);

  SampledThread* Find(uint32_t tid) const;
  // Whether a pointer from a signal's value is one of ours.
  bool Owns(const void* pointer) const;

  // By the index that a thread has here. Signal-safe.
  CallTimeouts call_timeouts() const { return {call_timeouts_, kCallTimeouts}; }
  // For a thread that is not here any more. Two threads may share one; a limit says whose it is.
  static uint32_t SpareCallTimeout(uint32_t tid) { return kMaxThreads + tid % kSpareCallTimeouts; }
  uint32_t IndexOf(const SampledThread& thread) const {
    return static_cast<uint32_t>(&thread - threads_);
  }

  template <class Visitor>
  void ForEach(Visitor visit) {
    for (uint32_t i = 0; i < used_; ++i) {
      if (threads_[i].tid.load(std::memory_order_relaxed) != 0) visit(threads_[i]);
    }
  }
  uint32_t size() const { return size_; }

 private:
  SampledThread* threads_ = nullptr;
  CallTimeout* call_timeouts_ = nullptr;
  std::atomic<uint32_t>* index_by_tid_ = nullptr;  // index + 1
  uint32_t id_limit_ = 0;
  uint32_t used_ = 0;
  uint32_t size_ = 0;
  uint32_t maybe_free_ = 0;  // where to look first
};

}  // namespace spanprof::sampling
