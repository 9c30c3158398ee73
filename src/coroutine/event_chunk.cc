#include "coroutine/event_chunk.h"

#include <array>

#include "coroutine/byte_codec.h"
#include <spanprof/internal/coroutine_layout.hpp>

namespace spanprof::coroutine {
namespace {

using internal::coroutine::GenerationOf;
using internal::coroutine::IdentityOf;
using internal::coroutine::KindOf;
using internal::coroutine::PlaceOf;
using internal::coroutine::StationOf;

constexpr uint8_t kSameCoroutine = 1 << 4;
constexpr uint8_t kSamePlace = 1 << 5;
constexpr unsigned kKinds = 16;
constexpr uint32_t kLargestPart = 0xFFFFFF;  // of station and place, 24 bits each

// Kind, a time of ten bytes, station, generation and place.
constexpr std::size_t kMostEventBytes = 1 + 10 + 4 + 2 + 4;
constexpr uint64_t kIdentityMask = IdentityOf(kLargestPart, internal::coroutine::kGenerationMask);

char* StoreNumber(char* at, uint64_t value) {
  while (value >= 0x80) {
    *at++ = static_cast<char>(value | 0x80);
    value >>= 7;
  }
  *at++ = static_cast<char>(value);
  return at;
}

// What both sides know from the records before.
struct Previous {
  uint64_t stamp = 0;
  uint64_t identity = 0;
  std::array<uint32_t, kKinds> places = {};
};

}  // namespace

void AppendEvents(std::string& out, std::span<const RingEvent> events) {
  // Written through a pointer: this is what limits how many events a second can be recorded.
  const std::size_t begin = out.size();
  out.resize(begin + events.size() * kMostEventBytes);
  char* at = out.data() + begin;
  Previous previous;
  for (const RingEvent& event : events) {
    const uint32_t kind = KindOf(event.word);
    const uint32_t place = PlaceOf(event.word);
    const uint64_t identity = event.word & kIdentityMask;
    uint8_t head = static_cast<uint8_t>(kind);
    if (identity == previous.identity) head |= kSameCoroutine;
    if (place == previous.places[kind]) head |= kSamePlace;
    *at++ = static_cast<char>(head);
    const auto step = static_cast<int64_t>(event.stamp - previous.stamp);
    at = StoreNumber(at, (static_cast<uint64_t>(step) << 1) ^ static_cast<uint64_t>(step >> 63));
    if ((head & kSameCoroutine) == 0) {
      at = StoreNumber(at, StationOf(event.word));
      at = StoreNumber(at, GenerationOf(event.word));
    }
    if ((head & kSamePlace) == 0) at = StoreNumber(at, place);
    previous.stamp = event.stamp;
    previous.identity = identity;
    previous.places[kind] = place;
  }
  out.resize(static_cast<std::size_t>(at - out.data()));
}

bool ParseEvents(std::string_view bytes, uint64_t count, std::vector<RingEvent>& out) {
  // An event has two bytes at least, so a count that cannot be is found before memory is taken.
  if (count > kMaxChunkEvents || count > bytes.size() / 2) return false;
  ByteReader reader(bytes);
  Previous previous;
  out.clear();
  out.reserve(count);
  for (uint64_t i = 0; i < count; ++i) {
    const uint8_t head = reader.Byte();
    const uint32_t kind = head & 0xF;
    const uint64_t stamp = previous.stamp + static_cast<uint64_t>(reader.Signed());
    if ((head & kSameCoroutine) == 0) {
      const uint64_t station = reader.Number();
      const uint64_t generation = reader.Number();
      if (station > kLargestPart || generation > internal::coroutine::kGenerationMask) return false;
      previous.identity =
          IdentityOf(static_cast<uint32_t>(station), static_cast<uint32_t>(generation));
    }
    if ((head & kSamePlace) == 0) {
      const uint64_t place = reader.Number();
      if (place > kLargestPart) return false;
      previous.places[kind] = static_cast<uint32_t>(place);
    }
    if (reader.failed()) return false;
    previous.stamp = stamp;
    out.push_back({stamp, previous.identity | kind | (uint64_t{previous.places[kind]} << 40)});
  }
  return reader.left() == 0;
}

}  // namespace spanprof::coroutine
