#pragma once

// SIGNAL-SAFE. What a thread of the JVM is doing, by the VM's own notes, for a wall-clock sample.

#include <cstdint>

#include "agent/hotspot_structs.h"
#include "agent/java_thread_table.h"
#include "profile/profile.h"

namespace spanprof::jvm {

class HotspotThreadState {
 public:
  // Both have to outlive it.
  HotspotThreadState(const HotspotLayout& layout, const JavaThreadTable& threads)
      : layout_(layout), threads_(threads) {}

  // Of the calling thread. kUnknown for one that is no thread of the JVM.
  [[nodiscard]] profile::ThreadState OfThisThread() const noexcept;

  // Of a thread of the VM, by the address of its JavaThread.
  [[nodiscard]] profile::ThreadState Of(uint64_t vm_thread) const noexcept;

 private:
  const HotspotLayout& layout_;
  const JavaThreadTable& threads_;
};

}  // namespace spanprof::jvm
