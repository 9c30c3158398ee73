#include "format/jfr_part.h"

#include "format/jfr_chunk.h"
#include "format/jfr_encoding.h"
#include "format/jfr_schema.h"

namespace spanprof::format::jfr {

std::string MarkAsPart(std::string_view chunk, uint64_t finished_bytes) {
  const Result<ChunkHeader> header = ReadChunkHeader(chunk, 0);
  if (!header || !IsComplete(*header, chunk.size())) return std::string(chunk);
  Output body;
  body.Varint(kPartId);
  body.Varint(header->start_ticks);
  body.Varint(finished_bytes);
  Output mark;
  mark.Event(body.bytes());
  Output size;
  size.BigEndian(header->size + mark.size(), sizeof(uint64_t));

  std::string marked(chunk);
  marked.insert(header->size, mark.bytes());
  marked.replace(ChunkHeader::kChunkSizeOffset, size.size(), size.bytes());
  return marked;
}

std::optional<uint64_t> FinishedBytesOfPart(std::string_view bytes) {
  const Result<ChunkHeader> header = ReadChunkHeader(bytes, 0);
  if (!header || !IsComplete(*header, bytes.size())) return std::nullopt;
  std::optional<uint64_t> finished_bytes;
  const Result<void> walked =
      ForEachEvent(bytes, 0, *header, [&](const EventSpan& event) -> Result<void> {
        if (event.type != kPartId) return {};
        Input input(bytes, event.fields, event.end);
        input.Varint();  // start
        const uint64_t value = input.Varint();
        if (!input.failed()) finished_bytes = value;
        return {};
      });
  return walked ? finished_bytes : std::nullopt;
}

}  // namespace spanprof::format::jfr
