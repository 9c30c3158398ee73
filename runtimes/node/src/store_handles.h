#pragma once

// Stores that records refer to, kept alive and true while V8 moves its objects. For the thread of
// the isolate only, its garbage collector's callbacks included.

#include <cstdint>
#include <unordered_map>
#include <v8.h>
#include <vector>

#include "record_ring.h"

namespace spanprof::node {

class StoreHandles {
 public:
  uint64_t Add(v8::Isolate* isolate, const uint64_t* tagged_word);
  const v8::Global<v8::Value>& operator[](uint64_t number) const { return handles_[number]; }
  size_t size() const { return handles_.size(); }

  // Turns the raw words of the records from `first` on into handles; equal words share one.
  // Returns how many records there are, all of which are true from now on.
  size_t TakeOver(v8::Isolate* isolate, RecordRing& ring, size_t first);

  // Forgets all handles but those of the records that are left, and renumbers these.
  void KeepOnly(RecordRing& ring);

 private:
  std::vector<v8::Global<v8::Value>> handles_;
};

}  // namespace spanprof::node
