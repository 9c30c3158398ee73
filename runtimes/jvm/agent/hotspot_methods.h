#pragma once

// SIGNAL-SAFE. What a Method of the VM is called outside: its jmethodID, and where its bytecodes
// are. A jmethodID is never made here: one that nobody has asked for is not there.
//
// What was found is kept in a table by the Method's address. A Method can be freed with its class
// and another take its place; a kept answer is right only while the jmethodID still leads back to
// the Method. The word it leads to is never given back by HotSpot (up to 25), so looking costs one
// load and no system call.

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "agent/hotspot_memory.h"
#include "agent/hotspot_structs.h"

namespace spanprof::jvm {

struct HotspotMethod {
  uint64_t id = 0;         // the jmethodID; 0: it has none
  uint64_t bytecodes = 0;  // where they begin
  uint32_t bytecode_bytes = 0;
  bool native = false;

  // -1: `pointer` is not in its bytecodes.
  [[nodiscard]] int32_t IndexOf(uint64_t pointer) const noexcept {
    return !native && pointer - bytecodes < bytecode_bytes
               ? static_cast<int32_t>(pointer - bytecodes)
               : -1;
  }
};

class HotspotMethods {
 public:
  // `layout` has to outlive it.
  explicit HotspotMethods(const HotspotLayout& layout) : layout_(layout) {}
  HotspotMethods(const HotspotMethods&) = delete;
  HotspotMethods& operator=(const HotspotMethods&) = delete;

  // False: `method` is no Method. True with id 0: probably one, but it has no jmethodID.
  [[nodiscard]] bool Find(HotspotMemory& memory, uint64_t method, HotspotMethod& found) noexcept;

  // Finds without the table, for the check at start.
  [[nodiscard]] bool FindInMemory(HotspotMemory& memory, uint64_t method,
                                  HotspotMethod& found) const noexcept;

 private:
  static constexpr std::size_t kPlaces = 8192;
  static constexpr uint64_t kNativeAccess = 0x100;  // JVM_ACC_NATIVE, by the class file format

  // `version` is odd while a handler writes; a second one leaves it alone.
  struct Place {
    std::atomic<uint32_t> version{0};
    std::atomic<uint32_t> bytecode_bytes{0};  // the top bit: native
    std::atomic<uint64_t> method{0};
    std::atomic<uint64_t> id{0};
    std::atomic<uint64_t> bytecodes{0};
  };
  [[nodiscard]] Place& PlaceOf(uint64_t method) noexcept {
    return places_[(method >> 3) * 0x9E3779B97F4A7C15u >> 51];
  }
  static_assert(kPlaces == size_t{1} << (64 - 51));
  void Keep(uint64_t method, const HotspotMethod& found) noexcept;

  const HotspotLayout& layout_;
  Place places_[kPlaces];
};

}  // namespace spanprof::jvm
