#pragma once

// Numbers for places in the source: a look into a small table of the thread, and for a place that
// is new to it a table of the process. Any thread, not for signal handlers.

#include <bit>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <source_location>
#include <string_view>

#include <spanprof/internal/coroutine_layout.hpp>
#include <spanprof/internal/coroutine_process.hpp>

namespace spanprof::internal::coroutine {

struct CachedPlace {
  std::uintptr_t key;
  const void* header;
  uint32_t id;
};
inline constexpr size_t kCachedPlaces = 64;
SPANPROF_SHARED_STATE inline constinit thread_local CachedPlace cached_places[kCachedPlaces]{};

inline void CopyText(char* to, size_t room, std::string_view text, bool keep_end) {
  if (text.size() >= room) {
    text = keep_end ? text.substr(text.size() - room + 1) : text.substr(0, room - 1);
  }
  std::memcpy(to, text.data(), text.size());
  to[text.size()] = '\0';
}

[[gnu::noinline]] inline uint32_t KeepPlace(GlobalHeader& header, std::uintptr_t key,
                                            const std::source_location& location) {
  const std::lock_guard guard(process.lock);
  ActivateWithLock(header);
  if (process.places == nullptr) return 0;
  uint32_t at = static_cast<uint32_t>((key >> 3) * 0x9E3779B1u) % kPlaceEntries;
  while (process.place_entries[at].key != 0 && process.place_entries[at].key != key) {
    at = (at + 1) % kPlaceEntries;
  }
  PlaceEntry& entry = process.place_entries[at];
  if (entry.key == key) return entry.id;
  const uint32_t id = header.place_count.load(std::memory_order_relaxed) + 1;  // 0: none
  if (id >= kMaxPlaces) {
    header.places_not_kept.fetch_add(1, std::memory_order_relaxed);
    return 0;
  }
  Place& place = process.places[id];
  place.line = location.line();
  place.column = location.column();
  CopyText(place.file, sizeof place.file, location.file_name(), true);
  CopyText(place.function, sizeof place.function, location.function_name(), false);
  entry = {key, id};
  header.place_count.store(id, std::memory_order_release);
  return id;
}

// The number of a place; 0 if there is none, or no room for it.
inline uint32_t PlaceNumber(const std::source_location& location) {
  GlobalHeader* header = process.header.load(std::memory_order_acquire);
  if (header == nullptr || process.foreign) return 0;
  // The object is one pointer to constants of the program, so it identifies the place.
  static_assert(sizeof(std::source_location) == sizeof(std::uintptr_t));
  const auto key = std::bit_cast<std::uintptr_t>(location);
  if (key == 0) return 0;
  CachedPlace& cached = cached_places[(key >> 3) % kCachedPlaces];
  if (cached.key == key && cached.header == header) return cached.id;
  cached = {key, header, KeepPlace(*header, key, location)};
  return cached.id;
}

}  // namespace spanprof::internal::coroutine
