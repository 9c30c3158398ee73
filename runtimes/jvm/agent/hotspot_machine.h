#pragma once

// SIGNAL-SAFE. What HotSpot's generated code looks like on this machine: which registers its
// interpreter uses, how a method begins and ends, and what a call is.

#include <cstdint>

#include "agent/hotspot_memory.h"

namespace spanprof::jvm {

// So many bytes before and behind a pc are looked at.
inline constexpr uint64_t kCodeWindow = 16;

// Where a return address, and the stack pointer of the code that is returned to, are for a few
// instructions while neither is on the stack. By DWARF's numbers.
struct ReturnRegisters {
  unsigned return_address;
  unsigned stack_pointer;
};

#if defined(__x86_64__)

inline constexpr bool kHasLinkRegister = false;
inline constexpr unsigned kLinkRegister = 0;
// By DWARF's numbers.
inline constexpr unsigned kBytecodeRegister = 13;  // r13
inline constexpr unsigned kMethodRegister = 3;     // rbx, when a method is entered
// rax and r13 when a method is entered, r13 and rbx when an interpreted one is left.
inline constexpr ReturnRegisters kReturnRegisters[] = {{0, 13}, {13, 3}};
inline constexpr uint64_t kCallBytes = 7;

// `pc` has kCallBytes before it.
inline bool FollowsCall(uint64_t pc) noexcept {
  const auto byte = [pc](unsigned back) { return LoadPlain<uint8_t>(pc - back); };
  if (byte(5) == 0xE8) return true;
  if (byte(2) == 0xFF && (byte(1) & 0xF8) == 0xD0) return true;  // a register's
  if (byte(3) == 0xFF && (byte(2) & 0xF8) == 0x50) return true;  // with an offset of one byte
  return byte(6) == 0xFF && (byte(5) & 0xF8) == 0x90;            // of four bytes
}

// Of a compiled method that was interrupted: how many words the stack has above the return address,
// while its frame is being made or taken down. -1: the frame is whole. `before` bytes ahead of pc
// belong to the method, and kCodeWindow bytes behind it can be loaded.
inline int WordsAboveReturnAddress(uint64_t pc, uint64_t before, bool in_prologue) noexcept {
  const auto byte = [pc](int64_t at) { return LoadPlain<uint8_t>(pc + static_cast<uint64_t>(at)); };
  const auto is = [&](int64_t at, uint8_t first, uint8_t second, uint8_t third) {
    return byte(at) == first && byte(at + 1) == second && byte(at + 2) == third;
  };
  if (in_prologue) {
    // push rbp, sub rsp; or only the second, and rbp is stored. What comes after leaves rsp alone.
    for (int64_t back = 4; back <= static_cast<int64_t>(before); ++back) {
      const bool small = is(-back, 0x48, 0x83, 0xEC);
      const bool large = back >= 7 && is(-back, 0x48, 0x81, 0xEC);
      if (small || large) return -1;
    }
    for (int64_t back = 1; back <= 4 && back <= static_cast<int64_t>(before); ++back) {
      if (byte(-back) == 0x55 && (back == 1 || back == 4)) return 1;
    }
    return 0;
  }
  if (byte(0) == 0x5D) return 1;                     // pop rbp
  if (byte(0) == 0xC3 || byte(0) == 0xC2) return 0;  // ret
  // The poll at a return compares rsp with a word of the thread, and jumps if it is above.
  if (is(0, 0x49, 0x3B, 0x67) || is(0, 0x49, 0x3B, 0xA7)) return 0;
  if (byte(0) == 0x0F && byte(1) == 0x87) {
    if (before >= 4 && is(-4, 0x49, 0x3B, 0x67)) return 0;
    if (before >= 7 && is(-7, 0x49, 0x3B, 0xA7)) return 0;
  }
  return -1;
}

#else  // arm64, as far as it was looked at; elsewhere there is no walker

inline constexpr bool kHasLinkRegister = true;
inline constexpr unsigned kLinkRegister = 30;
inline constexpr unsigned kBytecodeRegister = 22;
inline constexpr unsigned kMethodRegister = 12;
inline constexpr ReturnRegisters kReturnRegisters[] = {{30, 19}};
inline constexpr uint64_t kCallBytes = 4;

inline bool FollowsCall(uint64_t pc) noexcept {
  const auto instruction = LoadPlain<uint32_t>(pc - 4);
  return (instruction & 0xFC000000u) == 0x94000000u ||  // bl
         (instruction & 0xFFFFFC1Fu) == 0xD63F0000u;    // blr
}

// The return address is in the link register until the frame is whole, and again at the return.
inline int WordsAboveReturnAddress(uint64_t pc, uint64_t, bool in_prologue) noexcept {
  if (in_prologue) return 0;
  return LoadPlain<uint32_t>(pc) == 0xD65F03C0u ? 0 : -1;  // ret
}

#endif

}  // namespace spanprof::jvm
