#pragma once

// Ring records in a few bytes each: time since the one before, and only what could not be guessed.
//
// An event is a byte of kind (bits 0 to 3), kGuessedCoroutine, kSamePlace and the size of the time
// (bits 6 and 7: 1, 2, 4 or 8 bytes), the time since the event before, and, where they were not
// guessed, station and generation, and the place. A resume and the suspension behind it, of the
// coroutine that was guessed, with short times, are together one byte kPair and their two times.
// The guess is the coroutine that came behind this one the last time, in this chunk.

#include <cstdint>
#include <span>
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

// No event takes more: its first byte, a time of eight, station, generation and place. EncodeEvents
// may write seven bytes more than it returns.
inline constexpr std::size_t kMostEventBytes = 1 + 8 + 4 + 2 + 4;
inline constexpr std::size_t kEncodingSlack = 8;

// Writes the events to `at`, where there is room for the most that they can take and the slack.
// Returns where they end. Kind 15, which no probe writes, comes back as 0.
[[nodiscard]] char* EncodeEvents(std::span<const RingEvent> events, char* at);

// False: the bytes are not `count` events, and nothing of `out` is to be used.
[[nodiscard]] bool ParseEvents(std::string_view bytes, uint64_t count, std::vector<RingEvent>& out);

}  // namespace spanprof::coroutine
