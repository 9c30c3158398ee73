#pragma once

// SIGNAL-SAFE. Walks native stacks: by the unwind tables of the object that the pc lies in, and by
// frame pointers in code that has none (JIT regions, objects without .eh_frame).
//
//   CodeMap map;  map.Refresh();
//   NativeWalker walker(map);
//   ...in the handler:
//   WalkedStack stack = walker.Walk(*context, stack_high, pcs, kMaxDepth);
//
// Stacks may be corrupt: every load is of memory that is known to be there or is read by the kernel
// (safe_memory.h); each frame lies above the one before it, so that a walk always ends.

#include <cstdint>
#include <ucontext.h>

#include "sampling/code_map.h"
#include "sampling/stack_walker.h"

namespace spanprof::sampling {

class NativeWalker final : public StackWalker {
 public:
  // `map` has to outlive it.
  explicit NativeWalker(const CodeMap& map) : map_(map) {}

  [[nodiscard]] WalkedStack Walk(const ucontext_t& at, uint64_t stack_high, uint64_t* pcs,
                                 unsigned max_depth) const noexcept override;

  // For another walker, whose frames have native ones between them: see native_frames.h.
  [[nodiscard]] const CodeMap& code_map() const { return map_; }

 private:
  const CodeMap& map_;
};

}  // namespace spanprof::sampling
