#pragma once

// SIGNAL-SAFE. The JVM's memory as the walker sees it. A walker follows pointers out of a stack
// that may be in any state, so no pointer is believed: every load is of memory that cannot go away,
// or is done by the kernel.
//
//  - The thread's own stack and the committed part of the code heaps are there for as long as the
//    walk takes: the first by stack_high (see stack_walker.h), the second because HotSpot never
//    gives code heap memory back. These are plain loads.
//  - So is what belongs to the compiled method that the thread was interrupted in: the VM frees
//    nothing of a method that a thread is executing.
//  - Everything else (metaspace, the C heap) goes through safe_memory.h, a window at a time. That
//    costs system calls, so what is found there is kept in tables: see hotspot_methods.h and
//    hotspot_code.h.

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "agent/hotspot_structs.h"
#include "sampling/native_stack_memory.h"
#include "sampling/safe_memory.h"

namespace spanprof::jvm {

// The sanitizers would rather not see such loads.
template <typename T>
__attribute__((no_sanitize("address", "thread", "undefined"))) inline T LoadPlain(
    uint64_t address) noexcept {
  T value;
  if (address % alignof(T) == 0) return *reinterpret_cast<const volatile T*>(address);
  std::memcpy(&value, reinterpret_cast<const void*>(address), sizeof(T));
  return value;
}

// A structure's field in memory that is known to be there. Signed as the VM's own.
inline int64_t LoadField(uint64_t structure, const HotspotField& field) noexcept {
  const uint64_t place = structure + field.offset;
  switch (field.bytes) {
    case 1:
      return LoadPlain<int8_t>(place);
    case 2:
      return LoadPlain<int16_t>(place);
    case 4:
      return LoadPlain<int32_t>(place);
    default:
      return LoadPlain<int64_t>(place);
  }
}
inline uint64_t LoadAddress(uint64_t structure, const HotspotField& field) noexcept {
  return static_cast<uint64_t>(LoadField(structure, field));
}

// Memory that may not be there: what the kernel copied last is kept.
class HotspotMemory {
 public:
  HotspotMemory() noexcept = default;

  // From here on [begin, begin + size) is known to stay for the walk, and loaded directly; instead
  // of what was known before in the same place.
  enum class Known : uint8_t { kCode, kDebugInformation, kMetadata };
  void SetKnown(Known place, uint64_t begin, uint64_t size) noexcept {
    known_[static_cast<unsigned>(place)] = {.begin = begin, .size = size};
  }

  // False if not all of it can be read.
  [[nodiscard]] bool Read(uint64_t address, void* to, std::size_t size) noexcept {
    if (address < kLowest || address + size < address) return false;
    for (const Range& range : known_) {
      if (address - range.begin < range.size && size <= range.size - (address - range.begin)) {
        LoadBytes(address, to, size);
        return true;
      }
    }
    if (address - window_address_ < window_bytes_ &&
        address + size <= window_address_ + window_bytes_) {
      std::memcpy(to, window_ + (address - window_address_), size);
      return true;
    }
    return Fill(address, to, size);
  }
  template <typename T>
  [[nodiscard]] bool Load(uint64_t address, T& value) noexcept {
    return Read(address, &value, sizeof(value));
  }

  // For what is a short way ahead only: the number of a field, any width.
  [[nodiscard]] bool LoadField(uint64_t structure, const HotspotField& field,
                               uint64_t& value) noexcept {
    value = 0;
    return Read(structure + field.offset, &value, field.bytes);  // little-endian, as both machines
  }

 private:
  struct Range {
    uint64_t begin = 0;
    uint64_t size = 0;
  };

  __attribute__((no_sanitize("address", "thread", "undefined"))) static void LoadBytes(
      uint64_t address, void* to, std::size_t size) noexcept {
    std::memcpy(to, reinterpret_cast<const void*>(address), size);
  }

  static constexpr uint64_t kLowest = 4096;
  static constexpr uint64_t kWindowBytes = 1024;

  __attribute__((noinline)) bool Fill(uint64_t address, void* to, std::size_t size) noexcept {
    if (size > kWindowBytes / 2) return sampling::ReadOwnMemory(address, to, size) == size;
    // A little before it too: debug information refers backwards.
    window_address_ = address - address % (kWindowBytes / 2);
    window_bytes_ = sampling::ReadOwnMemory(window_address_, window_, kWindowBytes);
    if (address + size > window_address_ + window_bytes_) return false;
    std::memcpy(to, window_ + (address - window_address_), size);
    return true;
  }

  Range known_[3];
  uint64_t window_address_ = 0;
  uint64_t window_bytes_ = 0;
  alignas(8) unsigned char window_[kWindowBytes];
};

}  // namespace spanprof::jvm
