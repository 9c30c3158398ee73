#include "profile_signal.h"

#include <cerrno>
#include <csignal>
#include <mutex>
#include <unistd.h>

#include "clock.h"

namespace spanprof::node {
namespace {

// glibc has room for such a word in every thread from its start; musl gives it on the first touch,
// which BeginSignals does.
#if defined(__GLIBC__)
__attribute__((tls_model("initial-exec")))
#endif
thread_local SignalState* thread_state = nullptr;

std::mutex installation;
unsigned users = 0;
// Written before our handler is installed, and so before it can read them.
struct sigaction v8_action = {};
struct sigaction earlier_action = {};
pid_t process = 0;
std::atomic<bool> installed{false};
std::atomic<bool> heard_since_asked{false};
std::atomic<uint64_t> foreign_signals{0};

void Call(const struct sigaction& action, int signal, siginfo_t* info, void* registers) {
  if ((action.sa_flags & SA_SIGINFO) != 0) {
    if (action.sa_sigaction != nullptr) action.sa_sigaction(signal, info, registers);
  } else if (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN) {
    action.sa_handler(signal);
  }
}

// V8's thread sends its signal to one thread, from this process. A timer's comes from the kernel.
bool IsFromV8(const siginfo_t& info) { return info.si_code == SI_TKILL && info.si_pid == process; }

void NoteSample(SignalState& state, int64_t from_ns) {
  SampleRecord* const record = state.ring.Reserve();
  if (record == nullptr) return;
  record->from_ns = from_ns;
  record->in_garbage_collection = state.collections.load(std::memory_order_relaxed) > 0;
  record->store = 0;
  if (record->in_garbage_collection) {
    record->state = state.collection_store_state;
    record->store = state.collection_store;
  } else {
    record->state = state.FindStore(&record->store);
  }
  record->cpu_ns = Nanoseconds(CLOCK_THREAD_CPUTIME_ID);
  record->to_ns = Nanoseconds(CLOCK_MONOTONIC);
  state.ring.Commit();
}

// SIGNAL-SAFE.
void OnProfileSignal(int signal, siginfo_t* info, void* registers) {
  const int saved_errno = errno;
  if (!installed.load(std::memory_order_acquire) || !IsFromV8(*info)) {
    // Somebody's handler that was installed after ours may call us even when nothing is sampled.
    foreign_signals.fetch_add(1, std::memory_order_relaxed);
    Call(earlier_action, signal, info, registers);
    errno = saved_errno;
    return;
  }
  heard_since_asked.store(true, std::memory_order_relaxed);
  SignalState* const state = thread_state;
  const int64_t from_ns = Nanoseconds(CLOCK_MONOTONIC);
  Call(v8_action, signal, info, registers);
  if (state != nullptr) {
    state->signals.fetch_add(1, std::memory_order_relaxed);
    // V8 takes no sample either of an isolate that nobody is in.
    if (state->isolate->IsInUse()) NoteSample(*state, from_ns);
  }
  errno = saved_errno;
}

void InstallHandler() {
  struct sigaction ours = {};
  ours.sa_sigaction = &OnProfileSignal;
  sigemptyset(&ours.sa_mask);
  ours.sa_flags = SA_RESTART | SA_SIGINFO | SA_ONSTACK;
  process = getpid();
  sigaction(SIGPROF, nullptr, &v8_action);
  installed.store(true, std::memory_order_release);
  sigaction(SIGPROF, &ours, nullptr);
}

bool HandlerIsOurs(const struct sigaction& action) {
  return (action.sa_flags & SA_SIGINFO) != 0 && action.sa_sigaction == &OnProfileSignal;
}

void RemoveHandler() {
  struct sigaction current = {};
  sigaction(SIGPROF, nullptr, &current);
  // Somebody came after us: what he has stays, and what he calls of ours passes on.
  if (HandlerIsOurs(current)) sigaction(SIGPROF, &v8_action, nullptr);
  installed.store(false, std::memory_order_release);
}

}  // namespace

void BeginSignals(SignalState* state, const std::function<void()>& start) {
  const std::lock_guard<std::mutex> lock(installation);
  if (users == 0) {
    struct sigaction current = {};
    sigaction(SIGPROF, nullptr, &current);
    if (!HandlerIsOurs(current)) earlier_action = current;
  }
  start();
  thread_state = state;
  if (users++ == 0) InstallHandler();
}

void EndSignals(const std::function<void()>& stop) {
  const std::lock_guard<std::mutex> lock(installation);
  thread_state = nullptr;
  if (--users == 0) RemoveHandler();
  stop();
}

bool HandlerIsDisplaced() {
  struct sigaction current = {};
  sigaction(SIGPROF, nullptr, &current);
  // He may well call us, and then we hear of V8's signals as before.
  return !HandlerIsOurs(current) && !heard_since_asked.exchange(false, std::memory_order_relaxed);
}

uint64_t ForeignSignals() { return foreign_signals.load(std::memory_order_relaxed); }

}  // namespace spanprof::node
