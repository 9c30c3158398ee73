/* By the thread's pthread_t, which the VM keeps in a structure of its own. SPANPROF_PRIVATE_HEADER
 * is the header of Ruby's former JIT (rb_mjit_min_header-3.1.2.h), or vm_core.h of a gem that has
 * Ruby's private headers. It comes first: it has all of ruby.h in it. */

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wattributes"
#pragma GCC diagnostic ignored "-Wundef"
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include SPANPROF_PRIVATE_HEADER
#pragma GCC diagnostic pop

#include <pthread.h>

#include <ruby/version.h>

#include "clock_id.h"

const char* const kThreadClockSource = "pthread_getcpuclockid";

static pthread_t PthreadOf(const rb_thread_t* thread) {
#if RUBY_API_VERSION_MAJOR > 3 || RUBY_API_VERSION_MINOR >= 2
  return thread->nt == NULL ? 0 : thread->nt->thread_id;
#else
  return thread->thread_id;
#endif
}

int FindThreadClock(VALUE thread, clockid_t* clock) {
  /* Whatever else is a Thread to Ruby is not one of these structures. */
  const rb_data_type_t* const type = RTYPEDDATA_TYPE(rb_thread_current());
  const rb_thread_t* const structure = (const rb_thread_t*)rb_check_typeddata(thread, type);
  /* The pthread_t of one that has ended is nobody's any more. */
  if (structure->status == THREAD_KILLED) return 0;
  const pthread_t pthread = PthreadOf(structure);
  return pthread != 0 && pthread_getcpuclockid(pthread, clock) == 0;
}
