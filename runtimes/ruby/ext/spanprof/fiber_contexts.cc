#include "fiber_contexts.h"

#include "context/platform.h"

namespace spanprof::ruby {
namespace {

const rb_data_type_t kBoxType = {
    "Spanprof::FiberContext",
    {nullptr, RUBY_DEFAULT_FREE, nullptr, nullptr, {nullptr}},
    nullptr,
    nullptr,
    RUBY_TYPED_FREE_IMMEDIATELY,
};

ID box_id = 0;

spanprof_context* ContentsOf(VALUE box) {
  return box == 0 ? nullptr : static_cast<spanprof_context*>(RTYPEDDATA_DATA(box));
}

// Of the fiber that runs. A program may have put something else in its place.
VALUE FindBox(VALUE thread) {
  const VALUE found = rb_thread_local_aref(thread, box_id);
  return rb_typeddata_is_kind_of(found, &kBoxType) != 0 ? found : 0;
}

VALUE NewBox() {
  spanprof_context* contents = nullptr;
  const VALUE box = TypedData_Make_Struct(rb_cObject, spanprof_context, &kBoxType, contents);
  contents->size = sizeof *contents;
  return box;
}

FiberContexts* installed = nullptr;

// So that a switch costs no system call. Never used by a handler. What is in the entry says whether
// it is still this thread's.
thread_local RubyThread* own_thread = nullptr;

}  // namespace

void FiberContexts::Install() {
  box_id = rb_intern("__spanprof");
  installed = this;
  Current();
  rb_add_event_hook(&FiberContexts::OnEvent,
                    RUBY_EVENT_THREAD_BEGIN | RUBY_EVENT_THREAD_END | RUBY_EVENT_FIBER_SWITCH,
                    Qnil);
  FindThreads();
}

void FiberContexts::FindThreads() {
  static const ID kList = rb_intern("list");
  static const ID kNativeId = rb_intern("native_thread_id");
  const VALUE list = rb_funcall(rb_cThread, kList, 0);
  for (long i = 0; i < RARRAY_LEN(list); ++i) {
    const VALUE thread = rb_ary_entry(list, i);
    if (thread == rb_thread_current()) continue;  // its id may be that of before a fork
    const VALUE id = rb_funcall(thread, kNativeId, 0);
    if (!FIXNUM_P(id)) continue;  // it has not begun
    const auto tid = static_cast<uint32_t>(FIX2LONG(id));
    if (threads_.Find(tid) == nullptr) threads_.Begin(tid, thread, kUnknownFiber);
  }
}

void FiberContexts::OnEvent(rb_event_flag_t event, VALUE, VALUE, ID, VALUE) {
  FiberContexts& self = *installed;
  switch (event) {
    case RUBY_EVENT_THREAD_BEGIN:
      // Whoever had the native thread before has left its context there.
      spanprof_context_clear();
      // Asking for the fiber makes an object for it, so that a handler may ask later.
      own_thread =
          self.threads_.Begin(context::CurrentThreadId(), rb_thread_current(), rb_fiber_current());
      break;
    case RUBY_EVENT_THREAD_END:
      spanprof_context_clear();
      if (RubyThread* thread = self.Own(rb_thread_current())) RubyThreads::End(*thread);
      break;
    default:
      if (RubyThread* thread = self.Own(rb_thread_current())) {
        self.FollowSwitch(*thread, rb_fiber_current());
      }
  }
}

// A handler that comes in here finds that no fiber owns the context.
void FiberContexts::FollowSwitch(RubyThread& thread, VALUE fiber) {
  const VALUE box = FindBox(thread.thread.load(std::memory_order_relaxed));
  spanprof_context* const old = ContentsOf(thread.context_box.load(std::memory_order_relaxed));
  thread.fiber.store(0, std::memory_order_relaxed);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  spanprof_context_swap(ContentsOf(box), old);
  thread.context_box.store(box, std::memory_order_relaxed);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  thread.fiber.store(fiber, std::memory_order_relaxed);
}

RubyThread* FiberContexts::Own(VALUE current) {
  RubyThread* thread = own_thread;
  if (thread == nullptr || thread->thread.load(std::memory_order_relaxed) != current) {
    thread = threads_.Find(context::CurrentThreadId());
    if (thread == nullptr || thread->thread.load(std::memory_order_relaxed) != current) {
      return nullptr;
    }
    own_thread = thread;
  }
  return thread->ended.load(std::memory_order_relaxed) ? nullptr : thread;
}

// The calling thread's entry, which owns the calling fiber's context. Null: there was no room.
RubyThread* FiberContexts::Current() {
  const VALUE fiber = rb_fiber_current();
  const VALUE current = rb_thread_current();
  RubyThread* thread = Own(current);
  if (thread == nullptr) {
    own_thread = threads_.Begin(context::CurrentThreadId(), current, fiber);
    return own_thread;
  }
  // The VM calls no hook for a switch within another hook.
  if (thread->fiber.load(std::memory_order_relaxed) != fiber) FollowSwitch(*thread, fiber);
  return thread;
}

void FiberContexts::Get(spanprof_context* context) {
  Current();
  *context = {};
  context->size = sizeof *context;
  spanprof_context_get(context);
}

void FiberContexts::Set(const spanprof_context& context) {
  RubyThread* const thread = Current();
  if (thread != nullptr && thread->context_box.load(std::memory_order_relaxed) == 0) {
    const VALUE box = NewBox();
    rb_thread_local_aset(rb_thread_current(), box_id, box);
    thread->context_box.store(box, std::memory_order_relaxed);
  }
  Restore(context);
}

void FiberContexts::Restore(const spanprof_context& context) {
  const RubyThread* const thread = Current();
  spanprof_context_update(&context);
  if (thread == nullptr) return;
  if (spanprof_context* box = ContentsOf(thread->context_box.load(std::memory_order_relaxed))) {
    *box = context;
  }
}

}  // namespace spanprof::ruby
