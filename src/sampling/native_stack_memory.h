#pragma once

// SIGNAL-SAFE. The stack that is being walked: direct loads where it is known to be there, else
// what the kernel copies, a small window at a time.

#include <cstdint>
#include <cstring>

#include "sampling/safe_memory.h"

namespace spanprof::sampling {

class NativeStackMemory {
 public:
  // All of [low, high) can be read; high may be 0 (nothing is known).
  NativeStackMemory(uint64_t low, uint64_t high) noexcept
      : low_(low), direct_bytes_(high > low ? high - low : 0) {}

  // False if it cannot be read, or is not a place for a word.
  [[nodiscard]] bool Load(uint64_t address, uint64_t& value) noexcept {
    if (address % sizeof(uint64_t) != 0) return false;
    const uint64_t distance = address - low_;
    if (distance < direct_bytes_ && direct_bytes_ - distance >= sizeof(uint64_t)) {
      value = LoadDirect(address);
      return true;
    }
    return LoadFromWindow(address, value);
  }

 private:
  static constexpr uint64_t kWindowBytes = 1024;

  // The sanitizers would rather not see the loads of other frames' memory.
  __attribute__((no_sanitize("address", "thread", "undefined"))) static uint64_t LoadDirect(
      uint64_t address) noexcept {
    return *reinterpret_cast<const volatile uint64_t*>(address);
  }

  __attribute__((noinline)) bool LoadFromWindow(uint64_t address, uint64_t& value) noexcept {
    if (address - window_address_ >= window_bytes_) {
      // A whole block: what is needed next may be above or below. Blocks do not cross pages.
      window_address_ = address - address % kWindowBytes;
      window_bytes_ = ReadOwnMemory(window_address_, window_, kWindowBytes);
      if (window_bytes_ != kWindowBytes) {
        window_bytes_ = 0;
        return false;
      }
    }
    std::memcpy(&value, window_ + (address - window_address_), sizeof(value));
    return true;
  }

  const uint64_t low_;
  const uint64_t direct_bytes_;
  uint64_t window_address_ = 0;
  uint64_t window_bytes_ = 0;  // kWindowBytes, or 0: nothing is in it
  alignas(8) unsigned char window_[kWindowBytes];
};

}  // namespace spanprof::sampling
