#pragma once

// Our handlers for SIGPROF and SIGURG, as guests: a signal that is not ours goes to whoever had the
// signal before us, or has asked for it since. Once installed they stay: a signal that is late
// would otherwise meet the default action of SIGPROF, which ends the process.

#include <signal.h>

#include "base/result.h"

namespace spanprof::sampling {

// Looks at a signal in the handler; true: it was ours. Signal-safe.
using SignalTaker = bool (*)(int signal, siginfo_t* info, void* ucontext);

// Installs the handlers, once a process. Later calls only replace the taker.
Result<void> InstallSignalHandlers(SignalTaker taker);

// Whether the handlers are still ours. A program that was not preloaded may have put its own.
bool SignalHandlersAreInPlace();

// For a preloaded sigaction(): what the program asks for our signals is remembered and called for
// its own, while ours stays in place. True: the call was answered, without the kernel. Signal-safe.
bool AnswerSigaction(int signal, const struct sigaction* action, struct sigaction* previous);

}  // namespace spanprof::sampling
