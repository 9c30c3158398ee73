#include "signal_storm.h"

#include <pthread.h>

#include <sys/mman.h>

#include "scripted_writer.h"
#include "stress_run.h"

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

namespace spanprof::stress {
namespace {

constexpr size_t kStackBytes = 256 * 1024;
constexpr unsigned kAutoDisarm = 1u << 31;  // SS_AUTODISARM

}  // namespace

SignalHandler::SignalHandler(int signal, void (*handler)(int), HandlerStack stack)
    : signal_(signal) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART | (stack == HandlerStack::kNormal ? 0 : SA_ONSTACK);
  sigaction(signal, &action, &previous_);
}

SignalHandler::~SignalHandler() { sigaction(signal_, &previous_, nullptr); }

AlternateStack::AlternateStack(HandlerStack stack) : stack_(stack) {
  if (stack == HandlerStack::kNormal) return;
  void* memory = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  if (memory != MAP_FAILED) memory_ = memory;
}

AlternateStack::~AlternateStack() {
  if (memory_ != nullptr) munmap(memory_, kStackBytes);
}

bool AlternateStack::Install() {
  if (stack_ == HandlerStack::kNormal) return true;
  if (memory_ == nullptr) return false;
  stack_t alternate = {};
  alternate.ss_sp = memory_;
  alternate.ss_size = kStackBytes;
  if (stack_ == HandlerStack::kAlternateDisarmed) {
    alternate.ss_flags = static_cast<int>(kAutoDisarm);
  }
  return sigaltstack(&alternate, &previous_) == 0;
}

void AlternateStack::Remove() {
  if (stack_ != HandlerStack::kNormal) sigaltstack(&previous_, nullptr);
}

SignalStorm::SignalStorm(int signal) : signal_(signal) {
  const int tid = CurrentTid();
  struct sigevent event = {};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = signal;
  event.sigev_notify_thread_id = tid;
  if (timer_create(CLOCK_MONOTONIC, &event, &timer_) != 0) return;
  // Not the same for every thread, and long enough for a slow handler to come back from.
  const long nanoseconds = (kSanitized ? 400'000 : 37'000) + (tid % 8) * 1'700;
  const itimerspec every = {{0, nanoseconds}, {0, nanoseconds}};
  ok_ = timer_settime(timer_, 0, &every, nullptr) == 0;
}

SignalStorm::~SignalStorm() {
  if (!ok_) return;
  timer_delete(timer_);
  // One may still be pending: take it here, not when the handler's data is gone.
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal_);
  sigset_t previous;
  pthread_sigmask(SIG_BLOCK, &set, &previous);
  const timespec none = {0, 0};
  while (sigtimedwait(&set, nullptr, &none) > 0) {
  }
  pthread_sigmask(SIG_SETMASK, &previous, nullptr);
}

}  // namespace spanprof::stress
