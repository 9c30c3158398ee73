#pragma once

// A chunk of a JFR file: its header, and its events as spans of bytes.
//
// Offsets are those of the whole file, so that a message can name them.

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "format/jfr_encoding.h"

namespace spanprof::format::jfr {

inline constexpr uint64_t kMetadataEventId = 0;
inline constexpr uint64_t kCheckpointEventId = 1;

struct ChunkHeader {
  static constexpr size_t kSize = 68;
  static constexpr size_t kChunkSizeOffset = 8;  // of the field, for who makes a chunk longer

  uint16_t major = 2;
  uint16_t minor = 0;
  uint64_t size = 0;        // of the chunk, with this header
  uint64_t checkpoint = 0;  // offset in the chunk of its last checkpoint event
  uint64_t metadata = 0;    // offset in the chunk of its metadata event
  uint64_t start_ns = 0;    // Unix time
  uint64_t duration_ns = 0;
  uint64_t start_ticks = 0;  // the tick at start_ns
  uint64_t ticks_per_second = 0;
  uint8_t generation = 0;  // 0: finished
  uint16_t flags = kCompressedIntegers;

  static constexpr uint16_t kCompressedIntegers = 1;
};

void WriteChunkHeader(const ChunkHeader& header, Output& out);

// The header at `offset`, checked so far as it does not depend on what follows it: magic, version,
// sizes and offsets that fit each other.
Result<ChunkHeader> ReadChunkHeader(std::string_view bytes, size_t offset);

// Whether a chunk which is finished begins at `offset` and ends within `available` bytes of there.
bool IsComplete(const ChunkHeader& header, uint64_t available);

struct EventSpan {
  uint64_t type = 0;
  size_t begin = 0;   // of the size in front of it
  size_t fields = 0;  // behind the type
  size_t end = 0;
};

// Every event of the chunk at [begin, begin + header.size). Fails if one leaves the chunk.
template <class Visitor>
Result<void> ForEachEvent(std::string_view bytes, size_t begin, const ChunkHeader& header,
                          Visitor visit);

Result<EventSpan> ReadEventSpan(std::string_view bytes, size_t position, size_t chunk_end);

template <class Visitor>
Result<void> ForEachEvent(std::string_view bytes, size_t begin, const ChunkHeader& header,
                          Visitor visit) {
  const size_t end = begin + header.size;
  for (size_t position = begin + ChunkHeader::kSize; position < end;) {
    const Result<EventSpan> event = ReadEventSpan(bytes, position, end);
    if (!event) return tl::make_unexpected(event.error());
    if (Result<void> visited = visit(*event); !visited) return visited;
    position = event->end;
  }
  return {};
}

}  // namespace spanprof::format::jfr
