#pragma once

// SIGNAL-SAFE. Steps from a Java frame to its caller, as NativeFrames does for native ones. The two
// take turns: this one stops where the caller is not in the JVM's code heaps.

#include <cstdint>
#include <ucontext.h>

#include "agent/hotspot_code.h"
#include "agent/hotspot_code_heaps.h"
#include "agent/hotspot_failures.h"
#include "agent/hotspot_frame_list.h"
#include "agent/hotspot_memory.h"
#include "agent/hotspot_methods.h"
#include "sampling/code_map.h"
#include "sampling/native_stack_memory.h"

namespace spanprof::jvm {

class HotspotJavaFrames {
 public:
  enum class Step {
    kCaller,        // to another frame in the code heaps
    kNative,        // to a native one
    kContinuation,  // the frame was the first of a virtual thread
    kFrozen,        // the next frame of the virtual thread is in the heap
    kFailed,
  };

  HotspotJavaFrames(const HotspotLayout& layout, const HotspotCodeHeaps& heaps,
                    HotspotMethods& methods, HotspotCode& code, sampling::CodeMap::Reader& native,
                    sampling::NativeStackMemory& stack) noexcept
      : layout_(layout),
        heaps_(heaps),
        methods_(methods),
        code_(code),
        native_(native),
        stack_(stack) {}

  // The frame that was interrupted: it may not be whole.
  void StartAt(const ucontext_t& at) noexcept;
  // A frame that called on, at the return address `pc`.
  void StartAt(uint64_t pc, uint64_t stack_pointer, uint64_t frame_pointer) noexcept;

  // Adds what the present frame stands for, and goes on to its caller.
  Step Next(FrameList& frames) noexcept;

  [[nodiscard]] uint64_t pc() const { return pc_; }
  [[nodiscard]] uint64_t stack_pointer() const { return stack_pointer_; }
  [[nodiscard]] uint64_t frame_pointer() const { return frame_pointer_; }
  [[nodiscard]] JavaWalkFailure failure() const { return failure_; }

 private:
  static constexpr unsigned kRegisters = 32;

  struct InterpretedFrame {
    HotspotMethod method;
    uint64_t bytecode = 0;
  };
  struct Return {
    uint64_t pc = 0;
    uint64_t stack_pointer = 0;
  };

  Step Fail(JavaWalkFailure failure) noexcept {
    failure_ = failure;
    return Step::kFailed;
  }
  // Goes to the caller: its pc, its stack pointer, its frame pointer.
  Step Enter(uint64_t pc, uint64_t stack_pointer, uint64_t frame_pointer) noexcept;
  // A word of the present frame or of one that called it. What lies below the stack pointer was
  // left behind by calls that have returned, and looks like frames.
  [[nodiscard]] bool LoadLive(uint64_t address, uint64_t& value) noexcept;
  Step NextInterpreted(FrameList& frames) noexcept;
  Step NextHalfMadeInterpreted(FrameList& frames) noexcept;
  Step LeaveInterpreted(const InterpretedFrame& frame, FrameList& frames) noexcept;
  Step NextCompiled(const CodeInfo& info, FrameList& frames) noexcept;
  Step NextDeoptimised(CodeInfo& info, FrameList& frames) noexcept;
  Step NextStub(const CodeInfo& info, FrameList& frames) noexcept;
  Step NextEntryFrame() noexcept;
  Step NextByFrameSize(unsigned words, JavaWalkFailure failure) noexcept;
  Step NextUndescribed(FrameList& frames, JavaWalkFailure failure) noexcept;
  // The interpreter's frame that the frame pointer leads to, as far as it is made.
  [[nodiscard]] bool FindInterpretedFrame(InterpretedFrame& found) noexcept;
  [[nodiscard]] bool FindReturnWithoutFrame(Return& to) noexcept;
  // The stack pointer of code that is returned to: the usual one, or one that a register has.
  [[nodiscard]] bool FindStackPointerOf(uint64_t caller, uint64_t usual, uint64_t& found) noexcept;
  // Whether code at that return address can have that stack pointer.
  [[nodiscard]] bool CanReturnTo(uint64_t pc, uint64_t stack_pointer) noexcept;
  // Of an interrupted compiled method: how many words lie above the return address. -1: the frame
  // is whole.
  [[nodiscard]] int WordsToReturnAddress(const CodeInfo& info) const noexcept;
  // Whether code of the JVM can return to it.
  [[nodiscard]] bool IsReturnAddress(uint64_t pc) const noexcept;
  // Whether native code with unwind tables can have called a stub from there.
  [[nodiscard]] bool IsNativeCaller(uint64_t pc) const noexcept;
  // Any of these; or any place in a compiled method, which is where a poll or an exception leaves
  // it.
  [[nodiscard]] bool IsCaller(uint64_t pc) noexcept;
  void AddAll(const CodeInfo& info, FrameList& frames) const noexcept;

  const HotspotLayout& layout_;
  const HotspotCodeHeaps& heaps_;
  HotspotMethods& methods_;
  HotspotCode& code_;
  sampling::CodeMap::Reader& native_;
  sampling::NativeStackMemory& stack_;
  HotspotMemory memory_;
  uint64_t pc_ = 0;
  uint64_t stack_pointer_ = 0;
  uint64_t frame_pointer_ = 0;
  bool interrupted_ = false;
  uint64_t registers_[kRegisters] = {};  // of the interrupted frame, by DWARF's numbers
  JavaWalkFailure failure_ = JavaWalkFailure::kFirst;
};

}  // namespace spanprof::jvm
