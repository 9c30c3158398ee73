#pragma once

// Our handler for SIGURG, as a guest: a signal that is not ours goes to whoever had the signal
// before us, or has asked for it since. Once installed it stays.
//
// All of our signals are SIGURG. A SIGPROF of ours that waits in a thread which has it blocked
// makes the kernel drop the program's own; a program that is not preloaded and sets SIGPROF back to
// its default is killed by ours; and SIGPROF is what programs use. SIGURG hardly is, and by default
// it does nothing.

#include <signal.h>

#include "base/result.h"

namespace spanprof::sampling {

// Looks at a signal in the handler; true: it was ours. Signal-safe.
using SignalTaker = bool (*)(int signal, siginfo_t* info, void* ucontext);

constexpr int kSamplingSignal = SIGURG;

// Installs the handler, once a process. Later calls only replace the taker.
Result<void> InstallSignalHandler(SignalTaker taker);

// Whether the handler is still ours. A program that was not preloaded may have put its own.
bool SignalHandlerIsInPlace();

// For a preloaded sigaction(): what the program asks for our signal is remembered and called for
// its own, while ours stays in place. True: the call was answered, without the kernel. Signal-safe.
bool AnswerSigaction(int signal, const struct sigaction* action, struct sigaction* previous);

}  // namespace spanprof::sampling
