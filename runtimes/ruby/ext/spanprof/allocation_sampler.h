#pragma once

// A sample about every so many bytes of new objects. The VM tells of each object while the hook is
// enabled; the distance to the next sample is drawn anew each time, so that a loop whose objects
// come in the same order over and over is not always seen in the same place. Bytes are those of an
// object's place in the VM's heap: what it allocates elsewhere later is not in them.
//
// Start and Stop are for the recording's thread, the rest for one that holds the VM's lock.

#include <atomic>
#include <cstdint>

#include "frame_table.h"
#include "ruby_api.h"
#include "ruby_walker.h"
#include "sampling/runtime.h"

namespace spanprof::ruby {

class AllocationSampler {
 public:
  explicit AllocationSampler(FrameTable& frames) : frames_(frames) {}

  // Follows what Start and Stop have said. May raise.
  void FollowRecording();
  // Before the first Ractor begins, and for good: Ruby 3.1 calls the hook on a Ractor's new thread
  // that has no stack for it yet, and dies of it. A recording that loses its samples so is counted.
  void ExpectRactors();

  void Start(uint64_t interval_bytes, RubyWalker& walker, sampling::RuntimeEvents& events);
  void Stop() { events_.store(nullptr, std::memory_order_release); }

  // Whether the calling thread's objects are the profiler's own.
  static void IgnoreCurrentThread(bool ignored);

  [[nodiscard]] uint64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }
  [[nodiscard]] uint64_t ended_by_ractors() const {
    return ended_by_ractors_.load(std::memory_order_relaxed);
  }

 private:
  static void OnNewObject(VALUE self, rb_trace_arg_t* event);
  void Reached(VALUE object, uint64_t bytes);
  void TakeSample(VALUE object, uint64_t bytes, sampling::RuntimeEvents& events);
  int64_t NextDistance();

  FrameTable& frames_;
  bool has_hook_ = false;
  std::atomic<sampling::RuntimeEvents*> events_{nullptr};
  std::atomic<RubyWalker*> walker_{nullptr};
  std::atomic<uint64_t> interval_{0};
  // Bytes until the next sample. Ractors allocate at the same time: what they overwrite of each
  // other is a few objects more or less.
  std::atomic<int64_t> remaining_{0};
  std::atomic<uint64_t> random_{0x9E3779B97F4A7C15u};
  std::atomic<uint64_t> dropped_{0};
  std::atomic<uint64_t> ended_by_ractors_{0};
  bool has_ractors_ = false;
};

}  // namespace spanprof::ruby
