#pragma once

// Ruby's threads by their kernel id: what a handler has to know of the thread that it interrupted,
// and what of a thread must not be collected while a handler may look at it.
//
// A native thread that has run a Ruby thread keeps the VM's pointer to it, also when that Ruby
// thread has ended, and may be used for another one. So a thread object stays here, and is kept
// alive, until it is known to have ended: End, or Prune for those that nobody reports. Programs
// make threads by the thousand, recorded or not, so Begin prunes too.
//
// Find is SIGNAL-SAFE, for the calling thread's own entry. The rest is for a thread that holds the
// VM's lock.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "ruby_api.h"

namespace spanprof::ruby {

// Whether a thread has the VM's lock, as the VM has reported it last.
enum class LockState : uint8_t { kUnknown, kHas, kWaits, kWithout };

struct RubyThread {
  std::atomic<uint32_t> tid{0};
  std::atomic<bool> ended{false};
  std::atomic<VALUE> thread{0};  // 0: it has ended, and told us
  // The fiber whose context the thread has published; 0 while that changes.
  std::atomic<VALUE> fiber{0};
  // Its FiberContext object, or 0: it never had a context.
  std::atomic<VALUE> context_box{0};
  // See gvl_waits.h. Whether it has the VM's lock, when it began to wait for it, or 0, and what its
  // waits have come to.
  std::atomic<LockState> lock_state{LockState::kUnknown};
  std::atomic<uint64_t> lock_wait_since_ns{0};
  std::atomic<uint64_t> lock_waits{0};
  std::atomic<uint64_t> lock_wait_ns{0};
  // Another number whenever the thread took the lock, let go of it or began to wait for it.
  std::atomic<uint64_t> state_changes{0};
};

// A thread that was there before us: which of its fibers runs will be known when it next switches.
inline constexpr VALUE kUnknownFiber = ~VALUE{0};

class RubyThreads {
 public:
  static constexpr std::size_t kPlaces = 16384;
  // How far from its own place a thread may be: a handler never looks for longer.
  static constexpr std::size_t kMaxSteps = 64;

  RubyThreads() = default;
  RubyThreads(const RubyThreads&) = delete;
  RubyThreads& operator=(const RubyThreads&) = delete;

  // Null: no Ruby thread.
  [[nodiscard]] const RubyThread* Find(uint32_t tid) const noexcept {
    for (std::size_t step = 0; step < kMaxSteps; ++step) {
      const RubyThread& place = places_[(HashOf(tid) + step) % kPlaces];
      const uint32_t there = place.tid.load(std::memory_order_acquire);  // pairs with Begin's store
      if (there == tid) return &place;
      if (there == kFree) return nullptr;
    }
    return nullptr;
  }

  [[nodiscard]] RubyThread* Find(uint32_t tid) noexcept {
    return const_cast<RubyThread*>(std::as_const(*this).Find(tid));
  }

  // A thread begins on `tid`, or was found there. Null: there is no room, which is counted.
  RubyThread* Begin(uint32_t tid, VALUE thread, VALUE fiber);
  // The calling thread ends: whatever handler comes after this looks at none of its objects.
  static void End(RubyThread& thread);
  // Lets go of threads that have told us that they end, and of others that had ended when it was
  // called the last time. Does nothing if that was just now.
  void Prune();
  // The visitor may ask Ruby something, which lets other threads run: they begin and end here
  // meanwhile. So a copy is gone through, and those that have gone since are left out.
  template <class Visitor>
  void ForEach(Visitor visit) {
    const std::vector<RubyThread*> seen = present_;
    for (RubyThread* thread : seen) {
      if (thread->thread.load(std::memory_order_relaxed) != 0) visit(*thread);
    }
  }

  void Mark() const;
  // In the child of a fork: the forking thread has a new id, the others are gone.
  void OnForkInChild(uint32_t old_tid, uint32_t new_tid);

  [[nodiscard]] std::size_t size() const { return present_.size(); }
  [[nodiscard]] uint64_t refused() const { return refused_.load(std::memory_order_relaxed); }

 private:
  static constexpr uint32_t kFree = 0;              // and it always was: probing ends here
  static constexpr uint32_t kFormer = 0xFFFFFFFFu;  // a thread was here: probing goes on
  static constexpr std::size_t kFewThreads = 64;

  static std::size_t HashOf(uint32_t tid) noexcept {
    return static_cast<std::size_t>(tid * 0x9E3779B1u) >> 8;
  }

  // Handlers are told first; what they may be looking at stays.
  static void TellHandlersOfEnd(RubyThread& thread);

  RubyThread places_[kPlaces];
  std::vector<RubyThread*> present_;
  std::size_t many_ = kFewThreads;  // so many are a reason to prune
  uint64_t pruned_ns_ = 0;
  std::atomic<uint64_t> refused_{0};
};

}  // namespace spanprof::ruby
