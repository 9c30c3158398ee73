#include "ruby_threads.h"

#include <algorithm>

#include "gvl_waits.h"
#include "protected_call.h"
#include "sampling/cpu_clock.h"

namespace spanprof::ruby {
namespace {

// No handler looks at an object for so long.
constexpr uint64_t kPruneIntervalNs = 100'000'000;

}  // namespace

RubyThread* RubyThreads::Begin(uint32_t tid, VALUE thread, VALUE fiber) {
  if (present_.size() >= many_) Prune();
  RubyThread* place = Find(tid);
  const bool is_new = place == nullptr;
  for (std::size_t step = 0; place == nullptr && step < kMaxSteps; ++step) {
    RubyThread& candidate = places_[(HashOf(tid) + step) % kPlaces];
    const uint32_t there = candidate.tid.load(std::memory_order_relaxed);
    if (there == kFree || there == kFormer) place = &candidate;
  }
  if (place == nullptr) {
    refused_.fetch_add(1, std::memory_order_relaxed);
    return nullptr;
  }
  place->fiber.store(0, std::memory_order_relaxed);
  place->context_box.store(0, std::memory_order_relaxed);
  place->thread.store(thread, std::memory_order_relaxed);
  place->ended.store(false, std::memory_order_relaxed);
  place->lock_state.store(LockState::kUnknown, std::memory_order_relaxed);
  place->lock_wait_since_ns.store(0, std::memory_order_relaxed);
  place->lock_waits.store(0, std::memory_order_relaxed);
  place->lock_wait_ns.store(0, std::memory_order_relaxed);
  GvlWaits::Link(thread, place);
  place->fiber.store(fiber, std::memory_order_release);
  place->tid.store(tid, std::memory_order_release);
  if (is_new) present_.push_back(place);
  return place;
}

void RubyThreads::TellHandlersOfEnd(RubyThread& thread) {
  thread.ended.store(true, std::memory_order_release);
  thread.fiber.store(0, std::memory_order_relaxed);
  thread.context_box.store(0, std::memory_order_relaxed);
}

void RubyThreads::End(RubyThread& thread) {
  TellHandlersOfEnd(thread);
  // Its handlers run on the calling thread: none is looking at the object just now.
  thread.thread.store(0, std::memory_order_relaxed);
}

void RubyThreads::Prune() {
  const uint64_t now = sampling::MonotonicNanoseconds();
  if (now - pruned_ns_ < kPruneIntervalNs) return;
  pruned_ns_ = now;
  ForEach([](RubyThread& thread) {
    const VALUE object = thread.thread.load(std::memory_order_relaxed);
    bool alive = true;
    static const ID kAlive = rb_intern("alive?");
    ProtectQuietly([object, &alive] { alive = RTEST(rb_funcall(object, kAlive, 0)); });
    // While it was asked, another may have begun in its place.
    if (alive || thread.thread.load(std::memory_order_relaxed) != object) return;
    // First handlers are told; the next time nobody can be looking at its objects any more.
    if (thread.ended.load(std::memory_order_relaxed)) {
      thread.thread.store(0, std::memory_order_relaxed);
    } else {
      TellHandlersOfEnd(thread);
    }
  });
  std::erase_if(present_, [](RubyThread* thread) {
    if (thread->thread.load(std::memory_order_relaxed) != 0) return false;
    thread->tid.store(kFormer, std::memory_order_release);
    return true;
  });
  // Each thread's share of the next time is small.
  many_ = std::max(kFewThreads, 2 * present_.size());
}

void RubyThreads::Mark() const {
  for (const RubyThread* thread : present_) {
    for (const std::atomic<VALUE>* object :
         {&thread->thread, &thread->fiber, &thread->context_box}) {
      const VALUE value = object->load(std::memory_order_relaxed);
      if (value != 0 && value != kUnknownFiber) rb_gc_mark(value);
    }
  }
}

void RubyThreads::OnForkInChild(uint32_t old_tid, uint32_t new_tid) {
  const RubyThread* forking = Find(old_tid);
  const VALUE thread = forking == nullptr ? 0 : forking->thread.load(std::memory_order_relaxed);
  const VALUE fiber = forking == nullptr ? 0 : forking->fiber.load(std::memory_order_relaxed);
  const VALUE box = forking == nullptr ? 0 : forking->context_box.load(std::memory_order_relaxed);
  for (RubyThread* former : present_) {
    former->tid.store(kFormer, std::memory_order_relaxed);
    former->thread.store(0, std::memory_order_relaxed);
  }
  present_.clear();
  if (forking == nullptr) return;
  if (RubyThread* here = Begin(new_tid, thread, fiber)) {
    here->context_box.store(box, std::memory_order_relaxed);
  }
}

}  // namespace spanprof::ruby
