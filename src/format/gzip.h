#pragma once

// gzip in memory.

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace spanprof::format {

bool IsGzip(std::string_view bytes);

Result<std::string> Compress(std::string_view bytes);

// Takes several gzip members one behind the other as one, as gunzip does. Never makes more than
// `max_size` bytes: EFBIG if there are more. EINVAL with the offset for what is broken or cut off.
Result<std::string> Decompress(std::string_view bytes, size_t max_size);

// The first bytes of what is compressed, at most `size` of them; fewer if the input is broken.
std::string DecompressPrefix(std::string_view bytes, size_t size);

}  // namespace spanprof::format
