#include "agent/java_thread_table.h"

namespace spanprof::jvm {

JavaThreadTable::Place* JavaThreadTable::PlaceOf(uint32_t tid) {
  for (std::size_t step = 0; step < kPlaces; ++step) {
    Place& place = places_[(HashOf(tid) + step) % kPlaces];
    const uint32_t there = place.tid.load(std::memory_order_relaxed);
    if (there == tid) return &place;
    if (there == kFree) return nullptr;
  }
  return nullptr;
}

bool JavaThreadTable::Add(uint32_t tid, const JavaThreadEntry& entry) {
  if (tid == kFree || tid == kFormer) return false;
  const std::lock_guard lock(mutex_);
  Place* place = PlaceOf(tid);
  if (place == nullptr) {
    if (size_ == kMaxThreads) {
      refused_.fetch_add(1, std::memory_order_relaxed);
      return false;
    }
    for (std::size_t step = 0; place == nullptr; ++step) {
      Place& candidate = places_[(HashOf(tid) + step) % kPlaces];
      const uint32_t there = candidate.tid.load(std::memory_order_relaxed);
      if (there == kFree || there == kFormer) place = &candidate;
    }
    ++size_;
  }
  place->jni.store(entry.jni, std::memory_order_relaxed);
  place->vm_thread.store(entry.vm_thread, std::memory_order_relaxed);
  place->tid.store(tid, std::memory_order_release);  // pairs with Find's load
  return true;
}

void JavaThreadTable::Remove(uint32_t tid) {
  const std::lock_guard lock(mutex_);
  Place* place = PlaceOf(tid);
  if (place == nullptr) return;
  --size_;
  // The last of a run of places frees those before it too, so that a table through which very many
  // threads have gone is still probed quickly.
  std::size_t index = static_cast<std::size_t>(place - places_);
  place->tid.store(kFormer, std::memory_order_release);
  if (places_[(index + 1) % kPlaces].tid.load(std::memory_order_relaxed) != kFree) return;
  while (places_[index].tid.load(std::memory_order_relaxed) == kFormer) {
    places_[index].tid.store(kFree, std::memory_order_release);
    index = (index + kPlaces - 1) % kPlaces;
  }
}

std::size_t JavaThreadTable::size() const {
  const std::lock_guard lock(mutex_);
  return size_;
}

}  // namespace spanprof::jvm
