#include "coroutine/event_chunk.h"

#include <array>
#include <bit>
#include <cstring>

#include "coroutine/byte_codec.h"
#include <spanprof/internal/coroutine_layout.hpp>

namespace spanprof::coroutine {
namespace {

namespace wire = internal::coroutine;

static_assert(std::endian::native == std::endian::little, "times are stored as they are");

constexpr uint8_t kGuessedCoroutine = 1 << 4;
constexpr uint8_t kSamePlace = 1 << 5;
constexpr unsigned kTimeSizeShift = 6;
constexpr unsigned kKinds = 16;
constexpr uint8_t kPair = 15;                // not a kind of a single event
constexpr uint32_t kLargestPart = 0xFFFFFF;  // of station and place, 24 bits each
constexpr uint64_t kIdentityMask = wire::IdentityOf(kLargestPart, wire::kGenerationMask);
constexpr uint64_t kLongestPairTime = 0xFF;

char* StoreNumber(char* at, uint64_t value) {
  while (value >= 0x80) {
    *at++ = static_cast<char>(value | 0x80);
    value >>= 7;
  }
  *at++ = static_cast<char>(value);
  return at;
}

// What both sides know from the records before.
struct Known {
  uint64_t stamp = 0;
  uint64_t identity = 0;
  std::array<uint32_t, kKinds> places = {};
  // Who came behind a station. Those with the same low bits share one entry: the guess is worse
  // then, nothing else.
  std::array<uint64_t, 2048> successors = {};

  [[nodiscard]] uint64_t& Successor() {
    return successors[wire::StationOf(identity) % successors.size()];
  }
  [[nodiscard]] uint64_t Place(uint32_t kind) const { return uint64_t{places[kind]} << 40; }
  void Follow(uint64_t next) {
    if (next == identity) return;
    Successor() = next;
    identity = next;
  }
};

// Whether the coroutine is guessed: the one before again, or the one that came behind it the last
// time. A resume is rather of another one, the rest rather of the same.
uint64_t Guess(Known& known, uint32_t kind) {
  if (kind != wire::kKindResume) return known.identity;
  const uint64_t successor = known.Successor();
  return successor == 0 ? known.identity : successor;
}

char* EncodeOne(const RingEvent& event, Known& known, char* at) {
  uint32_t kind = wire::KindOf(event.word);
  if (kind == kPair) kind = wire::kKindNone;
  const uint32_t place = wire::PlaceOf(event.word);
  const uint64_t identity = event.word & kIdentityMask;
  const uint64_t step = event.stamp - known.stamp;
  const unsigned size = step <= 0xFF ? 0u : step <= 0xFFFF ? 1u : step <= 0xFFFFFFFF ? 2u : 3u;
  const bool guessed = identity == Guess(known, kind);
  const bool same_place = place == known.places[kind];
  *at++ = static_cast<char>(kind | (guessed ? kGuessedCoroutine : 0u) |
                            (same_place ? kSamePlace : 0u) | (size << kTimeSizeShift));
  std::memcpy(at, &step, sizeof step);
  at += std::size_t{1} << size;
  if (!guessed) {
    at = StoreNumber(at, wire::StationOf(event.word));
    at = StoreNumber(at, wire::GenerationOf(event.word));
  }
  if (!same_place) at = StoreNumber(at, place);
  known.stamp = event.stamp;
  known.Follow(identity);
  known.places[kind] = place;
  return at;
}

}  // namespace

char* EncodeEvents(std::span<const RingEvent> events, char* at) {
  Known known;
  const RingEvent* event = events.data();
  const RingEvent* const end = event + events.size();
  while (event != end) {
    // This is what limits how many events a second can be recorded: most of them come in pairs.
    if (end - event >= 2) {
      const uint64_t guess = Guess(known, wire::kKindResume);
      const uint64_t resume = guess | wire::kKindResume | known.Place(wire::kKindResume);
      const uint64_t suspend = guess | wire::kKindSuspend | known.Place(wire::kKindSuspend);
      const uint64_t first = event[0].stamp - known.stamp;
      const uint64_t second = event[1].stamp - event[0].stamp;
      if (event[0].word == resume && event[1].word == suspend && first <= kLongestPairTime &&
          second <= kLongestPairTime) {
        at[0] = kPair;
        at[1] = static_cast<char>(first);
        at[2] = static_cast<char>(second);
        at += 3;
        known.stamp = event[1].stamp;
        known.Follow(guess);
        event += 2;
        continue;
      }
    }
    at = EncodeOne(*event++, known, at);
  }
  return at;
}

bool ParseEvents(std::string_view bytes, uint64_t count, std::vector<RingEvent>& out) {
  // An event has one and a half bytes at least, so a count that cannot be is found before memory is
  // taken.
  if (count > kMaxChunkEvents || count > bytes.size()) return false;
  ByteReader reader(bytes);
  Known known;
  out.clear();
  out.reserve(count);
  while (out.size() < count) {
    const uint8_t head = reader.Byte();
    const uint32_t kind = head & 0xF;
    if (kind == kPair) {
      if (head != kPair || count - out.size() < 2) return false;
      const uint64_t guess = Guess(known, wire::kKindResume);
      const uint64_t first = known.stamp + reader.Byte();
      const uint64_t second = first + reader.Byte();
      if (reader.failed()) return false;
      out.push_back({first, guess | wire::kKindResume | known.Place(wire::kKindResume)});
      out.push_back({second, guess | wire::kKindSuspend | known.Place(wire::kKindSuspend)});
      known.stamp = second;
      known.Follow(guess);
      continue;
    }
    known.stamp += reader.Fixed(1u << (head >> kTimeSizeShift));
    uint64_t identity = Guess(known, kind);
    if ((head & kGuessedCoroutine) == 0) {
      const uint64_t station = reader.Number();
      const uint64_t generation = reader.Number();
      if (station > kLargestPart || generation > wire::kGenerationMask) return false;
      identity =
          wire::IdentityOf(static_cast<uint32_t>(station), static_cast<uint32_t>(generation));
    }
    if ((head & kSamePlace) == 0) {
      const uint64_t place = reader.Number();
      if (place > kLargestPart) return false;
      known.places[kind] = static_cast<uint32_t>(place);
    }
    if (reader.failed()) return false;
    known.Follow(identity);
    out.push_back({known.stamp, identity | kind | known.Place(kind)});
  }
  return reader.left() == 0;
}

}  // namespace spanprof::coroutine
