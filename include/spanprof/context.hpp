#pragma once

// C++17 on top of context.h: the two hot calls inline, and scopes that give the parent span back.
//
//   void Handle(const Request& request) {
//     spanprof::Scope span(request.trace_high, request.trace_low, NewSpanId(), request.local_root);
//     spanprof::set_tag(kRoute, request.route);
//     ...
//   }  // the span that was active before is active again, with its tags
//
// The inline calls need the library to be linked (not only dlopened).

#include <cstdint>
#include <string_view>

#include <spanprof/context.h>
#include <spanprof/internal/thread_context.hpp>

extern "C" {
// The calling thread's object; never null. Its layout is part of the name: another one gets another
// number, so that a program meets a link error and not a wrong layout.
SPANPROF_API extern __thread spanprof::internal::ThreadContext* spanprof_thread_v1
#if !defined(__APPLE__)
    __attribute__((tls_model("initial-exec")))
#endif
    ;
}

namespace spanprof {

inline void set(uint64_t span_id, uint64_t root_span_id) {
  if (!internal::TrySet(*spanprof_thread_v1, span_id, root_span_id)) {
    spanprof_context_set(span_id, root_span_id);
  }
}

inline void set(uint64_t trace_id_high, uint64_t trace_id_low, uint64_t span_id,
                uint64_t root_span_id) {
  if (!internal::TrySetTrace(*spanprof_thread_v1, trace_id_high, trace_id_low, span_id,
                             root_span_id)) {
    spanprof_context_set_trace(trace_id_high, trace_id_low, span_id, root_span_id);
  }
}

inline int set_tag(unsigned slot, std::string_view value) {
  return spanprof_context_set_tag(slot, value.data(), value.size());
}

inline void clear() { spanprof_context_clear(); }

// Makes a span the active one for a block. On exit the context from before the block is back, ids
// and tags, whatever the block set in between. Lives and dies on one thread, and scopes nest.
class [[nodiscard]] Scope {
 public:
  Scope(uint64_t span_id, uint64_t root_span_id) {
    spanprof_context_get(&parent_);
    spanprof::set(span_id, root_span_id);
  }
  Scope(uint64_t trace_id_high, uint64_t trace_id_low, uint64_t span_id, uint64_t root_span_id) {
    spanprof_context_get(&parent_);
    spanprof::set(trace_id_high, trace_id_low, span_id, root_span_id);
  }
  explicit Scope(const spanprof_context& context) { spanprof_context_swap(&context, &parent_); }

  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;
  ~Scope() { spanprof_context_update(&parent_); }

 private:
  spanprof_context parent_ = {sizeof(spanprof_context), 0, 0, 0, 0, 0, {}};
};

}  // namespace spanprof
