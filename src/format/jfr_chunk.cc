#include "format/jfr_chunk.h"

#include <cerrno>
#include <string>

#include "format/jfr.h"

namespace spanprof::format {
namespace jfr {
namespace {

constexpr std::string_view kMagic("FLR\0", 4);

tl::unexpected<Error> BadChunk(size_t offset, const std::string& what, std::string hint = {}) {
  return Fail(EBADMSG, "JFR chunk at byte " + std::to_string(offset) + ": " + what,
              std::move(hint));
}

}  // namespace

void WriteChunkHeader(const ChunkHeader& header, Output& out) {
  out.Append(kMagic);
  out.BigEndian(header.major, 2);
  out.BigEndian(header.minor, 2);
  out.BigEndian(header.size, 8);
  out.BigEndian(header.checkpoint, 8);
  out.BigEndian(header.metadata, 8);
  out.BigEndian(header.start_ns, 8);
  out.BigEndian(header.duration_ns, 8);
  out.BigEndian(header.start_ticks, 8);
  out.BigEndian(header.ticks_per_second, 8);
  out.Byte(header.generation);
  out.Byte(0);
  out.BigEndian(header.flags, 2);
}

Result<ChunkHeader> ReadChunkHeader(std::string_view bytes, size_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < ChunkHeader::kSize) {
    return BadChunk(offset, "its header is cut",
                    "the file was cut while it was written; 'spanprof export' reads what is whole");
  }
  if (bytes.substr(offset, kMagic.size()) != kMagic) {
    return BadChunk(offset, "it does not begin with 'FLR' and a zero byte", "is it a JFR file?");
  }
  Input input(bytes, offset + kMagic.size(), offset + ChunkHeader::kSize);
  ChunkHeader header;
  header.major = static_cast<uint16_t>(input.BigEndian(2));
  header.minor = static_cast<uint16_t>(input.BigEndian(2));
  header.size = input.BigEndian(8);
  header.checkpoint = input.BigEndian(8);
  header.metadata = input.BigEndian(8);
  header.start_ns = input.BigEndian(8);
  header.duration_ns = input.BigEndian(8);
  header.start_ticks = input.BigEndian(8);
  header.ticks_per_second = input.BigEndian(8);
  header.generation = input.Byte();
  input.Byte();
  header.flags = static_cast<uint16_t>(input.BigEndian(2));

  if (header.major != 1 && header.major != 2) {
    return BadChunk(offset, "version " + std::to_string(header.major) + "." +
                                std::to_string(header.minor) + " is not known");
  }
  if ((header.flags & ChunkHeader::kCompressedIntegers) == 0) {
    return BadChunk(offset, "its integers are not compressed, which is not supported",
                    "record with compressed integers, the default of the JDK");
  }
  if (header.ticks_per_second == 0) return BadChunk(offset, "it has no ticks per second");
  return header;
}

bool IsComplete(const ChunkHeader& header, uint64_t available) {
  return header.generation == 0 && header.size > ChunkHeader::kSize && header.size <= available &&
         header.metadata >= ChunkHeader::kSize && header.metadata < header.size &&
         header.checkpoint >= ChunkHeader::kSize && header.checkpoint < header.size;
}

Result<EventSpan> ReadEventSpan(std::string_view bytes, size_t position, size_t chunk_end) {
  Input input(bytes, position, chunk_end);
  const uint64_t size = input.Varint();
  const uint64_t type = input.Varint();
  if (input.failed() || size < input.position() - position || size > chunk_end - position) {
    return Fail(EBADMSG, "JFR event at byte " + std::to_string(position) + ": its size of " +
                             std::to_string(size) + " bytes does not fit its chunk");
  }
  return EventSpan{.type = type,
                   .begin = position,
                   .fields = input.position(),
                   .end = position + static_cast<size_t>(size)};
}

}  // namespace jfr

size_t CompleteJfrPrefix(std::string_view bytes) {
  size_t complete = 0;
  while (complete < bytes.size()) {
    const Result<jfr::ChunkHeader> header = jfr::ReadChunkHeader(bytes, complete);
    if (!header || !jfr::IsComplete(*header, bytes.size() - complete)) break;
    complete += static_cast<size_t>(header->size);
  }
  return complete;
}

}  // namespace spanprof::format
