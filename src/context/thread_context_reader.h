#pragma once

// The two ways to read a thread's context inside its process. Signal-safe: loads and fences only.

#include <cstdint>

#include <spanprof/context.h>
#include <spanprof/internal/thread_context.hpp>

namespace spanprof::context {

enum class ReadStatus {
  kOk,          // *out holds one context, perhaps an empty one
  kInProgress,  // it was being written
  kTorn,        // checksum and ids do not fit: a write that broke the protocol
  kChanged,     // overtaken by a write
};

// For the thread that owns the object: in a signal handler, or anywhere else. A handler that writes
// may interrupt it.
ReadStatus ReadOwnContext(internal::ThreadContext& context, spanprof_context* out);

// For any thread, while the owner runs; only with ctxstorage=otel. One look at an object that was
// found by tid *after* `before`, an idle word of `slot` with that tid as its owner, was loaded with
// acquire: whose object it is can only be trusted between two looks at the same word.
ReadStatus ReadRunningContext(const internal::ThreadContext& context, const internal::Slot& slot,
                              uint64_t before, spanprof_context* out);

}  // namespace spanprof::context
