// Calls that wait: what ends them is what they waited for, or a signal of the program's own.

#include <atomic>
#include <cerrno>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <thread>
#include <time.h>
#include <unistd.h>

#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "scenario.h"

namespace spanprof::hostile {
namespace {

constexpr long kMilliseconds = 30;
constexpr timespec kTime = {0, kMilliseconds * 1'000'000};

// Runs a call that is to last kMilliseconds and return `wanted`.
template <class Call>
void ExpectWholeWait(const char* what, int64_t wanted, Call call) {
  const uint64_t start = MonotonicNanoseconds();
  errno = 0;
  const int64_t result = call();
  const uint64_t took = MonotonicNanoseconds() - start;
  Expect(result == wanted, what, result == -1 ? -errno : result, wanted);
  // A clock's resolution of a millisecond, for those that count in milliseconds.
  Expect(took >= (kMilliseconds - 1) * 1'000'000u, what, static_cast<int64_t>(took), kMilliseconds);
}

timespec InAWhile(clockid_t clock) {
  timespec time = {};
  clock_gettime(clock, &time);
  time.tv_nsec += kTime.tv_nsec;
  if (time.tv_nsec >= 1'000'000'000) {
    time.tv_nsec -= 1'000'000'000;
    ++time.tv_sec;
  }
  return time;
}

// No handler of the program's runs here, so nothing of this may be interrupted.
void SleepsAsLongAsItWants() {
  ExpectWholeWait("usleep", 0, [] { return usleep(kMilliseconds * 1000); });
  ExpectWholeWait("nanosleep", 0, [] { return nanosleep(&kTime, nullptr); });
  ExpectWholeWait("nanosleep with a place for the rest", 0, [] {
    timespec time = kTime;
    return nanosleep(&time, &time);
  });
  ExpectWholeWait("clock_nanosleep", 0,
                  [] { return clock_nanosleep(CLOCK_MONOTONIC, 0, &kTime, nullptr); });
  ExpectWholeWait("clock_nanosleep until a time", 0, [] {
    const timespec until = InAWhile(CLOCK_MONOTONIC);
    return clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
  });
  ExpectWholeWait("sleep", 0, [] { return sleep(1); });
}

void WaitsForDescriptors() {
  int ends[2] = {};
  ExpectEqual(pipe2(ends, O_CLOEXEC), 0, "pipe");
  const int empty = ends[0];
  ExpectWholeWait("poll", 0, [empty] {
    pollfd wait = {empty, POLLIN, 0};
    return poll(&wait, 1, kMilliseconds);
  });
  ExpectWholeWait("ppoll", 0, [empty] {
    pollfd wait = {empty, POLLIN, 0};
    return ppoll(&wait, 1, &kTime, nullptr);
  });
  ExpectWholeWait("select", 0, [empty] {
    fd_set set;
    FD_ZERO(&set);
    if (empty >= FD_SETSIZE) return usleep(kMilliseconds * 1000);
    FD_SET(empty, &set);
    timeval time = {0, kMilliseconds * 1000};
    return select(empty + 1, &set, nullptr, nullptr, &time);
  });
  const int poller = epoll_create1(EPOLL_CLOEXEC);
  epoll_event event = {};
  event.events = EPOLLIN;
  ExpectEqual(epoll_ctl(poller, EPOLL_CTL_ADD, empty, &event), 0, "epoll_ctl");
  // Unlike the others it ends with EINTR too when the kernel wakes the thread for a signal that
  // another thread has then taken; so it does without a profiler.
  ExpectWholeWait("epoll_wait", 0, [poller] {
    epoll_event ready = {};
    int result = 0;
    do {
      result = epoll_wait(poller, &ready, 1, kMilliseconds);
    } while (result == -1 && errno == EINTR);
    return result;
  });
  close(poller);
  close(ends[0]);
  close(ends[1]);
}

void WaitsForThreads() {
  sem_t semaphore;
  sem_init(&semaphore, 0, 0);
  ExpectWholeWait("sem_timedwait", -ETIMEDOUT, [&semaphore] {
    const timespec until = InAWhile(CLOCK_REALTIME);
    return sem_timedwait(&semaphore, &until) == 0 ? 0 : -errno;
  });
  std::thread poster([&semaphore] {
    Burn(3000);
    timespec left = kTime;
    while (nanosleep(&left, &left) != 0) {
    }
    sem_post(&semaphore);
  });
  ExpectWholeWait("sem_wait", 0, [&semaphore] { return sem_wait(&semaphore); });
  poster.join();
  sem_destroy(&semaphore);
}

std::atomic<int> alarms{0};

// sigsuspend and pause end by the program's own signal, and by nothing else.
void SuspendsUntilItsSignal() {
  struct sigaction action = {};
  struct sigaction before = {};
  action.sa_handler = [](int) { alarms.fetch_add(1); };
  sigaction(SIGALRM, &action, &before);
  sigset_t block, old;
  sigemptyset(&block);
  sigaddset(&block, SIGALRM);
  pthread_sigmask(SIG_BLOCK, &block, &old);
  sigset_t open = old;
  sigdelset(&open, SIGALRM);
  for (int i = 0; i < 3; ++i) {
    alarms = 0;
    const itimerval once = {{0, 0}, {0, kMilliseconds * 1000}};
    setitimer(ITIMER_REAL, &once, nullptr);
    sigsuspend(&open);
    // Another thread may have had the signal: then this one is still waiting for its own.
    ExpectEqual(alarms, 1, "alarms when sigsuspend returns");
  }
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
  sigaction(SIGALRM, &before, nullptr);
}

struct Reader {
  int fd = -1;
  std::atomic<bool> done{false};
  ssize_t result = 0;
  int error = 0;
  void Run() {
    char byte = 0;
    result = read(fd, &byte, 1);
    error = errno;
    done = true;
  }
};

// With SA_RESTART a signal does not end read(), without it it does.
void IsInterrupted(int signal, int flags) {
  struct sigaction action = {};
  struct sigaction before = {};
  action.sa_handler = [](int) {};
  action.sa_flags = flags;
  sigaction(signal, &action, &before);
  int ends[2] = {};
  ExpectEqual(pipe2(ends, O_CLOEXEC), 0, "pipe");
  Reader reader;
  reader.fd = ends[0];
  std::thread thread(&Reader::Run, &reader);
  const pthread_t target = thread.native_handle();
  if (flags == 0) {
    // It may not be in read() yet: once more, until it is.
    WaitUntil([&] {
      pthread_kill(target, signal);
      usleep(1000);
      return reader.done.load();
    });
    if (!reader.done && write(ends[1], "x", 1) != 1) Expect(false, "write", errno, 0);
    thread.join();
    Expect(reader.result == -1 && reader.error == EINTR, "read() without SA_RESTART", reader.result,
           -1);
  } else {
    for (int i = 0; i < 20; ++i) {
      pthread_kill(target, signal);
      usleep(500);
    }
    Expect(!reader.done, "read() with SA_RESTART goes on", reader.result, 0);
    if (write(ends[1], "x", 1) != 1) Expect(false, "write", errno, 0);
    thread.join();
    ExpectEqual(reader.result, 1, "read() with SA_RESTART");
  }
  close(ends[0]);
  close(ends[1]);
  sigaction(signal, &before, nullptr);
}

void IsInterruptedWhereItAsked() {
  for (const int signal : {SIGPROF, SIGURG}) {
    if (signal == SIGURG && !SignalUrgentIsOurs()) continue;
    for (const int flags : {0, SA_RESTART}) IsInterrupted(signal, flags);
  }
}

}  // namespace

const Scenario kWaiting[] = {
    {"sleeps as long as it wants", SleepsAsLongAsItWants},
    {"waits for descriptors", WaitsForDescriptors},
    {"waits for threads", WaitsForThreads},
    {"suspends until its signal", SuspendsUntilItsSignal},
    {"is interrupted where it asked", IsInterruptedWhereItAsked},
    {nullptr, nullptr},
};

}  // namespace spanprof::hostile
