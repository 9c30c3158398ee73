#pragma once

// Tag values, each stored once and known by a number. Append-only and bounded; lock-free, so a fork
// in the middle of an insertion leaves nothing half done, and the numbers stay valid in the child.
//
// Find is signal-safe; Intern is too, after Create.

#include <atomic>
#include <cstdint>
#include <string_view>

namespace spanprof::context {

inline constexpr size_t kMaxTagValueBytes = 4096;

class TagDictionary {
 public:
  static constexpr uint32_t kDefaultMaxValues = 65536;
  static constexpr size_t kDefaultMaxBytes = size_t{8} << 20;

  // False: no memory. May be called again; the first call's limits stay.
  bool Create(uint32_t max_values = kDefaultMaxValues, size_t max_bytes = kDefaultMaxBytes);

  // 0: the value is empty or too long, or there is no room (the last two are counted).
  uint32_t Intern(std::string_view value);

  // Empty for 0 and for a number that was never given out. The bytes stay where they are for the
  // life of the process.
  std::string_view Find(uint32_t id) const;

  uint32_t size() const { return next_id_.load(std::memory_order_relaxed) - 1; }

 private:
  struct Entry {
    uint32_t id;
    uint32_t hash;
    uint32_t length;
    uint32_t reserved;
    // bytes follow, padded to a multiple of eight
  };
  static const char* Bytes(const Entry* entry) { return reinterpret_cast<const char*>(entry + 1); }
  Entry* Append(std::string_view value, uint32_t hash);

  uint32_t max_values_ = 0;
  uint32_t bucket_mask_ = 0;
  size_t max_bytes_ = 0;
  std::atomic<const Entry*>* buckets_ = nullptr;  // open addressing, never more than half full
  std::atomic<const Entry*>* by_id_ = nullptr;
  std::atomic<char*> arena_{nullptr};  // set last: the dictionary exists
  std::atomic<size_t> arena_used_{0};
  std::atomic<uint32_t> next_id_{1};
};

}  // namespace spanprof::context
