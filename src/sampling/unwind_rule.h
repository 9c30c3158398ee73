#pragma once

// SIGNAL-SAFE. How to get from a frame to its caller's, for one range of instructions: what a row
// of
// `.eh_frame` says, reduced to the registers that a walk needs. Registers have DWARF's numbers.

#include <cstdint>

namespace spanprof::sampling {

// The canonical frame address: the stack pointer's value in the caller.
enum class CfaKind : uint8_t {
  kNoInformation,  // no tables for this code: try the frame pointer
  kUnsupported,    // there is a rule, and it is not understood
  kRegister,       // register + cfa_offset
  kDereference,    // *(register + cfa_offset) + cfa_addend
  kPlt,            // sp + cfa_offset, and 8 more if (pc & 15) >= cfa_addend
  kSignalFrame,    // the kernel's signal frame is at sp: all registers are in it
};

enum class SavedKind : uint8_t {
  kSame,            // not saved: the register still has the caller's value
  kAtCfa,           // at CFA + offset
  kAtFramePointer,  // at frame pointer + offset
  kInRegister,      // in the register whose number is the offset
  kUnknown,         // lost, or not understood
  kUndefined,       // the return address of the outermost frame
};

struct SavedRegister {
  SavedKind kind = SavedKind::kSame;
  int32_t offset = 0;
  bool operator==(const SavedRegister&) const = default;
};

struct UnwindRule {
  CfaKind cfa = CfaKind::kNoInformation;
  uint8_t cfa_register = 0;
  int32_t cfa_offset = 0;
  int32_t cfa_addend = 0;
  SavedRegister return_address;
  SavedRegister frame_pointer;
  SavedRegister stack_pointer;  // kSame: the CFA is the caller's; longjmp has it in a register
  SavedRegister base_register;  // rbx, which the dynamic loader's trampoline has its CFA in
  bool operator==(const UnwindRule&) const = default;
};

// The registers that matter, by machine.
struct UnwindMachine {
  uint8_t stack_pointer;
  uint8_t frame_pointer;
  uint8_t base_register;  // kNoRegister: none
  uint8_t return_address;
};
inline constexpr uint8_t kNoRegister = 255;
inline constexpr UnwindMachine kUnwindX86{
    .stack_pointer = 7, .frame_pointer = 6, .base_register = 3, .return_address = 16};
inline constexpr UnwindMachine kUnwindArm64{
    .stack_pointer = 31, .frame_pointer = 29, .base_register = kNoRegister, .return_address = 30};

}  // namespace spanprof::sampling
