#include "sampling/eh_frame_program.h"

#include <cstddef>
#include <limits>

#include "sampling/eh_frame_expression.h"

namespace spanprof::sampling {
namespace {

constexpr std::size_t kMaxRemembered = 64;
constexpr uint64_t kRegisters = 32;  // those that a rule can name

// The instructions with their operand in the opcode.
constexpr uint8_t kAdvanceLoc = 0x40;
constexpr uint8_t kOffset = 0x80;
constexpr uint8_t kRestore = 0xC0;

enum Opcode : uint8_t {
  kNop = 0x00,
  kSetLoc = 0x01,
  kAdvanceLoc1 = 0x02,
  kAdvanceLoc2 = 0x03,
  kAdvanceLoc4 = 0x04,
  kOffsetExtended = 0x05,
  kRestoreExtended = 0x06,
  kUndefined = 0x07,
  kSameValue = 0x08,
  kRegister = 0x09,
  kRememberState = 0x0A,
  kRestoreState = 0x0B,
  kDefCfa = 0x0C,
  kDefCfaRegister = 0x0D,
  kDefCfaOffset = 0x0E,
  kDefCfaExpression = 0x0F,
  kExpression = 0x10,
  kOffsetExtendedSf = 0x11,
  kDefCfaSf = 0x12,
  kDefCfaOffsetSf = 0x13,
  kValOffset = 0x14,
  kValOffsetSf = 0x15,
  kValExpression = 0x16,
  kNegateReturnAddressState = 0x2D,  // arm64: the return address is signed; the walker strips it
  kGnuArgsSize = 0x2E,
  kGnuNegativeOffsetExtended = 0x2F,
};

constexpr bool FitsOffset(int64_t value) {
  return value >= std::numeric_limits<int32_t>::min() &&
         value <= std::numeric_limits<int32_t>::max();
}

// Wraps round instead of overflowing: what comes of nonsense is nonsense, and is checked for size.
constexpr int64_t Product(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

}  // namespace

int64_t EhFrameProgram::Scaled(uint64_t factor) const {
  return Product(static_cast<int64_t>(factor), common_.data_alignment);
}

SavedRegister* EhFrameProgram::Tracked(uint64_t reg) {
  if (reg == machine_.return_address) return &rule_.return_address;
  if (reg == machine_.frame_pointer) return &rule_.frame_pointer;
  if (reg == machine_.stack_pointer) return &rule_.stack_pointer;
  if (reg == machine_.base_register) return &rule_.base_register;
  return nullptr;
}

void EhFrameProgram::Save(uint64_t reg, SavedKind kind, int64_t offset) {
  SavedRegister* saved = Tracked(reg);
  if (saved == nullptr) return;
  *saved = FitsOffset(offset) ? SavedRegister{.kind = kind, .offset = static_cast<int32_t>(offset)}
                              : SavedRegister{.kind = SavedKind::kUnknown, .offset = 0};
}

void EhFrameProgram::Restore(uint64_t reg) {
  if (reg == machine_.return_address) rule_.return_address = common_.initial.return_address;
  if (reg == machine_.frame_pointer) rule_.frame_pointer = common_.initial.frame_pointer;
  if (reg == machine_.stack_pointer) rule_.stack_pointer = common_.initial.stack_pointer;
  if (reg == machine_.base_register) rule_.base_register = common_.initial.base_register;
}

void EhFrameProgram::DefineCfa(uint64_t reg, int64_t offset) {
  rule_.cfa_addend = 0;
  if (reg >= kRegisters || !FitsOffset(offset)) {
    rule_.cfa = CfaKind::kUnsupported;
    return;
  }
  rule_.cfa = CfaKind::kRegister;
  rule_.cfa_register = static_cast<uint8_t>(reg);
  rule_.cfa_offset = static_cast<int32_t>(offset);
}

void EhFrameProgram::SetCfaOffset(int64_t offset) {
  // Only after a register was named; else the program makes no sense.
  if (rule_.cfa == CfaKind::kRegister) DefineCfa(rule_.cfa_register, offset);
}

bool EhFrameProgram::StepExtended(uint8_t opcode, EhFrameCursor& instructions) {
  switch (opcode) {
    case kNop:
    case kNegateReturnAddressState:
      return true;
    case kOffsetExtended: {
      const uint64_t reg = instructions.Uleb();
      Save(reg, SavedKind::kAtCfa, Scaled(instructions.Uleb()));
      return true;
    }
    case kOffsetExtendedSf: {
      const uint64_t reg = instructions.Uleb();
      Save(reg, SavedKind::kAtCfa, Product(instructions.Sleb(), common_.data_alignment));
      return true;
    }
    case kGnuNegativeOffsetExtended: {
      const uint64_t reg = instructions.Uleb();
      Save(reg, SavedKind::kAtCfa, Product(Scaled(instructions.Uleb()), -1));
      return true;
    }
    case kRestoreExtended:
      Restore(instructions.Uleb());
      return true;
    case kUndefined: {
      // Of the return address: there is no caller. Of another register: its value is lost.
      const uint64_t reg = instructions.Uleb();
      Save(reg, reg == machine_.return_address ? SavedKind::kUndefined : SavedKind::kUnknown, 0);
      return true;
    }
    case kSameValue:
      Save(instructions.Uleb(), SavedKind::kSame, 0);
      return true;
    case kRegister: {
      const uint64_t reg = instructions.Uleb();
      const uint64_t holder = instructions.Uleb();
      if (holder < kRegisters) {
        Save(reg, SavedKind::kInRegister, static_cast<int64_t>(holder));
      } else {
        Save(reg, SavedKind::kUnknown, 0);
      }
      return true;
    }
    case kRememberState:
      if (remembered_.size() >= kMaxRemembered) return false;
      remembered_.push_back(rule_);
      return true;
    case kRestoreState:
      if (remembered_.empty()) return false;
      rule_ = remembered_.back();
      remembered_.pop_back();
      return true;
    case kDefCfa: {
      const uint64_t reg = instructions.Uleb();
      DefineCfa(reg, static_cast<int64_t>(instructions.Uleb()));
      return true;
    }
    case kDefCfaSf: {
      const uint64_t reg = instructions.Uleb();
      DefineCfa(reg, Product(instructions.Sleb(), common_.data_alignment));
      return true;
    }
    case kDefCfaRegister: {
      const uint64_t reg = instructions.Uleb();
      if (rule_.cfa == CfaKind::kRegister) DefineCfa(reg, rule_.cfa_offset);
      return true;
    }
    case kDefCfaOffset:
      SetCfaOffset(static_cast<int64_t>(instructions.Uleb()));
      return true;
    case kDefCfaOffsetSf:
      SetCfaOffset(Product(instructions.Sleb(), common_.data_alignment));
      return true;
    case kDefCfaExpression: {
      const uint64_t size = instructions.Uleb();
      SetCfaByExpression(instructions.Take(size), machine_, common_.signal_frame, rule_);
      return true;
    }
    case kExpression: {
      const uint64_t reg = instructions.Uleb();
      const uint64_t size = instructions.Uleb();
      const EhFrameCursor expression = instructions.Take(size);
      if (SavedRegister* saved = Tracked(reg)) *saved = SavedByExpression(expression, machine_);
      return true;
    }
    case kValOffset:
    case kValOffsetSf: {
      const uint64_t reg = instructions.Uleb();
      (void)instructions.Uleb();
      Save(reg, SavedKind::kUnknown, 0);
      return true;
    }
    case kValExpression: {
      const uint64_t reg = instructions.Uleb();
      const uint64_t size = instructions.Uleb();
      instructions.Skip(size);
      Save(reg, SavedKind::kUnknown, 0);
      return true;
    }
    case kGnuArgsSize:
      (void)instructions.Uleb();
      return true;
    default:
      return false;
  }
}

bool EhFrameProgram::Step(EhFrameCursor& instructions) {
  const auto byte = instructions.Read<uint8_t>();
  const uint8_t operand = byte & 0x3F;
  const auto advance = [this](uint64_t units) { location_ += units * common_.code_alignment; };
  switch (byte & 0xC0) {
    case kAdvanceLoc:
      advance(operand);
      return true;
    case kOffset:
      Save(operand, SavedKind::kAtCfa, Scaled(instructions.Uleb()));
      return !instructions.failed();
    case kRestore:
      Restore(operand);
      return true;
    default:
      break;
  }
  switch (byte) {
    case kSetLoc: {
      const auto address = instructions.Pointer(common_.pointer_encoding, 0);
      if (address) location_ = *address;
      return address.has_value();
    }
    case kAdvanceLoc1:
      advance(instructions.Read<uint8_t>());
      break;
    case kAdvanceLoc2:
      advance(instructions.Read<uint16_t>());
      break;
    case kAdvanceLoc4:
      advance(instructions.Read<uint32_t>());
      break;
    default:
      return StepExtended(byte, instructions) && !instructions.failed();
  }
  return !instructions.failed();
}

void EhFrameProgram::Run(EhFrameCursor instructions, uint64_t begin, uint64_t end,
                         std::vector<UnwindRow>& rows) {
  location_ = begin;
  uint64_t row_start = begin;
  while (!instructions.at_end()) {
    const UnwindRule before = rule_;
    const uint64_t previous = location_;
    const bool understood = Step(instructions);
    if (!understood) {
      rows.push_back({.address = row_start, .rule = before});
      UnwindRule unsupported;
      unsupported.cfa = CfaKind::kUnsupported;
      rows.push_back({.address = location_, .rule = unsupported});
      return;
    }
    if (location_ == previous) continue;
    rows.push_back({.address = row_start, .rule = before});
    // Backwards (wrapped round), or beyond the function: the rest is not its code.
    if (location_ < previous || location_ >= end) return;
    row_start = location_;
  }
  rows.push_back({.address = row_start, .rule = rule_});
}

UnwindRule EhFrameProgram::InitialRule(const UnwindMachine& machine, const EhFrameCommon& common,
                                       EhFrameCursor instructions) {
  EhFrameProgram program(machine, common);
  while (!instructions.at_end()) {
    if (!program.Step(instructions)) {
      program.rule_.cfa = CfaKind::kUnsupported;
      break;
    }
  }
  return program.rule_;
}

}  // namespace spanprof::sampling
