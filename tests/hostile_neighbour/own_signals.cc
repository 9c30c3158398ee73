// Signals that the program sends to itself, and handlers that it asks about.

#include <atomic>
#include <cerrno>
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <sys/syscall.h>
#include <sys/time.h>

#include "scenario.h"

namespace spanprof::hostile {
namespace {

std::atomic<int64_t> calls{0};
std::atomic<int64_t> values{0};
std::atomic<int64_t> foreign{0};  // signals that the program did not send
std::atomic<int> expected_code{0};
std::atomic<bool> mask_was_right{true};

void OnSignal(int, siginfo_t* info, void*) {
  if (info->si_code != expected_code) {
    foreign.fetch_add(1);
    return;
  }
  if (info->si_code == SI_QUEUE || info->si_code == SI_TIMER) {
    values.fetch_add(info->si_value.sival_int);
  }
  calls.fetch_add(1);
}

void OnPlainSignal(int) { calls.fetch_add(1); }

void Reset(int code) {
  calls = 0;
  values = 0;
  foreign = 0;
  expected_code = code;
}

struct sigaction Handle(int signal, int flags = SA_SIGINFO | SA_RESTART) {
  struct sigaction action = {};
  struct sigaction previous = {};
  action.sa_sigaction = OnSignal;
  action.sa_flags = flags;
  sigemptyset(&action.sa_mask);
  ExpectEqual(sigaction(signal, &action, &previous), 0, "sigaction");
  return previous;
}

void Restore(int signal, const struct sigaction& action) {
  ExpectEqual(sigaction(signal, &action, nullptr), 0, "sigaction to restore");
}

void CountsWhatItRaises() {
  Reset(SI_TKILL);
  const struct sigaction before = Handle(SIGPROF);
  for (int i = 0; i < 200; ++i) {
    raise(SIGPROF);
    Burn(50);
  }
  ExpectEqual(calls, 200, "raised SIGPROF that arrived");
  ExpectEqual(foreign, 0, "SIGPROF that the program did not raise");
  Restore(SIGPROF, before);
}

void QueuesValues() {
  for (const int signal : {SIGPROF, SIGURG, SIGRTMIN + 3}) {
    if (signal == SIGURG && !SignalUrgentIsOurs()) continue;
    Reset(SI_QUEUE);
    const struct sigaction before = Handle(signal);
    int64_t sum = 0;
    for (int i = 1; i <= 100; ++i) {
      sigval value = {};
      value.sival_int = i * 3;
      sum += i * 3;
      ExpectEqual(sigqueue(getpid(), signal, value), 0, "sigqueue");
      Expect(WaitUntil([i] { return calls.load() == i; }), "a queued signal arrives", calls, i);
    }
    ExpectEqual(values, sum, "sum of queued values");
    ExpectEqual(foreign, 0, "signals that the program did not queue");
    Restore(signal, before);
  }
}

void IsToldOfItsOwnHandlers() {
  struct sigaction now = {};
  const std::lock_guard lock(keyboard_signals);
  for (const int signal : {SIGPROF, SIGURG, SIGTERM, SIGHUP, SIGUSR1, SIGINT, SIGQUIT}) {
    if (signal == SIGURG && !SignalUrgentIsOurs()) continue;
    sigaction(signal, nullptr, &now);
    Expect(now.sa_handler == SIG_DFL, "a handler that was never set", signal, 0);

    struct sigaction mine = {};
    mine.sa_sigaction = OnSignal;
    mine.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigemptyset(&mine.sa_mask);
    sigaddset(&mine.sa_mask, SIGUSR2);
    sigaction(signal, &mine, &now);
    Expect(now.sa_handler == SIG_DFL, "the handler before the first", signal, 0);
    sigaction(signal, nullptr, &now);
    Expect(now.sa_sigaction == OnSignal, "the handler that was set", signal, 0);
    Expect((now.sa_flags & (SA_SIGINFO | SA_NODEFER | SA_RESTART)) == (SA_SIGINFO | SA_NODEFER),
           "its flags", now.sa_flags, mine.sa_flags);
    ExpectEqual(sigismember(&now.sa_mask, SIGUSR2), 1, "its mask");
    ExpectEqual(sigismember(&now.sa_mask, SIGUSR1), 0, "its mask's other signals");

    Expect(::signal(signal, SIG_IGN) != SIG_ERR, "signal", signal, 0);
    raise(signal);  // nothing happens
    Expect(::signal(signal, OnPlainSignal) == SIG_IGN, "signal() returns SIG_IGN", signal, 0);
    Expect(::signal(signal, SIG_DFL) == OnPlainSignal, "signal() returns the handler", signal, 0);
    sigaction(signal, nullptr, &now);
    Expect(now.sa_handler == SIG_DFL, "the default again", signal, 0);
  }
}

// To the process and not to the thread: of two that wait in one place the kernel keeps one.
void SendAndWait(int signal, int64_t wanted) {
  kill(getpid(), signal);
  Expect(WaitUntil([wanted] { return calls.load() >= wanted; }), "a signal arrives", calls, wanted);
}

void KeepsAHandlerForOneSignal() {
  for (const int signal : {SIGPROF, SIGURG}) {
    if (signal == SIGURG && !SignalUrgentIsOurs()) continue;
    Reset(SI_USER);
    Handle(signal, static_cast<int>(SA_SIGINFO | SA_RESETHAND));
    SendAndWait(signal, 1);
    struct sigaction now = {};
    sigaction(signal, nullptr, &now);
    Expect(now.sa_handler == SIG_DFL, "the handler after SA_RESETHAND", signal, 0);
    ::signal(signal, SIG_DFL);
  }
}

// Ticks until there are enough; then none comes that the program did not ask for.
void HasAnIntervalTimer() {
  Reset(SI_KERNEL);
  const struct sigaction before = Handle(SIGPROF);
  const itimerval interval = {{0, 4000}, {0, 4000}};
  ExpectEqual(setitimer(ITIMER_PROF, &interval, nullptr), 0, "setitimer");
  Expect(WaitUntil([] {
           Burn(500);
           return calls.load() >= 10;
         }),
         "ticks of ITIMER_PROF", calls, 10);
  itimerval left = {};
  ExpectEqual(getitimer(ITIMER_PROF, &left), 0, "getitimer");
  ExpectEqual(left.it_interval.tv_usec, 4000, "the interval that was set");
  const itimerval off = {};
  setitimer(ITIMER_PROF, &off, nullptr);
  // Some may have been taken by threads that have not come to their handlers yet.
  int64_t ticks = 0;
  Expect(WaitUntil([&ticks] {
           ticks = calls;
           Burn(20000);
           return calls.load() == ticks;
         }),
         "ticks after the timer was taken away", calls, ticks);
  ExpectEqual(foreign, 0, "SIGPROF that no timer of the program sent");
  Restore(SIGPROF, before);
}

void HasATimerOfItsOwn() {
  Reset(SI_TIMER);
  const struct sigaction before = Handle(SIGPROF);
  sigevent event = {};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = SIGPROF;
  event.sigev_value.sival_int = 7;
  event._sigev_un._tid = static_cast<pid_t>(syscall(SYS_gettid));
  timer_t timer = nullptr;
  ExpectEqual(timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer), 0, "timer_create");
  itimerspec interval = {};
  interval.it_interval.tv_nsec = 3'000'000;
  interval.it_value.tv_nsec = 3'000'000;
  timer_settime(timer, 0, &interval, nullptr);
  Expect(WaitUntil([] {
           Burn(500);
           return calls.load() >= 10;
         }),
         "ticks of the program's own timer", calls, 10);
  timer_delete(timer);
  ExpectEqual(values, calls * 7, "values of the program's own timer");
  const int64_t ticks = calls;
  Burn(20000);
  ExpectEqual(calls, ticks, "ticks after the timer was deleted");
  ExpectEqual(foreign, 0, "SIGPROF that no timer of the program sent");
  Restore(SIGPROF, before);
}

void HasItsMaskInHandlers() {
  for (const int signal : {SIGPROF, SIGURG}) {
    if (signal == SIGURG && !SignalUrgentIsOurs()) continue;
    Reset(SI_USER);
    struct sigaction action = {};
    struct sigaction before = {};
    action.sa_handler = [](int number) {
      sigset_t now;
      pthread_sigmask(SIG_BLOCK, nullptr, &now);
      const bool right = sigismember(&now, number) == 1 && sigismember(&now, SIGUSR2) == 1 &&
                         sigismember(&now, SIGUSR1) == 0 && sigismember(&now, SIGINT) == 0;
      if (!right) mask_was_right = false;
      calls.fetch_add(1);
    };
    sigaddset(&action.sa_mask, SIGUSR2);
    action.sa_flags = SA_RESTART;
    sigaction(signal, &action, &before);
    for (int i = 1; i <= 20; ++i) SendAndWait(signal, i);
    Expect(mask_was_right, "the mask in a handler", signal, 0);
    Restore(signal, before);
  }
}

// A blocked signal waits, alone, however long, and comes once.
void BlocksSignals() {
  Reset(SI_TKILL);
  const struct sigaction before = Handle(SIGPROF);
  sigset_t block, old, pending;
  sigemptyset(&block);
  sigaddset(&block, SIGPROF);
  sigaddset(&block, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &block, &old);
  Burn(30000);
  sigpending(&pending);
  ExpectEqual(sigismember(&pending, SIGPROF), 0, "SIGPROF is pending before it is raised");
  raise(SIGPROF);
  raise(SIGPROF);
  Burn(10000);
  ExpectEqual(calls, 0, "calls of a handler whose signal is blocked");
  sigpending(&pending);
  ExpectEqual(sigismember(&pending, SIGPROF), 1, "SIGPROF is pending");
  ExpectEqual(sigismember(&pending, SIGUSR1), 0, "SIGUSR1 is pending");
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
  ExpectEqual(calls, 1, "calls after the signal is unblocked");
  ExpectEqual(foreign, 0, "SIGPROF that the program did not raise");
  Restore(SIGPROF, before);
}

// All signals blocked, and one thread that waits for them: as many servers do it.
void WaitsForSignals() {
  sigset_t wanted, old;
  sigfillset(&wanted);
  sigdelset(&wanted, SIGCHLD);  // of the children that another thread has
  if (!SignalUrgentIsOurs()) sigdelset(&wanted, SIGURG);
  pthread_sigmask(SIG_BLOCK, &wanted, &old);
  for (int i = 0; i < 5; ++i) {
    Burn(5000);
    const timespec time = {0, 10'000'000};
    siginfo_t info = {};
    int got = 0;
    do {
      got = sigtimedwait(&wanted, &info, &time);
    } while (got == -1 && errno == EINTR);
    Expect(got == -1 && errno == EAGAIN, "sigtimedwait while nobody sends", got, -1);
    pthread_kill(pthread_self(), SIGUSR1);
    int signal = 0;
    ExpectEqual(sigwait(&wanted, &signal), 0, "sigwait");
    ExpectEqual(signal, SIGUSR1, "the signal that sigwait returns");
    pthread_kill(pthread_self(), SIGPROF);
    ExpectEqual(sigwaitinfo(&wanted, &info), SIGPROF, "the signal that sigwaitinfo returns");
    ExpectEqual(info.si_code, SI_USER, "its code");  // as glibc has it
    sigset_t pending;
    sigpending(&pending);
    ExpectEqual(sigismember(&pending, SIGPROF), 0, "SIGPROF is pending after it was taken");
  }
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
}

}  // namespace

const Scenario kOwnSignals[] = {
    {"counts what it raises", CountsWhatItRaises},
    {"queues values", QueuesValues},
    {"is told of its own handlers", IsToldOfItsOwnHandlers},
    {"keeps a handler for one signal", KeepsAHandlerForOneSignal},
    {"has an interval timer", HasAnIntervalTimer},
    {"has a timer of its own", HasATimerOfItsOwn},
    {"has its mask in handlers", HasItsMaskInHandlers},
    {"blocks signals", BlocksSignals},
    {"waits for signals", WaitsForSignals},
    {nullptr, nullptr},
};

}  // namespace spanprof::hostile
