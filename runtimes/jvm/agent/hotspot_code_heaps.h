#pragma once

// SIGNAL-SAFE to read, once Open has succeeded. Which blob of the JVM's code heaps an address lies
// in. Everything in here is in memory that HotSpot keeps for the life of the process.

#include <cstdint>

#include "agent/hotspot_memory.h"
#include "agent/hotspot_structs.h"
#include "base/result.h"

namespace spanprof::jvm {

class HotspotCodeHeaps {
 public:
  // After VMInit, when all heaps are there. `layout` has to outlive it.
  Result<void> Open(const HotspotLayout& layout);

  // Whether it is an address that generated code can have.
  [[nodiscard]] bool Contains(uint64_t pc) const noexcept { return pc - low_ < bytes_; }
  [[nodiscard]] bool IsInterpreter(uint64_t pc) const noexcept {
    return pc - interpreter_ < interpreter_bytes_;
  }
  // The CodeBlob that `pc` lies in; 0: none.
  [[nodiscard]] uint64_t FindBlob(uint64_t pc) const noexcept;
  // Whether [address, address + size) is committed memory of a code heap, that is, can be loaded.
  [[nodiscard]] bool IsCommitted(uint64_t address, uint64_t size) const noexcept;

  [[nodiscard]] uint64_t call_stub_return() const noexcept { return call_stub_return_; }
  // A pc in the code by which a carrier enters a virtual thread; 0: there is none.
  [[nodiscard]] uint64_t continuation_return() const noexcept {
    return layout_->continuation_return == 0 ? 0
                                             : LoadPlain<uint64_t>(layout_->continuation_return);
  }
  // Whether a virtual thread's first frame returns to `pc`, a return address.
  [[nodiscard]] bool IsContinuationEntry(uint64_t pc) const noexcept {
    const uint64_t known = continuation_return();
    constexpr uint64_t kNear = 1024;  // it has two such places, one for frames that were thawed
    return known != 0 && pc - known + kNear < 2 * kNear && FindBlob(pc) == FindBlob(known);
  }

 private:
  static constexpr unsigned kMaxHeaps = 8;
  struct Heap {
    uint64_t memory = 0;       // its VirtualSpace, whose end moves up
    uint64_t segment_map = 0;  // another
    uint64_t low = 0;
    unsigned log2_segment = 0;
  };

  const HotspotLayout* layout_ = nullptr;
  Heap heaps_[kMaxHeaps];
  unsigned count_ = 0;
  uint64_t low_ = 0;
  uint64_t bytes_ = 0;
  uint64_t interpreter_ = 0;
  uint64_t interpreter_bytes_ = 0;
  uint64_t call_stub_return_ = 0;
};

}  // namespace spanprof::jvm
