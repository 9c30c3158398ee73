// SIGNAL-SAFE, except for FindInterpreter: see ruby_walker.h.

#include "ruby_walker.h"

#include <algorithm>
#include <link.h>
#include <unistd.h>

#include <sys/syscall.h>

#include "frame_word.h"
#include "sampling/native_frames.h"
#include "sampling/native_registers.h"

namespace spanprof::ruby {
namespace {

using sampling::NativeFrames;
using sampling::ProgramCounterOf;
using sampling::WalkedStack;
using sampling::WalkFailure;

// rb_profile_frames wants room for lines, and a handler's stack may be a small one.
constexpr unsigned kMaxRubyFrames = 512;
// Native frames above Ruby's: more is a recursion in an extension.
constexpr unsigned kMaxLeafFrames = 128;

// Compilers write tables of all code, JITs of none.
bool IsOfFile(const sampling::CodeRegion* region) {
  return region != nullptr && region->table != nullptr;
}

uint32_t ThisThread() { return static_cast<uint32_t>(syscall(SYS_gettid)); }

// Whether the interrupted instruction is behind one that enters the kernel.
bool IsInSystemCall(const ucontext_t& at) {
  [[maybe_unused]] const uint64_t pc = ProgramCounterOf(at);
#if defined(__x86_64__)
  const auto* const next = reinterpret_cast<const uint8_t*>(pc);
  return next[-2] == 0x0F && next[-1] == 0x05;
#elif defined(__aarch64__)
  return reinterpret_cast<const uint32_t*>(pc)[-1] == 0xD4000001u;
#else
  return false;
#endif
}

int FindCode(dl_phdr_info* info, size_t, void* data) {
  auto& range = *static_cast<AddressRange*>(data);
  const uint64_t wanted = range.begin;
  uint64_t begin = ~uint64_t{0};
  uint64_t end = 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info->dlpi_phdr[i];
    if (header.p_type != PT_LOAD || (header.p_flags & PF_X) == 0) continue;
    begin = std::min<uint64_t>(begin, info->dlpi_addr + header.p_vaddr);
    end = std::max<uint64_t>(end, info->dlpi_addr + header.p_vaddr + header.p_memsz);
  }
  if (wanted < begin || wanted >= end) return 0;
  range = {begin, end};
  return 1;
}

}  // namespace

AddressRange FindInterpreter() {
  AddressRange range;
  range.begin = reinterpret_cast<uint64_t>(&rb_profile_frames);
  if (dl_iterate_phdr(&FindCode, &range) == 0) return {};
  return range;
}

// It may be moving objects, and has not said so: its hooks come next, or it is another Ractor's.
bool RubyWalker::CollectorIsUnannounced() const noexcept {
  return gate_.may_move() && gate_.collector() == 0 && rb_during_gc() != 0;
}

// The collector holds the VM's lock. So would a thread say that waits for it, but in a system call.
bool RubyWalker::IsCollecting(const ucontext_t& at) noexcept {
  return rb_during_gc() != 0 && ruby_thread_has_gvl_p() != 0 && !IsInSystemCall(at);
}

// The gate must be open: what is looked at are objects.
RubyWalker::Thread RubyWalker::Look(uint32_t tid, bool* context_is_current) const noexcept {
  *context_is_current = true;
  const RubyThread* const known = threads_.Find(tid);
  if (known == nullptr) return Thread::kNative;
  *context_is_current = false;
  // Its Ruby thread is gone, or the kernel has given the id to a thread that never had one.
  if (known->ended.load(std::memory_order_acquire) || ruby_native_thread_p() == 0) {
    return Thread::kBetween;
  }
  // Another Ruby thread has been given the native one and has not got to its beginning.
  if (rb_thread_current() != known->thread.load(std::memory_order_relaxed)) {
    return Thread::kBetween;
  }
  const VALUE owner = known->fiber.load(std::memory_order_relaxed);
  if (owner == kUnknownFiber) {
    // Nobody has asked for its fiber, and a handler must not be the first.
    *context_is_current = true;
    return Thread::kRuby;
  }
  // A fiber that has ended may have no frames to read.
  const VALUE fiber = rb_fiber_current();
  if (rb_fiber_alive_p(fiber) == Qfalse) return Thread::kBetween;
  *context_is_current = fiber == owner;
  return Thread::kRuby;
}

bool RubyWalker::ContextIsCurrent() const noexcept {
  const uint32_t tid = ThisThread();
  bool current = true;
  if (gate_.collector() == tid) {
    current = gate_.context_is_current();
  } else if (gate_.Enter()) {
    if (CollectorIsUnannounced()) {
      current = threads_.Find(tid) == nullptr;
    } else {
      (void)Look(tid, &current);
    }
    gate_.Leave();
  } else {
    current = threads_.Find(tid) == nullptr;
  }
  if (!current) counters_.switching.fetch_add(1, std::memory_order_relaxed);
  return current;
}

WalkedStack RubyWalker::Walk(const ucontext_t& at, uint64_t stack_high, uint64_t* pcs,
                             unsigned max_depth) const noexcept {
  const uint32_t tid = ThisThread();
  const RubyThread* const known = threads_.Find(tid);
  if (known == nullptr || max_depth == 0) return native_.Walk(at, stack_high, pcs, max_depth);
  if (known->ended.load(std::memory_order_acquire)) {
    counters_.between_threads.fetch_add(1, std::memory_order_relaxed);
    return native_.Walk(at, stack_high, pcs, max_depth);
  }
  const bool collects = gate_.collector() == tid || IsCollecting(at);
  if (collects) counters_.collecting.fetch_add(1, std::memory_order_relaxed);
  if (!gate_.Enter()) {
    counters_.while_moving.fetch_add(1, std::memory_order_relaxed);
    return collects ? UseKeptStack(pcs, max_depth) : native_.Walk(at, stack_high, pcs, max_depth);
  }
  if (CollectorIsUnannounced()) {
    gate_.Leave();
    counters_.around_collections.fetch_add(1, std::memory_order_relaxed);
    return native_.Walk(at, stack_high, pcs, max_depth);
  }
  bool context_is_current = false;
  if (Look(tid, &context_is_current) != Thread::kRuby) {
    gate_.Leave();
    counters_.between_threads.fetch_add(1, std::memory_order_relaxed);
    return native_.Walk(at, stack_high, pcs, max_depth);
  }
  if (IsJitCode(at)) {
    gate_.Leave();
    counters_.in_jit_code.fetch_add(1, std::memory_order_relaxed);
    pcs[0] = FrameWord(FrameNote::kCompiled);
    return {.depth = 1, .complete = true, .failure = 0};
  }
  unsigned depth = 0;
  if (collects) {
    pcs[depth++] = FrameWord(FrameNote::kCollecting);
  } else if (known->lock_state.load(std::memory_order_relaxed) == LockState::kWaits) {
    pcs[depth++] = FrameWord(FrameNote::kWaitsForLock);
  } else {
    depth = WalkNativeLeaf(at, stack_high, pcs, std::min(max_depth / 2, kMaxLeafFrames));
  }
  const WalkedStack stack = AddRubyFrames(pcs, depth, max_depth);
  gate_.Leave();
  return stack;
}

WalkedStack RubyWalker::WalkHere(uint64_t* pcs, unsigned max_depth) const noexcept {
  if (!gate_.Enter()) {
    counters_.while_moving.fetch_add(1, std::memory_order_relaxed);
    return {.depth = 0, .complete = true, .failure = 0};
  }
  const WalkedStack stack = AddRubyFrames(pcs, 0, max_depth);
  gate_.Leave();
  return stack;
}

void RubyWalker::KeepCollectorsStack(bool wanted) noexcept {
  kept_ = wanted ? AddRubyFrames(kept_frames_, 0, kMaxKept) : WalkedStack{};
}

WalkedStack RubyWalker::UseKeptStack(uint64_t* pcs, unsigned max_depth) const noexcept {
  const unsigned depth = std::min(kept_.depth, max_depth - 1);
  pcs[0] = FrameWord(FrameNote::kCollecting);
  std::copy_n(kept_frames_, depth, pcs + 1);
  if (depth == kept_.depth)
    return {.depth = depth + 1, .complete = kept_.complete, .failure = kept_.failure};
  return {.depth = depth + 1,
          .complete = false,
          .failure = static_cast<uint8_t>(WalkFailure::kDepthLimit)};
}

// YJIT makes a frame the VM's before it has filled it in. Called from there, everything is whole
// again.
bool RubyWalker::IsJitCode(const ucontext_t& at) const noexcept {
  const uint64_t pc = ProgramCounterOf(at);
  if (interpreter_.Contains(pc)) return false;
  sampling::CodeMap::Reader code(native_.code_map());
  return !IsOfFile(code.Find(pc));
}

// Frames until the interpreter's or its JIT's.
unsigned RubyWalker::WalkNativeLeaf(const ucontext_t& at, uint64_t stack_high, uint64_t* pcs,
                                    unsigned max_depth) const noexcept {
  if (!sampling::kCanWalk || interpreter_.end == 0) return 0;
  sampling::CodeMap::Reader code(native_.code_map());
  sampling::NativeStackMemory memory(sampling::StackPointerOf(at), stack_high);
  NativeFrames frames(code, memory, at);
  for (unsigned depth = 0; depth < max_depth; ++depth) {
    const bool interrupted = frames.interrupted();
    const uint64_t pc = interrupted ? frames.pc() : frames.pc() - 1;
    if (interpreter_.Contains(pc) || !IsOfFile(code.Find(pc))) return depth;
    // The symboliser takes 1 off all but the first.
    pcs[depth] = frames.pc() + (depth != 0 && interrupted ? 1 : 0);
    if (frames.Next() != NativeFrames::Step::kCaller) return depth + 1;
  }
  return max_depth;
}

WalkedStack RubyWalker::AddRubyFrames(uint64_t* pcs, unsigned depth,
                                      unsigned max_depth) const noexcept {
  static_assert(sizeof(VALUE) == sizeof(uint64_t));
  int lines[kMaxRubyFrames];
  const bool with_lines = traits_.lines_are_safe.load(std::memory_order_relaxed);
  const unsigned room = std::min(max_depth - depth, kMaxRubyFrames);
  uint64_t* const words = pcs + depth;
  const int found = rb_profile_frames(0, static_cast<int>(room), reinterpret_cast<VALUE*>(words),
                                      with_lines ? lines : nullptr);
  const auto count = static_cast<unsigned>(std::max(found, 0));
  for (unsigned i = 0; i < count; ++i) {
    const uint32_t number = frames_.Intern(words[i]);
    words[i] = number == FrameTable::kFull ? FrameWord(FrameNote::kTableFull)
                                           : FrameWord(number, with_lines ? lines[i] : 0);
  }
  const bool complete = count < room;
  return {
      .depth = depth + count,
      .complete = complete,
      .failure = static_cast<uint8_t>(complete ? WalkFailure::kNone : WalkFailure::kDepthLimit)};
}

}  // namespace spanprof::ruby
