#pragma once

// Text on its way into and out of files.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace spanprof::format {

// The text with each byte that is not UTF-8 replaced by U+FFFD: what protobuf calls a string must
// be UTF-8, and readers refuse the whole file otherwise.
std::string ToUtf8(std::string_view text);

// 1 to 16 hex digits, nothing else.
std::optional<uint64_t> ParseHex(std::string_view text);
std::optional<uint64_t> ParseDecimal(std::string_view text);

// For the left side of `key=value`: `=`, `%` and control characters become %XX.
std::string EscapeKey(std::string_view key);
std::string UnescapeKey(std::string_view key);

}  // namespace spanprof::format
