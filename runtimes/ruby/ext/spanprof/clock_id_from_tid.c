/* By what everybody may ask: Thread#native_thread_id, and the kernel's own name for a thread's CPU
 * clock. */

#include <unistd.h>

#include <sys/syscall.h>

#include "clock_id.h"

const char* const kThreadClockSource = "native_thread_id";

int FindThreadClock(VALUE thread, clockid_t* clock) {
  const unsigned per_thread = 4;
  const unsigned of_scheduler = 2;
  unsigned long tid = 0;
  if (thread == rb_thread_current()) {
    /* In a forked child Ruby 3.1 still tells the parent's. */
    tid = (unsigned long)syscall(SYS_gettid);
  } else {
    const VALUE id = rb_funcall(thread, rb_intern("native_thread_id"), 0);
    if (!RB_INTEGER_TYPE_P(id)) return 0;
    tid = NUM2ULONG(id);
  }
  *clock = (clockid_t)((~(unsigned)tid << 3) | per_thread | of_scheduler);
  /* One that has ended still has its id. */
  struct timespec now;
  return clock_gettime(*clock, &now) == 0;
}
