#pragma once

// The library's two thread-local variables: eight bytes each, constant-initialised, so that no
// access ever allocates. In one file, because the OTEP variable has to be reached through a TLS
// descriptor
// (-mtls-dialect=gnu2) for readers to find where it lies.

#include <spanprof/context.hpp>

namespace spanprof::context {

// What a thread's pointer leads to before it is attached, and after its clean-up. Never writable.
extern internal::ThreadContext unattached_thread;
extern internal::ThreadContext exited_thread;

inline bool IsAttached(const internal::ThreadContext* context) {
  return context != &unattached_thread && context != &exited_thread;
}

// Null: this thread publishes no OTEP record.
void SetOtelThreadRecord(void* record);

}  // namespace spanprof::context
