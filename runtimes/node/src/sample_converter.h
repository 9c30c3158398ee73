#pragma once

// Makes samples of the profile model from V8's: stacks with names and places, the time that passed
// since the thread's last sample, its CPU time, and the context. One for each cut.

#include <cstdint>
#include <unordered_map>
#include <v8.h>

#include <v8-profiler.h>

#include "profile/profile.h"
#include "source_positions.h"
#include "store_contexts.h"
#include "thread_sampler.h"

namespace spanprof::node {

// Which samples are wanted, and where a thread's clocks stood at its last one.
struct ThreadClocks {
  int64_t wall_ns = 0;
  int64_t cpu_ns = 0;
};

class SampleConverter {
 public:
  struct Wanted {
    bool wall = true;
    bool cpu = true;
  };

  SampleConverter(v8::Isolate* isolate, SourcePositions& positions, StoreContexts& contexts,
                  const StoreHandles& handles, Wanted wanted, bool may_call,
                  profile::Profile& profile)
      : isolate_(isolate),
        positions_(positions),
        contexts_(contexts),
        handles_(handles),
        wanted_(wanted),
        may_call_(may_call),
        profile_(profile) {}

  // `unix_offset_ns`: what to add to CLOCK_MONOTONIC for Unix time.
  void Convert(const JoinedSample& sample, profile::ThreadId thread, int64_t unix_offset_ns,
               ThreadClocks* last);

 private:
  profile::StackId StackOf(const v8::CpuProfileNode* node);
  profile::FrameId FrameOf(const v8::CpuProfileNode& node);

  v8::Isolate* const isolate_;
  SourcePositions& positions_;
  StoreContexts& contexts_;
  const StoreHandles& handles_;
  const Wanted wanted_;
  const bool may_call_;
  profile::Profile& profile_;
  std::unordered_map<const v8::CpuProfileNode*, profile::StackId> stacks_;
};

}  // namespace spanprof::node
