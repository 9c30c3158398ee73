// The C interface. The two hot calls are tried on the thread's own object first; everything else
// goes to the process's active core, which may be another copy of the library.

#include <cstdio>
#include <errno.h>
#include <string.h>

#include "context/core_election.h"
#include "context/thread_locals.h"
#include <spanprof/context.h>

using spanprof::context::ActiveCore;
using spanprof::context::CoreInterface;
using spanprof::internal::ThreadContext;

namespace {

// When no core could be elected there is none to ask for the reason.
char election_error[512];

// Null, and a negative errno value: none could be elected.
const CoreInterface* ElectOrExplain(int* error) {
  const auto core = spanprof::context::ElectCore();
  if (core) return *core;
  snprintf(election_error, sizeof election_error, "%s; %s", core.error().message.c_str(),
           core.error().hint.c_str());
  *error = -core.error().code;
  return nullptr;
}

// Copies share the thread's object, so that a forwarding copy writes it as directly as the active
// one: once attached, its hot calls do not come here again. The core comes last in the slow calls,
// so that the hot ones leave their arguments where they are.
// False: the thread cannot be attached, and that was counted.
bool ShareThreadObject(const CoreInterface& core) {
  if (spanprof::context::IsAttached(spanprof_thread_v1)) return true;
  ThreadContext* context = core.attach_current_thread();
  if (context == nullptr) return false;
  spanprof_thread_v1 = context;
  return true;
}

[[gnu::cold, gnu::noinline]] void SetSlowly(uint64_t span_id, uint64_t root_span_id,
                                            const CoreInterface& core) {
  if (ShareThreadObject(core)) core.context_set(span_id, root_span_id);
}

[[gnu::cold, gnu::noinline]] void SetTraceSlowly(uint64_t trace_id_high, uint64_t trace_id_low,
                                                 uint64_t span_id, uint64_t root_span_id,
                                                 const CoreInterface& core) {
  if (ShareThreadObject(core)) {
    core.context_set_trace(trace_id_high, trace_id_low, span_id, root_span_id);
  }
}

}  // namespace

extern "C" {

uint32_t spanprof_abi_version(void) { return SPANPROF_ABI_VERSION; }

int spanprof_init(const char* options) {
  int error = 0;
  const CoreInterface* core = ElectOrExplain(&error);
  return core == nullptr ? error : core->init(options);
}

int spanprof_start(const char* options) {
  int error = 0;
  const CoreInterface* core = ElectOrExplain(&error);
  return core == nullptr ? error : core->profiler().start(options);
}

int spanprof_stop(void) {
  const CoreInterface* core = ActiveCore();
  return core == nullptr ? -ENODEV : core->profiler().stop();
}

int spanprof_dump(const char* file) {
  const CoreInterface* core = ActiveCore();
  return core == nullptr ? -ENODEV : core->profiler().dump(file);
}

int spanprof_is_initialized(void) {
  const CoreInterface* core = ActiveCore();
  return core == nullptr ? 0 : core->is_initialized();
}

int spanprof_is_otel_mode(void) {
  const CoreInterface* core = ActiveCore();
  return core == nullptr ? 0 : core->is_otel_mode();
}

void spanprof_shutdown(void) {
  if (const CoreInterface* core = ActiveCore()) core->shutdown();
}

const char* spanprof_error(void) {
  const CoreInterface* core = ActiveCore();
  return core == nullptr ? election_error : core->error();
}

void spanprof_context_set(uint64_t span_id, uint64_t root_span_id) {
  if (spanprof::internal::TrySet(*spanprof_thread_v1, span_id, root_span_id)) return;
  if (const CoreInterface* core = ActiveCore()) SetSlowly(span_id, root_span_id, *core);
}

void spanprof_context_set_trace(uint64_t trace_id_high, uint64_t trace_id_low, uint64_t span_id,
                                uint64_t root_span_id) {
  if (spanprof::internal::TrySetTrace(*spanprof_thread_v1, trace_id_high, trace_id_low, span_id,
                                      root_span_id)) {
    return;
  }
  if (const CoreInterface* core = ActiveCore()) {
    SetTraceSlowly(trace_id_high, trace_id_low, span_id, root_span_id, *core);
  }
}

uint32_t spanprof_intern(const char* value, size_t length) {
  const CoreInterface* core = ActiveCore();
  return core == nullptr ? 0 : core->intern(value, length);
}

int spanprof_context_set_tag(unsigned slot, const char* value, size_t length) {
  const CoreInterface* core = ActiveCore();
  return core == nullptr ? -ENODEV : core->context_set_tag(slot, value, length);
}

int spanprof_context_set_tag_id(unsigned slot, uint32_t id) {
  const CoreInterface* core = ActiveCore();
  return core == nullptr ? -ENODEV : core->context_set_tag_id(slot, id);
}

int spanprof_context_update(const spanprof_context* context) {
  const CoreInterface* core = ActiveCore();
  return core == nullptr ? -ENODEV : core->context_update(context);
}

void spanprof_context_swap(const spanprof_context* in, spanprof_context* out) {
  if (const CoreInterface* core = ActiveCore()) {
    core->context_swap(in, out);
  } else if (out != nullptr) {
    *out = {sizeof(spanprof_context), 0, 0, 0, 0, 0, {}};
  }
}

int spanprof_context_get(spanprof_context* out) {
  const CoreInterface* core = ActiveCore();
  if (core != nullptr) return core->context_get(out);
  if (out != nullptr) *out = {out->size, 0, 0, 0, 0, 0, {}};
  return -ENODEV;
}

int spanprof_context_get_by_tid(int tid, spanprof_context* out) {
  const CoreInterface* core = ActiveCore();
  return core == nullptr ? -ENODEV : core->context_get_by_tid(tid, out);
}

void spanprof_context_clear(void) {
  if (const CoreInterface* core = ActiveCore()) core->context_clear();
}

int spanprof_endpoint_set(uint64_t root_span_id, const char* name, size_t length) {
  const CoreInterface* core = ActiveCore();
  return core == nullptr ? -ENODEV : core->endpoint_set(root_span_id, name, length);
}

int spanprof_attribute(const char* name, size_t length) {
  const CoreInterface* core = ActiveCore();
  return core == nullptr ? -ENODEV : core->attribute(name, length);
}

int spanprof_resource_set(const char* key, const char* value) {
  const CoreInterface* core = ActiveCore();
  return core == nullptr ? -ENODEV : core->resource_set(key, value);
}

const char* spanprof_counter_name(unsigned index) {
  const CoreInterface* core = ActiveCore();
  return core == nullptr ? nullptr : core->counter_name(index);
}

uint64_t spanprof_counter_value(unsigned index) {
  const CoreInterface* core = ActiveCore();
  return core == nullptr ? 0 : core->counter_value(index);
}

int spanprof_latency(int which, spanprof_latency_summary* out) {
  const CoreInterface* core = ActiveCore();
  return core == nullptr ? -ENODEV : core->latency(which, out);
}

}  // extern "C"
