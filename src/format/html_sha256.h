#pragma once

// SHA-256, for the one use that a page has for it: its content security policy names the scripts
// and styles that may run by their hash, so that nothing else in the file can.

#include <array>
#include <cstdint>
#include <string_view>

namespace spanprof::format {

std::array<uint8_t, 32> Sha256(std::string_view bytes);

}  // namespace spanprof::format
