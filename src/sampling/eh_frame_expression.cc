#include "sampling/eh_frame_expression.h"

#include <array>
#include <cstdint>
#include <optional>

namespace spanprof::sampling {
namespace {

constexpr uint8_t kDeref = 0x06;
constexpr uint8_t kAnd = 0x1A;
constexpr uint8_t kPlus = 0x22;
constexpr uint8_t kPlusUconst = 0x23;
constexpr uint8_t kShl = 0x24;
constexpr uint8_t kGe = 0x2A;
constexpr uint8_t kLit0 = 0x30;
constexpr uint8_t kBreg0 = 0x70;
constexpr uint8_t kBreg31 = 0x8F;

constexpr bool FitsOffset(int64_t value) { return value >= INT32_MIN && value <= INT32_MAX; }

// The kernel leaves rsp pointing at its ucontext, where the interrupted rsp is at this offset.
constexpr int32_t kSavedStackPointerOffset = 160;

// What follows `breg7 8` in the linkage table's: the pc, 15, and, 11 (or 10), ge, 3, shl, plus.
std::optional<int32_t> ThresholdOfPlt(EhFrameCursor rest) {
  constexpr uint8_t kBreg16 = kBreg0 + 16;
  if (rest.Read<uint8_t>() != kBreg16 || rest.Sleb() != 0) return std::nullopt;
  if (rest.Read<uint8_t>() != kLit0 + 15 || rest.Read<uint8_t>() != kAnd) return std::nullopt;
  const auto threshold = rest.Read<uint8_t>();
  if (threshold < kLit0 || threshold > kLit0 + 15) return std::nullopt;
  constexpr std::array<uint8_t, 4> kTail = {kGe, kLit0 + 3, kShl, kPlus};
  for (const uint8_t expected : kTail) {
    if (rest.Read<uint8_t>() != expected) return std::nullopt;
  }
  if (rest.failed() || !rest.at_end()) return std::nullopt;
  return threshold - kLit0;
}

}  // namespace

void SetCfaByExpression(EhFrameCursor expression, const UnwindMachine& machine, bool signal_frame,
                        UnwindRule& rule) {
  rule.cfa = CfaKind::kUnsupported;
  rule.cfa_register = 0;
  rule.cfa_offset = 0;
  rule.cfa_addend = 0;
  const auto first = expression.Read<uint8_t>();
  if (first < kBreg0 || first > kBreg31) return;
  const auto base = static_cast<uint8_t>(first - kBreg0);
  const int64_t offset = expression.Sleb();
  if (expression.failed() || !FitsOffset(offset)) return;
  CfaKind kind = CfaKind::kRegister;
  int64_t addend = 0;
  if (!expression.at_end()) {
    if (const auto threshold = ThresholdOfPlt(expression);
        threshold && base == machine.stack_pointer) {
      rule.cfa = CfaKind::kPlt;
      rule.cfa_register = base;
      rule.cfa_offset = static_cast<int32_t>(offset);
      rule.cfa_addend = *threshold;
      return;
    }
    if (expression.Read<uint8_t>() != kDeref) return;
    kind = CfaKind::kDereference;
    if (!expression.at_end()) {
      if (expression.Read<uint8_t>() != kPlusUconst) return;
      const uint64_t value = expression.Uleb();
      if (value > INT32_MAX) return;
      addend = static_cast<int64_t>(value);
    }
  }
  if (expression.failed() || !expression.at_end()) return;
  const bool is_saved_stack_pointer = kind == CfaKind::kDereference &&
                                      base == kUnwindX86.stack_pointer && addend == 0 &&
                                      offset == kSavedStackPointerOffset;
  if (signal_frame && is_saved_stack_pointer) {
    rule.cfa = CfaKind::kSignalFrame;
    return;
  }
  rule.cfa = kind;
  rule.cfa_register = base;
  rule.cfa_offset = static_cast<int32_t>(offset);
  rule.cfa_addend = static_cast<int32_t>(addend);
}

SavedRegister SavedByExpression(EhFrameCursor expression, const UnwindMachine& machine) {
  const auto first = expression.Read<uint8_t>();
  const int64_t offset = expression.Sleb();
  const bool understood = !expression.failed() && expression.at_end() && FitsOffset(offset) &&
                          first == kBreg0 + machine.frame_pointer;
  if (!understood) return {.kind = SavedKind::kUnknown, .offset = 0};
  return {.kind = SavedKind::kAtFramePointer, .offset = static_cast<int32_t>(offset)};
}

}  // namespace spanprof::sampling
