// SIGNAL-SAFE: see native_walker.h.

#include "sampling/native_walker.h"

#include "sampling/native_frames.h"

namespace spanprof::sampling {
namespace {

constexpr WalkedStack Ended(unsigned depth, WalkFailure failure) {
  return {.depth = depth,
          .complete = failure == WalkFailure::kNone,
          .failure = static_cast<uint8_t>(failure)};
}

}  // namespace

WalkedStack NativeWalker::Walk(const ucontext_t& at, uint64_t stack_high, uint64_t* pcs,
                               unsigned max_depth) const noexcept {
  if (!kCanWalk) return Ended(0, WalkFailure::kUnsupportedMachine);
  CodeMap::Reader code(map_);
  NativeStackMemory memory(StackPointerOf(at), stack_high);
  NativeFrames frames(code, memory, at);
  for (unsigned depth = 0; depth < max_depth; ++depth) {
    // The symboliser takes 1 off all but the first.
    pcs[depth] = frames.pc() + (depth != 0 && frames.interrupted() ? 1 : 0);
    switch (frames.Next()) {
      case NativeFrames::Step::kCaller:
        break;
      case NativeFrames::Step::kThreadStart:
        return Ended(depth + 1, WalkFailure::kNone);
      case NativeFrames::Step::kFailed:
        return Ended(depth + 1, frames.failure());
    }
  }
  return Ended(max_depth, WalkFailure::kDepthLimit);
}

}  // namespace spanprof::sampling
