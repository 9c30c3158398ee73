#pragma once

// Why a walk of a Java thread's stack ended early: the native walker's reasons (enum WalkFailure),
// and these, which go on behind them.

#include <cstdint>

#include "sampling/stack_walker.h"

namespace spanprof::jvm {

enum class JavaWalkFailure : uint8_t {
  kFirst = 64,
  kInterpreterFrame = kFirst,  // the interpreter's frame is not made yet, or no more
  kCompiledFrame,              // a compiled method's
  kStubFrame,                  // a stub of the VM has no frame that can be found
  kUnknownJavaCode,            // a pc in the code heaps where there is no code
  kJavaStackOrder,             // the caller's frame is not above the callee's
  kUnreadableJavaStack,
  kUnknownCaller,  // a Java frame's caller is in no code that is known
  kFrozenFrames,   // of a virtual thread: the frames below are in the heap until it returns to them
  kInlinedTooDeep,
  // AsyncGetCallTrace's own, by its numbers 0, -1 to -11.
  kAsgctFirst,
  kAsgctNoJavaFrame = kAsgctFirst,
  kAsgctNoClassLoad,
  kAsgctGc,
  kAsgctUnknownNotJava,
  kAsgctNotWalkableNotJava,
  kAsgctUnknownJava,
  kAsgctNotWalkableJava,
  kAsgctUnknownState,
  kAsgctThreadExit,
  kAsgctDeopt,
  kAsgctSafepoint,
  kAsgctOther,
};

constexpr const char* NameOf(JavaWalkFailure failure) {
  switch (failure) {
    case JavaWalkFailure::kInterpreterFrame:
      return "interpreter_frame";
    case JavaWalkFailure::kCompiledFrame:
      return "compiled_frame";
    case JavaWalkFailure::kStubFrame:
      return "stub_frame";
    case JavaWalkFailure::kUnknownJavaCode:
      return "unknown_java_code";
    case JavaWalkFailure::kJavaStackOrder:
      return "java_stack_order";
    case JavaWalkFailure::kUnreadableJavaStack:
      return "unreadable_java_stack";
    case JavaWalkFailure::kUnknownCaller:
      return "unknown_caller";
    case JavaWalkFailure::kFrozenFrames:
      return "frozen_frames";
    case JavaWalkFailure::kInlinedTooDeep:
      return "inlined_too_deep";
    case JavaWalkFailure::kAsgctNoJavaFrame:
      return "no_java_frame";
    case JavaWalkFailure::kAsgctNoClassLoad:
      return "no_class_load";
    case JavaWalkFailure::kAsgctGc:
      return "gc_active";
    case JavaWalkFailure::kAsgctUnknownNotJava:
      return "unknown_not_java";
    case JavaWalkFailure::kAsgctNotWalkableNotJava:
      return "not_walkable_not_java";
    case JavaWalkFailure::kAsgctUnknownJava:
      return "unknown_java";
    case JavaWalkFailure::kAsgctNotWalkableJava:
      return "not_walkable_java";
    case JavaWalkFailure::kAsgctUnknownState:
      return "unknown_state";
    case JavaWalkFailure::kAsgctThreadExit:
      return "thread_exit";
    case JavaWalkFailure::kAsgctDeopt:
      return "deoptimising";
    case JavaWalkFailure::kAsgctSafepoint:
      return "safepoint";
    case JavaWalkFailure::kAsgctOther:
      return "asgct_other";
  }
  return "unknown";
}

constexpr const char* NameOfFailure(uint8_t failure) {
  return failure >= static_cast<uint8_t>(JavaWalkFailure::kFirst)
             ? NameOf(static_cast<JavaWalkFailure>(failure))
             : sampling::NameOf(static_cast<sampling::WalkFailure>(failure));
}

}  // namespace spanprof::jvm
