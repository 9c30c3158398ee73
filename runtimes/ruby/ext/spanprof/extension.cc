// What lib/spanprof.rb calls, and where the VM comes in. Functions that may raise have no object
// with a destructor: see protected_call.h.

#include <cerrno>
#include <cstdint>
#include <cstdlib>

#include "clock_id.h"
#include "context/core_election.h"
#include "context/core_interface.h"
#include "context_arguments.h"
#include "gvl_waits.h"
#include "protected_call.h"
#include "ruby_api.h"
#include "ruby_runtime.h"
#include "sampling/sampler.h"
#include <spanprof/context.h>

namespace spanprof::ruby {
namespace {

VALUE error_class = Qnil;
// 0, or why the active core does not want to know of Ruby: it records the process already.
int runtime_refused = 0;

// A call of the C interface that waits for the recording's thread. That one may wait for names,
// which only a thread with the VM's lock can tell: so the caller lets go of it.
struct BlockingCall {
  int (*function)(const char* argument);
  const char* argument;
  int result;
};

void* RunBlockingCall(void* argument) {
  auto& call = *static_cast<BlockingCall*>(argument);
  call.result = call.function(call.argument);
  return nullptr;
}

// Raises what spanprof_error() says.
void CheckResult(int result) {
  if (result >= 0) return;
  const VALUE text = rb_utf8_str_new_cstr(spanprof_error());
  if (result == -EINVAL) rb_exc_raise(rb_exc_new_str(rb_eArgError, text));
  rb_exc_raise(rb_exc_new_str(error_class, text));
}

int CallWithoutLock(int (*function)(const char*), VALUE text) {
  BlockingCall call = {function, NIL_P(text) ? "" : StringValueCStr(text), 0};
  rb_thread_call_without_gvl(&RunBlockingCall, &call, nullptr, nullptr);
  RB_GC_GUARD(text);
  return call.result;
}

bool IsRecording() {
  const context::CoreInterface* core = context::ActiveCore();
  return core != nullptr && core->profiler().is_running() != 0;
}

VALUE Init(VALUE, VALUE options) {
  CheckResult(spanprof_init(NIL_P(options) ? "" : StringValueCStr(options)));
  return Qnil;
}

VALUE Start(VALUE, VALUE options) {
  RubyRuntime& runtime = RubyRuntime::Instance();
  StringValueCStr(options);
  if (!IsRecording()) {
    runtime.frames().Clear();
    runtime.resolver().ForgetThreads();
    runtime.contexts().FindThreads();
  }
  runtime.resolver().Start();
  const int result = CallWithoutLock(&spanprof_start, options);
  if (result < 0 && !IsRecording()) runtime.resolver().Stop();
  CheckResult(result);
  runtime.allocations().FollowRecording();
  return Qnil;
}

// The program may have killed the thread that tells names.
void ReviveResolver() {
  if (IsRecording()) RubyRuntime::Instance().resolver().Start();
}

VALUE Stop(VALUE) {
  ReviveResolver();
  const int result = CallWithoutLock([](const char*) { return spanprof_stop(); }, Qnil);
  if (!IsRecording()) RubyRuntime::Instance().resolver().Stop();
  RubyRuntime::Instance().allocations().FollowRecording();
  CheckResult(result);
  return Qnil;
}

VALUE Dump(VALUE, VALUE file) {
  ReviveResolver();
  CheckResult(CallWithoutLock(&spanprof_dump, file));
  return Qnil;
}

VALUE Recording(VALUE) { return IsRecording() ? Qtrue : Qfalse; }

VALUE ContextStorage(VALUE) {
  if (spanprof_is_initialized() == 0) return Qnil;
  return ID2SYM(rb_intern(spanprof_is_otel_mode() != 0 ? "otel" : "profiler"));
}

void AddCounter(VALUE counters, const char* name, uint64_t value) {
  if (value != 0) rb_hash_aset(counters, rb_utf8_str_new_cstr(name), ULL2NUM(value));
}

VALUE Counters(VALUE) {
  const VALUE counters = rb_hash_new();
  int raised = 0;
  {
    const std::map<std::string, uint64_t> values = RubyRuntime::Instance().counters();
    Protect(
        [&values, counters] {
          for (const auto& entry : values) AddCounter(counters, entry.first.c_str(), entry.second);
          return Qnil;
        },
        &raised);
  }
  if (raised != 0) rb_jump_tag(raised);
  for (unsigned i = 0; spanprof_counter_name(i) != nullptr; ++i) {
    const VALUE name = rb_sprintf("context.%s", spanprof_counter_name(i));
    if (spanprof_counter_value(i) != 0) {
      rb_hash_aset(counters, name, ULL2NUM(spanprof_counter_value(i)));
    }
  }
  return counters;
}

VALUE Set(int count, VALUE* arguments, VALUE) {
  FiberContexts& contexts = RubyRuntime::Instance().contexts();
  spanprof_context context;
  contexts.Get(&context);
  ApplyContextArguments(count, arguments, &context);
  contexts.Set(context);
  return Qnil;
}

VALUE RestoreContext(VALUE previous) {
  RubyRuntime::Instance().contexts().Restore(*reinterpret_cast<spanprof_context*>(previous));
  return Qnil;
}

VALUE WithContext(int count, VALUE* arguments, VALUE) {
  rb_need_block();
  FiberContexts& contexts = RubyRuntime::Instance().contexts();
  spanprof_context previous;
  contexts.Get(&previous);
  spanprof_context context = previous;
  ApplyContextArguments(count, arguments, &context);
  contexts.Set(context);
  return rb_ensure(&rb_yield, Qundef, &RestoreContext, reinterpret_cast<VALUE>(&previous));
}

VALUE ClearContext(VALUE) {
  spanprof_context none = {};
  none.size = sizeof none;
  RubyRuntime::Instance().contexts().Restore(none);
  return Qnil;
}

VALUE SetEndpoint(VALUE, VALUE root_span_id, VALUE name) {
  const uint64_t root = NUM2ULL(root_span_id);
  StringValue(name);
  const int result =
      spanprof_endpoint_set(root, RSTRING_PTR(name), static_cast<size_t>(RSTRING_LEN(name)));
  return result == 0 ? Qtrue : Qfalse;
}

VALUE HexOf(const char* format, uint64_t first, uint64_t second) {
  char text[40];
  snprintf(text, sizeof text, format, first, second);
  return rb_usascii_str_new_cstr(text);
}

// What is published now, for tests and logs: ids as hexadecimal digits.
VALUE CurrentContext(VALUE) {
  spanprof_context context;
  RubyRuntime::Instance().contexts().Get(&context);
  const VALUE result = rb_hash_new();
  rb_hash_aset(result, ID2SYM(rb_intern("trace_id")),
               HexOf("%016lx%016lx", context.trace_id_high, context.trace_id_low));
  rb_hash_aset(result, ID2SYM(rb_intern("span_id")), HexOf("%016lx", context.span_id, 0));
  rb_hash_aset(result, ID2SYM(rb_intern("root_span_id")), HexOf("%016lx", context.root_span_id, 0));
  return result;
}

// In a forked child, where the recording goes on and the thread that tells names does not.
VALUE AfterFork(VALUE) {
  ReviveResolver();
  return Qnil;
}

// By kernel id: how often the thread has waited for the VM's lock, and nanoseconds. Nil: this Ruby
// does not tell.
VALUE GvlWaitsByThread(VALUE) {
  if (!GvlWaits::Available()) return Qnil;
  const VALUE result = rb_hash_new();
  int raised = 0;
  RubyRuntime::Instance().threads().ForEach([result, &raised](const RubyThread& thread) {
    if (raised != 0) return;
    Protect(
        [result, &thread] {
          const VALUE waits =
              rb_ary_new_from_args(2, ULL2NUM(thread.lock_waits.load(std::memory_order_relaxed)),
                                   ULL2NUM(thread.lock_wait_ns.load(std::memory_order_relaxed)));
          rb_hash_aset(result, UINT2NUM(thread.tid.load(std::memory_order_relaxed)), waits);
          return Qnil;
        },
        &raised);
  });
  if (raised != 0) rb_jump_tag(raised);
  return result;
}

// How many times less often than asked for is sampled at the moment. Nil: another copy of the
// library samples.
VALUE Slowdown(VALUE) {
  if (!IsRecording()) return UINT2NUM(1);
  if (context::ActiveCore() != &context::ThisCoreInterface()) return Qnil;
  return UINT2NUM(sampling::Sampler::Instance().slowdown());
}

VALUE CpuClocks(VALUE) { return rb_utf8_str_new_cstr(kThreadClockSource); }

// CPU time of a thread in nanoseconds. Nil: it has ended, or its clock cannot be known.
VALUE ThreadCpuTime(VALUE, VALUE thread) {
  if (!RTEST(rb_obj_is_kind_of(thread, rb_cThread))) {
    rb_raise(rb_eTypeError, "%+" PRIsVALUE " is not a Thread", thread);
  }
  clockid_t clock = 0;
  timespec time = {};
  if (FindThreadClock(thread, &clock) == 0 || clock_gettime(clock, &time) != 0) return Qnil;
  return ULL2NUM(static_cast<uint64_t>(time.tv_sec) * 1'000'000'000u +
                 static_cast<uint64_t>(time.tv_nsec));
}

VALUE ExpectJit(VALUE) {
  RubyRuntime::Instance().ExpectJit();
  return Qnil;
}

VALUE BeforeRactor(VALUE) {
  RubyRuntime::Instance().ExpectRactors();
  return Qnil;
}

VALUE ExpectAutomaticCompaction(VALUE, VALUE on) {
  RubyRuntime::Instance().ExpectAutomaticCompaction(RTEST(on));
  return Qnil;
}

VALUE ExpectCompaction(VALUE, VALUE begins) {
  RubyRuntime::Instance().ExpectCompaction(RTEST(begins));
  return Qnil;
}

void OfferRuntime() {
  const auto core = context::ElectCore();
  runtime_refused = core ? (*core)->profiler().use_runtime(RubyRuntime::Instance()) : -EPROTO;
}

// Nil: samples have Ruby's frames.
VALUE NativeOnly(VALUE) {
  switch (runtime_refused) {
    case 0:
      return Qnil;
    case -EBUSY:
      return rb_utf8_str_new_cstr(
          "the process was being recorded as a native program before Ruby had loaded spanprof");
    case -EPROTO:
      return rb_utf8_str_new_cstr("another version of spanprof is active in the process");
    default:
      return rb_utf8_str_new_cstr("another spanprof in the process has a runtime already");
  }
}

}  // namespace
}  // namespace spanprof::ruby

// NOLINTNEXTLINE(readability-identifier-naming): the VM looks for this name.
extern "C" __attribute__((visibility("default"))) void Init_spanprof_native(void) {
  using namespace spanprof::ruby;  // NOLINT(google-build-using-namespace): all of it
  const VALUE module = rb_define_module("Spanprof");
  error_class = rb_define_class_under(module, "Error", rb_eStandardError);
  rb_gc_register_address(&error_class);
  const VALUE native = rb_define_module_under(module, "Native");
  RubyRuntime::Instance().Install();
  OfferRuntime();
  rb_define_singleton_method(native, "init", &Init, 1);
  rb_define_singleton_method(native, "start", &Start, 1);
  rb_define_singleton_method(native, "stop", &Stop, 0);
  rb_define_singleton_method(native, "dump", &Dump, 1);
  rb_define_singleton_method(native, "recording?", &Recording, 0);
  rb_define_singleton_method(native, "context_storage", &ContextStorage, 0);
  rb_define_singleton_method(native, "native_only", &NativeOnly, 0);
  rb_define_singleton_method(native, "counters", &Counters, 0);
  rb_define_singleton_method(native, "slowdown", &Slowdown, 0);
  rb_define_singleton_method(native, "gvl_waits", &GvlWaitsByThread, 0);
  rb_define_singleton_method(native, "cpu_clocks", &CpuClocks, 0);
  rb_define_singleton_method(native, "thread_cpu_time", &ThreadCpuTime, 1);
  rb_define_singleton_method(native, "after_fork", &AfterFork, 0);
  rb_define_singleton_method(native, "expect_compaction", &ExpectCompaction, 1);
  rb_define_singleton_method(native, "expect_automatic_compaction", &ExpectAutomaticCompaction, 1);
  rb_define_singleton_method(native, "expect_jit", &ExpectJit, 0);
  rb_define_singleton_method(native, "before_ractor", &BeforeRactor, 0);
  rb_define_singleton_method(module, "set", &Set, -1);
  rb_define_singleton_method(module, "with_context", &WithContext, -1);
  rb_define_singleton_method(module, "clear", &ClearContext, 0);
  rb_define_singleton_method(module, "current_context", &CurrentContext, 0);
  rb_define_singleton_method(module, "set_endpoint", &SetEndpoint, 2);
}
