#pragma once

// Ring records in a few bytes each: time since the one before, and only what differs from it.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace spanprof::coroutine {

// A record as it was in a ring; see internal/coroutine_layout.hpp for the word.
struct RingEvent {
  uint64_t stamp = 0;
  uint64_t word = 0;

  friend bool operator==(const RingEvent&, const RingEvent&) = default;
};

inline constexpr std::size_t kMaxChunkEvents = std::size_t{1} << 20;

void AppendEvents(std::string& out, std::span<const RingEvent> events);

// False: the bytes are not `count` events, and nothing of `out` is to be used.
[[nodiscard]] bool ParseEvents(std::string_view bytes, uint64_t count, std::vector<RingEvent>& out);

}  // namespace spanprof::coroutine
