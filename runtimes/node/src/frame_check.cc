#include "frame_check.h"

#include <cerrno>
#include <vector>

#include "v8_objects.h"

namespace spanprof::node {
namespace {

// From one bucket to tables that have grown several times.
constexpr int kKeysToTry = 50;

uint16_t InstanceTypeOf(uint64_t tagged_object) {
  uint64_t hidden_class = 0;
  uint16_t type = 0;
  (void)OwnMemory::Read64(tagged_object - kHeapObjectTag, &hidden_class);
  (void)OwnMemory::Read16(hidden_class - kHeapObjectTag + kInstanceTypeOffset, &type);
  return type;
}

bool AgreesWithV8(v8::Local<v8::Context> context, const MapLayout& layout, v8::Local<v8::Map> map,
                  v8::Local<v8::Object> key) {
  v8::Local<v8::Value> expected;
  if (!map->Get(context, key).ToLocal(&expected)) return false;
  uint64_t value = 0;
  const MapKey map_key = {*SlotOf(key), key->GetIdentityHash()};
  const MapLookup found = FindInContinuation(OwnMemory(), layout, *SlotOf(map), map_key, &value);
  if (found == MapLookup::kAbsent) return expected->IsUndefined();
  return found == MapLookup::kFound && value == *SlotOf(expected);
}

// V8's maps of all small sizes, with and without deleted keys.
bool AgreesOnMapsOfOurOwn(v8::Isolate* isolate, const MapLayout& layout) {
  const v8::Local<v8::Context> context = isolate->GetCurrentContext();
  const v8::Local<v8::Map> map = v8::Map::New(isolate);
  std::vector<v8::Local<v8::Object>> keys;
  for (int i = 0; i < kKeysToTry; ++i) {
    keys.push_back(v8::Object::New(isolate));
    if (!AgreesWithV8(context, layout, map, keys.back())) return false;
    if (map->Set(context, keys.back(), v8::Object::New(isolate)).IsEmpty()) return false;
    if (i % 7 == 3 && map->Delete(context, keys[static_cast<size_t>(i) / 2]).IsNothing()) {
      return false;
    }
    for (const v8::Local<v8::Object>& key : keys) {
      if (!AgreesWithV8(context, layout, map, key)) return false;
    }
  }
  return true;
}

}  // namespace

Result<MapLayout> CheckFrameReading(v8::Isolate* isolate, v8::Local<v8::Object> storage,
                                    v8::Local<v8::Value> probe) {
  if (!SPANPROF_HAS_CONTINUATION_DATA) {
    return Fail(ENOTSUP, "this Node.js has no async context frame",
                "Node.js 24 has it, and 22 with --experimental-async-context-frame");
  }
  const v8::HandleScope scope(isolate);
  const v8::Local<v8::Context> context = isolate->GetCurrentContext();
  MapLayout layout;
  layout.map_instance_type = InstanceTypeOf(*SlotOf(v8::Map::New(isolate)));
  if (!AgreesOnMapsOfOurOwn(isolate, layout)) {
    return Fail(EPROTO, "maps of this V8 are not laid out as expected",
                "this version of Node.js needs a newer spanprof");
  }

  const uint64_t* const slot = ContinuationSlot(isolate);
  const uint64_t undefined = *SlotOf(v8::Undefined(isolate));
  // Without the frame Node.js never writes this word: V8 fills it with undefined.
  if (*slot == undefined) {
    return Fail(ENOTSUP, "the async context frame is switched off in this thread",
                "Node.js 22 has it with --experimental-async-context-frame; from 24 on it is there "
                "unless --no-async-context-frame is given");
  }
  if (!IsHeapObject(*slot) || InstanceTypeOf(*slot) != layout.map_instance_type) {
    return Fail(EPROTO, "the continuation's data of this V8 is not a map",
                "this version of Node.js needs a newer spanprof");
  }
  const v8::Local<v8::Value> frame = LocalOfSlot(slot);
  if (!frame->IsMap() || !AgreesWithV8(context, layout, frame.As<v8::Map>(), storage)) {
    return Fail(EPROTO, "the async context frame is not laid out as expected",
                "this version of Node.js needs a newer spanprof");
  }
  uint64_t value = 0;
  const MapKey key = {*SlotOf(storage), storage->GetIdentityHash()};
  if (FindInContinuation(OwnMemory(), layout, *slot, key, &value) != MapLookup::kFound ||
      value != *SlotOf(probe)) {
    return Fail(EPROTO, "the async context frame does not hold the store that was just set",
                "this version of Node.js needs a newer spanprof");
  }
  return layout;
}

Result<int64_t> FindRecordOffset(v8::Local<v8::Object> object, const void* record) {
  for (const uint64_t offset : kFieldOffsets) {
    uint64_t word = 0;
    (void)OwnMemory::Read64(*SlotOf(object) - kHeapObjectTag + offset, &word);
    if (word == reinterpret_cast<uint64_t>(record)) return static_cast<int64_t>(offset);
  }
  return Fail(EPROTO, "objects of this V8 do not have their fields where they were looked for",
              "this version of Node.js needs a newer spanprof");
}

}  // namespace spanprof::node
