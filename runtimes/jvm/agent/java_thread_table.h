#pragma once

// The JVM's threads by their kernel id: what a signal handler has to know of the thread that it
// interrupted, and cannot ask the JVM for.
//
// Add and Remove are for the thread's own start and end, and for a scan at start; any thread, not a
// signal handler. Find is SIGNAL-SAFE. There is room for a fixed number of threads; a thread that
// finds none is counted, and sampled as a native thread.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <jni.h>
#include <mutex>

namespace spanprof::jvm {

struct JavaThreadEntry {
  JNIEnv* jni = nullptr;
  uint64_t vm_thread = 0;  // the VM's own JavaThread object; 0: not known
};

class JavaThreadTable {
 public:
  static constexpr std::size_t kPlaces = 32768;      // a power of two
  static constexpr std::size_t kMaxThreads = 24576;  // so that probing stays short

  JavaThreadTable() = default;
  JavaThreadTable(const JavaThreadTable&) = delete;
  JavaThreadTable& operator=(const JavaThreadTable&) = delete;

  // False: it is full. A thread that is there already gets the new values.
  bool Add(uint32_t tid, const JavaThreadEntry& entry);
  void Remove(uint32_t tid);
  [[nodiscard]] std::size_t size() const;
  // How many threads found no room.
  [[nodiscard]] uint64_t refused() const { return refused_.load(std::memory_order_relaxed); }

  // SIGNAL-SAFE. False: no thread of the JVM. For the calling thread, whose entry nobody else
  // changes: what it finds is whole.
  [[nodiscard]] bool Find(uint32_t tid, JavaThreadEntry& entry) const noexcept {
    if (tid == kFree || tid == kFormer) return false;
    for (std::size_t step = 0; step < kPlaces; ++step) {
      const Place& place = places_[(HashOf(tid) + step) % kPlaces];
      const uint32_t there = place.tid.load(std::memory_order_acquire);  // pairs with Add's store
      if (there == kFree) return false;
      if (there != tid) continue;
      entry.jni = place.jni.load(std::memory_order_relaxed);
      entry.vm_thread = place.vm_thread.load(std::memory_order_relaxed);
      return true;
    }
    return false;
  }

 private:
  static constexpr uint32_t kFree = 0;              // and it always was: probing ends here
  static constexpr uint32_t kFormer = 0xFFFFFFFFu;  // a thread was here: probing goes on

  struct Place {
    std::atomic<uint32_t> tid{kFree};
    std::atomic<JNIEnv*> jni{nullptr};
    std::atomic<uint64_t> vm_thread{0};
  };

  static std::size_t HashOf(uint32_t tid) noexcept {
    return static_cast<std::size_t>(tid * 0x9E3779B1u) >> 8;
  }
  Place* PlaceOf(uint32_t tid);

  mutable std::mutex mutex_;  // of Add and Remove
  std::size_t size_ = 0;
  std::atomic<uint64_t> refused_{0};
  Place places_[kPlaces];
};

}  // namespace spanprof::jvm
