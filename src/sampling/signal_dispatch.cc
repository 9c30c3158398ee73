// SIGNAL-SAFE, except for InstallSignalHandlers.

#include "sampling/signal_dispatch.h"

#include <atomic>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <sys/syscall.h>

namespace spanprof::sampling {
namespace {

constexpr int kOurSignals[] = {SIGPROF, SIGURG};
constexpr unsigned kCount = sizeof kOurSignals / sizeof kOurSignals[0];

// What the program wants for one of our signals. Two copies and a switch: a handler reads one while
// sigaction() fills the other.
struct ProgramsAction {
  struct sigaction actions[2] = {};
  std::atomic<uint32_t> current{0};
};
ProgramsAction programs_actions[kCount];
std::atomic<SignalTaker> taker{nullptr};
std::atomic<bool> installed{false};

int IndexOf(int signal) {
  for (unsigned i = 0; i < kCount; ++i) {
    if (kOurSignals[i] == signal) return static_cast<int>(i);
  }
  return -1;
}

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

// The default action of a signal that is not ours, as if we had never been here.
void TakeDefaultAction(int signal) {
  if (signal == SIGURG) return;  // ignored by default
  const KernelAction standard;
  KernelSigaction(signal, &standard, nullptr);
  sigset_t only = {};
  sigemptyset(&only);
  sigaddset(&only, signal);
  sigprocmask(SIG_UNBLOCK, &only, nullptr);
  raise(signal);
}

void CallProgram(int signal, siginfo_t* info, void* ucontext) {
  ProgramsAction& wanted = programs_actions[IndexOf(signal)];
  struct sigaction& action = wanted.actions[wanted.current.load(std::memory_order_acquire)];
  if ((action.sa_flags & SA_SIGINFO) != 0 && action.sa_sigaction != nullptr) {
    action.sa_sigaction(signal, info, ucontext);
  } else if (action.sa_handler == SIG_DFL) {
    TakeDefaultAction(signal);
  } else if (action.sa_handler != SIG_IGN) {
    const auto handler = action.sa_handler;
    if ((static_cast<unsigned>(action.sa_flags) & static_cast<unsigned>(SA_RESETHAND)) != 0) {
      action.sa_handler = SIG_DFL;
    }
    handler(signal);
  }
}

void OnSignal(int signal, siginfo_t* info, void* ucontext) {
  const int saved_errno = errno;
  const SignalTaker take = taker.load(std::memory_order_acquire);
  if (take == nullptr || !take(signal, info, ucontext)) CallProgram(signal, info, ucontext);
  errno = saved_errno;
}

}  // namespace

Result<void> InstallSignalHandlers(SignalTaker new_taker) {
  taker.store(new_taker, std::memory_order_release);
  if (installed.load(std::memory_order_acquire)) return {};
  struct sigaction ours = {};
  ours.sa_sigaction = OnSignal;
  // On the thread's alternate stack if it has one; interrupted calls go on where the kernel allows.
  ours.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
  // No handler may write a context while ours reads it. Faults stay deliverable: whoever reports
  // crashes should hear of one of ours too.
  sigfillset(&ours.sa_mask);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT}) {
    sigdelset(&ours.sa_mask, fault);
  }
  for (unsigned i = 0; i < kCount; ++i) {
    struct sigaction previous = {};
    // First ours, knowing the default: a signal that comes in between is then not lost.
    if (sigaction(kOurSignals[i], nullptr, &previous) != 0) {
      return Fail(errno,
                  "the handler of signal " + std::to_string(kOurSignals[i]) + " cannot be read");
    }
    programs_actions[i].actions[0] = previous;
    if (sigaction(kOurSignals[i], &ours, nullptr) != 0) {
      return Fail(
          errno, "a handler for signal " + std::to_string(kOurSignals[i]) + " cannot be installed");
    }
  }
  installed.store(true, std::memory_order_release);
  return {};
}

bool SignalHandlersAreInPlace() {
  for (const int signal : kOurSignals) {
    KernelAction now;
    if (!KernelSigaction(signal, nullptr, &now)) return false;
    if (now.handler != reinterpret_cast<void*>(&OnSignal)) return false;
  }
  return true;
}

bool AnswerSigaction(int signal, const struct sigaction* action, struct sigaction* previous) {
  const int index = IndexOf(signal);
  if (index < 0 || !installed.load(std::memory_order_acquire)) return false;
  ProgramsAction& wanted = programs_actions[index];
  const uint32_t current = wanted.current.load(std::memory_order_acquire);
  if (previous != nullptr) *previous = wanted.actions[current];
  if (action != nullptr) {
    wanted.actions[1 - current] = *action;
    wanted.current.store(1 - current, std::memory_order_release);
  }
  return true;
}

}  // namespace spanprof::sampling
