#pragma once

// SIGNAL-SAFE. Walks the stack of a thread of the JVM by HotSpot's own structures, without calling
// into the VM: Java frames (interpreted, compiled, inlined), and the native frames above, between
// and below them. What it follows may be wrong at any moment (a frame half made, a method being
// freed); it loads nothing that may not be there (hotspot_memory.h), every frame lies above the one
// before it, and so it can neither crash nor hang.
//
// A stack is complete when it reaches the thread's start; a virtual thread's, when it reaches the
// frame that its carrier entered it by.

#include <cstdint>
#include <memory>
#include <ucontext.h>

#include "agent/hotspot_code.h"
#include "agent/hotspot_code_heaps.h"
#include "agent/hotspot_failures.h"
#include "agent/hotspot_frozen_frames.h"
#include "agent/hotspot_methods.h"
#include "agent/hotspot_structs.h"
#include "agent/java_thread_table.h"
#include "base/result.h"
#include "sampling/code_map.h"
#include "sampling/stack_walker.h"

namespace spanprof::jvm {

class HotspotWalker final : public sampling::StackWalker {
 public:
  // Fails for a JVM that it does not know, naming what it misses. After VMInit. `known_method`: any
  // jmethodID, on which it is tried whether ids and methods are what they are taken for. The other
  // two have to outlive it.
  static Result<std::unique_ptr<HotspotWalker>> Create(const sampling::CodeMap& code_map,
                                                       const JavaThreadTable& threads,
                                                       uint64_t known_method);

  // Not in a signal handler, and before the first: reads the frames of virtual threads that are in
  // the heap too. Where it fails, saying why, those are a marker, and the stack is not complete.
  Result<void> ReadFrozenFrames(JNIEnv* jni);

  [[nodiscard]] sampling::WalkedStack Walk(const ucontext_t& at, uint64_t stack_high, uint64_t* pcs,
                                           unsigned max_depth) const noexcept override;
  [[nodiscard]] const char* FailureName(uint8_t failure) const override {
    return NameOfFailure(failure);
  }

  [[nodiscard]] const HotspotLayout& layout() const { return layout_; }
  [[nodiscard]] const HotspotCodeHeaps& heaps() const { return heaps_; }

 private:
  HotspotWalker(const sampling::CodeMap& code_map, const JavaThreadTable& threads,
                const HotspotLayout& layout)
      : code_map_(code_map), threads_(threads), layout_(layout) {}

  const sampling::CodeMap& code_map_;
  const JavaThreadTable& threads_;
  const HotspotLayout layout_;
  HotspotCodeHeaps heaps_;
  HotspotFrozenFrames frozen_;
  // Tables of what was found, which handlers fill.
  mutable HotspotMethods methods_{layout_};
  mutable HotspotCode code_{layout_, heaps_, methods_};
};

}  // namespace spanprof::jvm
