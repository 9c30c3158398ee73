#include "profile/hashing.h"

#include <chrono>
#include <cstring>

namespace spanprof::profile {

uint64_t HashSecret() {
  static const uint64_t kSecret = [] {
    static const char kAnchor = 0;
    const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
    const uint64_t seed = static_cast<uint64_t>(now) ^ reinterpret_cast<uintptr_t>(&kAnchor) << 20;
    return MixHash(seed, 0x2545'F491'4F6C'DD1Du, 0xD6E8'FEB8'6659'FD93u) | 1;
  }();
  return kSecret;
}

uint64_t HashText(std::string_view text) {
  const uint64_t secret = HashSecret();
  uint64_t hash = secret ^ text.size();
  while (text.size() >= sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, text.data(), sizeof(word));
    hash = MixHash(hash, word, secret);
    text.remove_prefix(sizeof(word));
  }
  uint64_t rest = 0;
  // data() of an empty view may be null, which memcpy does not take.
  if (!text.empty()) std::memcpy(&rest, text.data(), text.size());
  hash = MixHash(hash, rest, secret);
  return hash ^ (hash >> 32);
}

}  // namespace spanprof::profile
