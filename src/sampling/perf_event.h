#pragma once

// A perf event on the CPU clock of one thread, with a signal every so much of it, and what one such
// signal costs. Any thread; not for signal handlers.

#include <cstdint>

namespace spanprof::sampling {

// The descriptor of an event that is still switched off; -1: there is none to be had. Its signals
// are sampling signals for the thread, with the descriptor in si_fd. It is `lowest_fd` or above
// where there is room: programs may expect the small numbers for themselves.
int OpenPerfEvent(uint32_t tid, uint64_t period_ns, int lowest_fd);

// Nanoseconds of CPU time that such an event and its signal take from the thread, whatever the
// handler does. A few microseconds on some machines, thirty on others: on a virtual one the host
// may have to set the timer. Measured by the first call in a process, on a thread of its own, which
// takes about 15 ms. 0: it cannot be measured.
uint64_t PerfEventNanoseconds();

}  // namespace spanprof::sampling
