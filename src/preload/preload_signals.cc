// SIGNAL-SAFE. sigaction and signal, so that the program keeps its own handlers for the signals
// which the profiler uses, and the profiler keeps its own in place. And SIGINT, SIGTERM, SIGHUP:
// while the program leaves them at their default, which is to end it, its profile is written first.

#include <atomic>
#include <cerrno>
#include <csignal>
#include <unistd.h>

#include "context/core_election.h"
#include "preload/real_function.h"

namespace spanprof::preload {
namespace {

constinit RealFunction<int(int, const struct sigaction*, struct sigaction*)> real_sigaction{
    "sigaction"};

constexpr int kEndingSignals[] = {SIGINT, SIGTERM, SIGHUP};
constexpr unsigned kEndingSignalCount = 3;
// Whether the handler in place is ours, which the program is not to know.
std::atomic<bool> ends_by_us[kEndingSignalCount] = {};

int EndingIndex(int signal) {
  for (unsigned i = 0; i < kEndingSignalCount; ++i) {
    if (kEndingSignals[i] == signal) return static_cast<int>(i);
  }
  return -1;
}

void EndProcess(int signal) {
  if (const context::CoreInterface* core = context::ActiveCore())
    core->profiler().finish_before_exit();
  struct sigaction standard = {};
  standard.sa_handler = SIG_DFL;
  real_sigaction(signal, &standard, nullptr);
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, signal);
  pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
  kill(getpid(), signal);
}

int EndByUs(unsigned index, struct sigaction* previous) {
  struct sigaction ours = {};
  ours.sa_handler = EndProcess;
  sigfillset(&ours.sa_mask);
  ours.sa_flags = SA_RESTART;
  const int result = real_sigaction(kEndingSignals[index], &ours, previous);
  if (result == 0) ends_by_us[index] = true;
  return result;
}

[[gnu::constructor]] void OnLoad() {
  real_sigaction.Find();
  for (unsigned i = 0; i < kEndingSignalCount; ++i) {
    struct sigaction now = {};
    if (real_sigaction(kEndingSignals[i], nullptr, &now) != 0) continue;
    if ((now.sa_flags & SA_SIGINFO) != 0 || now.sa_handler != SIG_DFL) continue;
    EndByUs(i, nullptr);
  }
}

int AnswerEndingSignal(unsigned index, int signal, const struct sigaction* action,
                       struct sigaction* previous) {
  const bool was_ours = ends_by_us[index].load();
  struct sigaction before = {};
  // The program wants the default: that is what ours comes to. Often it has had a handler, and
  // sends itself the signal once more when that has cleaned up.
  const bool wants_default =
      action != nullptr && (action->sa_flags & SA_SIGINFO) == 0 && action->sa_handler == SIG_DFL;
  const int result =
      wants_default ? EndByUs(index, &before) : real_sigaction(signal, action, &before);
  if (result != 0) return result;
  if (action != nullptr && !wants_default) ends_by_us[index] = false;
  if (previous != nullptr) {
    *previous = was_ours ? (struct sigaction){} : before;  // SIG_DFL is zero
  }
  return 0;
}

int Sigaction(int signal, const struct sigaction* action, struct sigaction* previous) {
  const context::CoreInterface* core = context::ActiveCore();
  if (core != nullptr && core->profiler().answer_sigaction(signal, action, previous) != 0) return 0;
  if (const int index = EndingIndex(signal); index >= 0) {
    return AnswerEndingSignal(static_cast<unsigned>(index), signal, action, previous);
  }
  return real_sigaction(signal, action, previous);
}

sighandler_t Signal(int signal, sighandler_t handler, int flags) {
  struct sigaction action = {};
  struct sigaction previous = {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  sigemptyset(&action.sa_mask);
  if (Sigaction(signal, &action, &previous) != 0) return SIG_ERR;
  return previous.sa_handler;
}

}  // namespace
}  // namespace spanprof::preload

extern "C" {

[[gnu::visibility("default")]] int sigaction(int signal, const struct sigaction* action,
                                             struct sigaction* previous) noexcept {
  return spanprof::preload::Sigaction(signal, action, previous);
}

// glibc's signal() has BSD's meaning: calls go on, and the handler stays.
[[gnu::visibility("default")]] sighandler_t signal(int signal, sighandler_t handler) noexcept {
  return spanprof::preload::Signal(signal, handler, SA_RESTART);
}

[[gnu::visibility("default")]] sighandler_t sysv_signal(int signal, sighandler_t handler) noexcept {
  return spanprof::preload::Signal(signal, handler, static_cast<int>(SA_RESETHAND) | SA_NODEFER);
}

// What signal() is where _XOPEN_SOURCE asks for System V's.
[[gnu::visibility("default")]] sighandler_t __sysv_signal(int signal,
                                                          sighandler_t handler) noexcept {
  return sysv_signal(signal, handler);
}

}  // extern "C"
