#pragma once

// SIGNAL-SAFE, except for ReadBlockedCall. The system call that a signal has interrupted.
//
// The kernel starts most calls anew after a handler with SA_RESTART, which ours has. Some it never
// does: sleeping, poll, select, epoll_wait, sigsuspend, waits with a time limit end with EINTR
// after any handler at all. A program without handlers of its own has no reason to expect that, so
// what our signal interrupted goes on (ContinueCall). And a program that wants EINTR from a signal
// of its own, by a handler without SA_RESTART, gets it although the kernel's handler is ours
// (EndCall).

#include <cstdint>
#include <signal.h>
#include <ucontext.h>

#include <sys/time.h>

namespace spanprof::sampling {

// What a thread waits in, as it was seen from outside. Number -1: in no call.
struct BlockedCall {
  long number = -1;
  uint64_t arguments[6] = {};
  uint64_t stack_pointer = 0;
  uint64_t program_counter = 0;  // behind the call's instruction
};

// By /proc/self/task. False: the thread runs, or there is no such file.
bool ReadBlockedCall(uint32_t tid, BlockedCall* call);

// In a handler: the call that has just ended with EINTR, by what is left of it in registers and
// code. Only on x86-64, and where the number stands before the call's instruction, as it does in
// most of libc's functions. False: there is none, or it cannot be told.
bool FindInterruptedCall(const ucontext_t& at, BlockedCall* call);

// Whether a signal to the thread would be taken out by the call itself (sigwait), and be the
// program's.
bool WaitsForSignal(const BlockedCall& call, int signal);

// When a call that goes on has to end, if the kernel does not keep that itself.
struct CallTimeout {
  uint32_t tid;  // of the thread whose call it is
  uint64_t deadline_ns;
  timespec left;  // what the call's argument points to
};

// One for each sampled thread, zero at first. They stay when a recording ends: a thread may still
// be in a call that points to one, and another recording may interrupt it there.
struct CallTimeouts {
  CallTimeout* all = nullptr;
  uint32_t count = 0;
};

// In the handler of our own signal: if it has ended `call`, the thread goes back into it when the
// handler returns. `index` is the thread's place in `timeouts`. A time limit that the kernel does
// not keep begins where `now_ns` is, so that a sleep is never shorter than it was to be, and longer
// by at most the time it had gone on already. False: it was another call, or one that is left to
// end.
bool ContinueCall(const BlockedCall& call, uint64_t now_ns, uint32_t tid, CallTimeouts timeouts,
                  uint32_t index, ucontext_t& at);

// In the handler of the program's signal: if the kernel is about to start a call anew, the call
// ends with EINTR instead. Only on x86-64, where a call about to begin can be told from one that
// begins anew.
bool EndCall(ucontext_t& at);

}  // namespace spanprof::sampling
