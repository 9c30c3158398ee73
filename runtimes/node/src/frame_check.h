#pragma once

// Whether the async context frame of this thread can be read from memory: decided by looking, not
// by version or flags, and only if our reading agrees with V8's own answer.

#include <v8.h>

#include "base/continuation_map.h"
#include "base/result.h"

namespace spanprof::node {

// To be called while `storage` has the store `probe`, i.e. inside storage.run(probe, ...). ENOTSUP:
// this thread has no such frame; EPROTO: it has one, and our reading of it is not V8's.
Result<MapLayout> CheckFrameReading(v8::Isolate* isolate, v8::Local<v8::Object> storage,
                                    v8::Local<v8::Value> probe);

// Where, in an object of ours, its internal field is. EPROTO: not where V8's headers have it.
Result<int64_t> FindRecordOffset(v8::Local<v8::Object> object, const void* record);

}  // namespace spanprof::node
