#pragma once

// One value that a signal handler of the same thread may read at any moment: two places, and one
// word that says which of them counts. The writer fills the other place and then turns the word
// over, so the handler sees the old value or the new one, whole.
//
// Set() is for the thread itself, Get() for it and for its signal handlers.

#include <atomic>
#include <utility>

namespace spanprof::node {

template <class T>
class AtomicSlot {
 public:
  // `assign(place)` fills a place that nobody reads. What was there is the value before the last.
  template <class Assign>
  void Set(Assign&& assign) {
    const unsigned other = current_.load(std::memory_order_relaxed) ^ 1u;
    std::forward<Assign>(assign)(places_[other]);
    // Pairs with the load in Get: a handler that sees the new index sees the value.
    std::atomic_signal_fence(std::memory_order_release);
    current_.store(other, std::memory_order_relaxed);
  }

  const T& Get() const {
    const unsigned current = current_.load(std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_acquire);
    return places_[current];
  }

  // Both places, for whoever must give back what they hold. No handler may read any more.
  template <class Release>
  void ReleaseBoth(Release&& release) {
    release(places_[0]);
    release(places_[1]);
  }

 private:
  T places_[2] = {};
  std::atomic<unsigned> current_{0};
};

}  // namespace spanprof::node
