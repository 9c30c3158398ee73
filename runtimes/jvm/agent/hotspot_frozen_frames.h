#pragma once

// SIGNAL-SAFE, but for Open. The frames of a mounted virtual thread that are not on its carrier's
// stack: when a virtual thread goes on, the VM copies only its innermost frames back from the heap,
// and the others when it returns to them. They are in chunks, objects of
// jdk.internal.vm.StackChunk.
//
// Objects are found by plain addresses, so this is for collectors that move objects only while
// threads stand still, which a thread that is being sampled does not: not for ZGC and Shenandoah.
// Everything is read by the kernel's hand (hotspot_memory.h) and checked.

#include <cstdint>
#include <jni.h>

#include "agent/hotspot_code.h"
#include "agent/hotspot_code_heaps.h"
#include "agent/hotspot_frame_list.h"
#include "agent/hotspot_memory.h"
#include "agent/hotspot_methods.h"
#include "agent/hotspot_structs.h"
#include "base/result.h"

namespace spanprof::jvm {

class HotspotFrozenFrames {
 public:
  // Fails, saying why, where frozen frames cannot be read; then they are a marker in the stack.
  Result<void> Open(JNIEnv* jni, const HotspotTables& tables);
  [[nodiscard]] bool available() const { return available_; }

  // The jmethodID of the native method that freezes frames. While it runs they may be in the heap
  // and on the stack.
  [[nodiscard]] uint64_t freezing_method() const { return freezing_method_; }

  // Adds them all, the innermost first. False: not all could be read.
  [[nodiscard]] bool Add(HotspotMemory& memory, uint64_t vm_thread, const HotspotCodeHeaps& heaps,
                         HotspotMethods& methods, HotspotCode& code,
                         FrameList& frames) const noexcept;

 private:
  struct Chunk {
    uint64_t stack_pointer = 0;
    uint64_t begin = 0;
    uint64_t end = 0;
    uint64_t parent = 0;
  };

  [[nodiscard]] bool LoadReference(HotspotMemory& memory, uint64_t place,
                                   uint64_t& object) const noexcept;
  [[nodiscard]] uint64_t FindTail(HotspotMemory& memory, uint64_t vm_thread) const noexcept;
  [[nodiscard]] bool LoadChunk(HotspotMemory& memory, uint64_t object, Chunk& chunk) const noexcept;
  bool AddChunk(HotspotMemory& memory, const Chunk& chunk, const HotspotCodeHeaps& heaps,
                HotspotMethods& methods, HotspotCode& code, FrameList& frames) const noexcept;

  bool available_ = false;
  bool compressed_ = false;  // whether a reference is four bytes, a part of an address
  uint64_t freezing_method_ = 0;
  uint64_t base_ = 0;
  uint32_t shift_ = 0;
  HotspotField virtual_thread_;  // of a JavaThread: where its current thread object is
  // Offsets in objects.
  uint64_t continuation_ = 0, tail_ = 0, parent_ = 0, stack_pointer_ = 0, bottom_ = 0;
  uint64_t chunk_header_bytes_ = 0;
};

}  // namespace spanprof::jvm
