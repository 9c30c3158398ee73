#pragma once

// What handlers have to know of the garbage collector. Ruby frames can be read while it marks and
// while it sweeps, for what a thread's stack refers to stays alive. They cannot while it moves
// objects. That happens between the end of marking and the end of that step, so for this time the
// gate is closed: whoever reads frames comes in first and is waited for, on whatever thread.
//
// Only the collector's hooks know when that is, and a VM with such hooks allocates more slowly. So
// they are there while objects may move at all (GC.compact, GC.auto_compact), and not otherwise.
//
// The On... functions are for the VM's hooks. The rest is SIGNAL-SAFE.

#include <atomic>
#include <cstdint>
#include <sched.h>

namespace spanprof::ruby {

class CollectionGate {
 public:
  void OnStepBegin(uint32_t tid, bool context_is_current) {
    context_is_current_.store(context_is_current, std::memory_order_relaxed);
    collector_.store(tid, std::memory_order_release);
  }
  void OnMarked() {
    closed_.store(true);
    // Readers are in there for microseconds; on this thread there is none, or we would not run.
    while (readers_.load() != 0) sched_yield();
  }
  void OnStepEnd() {
    closed_.store(false);
    collector_.store(0, std::memory_order_release);
  }
  // Whether objects may move, for a thread that holds the VM's lock.
  void SetMayMove(bool may_move) { may_move_.store(may_move, std::memory_order_release); }
  // The child of a fork has no other threads.
  void OnForkInChild() { readers_.store(0); }

  // False: frames cannot be read now. True: Leave has to follow. Sequentially consistent, as is
  // OnMarked: either sees the other.
  bool Enter() noexcept {
    readers_.fetch_add(1);
    if (!closed_.load()) return true;
    readers_.fetch_sub(1);
    return false;
  }
  void Leave() noexcept { readers_.fetch_sub(1); }

  [[nodiscard]] bool may_move() const noexcept { return may_move_.load(std::memory_order_acquire); }
  // The thread that is collecting while objects may move, or 0.
  [[nodiscard]] uint32_t collector() const noexcept {
    return collector_.load(std::memory_order_acquire);
  }
  // Whether the collecting thread's context is its fiber's.
  [[nodiscard]] bool context_is_current() const noexcept {
    return context_is_current_.load(std::memory_order_relaxed);
  }

 private:
  std::atomic<uint32_t> readers_{0};
  std::atomic<bool> closed_{false};
  std::atomic<bool> may_move_{false};
  std::atomic<uint32_t> collector_{0};
  std::atomic<bool> context_is_current_{true};
};

}  // namespace spanprof::ruby
