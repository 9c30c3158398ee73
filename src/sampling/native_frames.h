#pragma once

// SIGNAL-SAFE. Steps from a native frame to its caller: the part of the native walker that another
// walker uses too, which has frames of its own between native ones.
//
//   NativeFrames frames(code_reader, stack_memory, *context);
//   do use(frames.pc()); while (frames.Next() == NativeFrames::Step::kCaller);

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ucontext.h>

#include "sampling/code_map.h"
#include "sampling/native_registers.h"
#include "sampling/native_stack_memory.h"
#include "sampling/stack_walker.h"
#include "sampling/unwind_rule.h"

namespace spanprof::sampling {

// The registers are those of the frame that is being looked at.
class NativeFrames {
 public:
  enum class Step { kCaller, kThreadStart, kFailed };

  NativeFrames(CodeMap::Reader& code, NativeStackMemory& memory, const ucontext_t& at) noexcept
      : code_(code), memory_(memory), all_(RegistersOf(at.uc_mcontext)) {
    TakeAllRegisters();
  }

  // Goes on from a frame that was found by other means: `pc` is where it was called from to the
  // frame before. No other register is known there.
  void GoOnFrom(uint64_t pc, uint64_t stack_pointer, uint64_t frame_pointer) noexcept {
    pc_ = PlainAddress(pc);
    stack_pointer_ = stack_pointer;
    frame_pointer_ = frame_pointer;
    frame_pointer_known_ = true;
    other_known_ = false;
    all_known_ = false;
    interrupted_ = false;
  }

  [[nodiscard]] uint64_t pc() const { return pc_; }
  [[nodiscard]] uint64_t stack_pointer() const { return stack_pointer_; }
  [[nodiscard]] uint64_t frame_pointer() const { return frame_pointer_known_ ? frame_pointer_ : 0; }
  // Whether pc is where the frame was interrupted, rather than a return address.
  [[nodiscard]] bool interrupted() const { return interrupted_; }
  [[nodiscard]] WalkFailure failure() const { return failure_; }

  // Goes on to the caller's frame.
  Step Next() noexcept {
    // A return address may be the next function's first byte; what called is before it.
    const uint64_t pc = interrupted_ ? pc_ : pc_ - 1;
    const CodeRegion* region = code_.Find(pc);
    if (region == nullptr) {
      code_.NoteUnknown();
      return NextByFramePointer(WalkFailure::kUnknownCode);
    }
    if (region->table == nullptr) return NextWithoutTable();
    const UnwindRule* rule = region->table->Find(pc - region->bias);
    if (rule == nullptr || rule->cfa == CfaKind::kNoInformation) return NextInBareCode();
    return NextByRule(*rule);
  }

 private:
  static constexpr uint64_t kMinCodeAddress = 4096;
  static constexpr uint64_t kMaxCodeAddress = uint64_t{1} << 56;
  // Signal handlers that were themselves interrupted; each may be on another stack, so that only
  // here addresses may go down.
  static constexpr unsigned kMaxSignalFrames = 16;

  Step Fail(WalkFailure failure) noexcept {
    failure_ = failure;
    return Step::kFailed;
  }

  void TakeAllRegisters() noexcept {
    pc_ = PlainAddress(all_.pc);
    stack_pointer_ = all_.general[kMachine.stack_pointer];
    frame_pointer_ = all_.general[kMachine.frame_pointer];
    frame_pointer_known_ = true;
    // The base register, or where there is a link register, that.
    other_ = all_.general[kHasLinkRegister ? kMachine.return_address % 32 : kMachine.base_register];
    other_known_ = true;
    all_known_ = true;
    interrupted_ = true;
  }

  // False if the register's value is not known in this frame.
  [[nodiscard]] bool ValueOf(unsigned reg, uint64_t& value) const noexcept {
    if (reg == kMachine.stack_pointer) {
      value = stack_pointer_;
      return true;
    }
    if (reg == kMachine.frame_pointer) {
      value = frame_pointer_;
      return frame_pointer_known_;
    }
    if (reg == (kHasLinkRegister ? kMachine.return_address : kMachine.base_register)) {
      value = other_;
      return other_known_;
    }
    constexpr unsigned kCount = sizeof(all_.general) / sizeof(all_.general[0]);
    if (!all_known_ || reg >= kCount) return false;
    value = all_.general[reg];
    return true;
  }

  // True if the frame above ends at `cfa`, as a stack that grows down has it. Where the return
  // address is in a register the function may have no frame of its own.
  [[nodiscard]] bool IsAbove(uint64_t cfa, bool may_be_empty) const noexcept {
    return cfa % sizeof(uint64_t) == 0 &&
           (cfa > stack_pointer_ || (may_be_empty && cfa == stack_pointer_));
  }

  Step Enter(uint64_t return_address, uint64_t cfa) noexcept {
    return_address = PlainAddress(return_address);
    // Who starts a thread or a fiber by hand leaves 0 as the caller of its first function.
    if (return_address == 0) return Step::kThreadStart;
    if (return_address < kMinCodeAddress || return_address >= kMaxCodeAddress) {
      return Fail(WalkFailure::kBadReturnAddress);
    }
    pc_ = return_address;
    stack_pointer_ = cfa;
    all_known_ = false;
    interrupted_ = false;
    return Step::kCaller;
  }

  Step NextByRule(const UnwindRule& rule) noexcept {
    if (rule.return_address.kind == SavedKind::kUndefined) return Step::kThreadStart;
    if (rule.cfa == CfaKind::kSignalFrame) return NextBySignalFrame();
    if (code_.IsFiberStart(pc_)) return Step::kThreadStart;
    uint64_t cfa = 0;
    if (const WalkFailure failure = FindCfa(rule, cfa); failure != WalkFailure::kNone) {
      return Fail(failure);
    }
    uint64_t caller_stack_pointer = cfa;
    if (rule.stack_pointer.kind == SavedKind::kInRegister &&
        !ValueOf(static_cast<unsigned>(rule.stack_pointer.offset), caller_stack_pointer)) {
      return Fail(WalkFailure::kUnknownRegister);
    }
    const bool on_stack = rule.return_address.kind == SavedKind::kAtCfa;
    if (!IsAbove(caller_stack_pointer, !on_stack && interrupted_)) {
      return Fail(WalkFailure::kFrameOrder);
    }
    uint64_t return_address = 0;
    if (on_stack) {
      if (!memory_.Load(Plus(cfa, rule.return_address.offset), return_address)) {
        return Fail(WalkFailure::kUnreadableStack);
      }
    } else if (!ReturnAddressInRegister(rule, return_address)) {
      return Fail(WalkFailure::kUnknownRegister);
    }
    RestoreRegisters(rule, cfa);
    return Enter(return_address, caller_stack_pointer);
  }

  static uint64_t Plus(uint64_t address, int32_t offset) noexcept {
    return address + static_cast<uint64_t>(int64_t{offset});
  }

  WalkFailure FindCfa(const UnwindRule& rule, uint64_t& cfa) noexcept {
    switch (rule.cfa) {
      case CfaKind::kRegister:
        if (!ValueOf(rule.cfa_register, cfa)) return WalkFailure::kUnknownRegister;
        cfa = Plus(cfa, rule.cfa_offset);
        return WalkFailure::kNone;
      case CfaKind::kDereference:
        if (!ValueOf(rule.cfa_register, cfa)) return WalkFailure::kUnknownRegister;
        if (!memory_.Load(Plus(cfa, rule.cfa_offset), cfa)) return WalkFailure::kUnreadableStack;
        cfa = Plus(cfa, rule.cfa_addend);
        return WalkFailure::kNone;
      case CfaKind::kPlt: {
        const bool pushed = static_cast<int64_t>(pc_ & 15) >= rule.cfa_addend;
        cfa = Plus(stack_pointer_, rule.cfa_offset) + (pushed ? sizeof(uint64_t) : 0);
        return WalkFailure::kNone;
      }
      case CfaKind::kNoInformation:
      case CfaKind::kUnsupported:
      case CfaKind::kSignalFrame:
        break;
    }
    return WalkFailure::kUnsupportedRule;
  }

  bool ReturnAddressInRegister(const UnwindRule& rule, uint64_t& value) const noexcept {
    if (rule.return_address.kind == SavedKind::kInRegister) {
      return ValueOf(static_cast<unsigned>(rule.return_address.offset), value);
    }
    value = other_;
    return kHasLinkRegister && rule.return_address.kind == SavedKind::kSame && other_known_;
  }

  // What cannot be read is not known; whether it is ever needed, later frames tell.
  void RestoreRegisters(const UnwindRule& rule, uint64_t cfa) noexcept {
    const uint64_t frame_pointer = frame_pointer_;
    const bool in_frame = HasFrame(rule, cfa);
    const auto restore = [&](const SavedRegister& saved, uint64_t& value, bool& known) {
      switch (saved.kind) {
        case SavedKind::kSame:
          return;
        case SavedKind::kAtCfa:
          known = memory_.Load(Plus(cfa, saved.offset), value);
          return;
        case SavedKind::kAtFramePointer:
          if (in_frame) known = memory_.Load(Plus(frame_pointer, saved.offset), value);
          return;
        case SavedKind::kInRegister:
          known = ValueOf(static_cast<unsigned>(saved.offset), value);
          return;
        case SavedKind::kUnknown:
        case SavedKind::kUndefined:
          known = false;
          return;
      }
    };
    if constexpr (kHasLinkRegister) {
      other_known_ = false;
    } else {
      restore(rule.base_register, other_, other_known_);
    }
    restore(rule.frame_pointer, frame_pointer_, frame_pointer_known_);
  }

  // Whether places relative to the frame pointer mean this frame's: it does not point above the
  // frame, as the caller's would. gcc's functions with a realigned stack have such places, and gcc
  // says the same of the last two instructions, which come after the caller's frame pointer was
  // taken from the stack.
  [[nodiscard]] bool HasFrame(const UnwindRule& rule, uint64_t cfa) const noexcept {
    if (!frame_pointer_known_) return false;
    if (rule.cfa == CfaKind::kDereference) return true;
    return rule.cfa_register != kMachine.stack_pointer && frame_pointer_ >= stack_pointer_ &&
           frame_pointer_ < cfa;
  }

  // The kernel has put all registers on the stack that the handler ran on.
  Step NextBySignalFrame() noexcept {
    if (++signal_frames_ > kMaxSignalFrames) return Fail(WalkFailure::kFrameOrder);
    mcontext_t context;
    const uint64_t place =
        stack_pointer_ + kSignalContextOffset + offsetof(ucontext_t, uc_mcontext);
    auto* words = reinterpret_cast<unsigned char*>(&context);
    static_assert(kContextBytesNeeded % sizeof(uint64_t) == 0);
    for (uint64_t at = 0; at < kContextBytesNeeded; at += sizeof(uint64_t)) {
      uint64_t word = 0;
      if (!memory_.Load(place + at, word)) return Fail(WalkFailure::kUnreadableStack);
      std::memcpy(words + at, &word, sizeof(word));
    }
    all_ = RegistersOf(context);
    TakeAllRegisters();
    if (pc_ < kMinCodeAddress || pc_ >= kMaxCodeAddress) {
      return Fail(WalkFailure::kBadReturnAddress);
    }
    return Step::kCaller;
  }

  // By the frame record that the frame pointer points to: the caller's frame pointer, and the
  // return address.
  Step NextByFramePointer(WalkFailure failure) noexcept {
    if (!frame_pointer_known_) return Fail(failure);
    const uint64_t record = frame_pointer_;
    uint64_t caller_frame_pointer = 0;
    uint64_t return_address = 0;
    if (record < stack_pointer_ || !memory_.Load(record, caller_frame_pointer) ||
        !memory_.Load(record + sizeof(uint64_t), return_address)) {
      return Fail(failure);
    }
    frame_pointer_ = caller_frame_pointer;
    other_known_ = false;
    return Enter(return_address, record + 2 * sizeof(uint64_t));
  }

  // Code of no tables at all: a JIT's, or an object's without .eh_frame.
  Step NextWithoutTable() noexcept {
    if (IsAtSignalReturn()) return NextBySignalFrame();
    // By the ABI the outermost frame's frame pointer is 0.
    if (frame_pointer_known_ && frame_pointer_ == 0) return Step::kThreadStart;
    return NextByFramePointer(WalkFailure::kNoFramePointer);
  }

  // A hole in an object's tables: assembler without call frame information, a linkage table of lld.
  // Such code hardly ever makes a frame, so the caller is probably where a call has just put it.
  Step NextInBareCode() noexcept {
    if (IsAtSignalReturn()) return NextBySignalFrame();
    if (interrupted_) {
      uint64_t return_address = other_;
      uint64_t cfa = stack_pointer_;
      bool known = true;
      if constexpr (!kHasLinkRegister) {
        known = memory_.Load(stack_pointer_, return_address);
        cfa += sizeof(uint64_t);
      }
      const CodeRegion* region = known ? code_.Find(PlainAddress(return_address) - 1) : nullptr;
      if (region != nullptr && region->table != nullptr) {
        if (kHasLinkRegister) other_known_ = false;
        return Enter(return_address, cfa);
      }
    }
    return NextWithoutTable();
  }

  // A handler returns to it: it is never what was interrupted or called from.
  [[nodiscard]] bool IsAtSignalReturn() const noexcept {
    return !interrupted_ && code_.IsSignalReturn(pc_);
  }

  CodeMap::Reader& code_;
  NativeStackMemory& memory_;
  NativeRegisters all_;  // of the last interrupted frame
  uint64_t pc_ = 0;
  uint64_t stack_pointer_ = 0;
  uint64_t frame_pointer_ = 0;
  uint64_t other_ = 0;
  bool frame_pointer_known_ = false;
  bool other_known_ = false;
  bool all_known_ = false;
  bool interrupted_ = true;
  unsigned signal_frames_ = 0;
  WalkFailure failure_ = WalkFailure::kNone;
};

}  // namespace spanprof::sampling
