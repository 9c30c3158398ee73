#include "gvl_waits.h"

#include "context/platform.h"
#include "sampling/cpu_clock.h"

namespace spanprof::ruby {

#if defined(HAVE_RB_INTERNAL_THREAD_ADD_EVENT_HOOK)

namespace {

std::atomic<uint64_t> all_waits{0};
std::atomic<uint64_t> all_wait_ns{0};

#if defined(HAVE_RB_INTERNAL_THREAD_SPECIFIC_KEY_CREATE)

rb_internal_thread_specific_key_t entry_key;

RubyThread* EntryOf(const rb_internal_thread_event_data_t* event) {
  auto* const entry =
      static_cast<RubyThread*>(rb_internal_thread_specific_get(event->thread, entry_key));
  // It may have become another's since.
  const bool is_its =
      entry != nullptr && entry->thread.load(std::memory_order_relaxed) == event->thread;
  return is_its ? entry : nullptr;
}

#else

RubyThreads* all_threads = nullptr;

// Ruby 3.2 does not say whose event it is: it comes on the thread itself.
RubyThread* EntryOf(const rb_internal_thread_event_data_t*) {
  return all_threads->Find(context::CurrentThreadId());
}

#endif

void SetState(RubyThread& thread, LockState state) {
  thread.lock_state.store(state, std::memory_order_relaxed);
  // After it: a sample that has seen the old state has the old number, and is not the last.
  thread.state_changes.fetch_add(1, std::memory_order_release);
}

void OnEvent(rb_event_flag_t event, const rb_internal_thread_event_data_t* data, void*) {
  RubyThread* const thread = EntryOf(data);
  if (thread == nullptr) return;
  if (event == RUBY_INTERNAL_THREAD_EVENT_READY) {
    thread->lock_wait_since_ns.store(sampling::MonotonicNanoseconds(), std::memory_order_relaxed);
    SetState(*thread, LockState::kWaits);
    return;
  }
  const bool resumed = event == RUBY_INTERNAL_THREAD_EVENT_RESUMED;
  SetState(*thread, resumed ? LockState::kHas : LockState::kWithout);
  const uint64_t since = thread->lock_wait_since_ns.exchange(0, std::memory_order_relaxed);
  if (since == 0 || !resumed) return;
  const uint64_t waited = sampling::MonotonicNanoseconds() - since;
  thread->lock_waits.fetch_add(1, std::memory_order_relaxed);
  thread->lock_wait_ns.fetch_add(waited, std::memory_order_relaxed);
  all_waits.fetch_add(1, std::memory_order_relaxed);
  all_wait_ns.fetch_add(waited, std::memory_order_relaxed);
}

}  // namespace

bool GvlWaits::Available() { return true; }

void GvlWaits::Install([[maybe_unused]] RubyThreads& threads) {
#if defined(HAVE_RB_INTERNAL_THREAD_SPECIFIC_KEY_CREATE)
  entry_key = rb_internal_thread_specific_key_create();
#else
  all_threads = &threads;
#endif
}

void GvlWaits::StartCounting() {
  static std::atomic<bool> installed{false};
  if (installed.exchange(true)) return;
  rb_internal_thread_add_event_hook(&OnEvent,
                                    RUBY_INTERNAL_THREAD_EVENT_READY |
                                        RUBY_INTERNAL_THREAD_EVENT_RESUMED |
                                        RUBY_INTERNAL_THREAD_EVENT_SUSPENDED,
                                    nullptr);
}

void GvlWaits::Link([[maybe_unused]] VALUE thread, [[maybe_unused]] RubyThread* entry) {
#if defined(HAVE_RB_INTERNAL_THREAD_SPECIFIC_KEY_CREATE)
  rb_internal_thread_specific_set(thread, entry_key, entry);
#endif
}

uint64_t GvlWaits::count() { return all_waits.load(std::memory_order_relaxed); }
uint64_t GvlWaits::nanoseconds() { return all_wait_ns.load(std::memory_order_relaxed); }

#else

bool GvlWaits::Available() { return false; }
void GvlWaits::Install(RubyThreads&) {}
void GvlWaits::StartCounting() {}
void GvlWaits::Link(VALUE, RubyThread*) {}
uint64_t GvlWaits::count() { return 0; }
uint64_t GvlWaits::nanoseconds() { return 0; }

#endif

}  // namespace spanprof::ruby
