#pragma once

// Samples what a thread of JavaScript allocates: V8's sampling heap profiler, one sample about
// every so many bytes. V8 has no hook with which a context could be noted there, so these samples
// have none. For the thread of the isolate.

#include <cstdint>
#include <v8.h>

#include <v8-profiler.h>

#include "base/result.h"
#include "profile/profile.h"
#include "source_positions.h"

namespace spanprof::node {

class HeapSampler {
 public:
  explicit HeapSampler(v8::Isolate* isolate) : isolate_(isolate) {}

  // EBUSY: somebody else in the thread uses V8's heap profiler, which can have one user.
  Result<void> Start(uint64_t interval_bytes);
  bool running() const { return interval_bytes_ != 0; }

  // Adds what was allocated since the last call, and begins anew.
  void Take(SourcePositions& positions, bool may_call, profile::ThreadId thread, uint64_t time_ns,
            profile::Profile& profile);
  void Stop();

 private:
  bool Begin();

  v8::Isolate* const isolate_;
  uint64_t interval_bytes_ = 0;
};

}  // namespace spanprof::node
