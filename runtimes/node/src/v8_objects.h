#pragma once

// What of V8's objects is read past its API, all in one place. Offsets come from V8's own headers
// where these have them; frame_check.cc compares what they lead to with V8's own answer before
// anything is sampled.
//
// SIGNAL-SAFE, as long as no garbage collection moves what is read.

#include <cstdint>
#include <cstring>
#include <node.h>
#include <v8.h>

#include <v8-internal.h>

#include "base/continuation_map.h"

#if defined(V8_COMPRESS_POINTERS)
#error "V8 with compressed pointers has another layout of objects."
#endif
#if defined(V8_ENABLE_DIRECT_HANDLE)
#error "V8 with direct handles: a Local is no pointer to a slot."
#endif

namespace spanprof::node {

static_assert(v8::internal::kApiTaggedSize == 8);
static_assert(v8::internal::kHeapObjectTag == kHeapObjectTag);
static_assert(v8::internal::SmiValuesAre32Bits());
static_assert(sizeof(v8::Local<v8::Value>) == sizeof(void*));

// The word of V8's isolate that goes along with a continuation came with V8 12 (Node.js 22).
#if V8_MAJOR_VERSION >= 12
#define SPANPROF_HAS_CONTINUATION_DATA 1
inline constexpr int kContinuationOffset =
    v8::internal::Internals::kContinuationPreservedEmbedderDataOffset;
static_assert(kContinuationOffset > 0 && kContinuationOffset % 8 == 0 &&
              kContinuationOffset < 4096);
#else
#define SPANPROF_HAS_CONTINUATION_DATA 0
inline constexpr int kContinuationOffset = 0;
#endif

inline constexpr uint64_t kInstanceTypeOffset = v8::internal::Internals::kMapInstanceTypeOffset;
// A JSMap has its table behind the header that every object has.
inline constexpr uint64_t kMapTableOffset = v8::internal::Internals::kJSObjectHeaderSize;
static_assert(kInstanceTypeOffset == MapLayout().instance_type_offset);
static_assert(kMapTableOffset == MapLayout().table_offset);

// Where the first internal field of an object may be. V8 13 says it; before, objects have the word
// between header and fields or not.
#if V8_MAJOR_VERSION >= 13
inline constexpr uint64_t kFieldOffsets[] = {
    v8::internal::Internals::kJSAPIObjectWithEmbedderSlotsHeaderSize};
#else
inline constexpr uint64_t kFieldOffsets[] = {
    v8::internal::Internals::kJSObjectHeaderSize,
    v8::internal::Internals::kJSObjectHeaderSize + v8::internal::kApiTaggedSize};
#endif

// Memory of this process, of objects that are known to be there.
struct OwnMemory {
  static bool Read64(uint64_t address, uint64_t* value) {
    *value = *reinterpret_cast<const volatile uint64_t*>(address);
    return true;
  }
  static bool Read16(uint64_t address, uint16_t* value) {
    *value = *reinterpret_cast<const volatile uint16_t*>(address);
    return true;
  }
};

// A Local and a Global are pointers to a slot, which holds the tagged word.
inline v8::Local<v8::Value> LocalOfSlot(const uint64_t* slot) {
  v8::Local<v8::Value> local;
  memcpy(static_cast<void*>(&local), static_cast<const void*>(&slot), sizeof slot);
  return local;
}
template <class T>
const uint64_t* SlotOf(const v8::Local<T>& local) {
  const uint64_t* slot;
  memcpy(static_cast<void*>(&slot), static_cast<const void*>(&local), sizeof slot);
  return slot;
}
template <class T>
const uint64_t* SlotOf(const v8::Global<T>& global) {
  const uint64_t* slot;
  memcpy(static_cast<void*>(&slot), static_cast<const void*>(&global), sizeof slot);
  return slot;
}
static_assert(sizeof(v8::Global<v8::Value>) == sizeof(void*));

inline const uint64_t* ContinuationSlot(v8::Isolate* isolate) {
  return reinterpret_cast<const uint64_t*>(reinterpret_cast<const char*>(isolate) +
                                           kContinuationOffset);
}

}  // namespace spanprof::node
