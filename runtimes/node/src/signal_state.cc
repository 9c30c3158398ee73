// SIGNAL-SAFE: all of this file.

#include "signal_state.h"

#include "v8_objects.h"

namespace spanprof::node {

StoreState SignalState::FindStore(uint64_t* store) {
  const FrameKeys* const wanted = keys.load(std::memory_order_relaxed);
  std::atomic_signal_fence(std::memory_order_acquire);
  if (wanted == nullptr) {
    const uint64_t* const active = SlotOf(slot.Get());
    if (active == nullptr) return StoreState::kNone;
    *store = *active;
    return StoreState::kRaw;
  }
  const uint64_t continuation = *ContinuationSlot(isolate);
  for (unsigned i = 0; i < wanted->count; ++i) {
    const MapKey key = {*wanted->keys[i].slot, wanted->keys[i].identity_hash};
    switch (FindInContinuation(OwnMemory(), wanted->layout, continuation, key, store)) {
      case MapLookup::kFound:
        if (*store != wanted->undefined) return StoreState::kRaw;
        break;
      case MapLookup::kAbsent:
        break;
      case MapLookup::kNoMap:
        return StoreState::kNone;
      case MapLookup::kUnreadable:
      case MapLookup::kMalformed:
        frames_malformed.fetch_add(1, std::memory_order_relaxed);
        return StoreState::kUnknown;
    }
  }
  return StoreState::kNone;
}

}  // namespace spanprof::node
