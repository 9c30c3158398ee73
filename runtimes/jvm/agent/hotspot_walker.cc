// SIGNAL-SAFE, but for Create: see hotspot_walker.h.

#include "agent/hotspot_walker.h"

#include <cerrno>
#include <unistd.h>

#include <sys/syscall.h>

#include "agent/hotspot_frame_word.h"
#include "agent/hotspot_java_frames.h"
#include "sampling/native_frames.h"

namespace spanprof::jvm {
namespace {

using sampling::NativeFrames;
using sampling::WalkedStack;
using sampling::WalkFailure;

// One walk: native and Java frames take turns.
class MixedWalk {
 public:
  MixedWalk(const HotspotLayout& layout, const HotspotCodeHeaps& heaps, HotspotMethods& methods,
            HotspotCode& code, const HotspotFrozenFrames& frozen, sampling::CodeMap::Reader& reader,
            sampling::NativeStackMemory& stack, const JavaThreadTable& threads,
            const ucontext_t& at, FrameList& frames) noexcept
      : layout_(layout),
        heaps_(heaps),
        methods_(methods),
        code_(code),
        frozen_(frozen),
        stack_(stack),
        threads_(threads),
        frames_(frames),
        native_(reader, stack, at),
        java_(layout, heaps, methods, code, reader, stack) {
    in_java_ = heaps_.Contains(native_.pc());
    interrupted_in_java_ = in_java_;
    if (in_java_) {
      java_.StartAt(at);
      seen_java_ = true;
    }
  }

  void Run() noexcept {
    while (!ended_) {
      if (in_java_) {
        JavaStep();
      } else {
        NativeStep();
      }
      if (frames_.full()) return End(static_cast<uint8_t>(WalkFailure::kDepthLimit));
    }
  }

  [[nodiscard]] WalkedStack result() const noexcept {
    return {.depth = frames_.count(), .complete = failure_ == 0, .failure = failure_};
  }

 private:
  void End(uint8_t failure) noexcept {
    failure_ = failure;
    ended_ = true;
  }
  void End(JavaWalkFailure failure) noexcept { End(static_cast<uint8_t>(failure)); }

  void NativeStep() noexcept {
    // The symboliser takes 1 off all but the first.
    const bool plus_1 = frames_.count() != 0 && native_.interrupted();
    frames_.Add(native_.pc() + (plus_1 ? 1 : 0));
    switch (native_.Next()) {
      case NativeFrames::Step::kCaller:
        if (heaps_.Contains(native_.pc())) {
          EnterJava(native_.pc(), native_.stack_pointer(), native_.frame_pointer());
        }
        return;
      case NativeFrames::Step::kThreadStart:
        return End(0);
      case NativeFrames::Step::kFailed:
        if (!GoToLastJavaFrame()) End(static_cast<uint8_t>(native_.failure()));
    }
  }

  void JavaStep() noexcept {
    const uint64_t frame_pointer = java_.frame_pointer();
    const bool entry_frame = java_.pc() == heaps_.call_stub_return();
    switch (java_.Next(frames_)) {
      case HotspotJavaFrames::Step::kCaller:
        return;
      case HotspotJavaFrames::Step::kNative:
        // The call stub keeps where the Java frames before it are.
        wrapper_frame_ = entry_frame ? frame_pointer : 0;
        native_.GoOnFrom(java_.pc(), java_.stack_pointer(), java_.frame_pointer());
        in_java_ = false;
        return;
      case HotspotJavaFrames::Step::kContinuation:
        return End(0);
      case HotspotJavaFrames::Step::kFrozen:
        return EndFrozen();
      case HotspotJavaFrames::Step::kFailed:
        return End(java_.failure());
    }
  }

  void EnterJava(uint64_t pc, uint64_t stack_pointer, uint64_t frame_pointer) noexcept {
    java_.StartAt(pc, stack_pointer, frame_pointer);
    in_java_ = true;
    seen_java_ = true;
  }

  // Native frames that cannot be walked: the VM notes where the Java frames below them begin, in
  // the thread and for each call into Java in that call's frame.
  bool GoToLastJavaFrame() noexcept {
    uint64_t anchor = 0;
    if (wrapper_frame_ != 0) {
      const uint64_t place = wrapper_frame_ + static_cast<uint64_t>(layout_.call_wrapper_words *
                                                                    int64_t{sizeof(uint64_t)});
      if (!stack_.Load(place, anchor)) return false;
      anchor += layout_.wrapper_anchor.offset;
    } else {
      JavaThreadEntry thread;
      if (seen_java_ || !threads_.Find(static_cast<uint32_t>(syscall(SYS_gettid)), thread) ||
          thread.vm_thread == 0) {
        return false;
      }
      anchor = thread.vm_thread + layout_.thread_anchor.offset;
    }
    wrapper_frame_ = 0;
    HotspotMemory memory;
    uint64_t stack_pointer = 0;
    uint64_t pc = 0;
    uint64_t frame_pointer = 0;
    if (!memory.LoadField(anchor, layout_.anchor_stack_pointer, stack_pointer) ||
        !memory.LoadField(anchor, layout_.anchor_pc, pc) || stack_pointer == 0 ||
        stack_pointer < native_.stack_pointer()) {
      return false;
    }
    if (layout_.anchor_frame_pointer.present()) {
      (void)memory.LoadField(anchor, layout_.anchor_frame_pointer, frame_pointer);
    }
    // Where it is not noted, the call into the VM has put it on the stack.
    if (pc == 0 && !stack_.Load(stack_pointer - sizeof(uint64_t), pc)) return false;
    if (!heaps_.Contains(pc)) return false;
    EnterJava(pc, stack_pointer, frame_pointer);
    return true;
  }

  // The rest of a virtual thread's stack is in the heap. Its first frame, which is on the carrier's
  // stack, is known all the same.
  void EndFrozen() noexcept {
    HotspotMemory memory;
    const bool whole = AddFrozen(memory);
    if (!whole) frames_.Add(MarkerFrameWord(FrameMarker::kFrozenFrames));
    if (const uint64_t first = heaps_.continuation_return(); first != 0) {
      CodeInfo info;
      code_.Look(memory, first, false, info);
      for (unsigned i = 0; i < info.frame_count; ++i) frames_.Add(info.frames[i]);
    }
    if (whole) return End(0);
    End(JavaWalkFailure::kFrozenFrames);
  }

  bool AddFrozen(HotspotMemory& memory) noexcept {
    // While the VM copies frames from or to the heap, they may be in both places or in none.
    if (!frozen_.available() || !interrupted_in_java_) return false;
    unsigned first = 0;
    while (first < frames_.count() && !sampling::IsRuntimeFrame(frames_.word(first))) ++first;
    if (first == frames_.count()) return false;
    if (MethodOf(frames_.word(first)) == frozen_.freezing_method()) return false;
    JavaThreadEntry thread;
    uint64_t state = 0;
    // In any other state the collector may be moving the objects that they are in.
    return threads_.Find(static_cast<uint32_t>(syscall(SYS_gettid)), thread) &&
           memory.LoadField(thread.vm_thread, layout_.thread_state, state) &&
           static_cast<int64_t>(state) == layout_.state_in_java &&
           frozen_.Add(memory, thread.vm_thread, heaps_, methods_, code_, frames_);
  }

  const HotspotLayout& layout_;
  const HotspotCodeHeaps& heaps_;
  HotspotMethods& methods_;
  HotspotCode& code_;
  const HotspotFrozenFrames& frozen_;
  sampling::NativeStackMemory& stack_;
  const JavaThreadTable& threads_;
  FrameList& frames_;
  NativeFrames native_;
  HotspotJavaFrames java_;
  bool in_java_ = false;
  bool interrupted_in_java_ = false;
  bool seen_java_ = false;
  bool ended_ = false;
  uint8_t failure_ = 0;
  uint64_t wrapper_frame_ = 0;
};

}  // namespace

Result<std::unique_ptr<HotspotWalker>> HotspotWalker::Create(const sampling::CodeMap& code_map,
                                                             const JavaThreadTable& threads,
                                                             uint64_t known_method) {
  if (!sampling::kCanWalk) {
    return Fail(ENOTSUP, "stacks cannot be walked on this machine", "");
  }
  const Result<HotspotTables> tables = HotspotTables::OfThisProcess();
  if (!tables) return tl::make_unexpected(tables.error());
  const Result<HotspotLayout> layout = HotspotLayout::From(*tables);
  if (!layout) return tl::make_unexpected(layout.error());
  std::unique_ptr<HotspotWalker> walker(new HotspotWalker(code_map, threads, *layout));
  if (auto opened = walker->heaps_.Open(walker->layout_); !opened) {
    return tl::make_unexpected(opened.error());
  }
  // A jmethodID is the address of a word that holds its Method's, up to 25. From the Method the
  // walker has to come to the same jmethodID.
  HotspotMemory memory;
  uint64_t method = 0;
  HotspotMethod found;
  if (known_method % sizeof(uint64_t) != 0 || !memory.Load(known_method, method) ||
      !walker->methods_.FindInMemory(memory, method, found) || found.id != known_method) {
    return Fail(ENOTSUP,
                "this JVM (version " + std::to_string(layout->vm_version) +
                    ") keeps its jmethodIDs in another way than the walker knows",
                "the walker asgct is used instead");
  }
  return walker;
}

Result<void> HotspotWalker::ReadFrozenFrames(JNIEnv* jni) {
  const Result<HotspotTables> tables = HotspotTables::OfThisProcess();
  if (!tables) return tl::make_unexpected(tables.error());
  return frozen_.Open(jni, *tables);
}

WalkedStack HotspotWalker::Walk(const ucontext_t& at, uint64_t stack_high, uint64_t* pcs,
                                unsigned max_depth) const noexcept {
  sampling::CodeMap::Reader reader(code_map_);
  sampling::NativeStackMemory stack(sampling::StackPointerOf(at), stack_high);
  FrameList frames(pcs, max_depth);
  MixedWalk walk(layout_, heaps_, methods_, code_, frozen_, reader, stack, threads_, at, frames);
  walk.Run();
  return walk.result();
}

}  // namespace spanprof::jvm
