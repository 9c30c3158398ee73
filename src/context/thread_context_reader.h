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
  kChanged,     // by tid: each try was overtaken by a write
  kNotOwner,    // by tid: the object or slot belongs to another thread by now
};

// For the thread that owns the object: in a signal handler, or anywhere else.
ReadStatus ReadOwnContext(const internal::ThreadContext& context, spanprof_context* out);

// For any thread, while the owner runs; only with ctxstorage=otel.
ReadStatus ReadRunningContext(const internal::ThreadContext& context, uint32_t tid,
                              spanprof_context* out);

}  // namespace spanprof::context
