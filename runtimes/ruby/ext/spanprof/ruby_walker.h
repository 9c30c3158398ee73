#pragma once

// SIGNAL-SAFE. Walks the stacks of Ruby threads: Ruby's own frames, and above them the native ones
// that they called (an extension, libc), as far as the interpreter. Threads that run no Ruby are
// walked as native ones.
//
// The VM is asked by what it has for profilers and what only reads the calling thread's own
// structures: rb_profile_frames, rb_thread_current, rb_fiber_current, rb_fiber_alive_p. Each of
// them would fail in a thread that is just beginning or ending, or has none of Ruby's; see Look.

#include <atomic>
#include <cstdint>
#include <ucontext.h>

#include "collection_gate.h"
#include "frame_table.h"
#include "ruby_threads.h"
#include "sampling/code_map.h"
#include "sampling/native_walker.h"
#include "sampling/stack_walker.h"

namespace spanprof::ruby {

struct AddressRange {
  uint64_t begin = 0;
  uint64_t end = 0;
  [[nodiscard]] bool Contains(uint64_t address) const noexcept {
    return address >= begin && address < end;
  }
};

// The code of the library or program that the VM is in. Not for handlers.
AddressRange FindInterpreter();

struct WalkerCounters {
  std::atomic<uint64_t> switching{0};        // between fibers: no context
  std::atomic<uint64_t> between_threads{0};  // of a native thread's Ruby threads: no Ruby frames
  std::atomic<uint64_t> collecting{0};       // samples of the garbage collector
  std::atomic<uint64_t> while_moving{0};     // objects were being moved: no Ruby frames
  // The collector was at work, and our hook had not run yet or had run already: no Ruby frames.
  std::atomic<uint64_t> around_collections{0};
  std::atomic<uint64_t> in_jit_code{0};  // its frames are not whole at every instruction: none
};

// What is known of the VM, and may change at any time.
struct VmTraits {
  std::atomic<bool> lines_are_safe{true};  // they can be told at any instant
};

class RubyWalker final : public sampling::StackWalker {
 public:
  RubyWalker(const sampling::CodeMap& native_code, AddressRange interpreter, RubyThreads& threads,
             FrameTable& frames, CollectionGate& gate, const VmTraits& traits,
             WalkerCounters& counters)
      : native_(native_code),
        interpreter_(interpreter),
        threads_(threads),
        frames_(frames),
        gate_(gate),
        traits_(traits),
        counters_(counters) {}

  [[nodiscard]] sampling::WalkedStack Walk(const ucontext_t& at, uint64_t stack_high, uint64_t* pcs,
                                           unsigned max_depth) const noexcept override;

  // For the collector's hook, before objects move: the stack that samples get until it has ended.
  // Not `wanted`: none.
  void KeepCollectorsStack(bool wanted) noexcept;

  // The Ruby frames of the calling thread, which holds the VM's lock.
  [[nodiscard]] sampling::WalkedStack WalkHere(uint64_t* pcs, unsigned max_depth) const noexcept;

  // Whether the context that the calling thread has published is that of the fiber it runs.
  [[nodiscard]] bool ContextIsCurrent() const noexcept;

 private:
  enum class Thread { kNative, kRuby, kBetween };

  [[nodiscard]] bool CollectorIsUnannounced() const noexcept;
  [[nodiscard]] bool IsJitCode(const ucontext_t& at) const noexcept;
  static bool IsCollecting(const ucontext_t& at) noexcept;
  Thread Look(uint32_t tid, bool* context_is_current) const noexcept;
  unsigned WalkNativeLeaf(const ucontext_t& at, uint64_t stack_high, uint64_t* pcs,
                          unsigned max_depth) const noexcept;
  sampling::WalkedStack UseKeptStack(uint64_t* pcs, unsigned max_depth) const noexcept;
  sampling::WalkedStack AddRubyFrames(uint64_t* pcs, unsigned depth,
                                      unsigned max_depth) const noexcept;

  const sampling::NativeWalker native_;
  const AddressRange interpreter_;
  RubyThreads& threads_;
  FrameTable& frames_;
  CollectionGate& gate_;
  const VmTraits& traits_;
  WalkerCounters& counters_;
  static constexpr unsigned kMaxKept = 512;
  uint64_t kept_frames_[kMaxKept] = {};
  sampling::WalkedStack kept_ = {};
};

}  // namespace spanprof::ruby
