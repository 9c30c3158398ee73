#pragma once

// SIGNAL-SAFE. A Java frame as one word of a walked stack (see sampling/runtime.h): the top bit, 16
// bits of bytecode index, and the address that a jmethodID is.
//
// Addresses below a page are no jmethodIDs: they stand for what the walker knows of a frame other
// than its method.

#include <cstdint>

#include "sampling/runtime.h"

namespace spanprof::jvm {

inline constexpr unsigned kMethodBits = 47;
inline constexpr uint64_t kMethodMask = (uint64_t{1} << kMethodBits) - 1;
inline constexpr uint32_t kNoBytecodeIndex = 0xFFFF;  // a native method's frame, or not known

enum class FrameMarker : uint8_t {
  kNone = 0,
  kMethodWithoutId = 1,  // a method that has no jmethodID yet, or is of a redefined class
  kFrozenFrames = 2,     // of a virtual thread: its other frames are in the heap until it returns
};

constexpr const char* NameOf(FrameMarker marker) {
  switch (marker) {
    case FrameMarker::kNone:
      return "none";
    case FrameMarker::kMethodWithoutId:
      return "method_without_id";
    case FrameMarker::kFrozenFrames:
      return "frozen_frames";
  }
  return "unknown";
}

// `bytecode_index` is -1 or less where there is none. One that does not fit is not known.
constexpr uint64_t JavaFrameWord(uint64_t method, int32_t bytecode_index) {
  const uint64_t index = bytecode_index < 0 || bytecode_index >= int32_t{kNoBytecodeIndex}
                             ? kNoBytecodeIndex
                             : static_cast<uint64_t>(bytecode_index);
  return sampling::kRuntimeFrame | index << kMethodBits | (method & kMethodMask);
}

constexpr uint64_t MarkerFrameWord(FrameMarker marker) {
  return JavaFrameWord(static_cast<uint64_t>(marker), -1);
}

constexpr uint64_t MethodOf(uint64_t word) { return word & kMethodMask; }

// kNoBytecodeIndex: none.
constexpr uint32_t BytecodeIndexOf(uint64_t word) {
  return static_cast<uint32_t>(word >> kMethodBits) & 0xFFFF;
}

// kNone: it is a method's frame.
constexpr FrameMarker MarkerOf(uint64_t word) {
  return MethodOf(word) < 4096 ? static_cast<FrameMarker>(MethodOf(word)) : FrameMarker::kNone;
}

}  // namespace spanprof::jvm
