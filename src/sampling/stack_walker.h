#pragma once

// SIGNAL-SAFE. What the sampler asks for a stack, in a signal handler: no implementation allocates,
// locks, touches lazily-initialised TLS, or calls what is not async-signal-safe.

#include <cstdint>
#include <ucontext.h>

namespace spanprof::sampling {

// Why a walk ended before the thread's start. Each has a counter (see NameOf).
enum class WalkFailure : uint8_t {
  kNone,              // it did not
  kDepthLimit,        // max_depth frames were found and there are more
  kUnknownCode,       // a return address that lies in no known mapping
  kNoFramePointer,    // code without tables, whose frame pointer does not lead on
  kUnsupportedRule,   // the tables say something that is not understood
  kUnknownRegister,   // the rule needs a register whose value was not kept
  kFrameOrder,        // the caller's frame is not above the callee's: a corrupt stack
  kUnreadableStack,   // the next frame lies in memory that cannot be read
  kBadReturnAddress,  // no address that code can have
  kUnsupportedMachine,
};
inline constexpr unsigned kWalkFailureCount = 10;

constexpr const char* NameOf(WalkFailure failure) {
  switch (failure) {
    case WalkFailure::kNone:
      return "none";
    case WalkFailure::kDepthLimit:
      return "depth_limit";
    case WalkFailure::kUnknownCode:
      return "unknown_code";
    case WalkFailure::kNoFramePointer:
      return "no_frame_pointer";
    case WalkFailure::kUnsupportedRule:
      return "unsupported_rule";
    case WalkFailure::kUnknownRegister:
      return "unknown_register";
    case WalkFailure::kFrameOrder:
      return "frame_order";
    case WalkFailure::kUnreadableStack:
      return "unreadable_stack";
    case WalkFailure::kBadReturnAddress:
      return "bad_return_address";
    case WalkFailure::kUnsupportedMachine:
      return "unsupported_machine";
  }
  return "unknown";
}

struct WalkedStack {
  unsigned depth;   // how many of pcs were filled
  bool complete;    // reached the thread's start
  uint8_t failure;  // enum WalkFailure, for counters
};

class StackWalker {
 public:
  StackWalker() = default;
  StackWalker(const StackWalker&) = delete;
  StackWalker& operator=(const StackWalker&) = delete;
  virtual ~StackWalker() = default;

  // Fills `pcs` with the stack of the thread that `at` was interrupted on, innermost first, and
  // never more than `max_depth`. pcs[0] is the interrupted pc, the rest are return addresses, from
  // which a symboliser subtracts 1. (Where the stack has a frame that was itself interrupted by a
  // signal, its pc is given plus 1, so that the same holds.)
  //
  // `stack_high`: not 0, it promises that all of [sp, stack_high) can be read for the length of the
  // call. That is so if sp lies between the bounds of the thread's own stack: see TrustedStackHigh.
  // 0 (unknown, an alternate stack, a fiber's stack) costs system calls.
  [[nodiscard]] virtual WalkedStack Walk(const ucontext_t& at, uint64_t stack_high, uint64_t* pcs,
                                         unsigned max_depth) const noexcept = 0;

  // What counters and frames call a WalkedStack::failure of this walker.
  [[nodiscard]] virtual const char* FailureName(uint8_t failure) const {
    return NameOf(WalkFailure{failure});
  }
};

// What to give as stack_high for a thread whose own stack is [low, high): 0 while it runs on
// another one, whose end is not known and between which and `high` memory may be missing.
constexpr uint64_t TrustedStackHigh(uint64_t stack_pointer, uint64_t low, uint64_t high) {
  return stack_pointer >= low && stack_pointer < high ? high : 0;
}

}  // namespace spanprof::sampling
