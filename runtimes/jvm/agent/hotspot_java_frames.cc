// SIGNAL-SAFE: see hotspot_java_frames.h.

#include "agent/hotspot_java_frames.h"

#include "agent/hotspot_frame_word.h"
#include "agent/hotspot_machine.h"
#include "sampling/native_registers.h"

namespace spanprof::jvm {
namespace {

constexpr uint64_t kWord = sizeof(uint64_t);
// How far a stub's frame may reach.
constexpr uint64_t kMaxStubFrame = 16384;
// What an interpreted method's arguments and locals may take before its frame is made.
constexpr uint64_t kMaxLocals = 65536;

// An interpreter's frame, in words from its frame pointer. The same on both machines, 17 to 25.
constexpr int64_t kSenderStackPointer = -1;
constexpr int64_t kMethod = -3;
constexpr int64_t kBytecodePointer = -8;
constexpr uint64_t kInterpreterFrameWords = 12;

constexpr uint64_t At(uint64_t address, int64_t words) {
  return address + static_cast<uint64_t>(words * int64_t{kWord});
}

}  // namespace

void HotspotJavaFrames::StartAt(const ucontext_t& at) noexcept {
  const sampling::NativeRegisters all = sampling::RegistersOf(at.uc_mcontext);
  constexpr unsigned kCount = sizeof(all.general) / sizeof(all.general[0]);
  static_assert(kCount <= kRegisters);
  for (unsigned i = 0; i < kCount; ++i) registers_[i] = all.general[i];
  pc_ = all.pc;
  stack_pointer_ = all.general[sampling::kMachine.stack_pointer];
  frame_pointer_ = all.general[sampling::kMachine.frame_pointer];
  interrupted_ = true;
}

void HotspotJavaFrames::StartAt(uint64_t pc, uint64_t stack_pointer,
                                uint64_t frame_pointer) noexcept {
  pc_ = pc;
  stack_pointer_ = stack_pointer;
  frame_pointer_ = frame_pointer;
  interrupted_ = false;
}

HotspotJavaFrames::Step HotspotJavaFrames::Enter(uint64_t pc, uint64_t stack_pointer,
                                                 uint64_t frame_pointer) noexcept {
  pc = sampling::PlainAddress(pc);
  const bool above =
      interrupted_ ? stack_pointer >= stack_pointer_ : stack_pointer > stack_pointer_;
  if (!above || stack_pointer % kWord != 0) return Fail(JavaWalkFailure::kJavaStackOrder);
  if (!heaps_.Contains(pc) && native_.Find(pc - 1) == nullptr) {
    native_.NoteUnknown();
    return Fail(JavaWalkFailure::kUnknownCaller);
  }
  pc_ = pc;
  stack_pointer_ = stack_pointer;
  frame_pointer_ = frame_pointer;
  interrupted_ = false;
  return heaps_.Contains(pc) ? Step::kCaller : Step::kNative;
}

bool HotspotJavaFrames::LoadLive(uint64_t address, uint64_t& value) noexcept {
  return address >= stack_pointer_ && stack_.Load(address, value);
}

void HotspotJavaFrames::AddAll(const CodeInfo& info, FrameList& frames) const noexcept {
  for (unsigned i = 0; i < info.frame_count; ++i) frames.Add(info.frames[i]);
}

HotspotJavaFrames::Step HotspotJavaFrames::Next(FrameList& frames) noexcept {
  if (pc_ == heaps_.call_stub_return()) return NextEntryFrame();
  if (heaps_.IsInterpreter(pc_)) return NextInterpreted(frames);
  CodeInfo info;
  code_.Look(memory_, pc_, interrupted_, info);
  switch (info.kind) {
    case CodeKind::kCompiled: {
      const bool first_of_continuation = !interrupted_ && heaps_.IsContinuationEntry(pc_);
      AddAll(info, frames);
      if (info.frames_cut) return Fail(JavaWalkFailure::kInlinedTooDeep);
      return first_of_continuation ? Step::kContinuation : NextCompiled(info, frames);
    }
    case CodeKind::kDeoptimised:
      return NextDeoptimised(info, frames);
    case CodeKind::kContinuation:
      return Step::kFrozen;
    case CodeKind::kStub:
    case CodeKind::kBareStub:
      return NextStub(info, frames);
    case CodeKind::kUnknown:
      break;
  }
  return interrupted_ ? NextUndescribed(frames, JavaWalkFailure::kUnknownJavaCode)
                      : Fail(JavaWalkFailure::kUnknownJavaCode);
}

// What C++ code of the VM calls Java through. Its caller is native.
HotspotJavaFrames::Step HotspotJavaFrames::NextEntryFrame() noexcept {
  uint64_t caller = 0;
  uint64_t caller_frame = 0;
  if (frame_pointer_ < stack_pointer_ || !LoadLive(frame_pointer_, caller_frame) ||
      !LoadLive(At(frame_pointer_, 1), caller)) {
    return Fail(JavaWalkFailure::kUnreadableJavaStack);
  }
  return Enter(caller, At(frame_pointer_, 2), caller_frame);
}

bool HotspotJavaFrames::FindInterpretedFrame(InterpretedFrame& found) noexcept {
  uint64_t method = 0;
  if (frame_pointer_ < stack_pointer_ || !LoadLive(At(frame_pointer_, kMethod), method) ||
      !methods_.Find(memory_, method, found.method)) {
    return false;
  }
  // It is pushed after the method.
  if (!LoadLive(At(frame_pointer_, kBytecodePointer), found.bytecode)) found.bytecode = 0;
  return true;
}

HotspotJavaFrames::Step HotspotJavaFrames::NextInterpreted(FrameList& frames) noexcept {
  if (interrupted_ && !kHasLinkRegister) {
    HotspotMethod entered;
    Return to;
    if (FindReturnWithoutFrame(to)) {
      if (methods_.Find(memory_, registers_[kMethodRegister], entered) && entered.id != 0) {
        frames.Add(JavaFrameWord(entered.id, 0));
      }
      return Enter(to.pc, to.stack_pointer, frame_pointer_);
    }
  }
  InterpretedFrame frame;
  if (FindInterpretedFrame(frame)) return LeaveInterpreted(frame, frames);
  return interrupted_ ? NextHalfMadeInterpreted(frames) : Fail(JavaWalkFailure::kInterpreterFrame);
}

HotspotJavaFrames::Step HotspotJavaFrames::LeaveInterpreted(const InterpretedFrame& frame,
                                                            FrameList& frames) noexcept {
  uint64_t caller = 0;
  uint64_t caller_frame = 0;
  uint64_t caller_stack = 0;
  if (!LoadLive(frame_pointer_, caller_frame) || !LoadLive(At(frame_pointer_, 1), caller) ||
      !LoadLive(At(frame_pointer_, kSenderStackPointer), caller_stack)) {
    return Fail(JavaWalkFailure::kUnreadableJavaStack);
  }
  int32_t index = -1;
  // While it runs, the bytecode pointer is in a register, and the frame has an old one.
  if (interrupted_) index = frame.method.IndexOf(registers_[kBytecodeRegister]);
  if (index < 0) index = frame.method.IndexOf(frame.bytecode);
  frames.Add(frame.method.id == 0 ? MarkerFrameWord(FrameMarker::kMethodWithoutId)
                                  : JavaFrameWord(frame.method.id, index));
  // A compiled caller's frame is found from its own stack pointer, not from where the arguments
  // ended. That of an interpreted one does not matter, as long as it is above.
  if (caller_stack <= frame_pointer_) caller_stack = At(frame_pointer_, 2);
  return Enter(caller, caller_stack, caller_frame);
}

// Interrupted where the interpreter makes a method's frame: it has a frame pointer already, and the
// rest is yet to be pushed.
HotspotJavaFrames::Step HotspotJavaFrames::NextHalfMadeInterpreted(FrameList& frames) noexcept {
  HotspotMethod method;
  Return to;
  uint64_t caller_frame = 0;
  const bool has_frame_pointer =
      frame_pointer_ >= stack_pointer_ &&
      frame_pointer_ - stack_pointer_ <= kInterpreterFrameWords * kWord &&
      LoadLive(frame_pointer_, caller_frame) && LoadLive(At(frame_pointer_, 1), to.pc);
  // Where the caller's stack pointer is goes from a register to the frame.
  const bool can_return =
      has_frame_pointer &&
      ((LoadLive(At(frame_pointer_, kSenderStackPointer), to.stack_pointer) &&
        to.stack_pointer > frame_pointer_ && to.stack_pointer - frame_pointer_ < kMaxLocals &&
        CanReturnTo(to.pc, to.stack_pointer)) ||
       FindStackPointerOf(to.pc, At(frame_pointer_, 2), to.stack_pointer));
  if (!can_return) return NextUndescribed(frames, JavaWalkFailure::kInterpreterFrame);
  if (methods_.Find(memory_, registers_[kMethodRegister], method) && method.id != 0) {
    frames.Add(JavaFrameWord(method.id, 0));
  }
  return Enter(to.pc, to.stack_pointer, caller_frame);
}

// Where a method is entered or left, between compiled and interpreted code, there is no frame: the
// return address is on top of the stack or in a register, and the caller's stack pointer may be in
// another.
bool HotspotJavaFrames::FindReturnWithoutFrame(Return& to) noexcept {
  if (LoadLive(stack_pointer_, to.pc) &&
      FindStackPointerOf(to.pc, At(stack_pointer_, 1), to.stack_pointer)) {
    return true;
  }
  for (const ReturnRegisters& pair : kReturnRegisters) {
    to.pc = registers_[pair.return_address];
    to.stack_pointer = registers_[pair.stack_pointer];
    if (to.stack_pointer < stack_pointer_ || to.stack_pointer - stack_pointer_ >= kMaxLocals)
      continue;
    // The frame is being made: it has its frame pointer, and the registers are still what they
    // were.
    if (frame_pointer_ >= stack_pointer_ && frame_pointer_ < to.stack_pointer) continue;
    if (CanReturnTo(to.pc, to.stack_pointer)) return true;
  }
  return false;
}

bool HotspotJavaFrames::FindStackPointerOf(uint64_t caller, uint64_t usual,
                                           uint64_t& found) noexcept {
  found = usual;
  if (CanReturnTo(caller, usual)) return true;
  for (const ReturnRegisters& pair : kReturnRegisters) {
    found = registers_[pair.stack_pointer];
    if (found > usual && found - usual < kMaxLocals && CanReturnTo(caller, found)) return true;
  }
  return false;
}

HotspotJavaFrames::Step HotspotJavaFrames::NextByFrameSize(unsigned words,
                                                           JavaWalkFailure failure) noexcept {
  if (words < 2) return Fail(failure);
  const uint64_t end = stack_pointer_ + words * kWord;
  uint64_t caller = 0;
  uint64_t caller_frame = 0;
  if (!LoadLive(At(end, -1), caller) || !LoadLive(At(end, -2), caller_frame)) {
    return Fail(JavaWalkFailure::kUnreadableJavaStack);
  }
  return Enter(caller, end, caller_frame);
}

HotspotJavaFrames::Step HotspotJavaFrames::NextCompiled(const CodeInfo& info,
                                                        FrameList& frames) noexcept {
  if (!interrupted_) {
    return NextByFrameSize(info.frame_words, JavaWalkFailure::kCompiledFrame);
  }
  const int words = WordsToReturnAddress(info);
  uint64_t caller = 0;
  if (words >= 0) {
    if (kHasLinkRegister && words == 0) {
      caller = registers_[kLinkRegister];
      if (IsReturnAddress(caller)) return Enter(caller, stack_pointer_, frame_pointer_);
    } else if (LoadLive(At(stack_pointer_, words), caller) && IsReturnAddress(caller)) {
      uint64_t frame_pointer = frame_pointer_;
      if (words > 0) (void)LoadLive(At(stack_pointer_, words - 1), frame_pointer);
      return Enter(caller, At(stack_pointer_, words + 1), frame_pointer);
    }
  }
  if (info.frame_words > 1 && LoadLive(At(stack_pointer_, info.frame_words - 1), caller) &&
      IsCaller(caller)) {
    // The frame's place may be taken before the caller's frame pointer is stored in it.
    if (info.bytes_in < info.frame_complete) {
      return Enter(caller, At(stack_pointer_, info.frame_words), frame_pointer_);
    }
    return NextByFrameSize(info.frame_words, JavaWalkFailure::kCompiledFrame);
  }
  return NextUndescribed(frames, JavaWalkFailure::kCompiledFrame);
}

int HotspotJavaFrames::WordsToReturnAddress(const CodeInfo& info) const noexcept {
  const uint64_t before = info.bytes_in < kCodeWindow ? info.bytes_in : kCodeWindow;
  if (!heaps_.IsCommitted(pc_ - before, before + kCodeWindow)) return -1;
  return sampling::kCanWalk
             ? WordsAboveReturnAddress(pc_, before, info.bytes_in < info.frame_complete)
             : -1;
}

// The frame's return address was replaced by that of code which takes the frame apart; the pc that
// it stands for is kept in the frame.
HotspotJavaFrames::Step HotspotJavaFrames::NextDeoptimised(CodeInfo& info,
                                                           FrameList& frames) noexcept {
  uint64_t original = 0;
  const unsigned words = info.frame_words;
  if (!LoadLive(stack_pointer_ + static_cast<uint64_t>(int64_t{info.original_pc}), original)) {
    return Fail(JavaWalkFailure::kUnreadableJavaStack);
  }
  code_.Look(memory_, original, false, info);
  if (info.kind != CodeKind::kCompiled) return Fail(JavaWalkFailure::kCompiledFrame);
  AddAll(info, frames);
  return NextByFrameSize(words, JavaWalkFailure::kCompiledFrame);
}

HotspotJavaFrames::Step HotspotJavaFrames::NextStub(const CodeInfo& info,
                                                    FrameList& frames) noexcept {
  if (info.kind == CodeKind::kStub) {
    uint64_t caller = 0;
    // One that takes compiled frames apart has frames of several sizes.
    if (LoadLive(At(stack_pointer_, info.frame_words - 1), caller) && IsCaller(caller)) {
      return NextByFrameSize(info.frame_words, JavaWalkFailure::kStubFrame);
    }
  }
  return NextUndescribed(frames, JavaWalkFailure::kStubFrame);
}

// Code whose frame is not described. Nothing is guessed from what lies on the stack: the words that
// calls which have returned left there look like frames.
HotspotJavaFrames::Step HotspotJavaFrames::NextUndescribed(FrameList& frames,
                                                           JavaWalkFailure failure) noexcept {
  if (interrupted_) {
    if (kHasLinkRegister && CanReturnTo(registers_[kLinkRegister], stack_pointer_)) {
      return Enter(registers_[kLinkRegister], stack_pointer_, frame_pointer_);
    }
    if (Return to; FindReturnWithoutFrame(to)) {
      return Enter(to.pc, to.stack_pointer, frame_pointer_);
    }
  }
  // An adapter that the interpreter has called has no frame of its own.
  if (InterpretedFrame frame;
      FindInterpretedFrame(frame) && frame.method.IndexOf(frame.bytecode) >= 0) {
    return LeaveInterpreted(frame, frames);
  }
  uint64_t caller = 0;
  uint64_t saved = 0;
  if (frame_pointer_ < stack_pointer_ || frame_pointer_ - stack_pointer_ >= kMaxStubFrame ||
      !LoadLive(frame_pointer_, saved)) {
    return Fail(failure);
  }
  // The stub that a method calls before its first instruction keeps a word between the two.
  for (const int64_t word : {1, 2}) {
    if (LoadLive(At(frame_pointer_, word), caller) &&
        CanReturnTo(caller, At(frame_pointer_, word + 1))) {
      return Enter(caller, At(frame_pointer_, word + 1), saved);
    }
  }
  return Fail(failure);
}

bool HotspotJavaFrames::CanReturnTo(uint64_t pc, uint64_t stack_pointer) noexcept {
  // Native for the call stub itself, on its way in or out, and for stubs that the VM calls.
  if (!heaps_.Contains(pc)) return IsNativeCaller(pc);
  if (!IsReturnAddress(pc)) return false;
  if (pc == heaps_.call_stub_return() || heaps_.IsInterpreter(pc)) return true;
  CodeInfo info;
  code_.Look(memory_, pc, false, info);
  if (info.kind != CodeKind::kCompiled && info.kind != CodeKind::kDeoptimised) {
    return info.kind != CodeKind::kUnknown;
  }
  // With the right stack pointer, a compiled method's own return address is where it belongs.
  uint64_t callers_caller = 0;
  return info.frame_words > 1 &&
         LoadLive(At(stack_pointer, info.frame_words - 1), callers_caller) &&
         IsCaller(callers_caller);
}

bool HotspotJavaFrames::IsNativeCaller(uint64_t pc) const noexcept {
  if (heaps_.Contains(pc)) return false;
  const sampling::CodeRegion* region = native_.Find(pc - 1);
  return region != nullptr && region->table != nullptr;
}

bool HotspotJavaFrames::IsCaller(uint64_t pc) noexcept {
  if (IsReturnAddress(pc) || IsNativeCaller(pc)) return true;
  if (!heaps_.Contains(pc)) return false;
  CodeInfo info;
  code_.Look(memory_, pc, false, info);
  return info.kind == CodeKind::kCompiled || info.kind == CodeKind::kDeoptimised ||
         info.kind == CodeKind::kContinuation;
}

bool HotspotJavaFrames::IsReturnAddress(uint64_t pc) const noexcept {
  if (!heaps_.Contains(pc)) return false;
  // The interpreter's return addresses are entries that it pushes itself.
  if (pc == heaps_.call_stub_return() || heaps_.IsInterpreter(pc)) return true;
  if (!heaps_.IsCommitted(pc - kCallBytes, kCallBytes)) return false;
  return FollowsCall(pc);
}

}  // namespace spanprof::jvm
