// SIGNAL-SAFE, except for InstallSignalHandler.

#include "sampling/signal_dispatch.h"

#include <atomic>
#include <errno.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include <sys/syscall.h>

#include "sampling/interrupted_call.h"

namespace spanprof::sampling {
namespace {

// What the program wants for our signal. Two copies and a switch: a handler reads one while
// sigaction() fills the other.
struct ProgramsAction {
  struct sigaction actions[2] = {};
  std::atomic<uint32_t> current{0};
};
ProgramsAction programs_action;
std::atomic<SignalTaker> taker{nullptr};
std::atomic<bool> installed{false};

// The kernel's own, for where sigaction() may be the preloaded one, which tells what the program
// wants and not what is.
struct KernelAction {
  void* handler = nullptr;
  unsigned long flags = 0;
#if defined(__x86_64__)
  void* restorer = nullptr;
#endif
  uint64_t mask = 0;
};
bool KernelSigaction(int signal, const KernelAction* action, KernelAction* previous) {
  return syscall(SYS_rt_sigaction, signal, action, previous, sizeof(action->mask)) == 0;
}

// The program's handler with the signals blocked that it asked for, and not all that are blocked in
// ours. Returning from ours restores the mask.
void BlockAsAsked(int signal, const struct sigaction& action, const ucontext_t& at) {
  sigset_t mask = at.uc_sigmask;
  sigorset(&mask, &mask, &action.sa_mask);
  if ((static_cast<unsigned>(action.sa_flags) & static_cast<unsigned>(SA_NODEFER)) == 0) {
    sigaddset(&mask, signal);
  }
  pthread_sigmask(SIG_SETMASK, &mask, nullptr);
}

void CallProgram(int signal, siginfo_t* info, void* ucontext) {
  struct sigaction& kept =
      programs_action.actions[programs_action.current.load(std::memory_order_acquire)];
  const struct sigaction action = kept;
  // By default the signal does nothing. The two ways to call a handler share their place, and these
  // values mean the same in both.
  if (action.sa_handler == SIG_IGN || action.sa_handler == SIG_DFL) return;
  const auto flags = static_cast<unsigned>(action.sa_flags);
  if ((flags & static_cast<unsigned>(SA_RESETHAND)) != 0) kept.sa_handler = SIG_DFL;
  auto& at = *static_cast<ucontext_t*>(ucontext);
  if ((flags & SA_RESTART) == 0) EndCall(at);
  BlockAsAsked(signal, action, at);
  if ((flags & SA_SIGINFO) != 0) {
    action.sa_sigaction(signal, info, ucontext);
  } else {
    action.sa_handler(signal);
  }
}

void OnSignal(int signal, siginfo_t* info, void* ucontext) {
  const int saved_errno = errno;
  const SignalTaker take = taker.load(std::memory_order_acquire);
  if (take == nullptr || !take(signal, info, ucontext)) CallProgram(signal, info, ucontext);
  errno = saved_errno;
}

}  // namespace

Result<void> InstallSignalHandler(SignalTaker new_taker) {
  taker.store(new_taker, std::memory_order_release);
  if (installed.load(std::memory_order_acquire)) return {};
  struct sigaction ours = {};
  ours.sa_sigaction = OnSignal;
  // On the thread's alternate stack if it has one; interrupted calls go on where the kernel allows.
  ours.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
  // No handler may write a context while ours reads it. Faults stay deliverable: whoever reports
  // crashes should hear of one of ours too. Not sigfillset, which leaves out the signal by which a
  // thread is cancelled: one that is unwound in our handler would never give back what it holds.
  memset(&ours.sa_mask, 0xFF, sizeof ours.sa_mask);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT}) {
    sigdelset(&ours.sa_mask, fault);
  }
  // First what the program has: a signal that comes in between is then not lost.
  if (sigaction(kSamplingSignal, nullptr, &programs_action.actions[0]) != 0) {
    return Fail(errno, "the handler of SIGURG cannot be read");
  }
  if (sigaction(kSamplingSignal, &ours, nullptr) != 0) {
    return Fail(errno, "a handler for SIGURG cannot be installed");
  }
  installed.store(true, std::memory_order_release);
  return {};
}

bool SignalHandlerIsInPlace() {
  KernelAction now;
  return KernelSigaction(kSamplingSignal, nullptr, &now) &&
         now.handler == reinterpret_cast<void*>(&OnSignal);
}

bool AnswerSigaction(int signal, const struct sigaction* action, struct sigaction* previous) {
  if (signal != kSamplingSignal || !installed.load(std::memory_order_acquire)) return false;
  const uint32_t current = programs_action.current.load(std::memory_order_acquire);
  if (previous != nullptr) *previous = programs_action.actions[current];
  if (action != nullptr) {
    programs_action.actions[1 - current] = *action;
    programs_action.current.store(1 - current, std::memory_order_release);
  }
  return true;
}

}  // namespace spanprof::sampling
