#pragma once

// What the handler of one thread reads and writes. SIGNAL-SAFE: everything here.

#include <atomic>
#include <cstdint>
#include <v8.h>

#include "atomic_slot.h"
#include "base/continuation_map.h"
#include "record_ring.h"

namespace spanprof::node {

// Which storages are looked for in a frame, in this order. Never changed once the handler may see
// it: another takes its place.
struct FrameKeys {
  struct Key {
    const uint64_t* slot = nullptr;  // of a Global: the garbage collector keeps it true
    int32_t identity_hash = 0;
  };
  Key keys[2];
  unsigned count = 0;
  // A storage that has been left may stay in the frame with this; V8 never moves it.
  uint64_t undefined = 0;
  MapLayout layout;
};

struct SignalState {
  v8::Isolate* isolate = nullptr;
  RecordRing ring;
  // Null: contexts come through the slot.
  std::atomic<const FrameKeys*> keys{nullptr};
  AtomicSlot<v8::Global<v8::Value>> slot;

  // More than 0: a garbage collection is under way and nothing of V8's may be read. The store is
  // then the one that was active when it began.
  std::atomic<int> collections{0};
  StoreState collection_store_state = StoreState::kNone;
  uint64_t collection_store = 0;

  std::atomic<uint64_t> signals{0};
  std::atomic<uint64_t> frames_malformed{0};

  // The store that is active now, as a tagged word.
  StoreState FindStore(uint64_t* store);
};

}  // namespace spanprof::node
