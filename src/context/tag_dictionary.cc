#include "context/tag_dictionary.h"

#include <cstring>

#include "context/counters.h"
#include "context/platform.h"

namespace spanprof::context {
namespace {

// FNV-1a, then a finaliser: the low bits choose the bucket.
uint32_t Hash(std::string_view value) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : value) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  hash ^= hash >> 32;
  return static_cast<uint32_t>(hash * 0x9E3779B97F4A7C15u >> 32);
}

}  // namespace

bool TagDictionary::Create(uint32_t max_values, size_t max_bytes) {
  if (arena_.load(std::memory_order_acquire) != nullptr) return true;
  uint32_t buckets = 16;
  while (buckets < max_values * 2) buckets *= 2;
  const size_t bucket_bytes = buckets * sizeof(buckets_[0]);
  const size_t id_bytes = (size_t{max_values} + 1) * sizeof(by_id_[0]);
  char* memory = static_cast<char*>(MapAnonymous(bucket_bytes + id_bytes + max_bytes + 8));
  if (memory == nullptr) return false;
  max_values_ = max_values;
  max_bytes_ = max_bytes;
  bucket_mask_ = buckets - 1;
  buckets_ = reinterpret_cast<std::atomic<const Entry*>*>(memory);
  by_id_ = reinterpret_cast<std::atomic<const Entry*>*>(memory + bucket_bytes);
  arena_.store(memory + bucket_bytes + id_bytes, std::memory_order_release);
  return true;
}

TagDictionary::Entry* TagDictionary::Append(std::string_view value, uint32_t hash) {
  const size_t bytes = sizeof(Entry) + ((value.size() + 7) & ~size_t{7});
  size_t used = arena_used_.load(std::memory_order_relaxed);
  do {
    if (used + bytes > max_bytes_) return nullptr;
  } while (!arena_used_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
  uint32_t id = next_id_.load(std::memory_order_relaxed);
  do {
    if (id > max_values_) return nullptr;
  } while (!next_id_.compare_exchange_weak(id, id + 1, std::memory_order_relaxed));
  auto* entry = reinterpret_cast<Entry*>(arena_.load(std::memory_order_relaxed) + used);
  entry->id = id;
  entry->hash = hash;
  entry->length = static_cast<uint32_t>(value.size());
  memcpy(entry + 1, value.data(), value.size());
  // Release: pairs with the acquire in Find.
  by_id_[id].store(entry, std::memory_order_release);
  return entry;
}

uint32_t TagDictionary::Intern(std::string_view value) {
  if (value.empty() || arena_.load(std::memory_order_acquire) == nullptr) return 0;
  if (value.size() > kMaxTagValueBytes) {
    Count(Counter::kTagValueTooLong);
    return 0;
  }
  const uint32_t hash = Hash(value);
  Entry* mine = nullptr;
  for (uint32_t bucket = hash & bucket_mask_;; bucket = (bucket + 1) & bucket_mask_) {
    // Acquire: pairs with the compare-exchange that put the entry there.
    const Entry* entry = buckets_[bucket].load(std::memory_order_acquire);
    if (entry == nullptr) {
      if (mine == nullptr) mine = Append(value, hash);
      if (mine == nullptr) {
        Count(Counter::kDictionaryFull);
        return 0;
      }
      if (buckets_[bucket].compare_exchange_strong(entry, mine, std::memory_order_acq_rel,
                                                   std::memory_order_acquire)) {
        return mine->id;
      }
      // `entry` is now what another thread put there; perhaps the same value. Then the number that
      // we drew is wasted, which the limit allows for.
    }
    if (entry->hash == hash && entry->length == value.size() &&
        memcmp(Bytes(entry), value.data(), value.size()) == 0) {
      return entry->id;
    }
  }
}

std::string_view TagDictionary::Find(uint32_t id) const {
  if (id == 0 || id > max_values_ || by_id_ == nullptr) return {};
  const Entry* entry = by_id_[id].load(std::memory_order_acquire);
  return entry == nullptr ? std::string_view() : std::string_view(Bytes(entry), entry->length);
}

}  // namespace spanprof::context
