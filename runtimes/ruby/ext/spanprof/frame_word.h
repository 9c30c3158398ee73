#pragma once

// A Ruby frame as one word of a walked stack (see sampling/runtime.h): its number in the frame
// table, and the line. Numbers at the end are no frames but notes.

#include <cstdint>

#include "sampling/runtime.h"

namespace spanprof::ruby {

inline constexpr unsigned kFrameNumberBits = 24;
inline constexpr uint32_t kFrameNumberMask = (uint32_t{1} << kFrameNumberBits) - 1;

enum class FrameNote : uint32_t {
  kCollecting = kFrameNumberMask,        // the thread collects garbage
  kTableFull = kFrameNumberMask - 1,     // a frame that found no room in the table
  kCompiled = kFrameNumberMask - 2,      // code of the JIT, where frames cannot be read
  kWaitsForLock = kFrameNumberMask - 3,  // the thread waits for the VM's lock
  kInternal = kFrameNumberMask - 4,      // an object of the VM's own
};
inline constexpr uint32_t kFirstNote = static_cast<uint32_t>(FrameNote::kInternal);

constexpr uint64_t FrameWord(uint32_t number, int line) {
  const uint64_t positive_line = line < 0 ? 0 : static_cast<uint64_t>(line);
  return sampling::kRuntimeFrame | positive_line << kFrameNumberBits | number;
}
constexpr uint64_t FrameWord(FrameNote note) { return FrameWord(static_cast<uint32_t>(note), 0); }

constexpr uint32_t FrameNumberOf(uint64_t word) {
  return static_cast<uint32_t>(word) & kFrameNumberMask;
}
constexpr uint32_t FrameLineOf(uint64_t word) {
  return static_cast<uint32_t>((word & ~sampling::kRuntimeFrame) >> kFrameNumberBits);
}

}  // namespace spanprof::ruby
