#include "context/thread_locals.h"

namespace spanprof::context {

internal::ThreadContext unattached_thread;
internal::ThreadContext exited_thread;

}  // namespace spanprof::context

extern "C" {

__thread spanprof::internal::ThreadContext* spanprof_thread_v1 =
    &spanprof::context::unattached_thread;

// Defined by OTEP 4947: a reader that interrupts the thread finds its record through this symbol.
SPANPROF_API __thread void* otel_thread_ctx_v1
#if !defined(__APPLE__)
    __attribute__((tls_model("global-dynamic")))
#endif
    = nullptr;
}

namespace spanprof::context {

void SetOtelThreadRecord(void* record) {
  // The record is complete before the pointer leads to it: a reader may interrupt us right here.
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  *const_cast<void* volatile*>(&otel_thread_ctx_v1) = record;
}

}  // namespace spanprof::context
