#pragma once

// What copies of the library in one process ask of each other. Runtime libraries each embed the
// core; the first copy that is initialised becomes the active one, and the others forward to it.
// Fields are only ever added at the end; kCoreInterfaceVersion changes when one changes its
// meaning.

#include <cstddef>
#include <cstdint>

#include "context/profiler_interface.h"
#include <spanprof/context.h>
#include <spanprof/internal/thread_context.hpp>

namespace spanprof::context {

// The upper half of SPANPROF_ABI_VERSION, and the layout of ThreadContext, which copies share.
inline constexpr uint32_t kCoreInterfaceVersion = (SPANPROF_ABI_VERSION & 0xFFFF0000u) | 3;

struct CoreInterface {
  uint32_t version;
  uint32_t size;  // of this struct, in the copy that made it
  internal::ThreadContext* (*attach_current_thread)();
  int (*init)(const char* options);
  int (*is_initialized)();
  int (*is_otel_mode)();
  void (*shutdown)();
  const char* (*error)();
  void (*context_set)(uint64_t span_id, uint64_t root_span_id);
  void (*context_set_trace)(uint64_t trace_id_high, uint64_t trace_id_low, uint64_t span_id,
                            uint64_t root_span_id);
  uint32_t (*intern)(const char* value, size_t length);
  int (*context_set_tag)(unsigned slot, const char* value, size_t length);
  int (*context_set_tag_id)(unsigned slot, uint32_t id);
  int (*context_update)(const spanprof_context* context);
  void (*context_swap)(const spanprof_context* in, spanprof_context* out);
  int (*context_get)(spanprof_context* out);
  int (*context_get_by_tid)(int tid, spanprof_context* out);
  void (*context_clear)();
  int (*endpoint_set)(uint64_t root_span_id, const char* name, size_t length);
  int (*attribute)(const char* name, size_t length);
  int (*resource_set)(const char* key, const char* value);
  const char* (*counter_name)(unsigned index);
  uint64_t (*counter_value)(unsigned index);
  int (*latency)(int which, spanprof_latency_summary* out);
  const ProfilerInterface& (*profiler)();
};

// The calls of this copy's own core.
const CoreInterface& ThisCoreInterface();

}  // namespace spanprof::context
