#pragma once

// A constant pool while it is written: entries in the order of their keys, which count from 1 or
// more. Key 0 means "none" and has no entry.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "format/jfr_encoding.h"

namespace spanprof::format::jfr {

struct PoolBytes {
  uint64_t first_key = 1;
  uint64_t count = 0;
  Output entries = {};

  // Begins the next entry: the caller writes its fields into `entries`. Returns the key.
  uint64_t Begin() {
    const uint64_t key = first_key + count++;
    entries.Varint(key);
    return key;
  }
};

// A pool of texts, each one there once.
class TextPool {
 public:
  // The key of the text; a new one where it is not there yet.
  uint64_t Add(std::string_view text) {
    if (const auto found = keys_.find(text); found != keys_.end()) return found->second;
    const uint64_t key = pool_.Begin();
    pool_.entries.Utf8(text);
    keys_.emplace(text, key);
    return key;
  }
  const PoolBytes& pool() const { return pool_; }

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };

  std::unordered_map<std::string, uint64_t, Hash, std::equal_to<>> keys_;
  PoolBytes pool_;
};

}  // namespace spanprof::format::jfr
