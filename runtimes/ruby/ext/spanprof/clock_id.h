#pragma once

/* The CPU clock of a Ruby thread. One of three C files says how it is found, as extconf.rb has
 * chosen (clock_choice.rb): from the kernel's id of the thread, from its pthread_t by way of the
 * VM's private headers, or not at all. In C, because these headers do not compile as C++.
 *
 * For a thread that holds the VM's lock. */

#ifdef __cplusplus
#include "ruby_api.h"
#else
#include <ruby.h>
#endif

#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What clocks are found by; for Spanprof.status. */
extern const char* const kThreadClockSource;

/* 0: the thread has ended or not begun, or its clock cannot be known. Otherwise *clock is for
 * clock_gettime and timer_create, while the thread lives. May raise. */
int FindThreadClock(VALUE thread, clockid_t* clock);

#ifdef __cplusplus
}
#endif
