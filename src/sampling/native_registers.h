#pragma once

// SIGNAL-SAFE. The registers of an interrupted thread, by DWARF's numbers, and what a walker has to
// know of the machine and the kernel's signal frame.

#include <cstddef>
#include <cstdint>
#include <ucontext.h>

#include "sampling/unwind_rule.h"

namespace spanprof::sampling {

#if defined(__linux__) && defined(__x86_64__)

inline constexpr bool kCanWalk = true;
inline constexpr UnwindMachine kMachine = kUnwindX86;
// On entry to a function the return address is on the stack, not in a register.
inline constexpr bool kHasLinkRegister = false;
// When a handler returns, sp points at the ucontext.
inline constexpr uint64_t kSignalContextOffset = 0;

struct NativeRegisters {
  uint64_t general[16];  // by DWARF number
  uint64_t pc;
};

inline NativeRegisters RegistersOf(const mcontext_t& from) noexcept {
  constexpr int kPlaces[16] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
                               REG_RBP, REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,
                               REG_R12, REG_R13, REG_R14, REG_R15};
  NativeRegisters registers{};
  for (unsigned i = 0; i < 16; ++i) {
    registers.general[i] = static_cast<uint64_t>(from.gregs[kPlaces[i]]);
  }
  registers.pc = static_cast<uint64_t>(from.gregs[REG_RIP]);
  return registers;
}

inline uint64_t StackPointerOf(const ucontext_t& at) noexcept {
  return static_cast<uint64_t>(at.uc_mcontext.gregs[REG_RSP]);
}
inline uint64_t ProgramCounterOf(const ucontext_t& at) noexcept {
  return static_cast<uint64_t>(at.uc_mcontext.gregs[REG_RIP]);
}

// What mcontext_t holds of use, from its start.
inline constexpr std::size_t kContextBytesNeeded = sizeof(gregset_t);

// Takes off what is not address: nothing here.
inline uint64_t PlainAddress(uint64_t address) noexcept { return address; }

#elif defined(__linux__) && defined(__aarch64__)

inline constexpr bool kCanWalk = true;
inline constexpr UnwindMachine kMachine = kUnwindArm64;
inline constexpr bool kHasLinkRegister = true;
inline constexpr uint64_t kSignalContextOffset = 128;  // behind the siginfo_t

struct NativeRegisters {
  uint64_t general[32];  // by DWARF number; 31 is sp
  uint64_t pc;
};

inline NativeRegisters RegistersOf(const mcontext_t& from) noexcept {
  NativeRegisters registers{};
  for (unsigned i = 0; i < 31; ++i) registers.general[i] = from.regs[i];
  registers.general[31] = from.sp;
  registers.pc = from.pc;
  return registers;
}

inline uint64_t StackPointerOf(const ucontext_t& at) noexcept { return at.uc_mcontext.sp; }
inline uint64_t ProgramCounterOf(const ucontext_t& at) noexcept { return at.uc_mcontext.pc; }

inline constexpr std::size_t kContextBytesNeeded = offsetof(mcontext_t, pstate);

// Takes the signature off a return address. The instruction does nothing on a processor that signs
// none, and is a hint that every assembler knows.
inline uint64_t PlainAddress(uint64_t address) noexcept {
  register uint64_t x30 asm("x30") = address;
  asm("hint #7" : "+r"(x30));  // xpaclri
  return x30;
}

#else

inline constexpr bool kCanWalk = false;
inline constexpr UnwindMachine kMachine = kUnwindX86;
inline constexpr bool kHasLinkRegister = false;
inline constexpr uint64_t kSignalContextOffset = 0;

struct NativeRegisters {
  uint64_t general[16];
  uint64_t pc;
};
inline NativeRegisters RegistersOf(const mcontext_t&) noexcept { return {}; }
inline uint64_t StackPointerOf(const ucontext_t&) noexcept { return 0; }
inline uint64_t ProgramCounterOf(const ucontext_t&) noexcept { return 0; }
inline constexpr std::size_t kContextBytesNeeded = 0;
inline uint64_t PlainAddress(uint64_t address) noexcept { return address; }

#endif

}  // namespace spanprof::sampling
