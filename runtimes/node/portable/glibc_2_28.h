#pragma once

// What lets a library that is linked here load where the C library is as old as 2.28, which Node.js
// itself asks for: definitions of the symbols that newer ones have renewed or brought. They are
// found before those of the C library by everything in the same link, the static libstdc++ and
// libgcc too, and by nothing else. For the prebuilt addons on x86-64; whoever compiles
// has the C library that he compiles with.
//
// tools/check_exports tells when a symbol is missing here.

#include <ctime>
#include <pthread.h>

namespace spanprof::node {

// pthread_cond_clockwait, which came with 2.30, by what there was before: for a condition variable
// that waits by the wall clock. It may return 0 before anybody has signalled, as every wait may.
int WaitByWallClock(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                    const timespec* deadline);

}  // namespace spanprof::node
