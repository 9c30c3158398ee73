#pragma once

// Hashes for the tables of a profile. Files that are read are hostile, so the hash of a text
// depends on a number that differs from process to process: nobody can prepare texts that all
// collide.

#include <cstdint>
#include <string_view>

namespace spanprof::profile {

// An odd number, the same for the life of the process.
uint64_t HashSecret();

inline uint64_t MixHash(uint64_t hash, uint64_t value, uint64_t secret) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(hash ^ value ^ 0x9E37'79B9'7F4A'7C15u) * secret;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64) ^ (hash << 1);
}

template <class... Values>
uint64_t HashValues(Values... values) {
  const uint64_t secret = HashSecret();
  uint64_t hash = secret;
  ((hash = MixHash(hash, static_cast<uint64_t>(values), secret)), ...);
  return hash ^ (hash >> 32);
}

uint64_t HashText(std::string_view text);

}  // namespace spanprof::profile
