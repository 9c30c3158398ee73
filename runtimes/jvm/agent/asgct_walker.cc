// SIGNAL-SAFE, but for Create: see asgct_walker.h.

#include "agent/asgct_walker.h"

#include <cerrno>
#include <dlfcn.h>
#include <unistd.h>

#include <sys/syscall.h>

#include "agent/hotspot_frame_word.h"
#include "agent/hotspot_memory.h"
#include "sampling/native_frames.h"

namespace spanprof::jvm {
namespace {

using sampling::NativeFrames;
using sampling::WalkedStack;
using sampling::WalkFailure;

constexpr unsigned kMaxJavaFrames = 1024;  // on the handler's stack, 16 bytes each
// A thread's first call into Java is this near to its stack's end.
constexpr uint64_t kFirstCallWords = 4096;

uint8_t FailureOf(jint code) {
  constexpr int kCount = static_cast<int>(JavaWalkFailure::kAsgctOther) -
                         static_cast<int>(JavaWalkFailure::kAsgctFirst);
  const int index = code <= 0 && -code < kCount ? -code : kCount;
  return static_cast<uint8_t>(static_cast<int>(JavaWalkFailure::kAsgctFirst) + index);
}

// The same thread as it would be after a return.
void SetRegisters(ucontext_t& at, uint64_t pc, uint64_t stack_pointer, uint64_t frame_pointer) {
#if defined(__x86_64__)
  at.uc_mcontext.gregs[REG_RIP] = static_cast<greg_t>(pc);
  at.uc_mcontext.gregs[REG_RSP] = static_cast<greg_t>(stack_pointer);
  at.uc_mcontext.gregs[REG_RBP] = static_cast<greg_t>(frame_pointer);
#elif defined(__aarch64__)
  at.uc_mcontext.pc = pc;
  at.uc_mcontext.sp = stack_pointer;
  at.uc_mcontext.regs[29] = frame_pointer;
#else
  (void)at, (void)pc, (void)stack_pointer, (void)frame_pointer;
#endif
}

}  // namespace

Result<std::unique_ptr<AsgctWalker>> AsgctWalker::Create(const sampling::CodeMap& code_map,
                                                         const JavaThreadTable& threads) {
  std::unique_ptr<AsgctWalker> walker(new AsgctWalker(code_map, threads));
  walker->get_call_trace_ =
      reinterpret_cast<AsyncGetCallTrace>(dlsym(RTLD_DEFAULT, "AsyncGetCallTrace"));
  if (walker->get_call_trace_ == nullptr) {
    return Fail(ENOTSUP, "this JVM does not export AsyncGetCallTrace", "use a HotSpot JVM");
  }
  if (const Result<HotspotTables> tables = HotspotTables::OfThisProcess(); tables) {
    const uint64_t low = tables->Static("CodeCache", "_low_bound");
    const uint64_t high = tables->Static("CodeCache", "_high_bound");
    if (low != 0 && high != 0) {
      walker->low_ = LoadPlain<uint64_t>(low);
      walker->bytes_ = LoadPlain<uint64_t>(high) - walker->low_;
    }
    if (const uint64_t place = tables->Static("StubRoutines", "_call_stub_return_address");
        place != 0) {
      walker->call_stub_return_ = LoadPlain<uint64_t>(place);
    }
    if (const Result<HotspotLayout> layout = HotspotLayout::From(*tables); layout) {
      walker->layout_ = std::make_unique<HotspotLayout>(*layout);
      walker->methods_ = std::make_unique<HotspotMethods>(*walker->layout_);
    }
    walker->continuation_entry_ = tables->Field("JavaThread", "_cont_entry");
  }
  return walker;
}

bool AsgctWalker::IsMethod(HotspotMemory& memory, uint64_t id) const noexcept {
  if (id == 0 || id % sizeof(uint64_t) != 0 || id > kMethodMask) return false;
  if (methods_ == nullptr) return true;
  std::atomic<uint64_t>& place = checked_ids_[(id * 0x9E3779B97F4A7C15u) >> 51];
  static_assert(kCheckedIds == 1u << (64 - 51));
  if (place.load(std::memory_order_relaxed) == id) return true;
  uint64_t method = 0;
  HotspotMethod found;
  if (!memory.Load(id, method) || !methods_->Find(memory, method, found) || found.id != id) {
    return false;
  }
  place.store(id, std::memory_order_relaxed);  // a word on its own: it orders nothing
  return true;
}

bool AsgctWalker::RunsContinuation(uint64_t vm_thread) const noexcept {
  HotspotMemory memory;
  uint64_t entry = 0;
  return vm_thread != 0 && continuation_entry_.present() &&
         memory.LoadField(vm_thread, continuation_entry_, entry) && entry != 0;
}

void AsgctWalker::Recover(CallTrace& trace, jint max, const ucontext_t& at, bool in_java,
                          uint64_t stack_high) const noexcept {
  if (!in_java) return;  // it looked from where the VM noted, and that is all there is
  sampling::NativeStackMemory stack(sampling::StackPointerOf(at), stack_high);
  const uint64_t stack_pointer = sampling::StackPointerOf(at);
  const uint64_t frame_pointer =
      sampling::RegistersOf(at.uc_mcontext).general[sampling::kMachine.frame_pointer];
  const jint first_answer = trace.count;
  const auto try_from = [&](uint64_t record, bool has_frame_pointer) {
    uint64_t caller = 0;
    uint64_t caller_frame = frame_pointer;
    uint64_t place = record;
    if (has_frame_pointer) {
      if (!stack.Load(record, caller_frame)) return false;
      place += sizeof(uint64_t);
    }
    if (!stack.Load(place, caller) || !IsJavaCode(caller)) return false;
    ucontext_t changed = at;
    SetRegisters(changed, caller, place + sizeof(uint64_t), caller_frame);
    trace.count = 0;
    get_call_trace_(&trace, max, &changed);
    if (trace.count > 0) return true;
    trace.count = first_answer;
    return false;
  };
  // The frame is not made yet, or taken down; only the frame pointer is saved; it is a stub that
  // keeps a frame pointer.
  if (try_from(stack_pointer, false) || try_from(stack_pointer, true)) return;
  if (frame_pointer > stack_pointer) (void)try_from(frame_pointer, true);
}

bool AsgctWalker::FindFirstCall(sampling::CodeMap::Reader& native, uint64_t stack_pointer,
                                uint64_t stack_high, uint64_t (&registers)[3]) const noexcept {
  if (call_stub_return_ == 0 || stack_high == 0) return false;
  const uint64_t lowest = stack_high - stack_pointer > kFirstCallWords * sizeof(uint64_t)
                              ? stack_high - kFirstCallWords * sizeof(uint64_t)
                              : stack_pointer;
  sampling::NativeStackMemory stack(stack_pointer, stack_high);
  for (uint64_t place = stack_high - sizeof(uint64_t); place > lowest; place -= sizeof(uint64_t)) {
    uint64_t word = 0;
    uint64_t frame = 0;
    if (!stack.Load(place, word)) return false;
    if (word != call_stub_return_) continue;
    // Below the return address its callee has saved the call stub's frame pointer.
    if (!stack.Load(place - sizeof(uint64_t), frame) || frame <= place || frame >= stack_high ||
        !stack.Load(frame + sizeof(uint64_t), registers[0]) || !stack.Load(frame, registers[2])) {
      continue;
    }
    // A word that only looks like it has no native caller.
    const sampling::CodeRegion* region = native.Find(registers[0] - 1);
    if (region == nullptr || region->table == nullptr) continue;
    registers[1] = frame + 2 * sizeof(uint64_t);
    return true;
  }
  return false;
}

WalkedStack AsgctWalker::Walk(const ucontext_t& at, uint64_t stack_high, uint64_t* pcs,
                              unsigned max_depth) const noexcept {
  const auto ended = [](unsigned depth, uint8_t failure) {
    return WalkedStack{.depth = depth, .complete = failure == 0, .failure = failure};
  };
  const auto limit = static_cast<uint8_t>(WalkFailure::kDepthLimit);
  JavaThreadEntry thread;
  const bool of_jvm = threads_.Find(static_cast<uint32_t>(syscall(SYS_gettid)), thread);

  sampling::CodeMap::Reader reader(code_map_);
  sampling::NativeStackMemory stack(sampling::StackPointerOf(at), stack_high);
  NativeFrames native(reader, stack, at);
  unsigned depth = 0;
  const bool in_java = IsJavaCode(native.pc());
  if (!in_java) {
    NativeFrames::Step step = NativeFrames::Step::kCaller;
    while (step == NativeFrames::Step::kCaller && !IsJavaCode(native.pc())) {
      if (depth == max_depth) return ended(depth, limit);
      pcs[depth] = native.pc() + (depth != 0 && native.interrupted() ? 1 : 0);
      ++depth;
      step = native.Next();
    }
    if (step == NativeFrames::Step::kThreadStart) return ended(depth, 0);
    if (step == NativeFrames::Step::kFailed && !of_jvm) {
      return ended(depth, static_cast<uint8_t>(native.failure()));
    }
  }
  if (!of_jvm || thread.jni == nullptr) return ended(depth, FailureOf(0));

  CallFrame frames[kMaxJavaFrames];
  const unsigned room = max_depth - depth < kMaxJavaFrames ? max_depth - depth : kMaxJavaFrames;
  CallTrace trace{.jni = thread.jni, .count = 0, .frames = frames};
  get_call_trace_(&trace, static_cast<jint>(room), const_cast<ucontext_t*>(&at));
  if (trace.count <= 0) Recover(trace, static_cast<jint>(room), at, in_java, stack_high);
  if (trace.count <= 0) return ended(depth, FailureOf(trace.count));
  HotspotMemory memory;
  for (jint i = 0; i < trace.count && depth < max_depth; ++i) {
    const auto method = reinterpret_cast<uint64_t>(frames[i].method);
    pcs[depth++] = IsMethod(memory, method) ? JavaFrameWord(method, frames[i].bytecode_index)
                                            : MarkerFrameWord(FrameMarker::kMethodWithoutId);
  }
  if (static_cast<unsigned>(trace.count) == room) return ended(depth, limit);
  if (RunsContinuation(thread.vm_thread)) return ended(depth, 0);

  uint64_t registers[3];
  if (!FindFirstCall(reader, sampling::StackPointerOf(at), stack_high, registers))
    return ended(depth, 0);
  native.GoOnFrom(registers[0], registers[1], registers[2]);
  for (NativeFrames::Step step = NativeFrames::Step::kCaller;
       step == NativeFrames::Step::kCaller;) {
    if (depth == max_depth) return ended(depth, limit);
    pcs[depth++] = native.pc();
    step = native.Next();
  }
  return ended(depth, 0);
}

}  // namespace spanprof::jvm
