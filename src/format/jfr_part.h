#pragma once

// The mark on each chunk of a part file: how long the named file was when the chunk was written.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace spanprof::format::jfr {

// What WriteJfr made, with the mark as the last event of its chunk.
std::string MarkAsPart(std::string_view chunk, uint64_t finished_bytes);

// The mark of the first chunk in `bytes`, which are chunks of a part file.
std::optional<uint64_t> FinishedBytesOfPart(std::string_view bytes);

}  // namespace spanprof::format::jfr
