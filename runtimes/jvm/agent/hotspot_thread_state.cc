// SIGNAL-SAFE: see hotspot_thread_state.h.

#include "agent/hotspot_thread_state.h"

#include <unistd.h>

#include <sys/syscall.h>

#include "agent/hotspot_memory.h"

namespace spanprof::jvm {

using profile::ThreadState;

ThreadState HotspotThreadState::OfThisThread() const noexcept {
  JavaThreadEntry thread;
  if (!threads_.Find(static_cast<uint32_t>(syscall(SYS_gettid)), thread)) {
    return ThreadState::kUnknown;
  }
  return Of(thread.vm_thread);
}

ThreadState HotspotThreadState::Of(uint64_t vm_thread) const noexcept {
  HotspotMemory memory;
  uint64_t state = 0;
  uint64_t os_thread = 0;
  uint64_t os_state = 0;
  if (vm_thread == 0 || !memory.LoadField(vm_thread, layout_.thread_state, state)) {
    return ThreadState::kUnknown;
  }
  const auto is = [](uint64_t value, int64_t name) { return static_cast<int64_t>(value) == name; };
  if (is(state, layout_.state_in_java)) return ThreadState::kRunning;
  if (!memory.LoadField(vm_thread, layout_.thread_os_thread, os_thread) || os_thread == 0 ||
      !memory.LoadField(os_thread, layout_.os_thread_state, os_state)) {
    return ThreadState::kUnknown;
  }
  if (is(os_state, layout_.os_state_sleeping)) return ThreadState::kSleeping;
  if (is(os_state, layout_.os_state_monitor_wait)) return ThreadState::kBlocked;
  if (is(os_state, layout_.os_state_condition_wait) || is(os_state, layout_.os_state_object_wait)) {
    return ThreadState::kWaiting;
  }
  // In the VM's or a library's code: the VM only knows of its own waits.
  if (is(state, layout_.state_blocked)) return ThreadState::kWaiting;
  return is(os_state, layout_.os_state_runnable) ? ThreadState::kRunning : ThreadState::kUnknown;
}

}  // namespace spanprof::jvm
