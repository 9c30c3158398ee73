#pragma once

// The unwind table and the build id of an object that is loaded in this process, read from its
// memory: that is what runs, whatever has become of the file since. The object may be unloaded
// meanwhile; then there is no table. Not for a signal handler.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sampling/eh_frame_table.h"
#include "sampling/native_objects.h"

namespace spanprof::sampling {

// .eh_frame_hdr of the object: what tells one content from another. Empty if it has none.
[[nodiscard]] std::vector<std::byte> ReadEhFrameHeader(const LoadedObject& object);

[[nodiscard]] EhFrameTable ReadUnwindTable(const LoadedObject& object,
                                           std::span<const std::byte> header,
                                           std::size_t max_bytes);

[[nodiscard]] std::string ReadBuildId(const LoadedObject& object);

}  // namespace spanprof::sampling
