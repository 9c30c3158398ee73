#pragma once

// The head of a block of a coroutine recording.

#include <cstdint>

#include "coroutine/recording.h"

namespace spanprof::coroutine {

struct BlockHead {
  uint32_t type;
  uint32_t length;
  uint32_t check;
};
static_assert(sizeof(BlockHead) == 12);

// Bytes that are no block's head hardly ever have this.
inline constexpr uint32_t BlockCheck(uint32_t type, uint32_t length) {
  return (type * 0x9E3779B1u) ^ (length * 0x85EBCA77u) ^ 0x53504E43u;
}
inline constexpr BlockHead MakeBlockHead(BlockType type, uint32_t length) {
  const auto number = static_cast<uint32_t>(type);
  return {number, length, BlockCheck(number, length)};
}

}  // namespace spanprof::coroutine
