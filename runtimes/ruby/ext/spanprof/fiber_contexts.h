#pragma once

// Contexts that belong to fibers. A fiber that was given a context keeps it in an object of its own
// (a fiber-local variable); whenever the VM has switched to another fiber, the thread's published
// context is replaced by that fiber's. A thread begins without one, whoever used its native thread
// before.
//
// The VM's hooks run after it has switched. In between, a thread has the new fiber's stack and the
// old one's context: RubyThread::fiber tells, so that a sample taken there carries none.
//
// For threads that hold the VM's lock.

#include <cstdint>

#include "ruby_api.h"
#include "ruby_threads.h"
#include <spanprof/context.h>

namespace spanprof::ruby {

class FiberContexts {
 public:
  explicit FiberContexts(RubyThreads& threads) : threads_(threads) {}

  // Installs the hooks, for good: taking them out later makes a JIT throw its code away. May raise.
  void Install();

  // The calling fiber's context.
  void Get(spanprof_context* context);
  // May raise, and then nothing has changed.
  void Set(const spanprof_context& context);
  // Gives back what was there before a Set: cannot raise.
  void Restore(const spanprof_context& context);

  // The calling thread's entry; null: not known. `current` is what rb_thread_current says.
  RubyThread* Own(VALUE current);

  // Threads whose beginning was not seen, e.g. because they were there before us.
  void FindThreads();

 private:
  static void OnEvent(rb_event_flag_t event, VALUE self, VALUE, ID, VALUE);
  RubyThread* Current();
  void FollowSwitch(RubyThread& thread, VALUE fiber);

  RubyThreads& threads_;
};

}  // namespace spanprof::ruby
