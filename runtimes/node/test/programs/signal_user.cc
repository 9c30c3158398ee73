// An addon that uses SIGPROF for itself, as other profilers in a process do: a timer of the
// process's CPU time, a handler that counts, and ways to be a bad neighbour.

#include <atomic>
#include <csignal>
#include <node.h>
#include <unistd.h>

#include <sys/syscall.h>
#include <sys/time.h>

namespace {

std::atomic<int> of_timer{0};
std::atomic<int> of_others{0};
struct sigaction displaced_action = {};

void CountSignal(int, siginfo_t* info, void*) {
  // A timer's signal comes from the kernel, V8's from this process.
  ++(info->si_code == SI_KERNEL ? of_timer : of_others);
}

void CountAndPassOn(int signal, siginfo_t* info, void* registers) {
  CountSignal(signal, info, registers);
  displaced_action.sa_sigaction(signal, info, registers);
}

void Install(void (*handler)(int, siginfo_t*, void*)) {
  struct sigaction action = {};
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  sigaction(SIGPROF, &action, &displaced_action);
}

void StartTimer(const v8::FunctionCallbackInfo<v8::Value>&) {
  Install(&CountSignal);
  const itimerval often = {{0, 4000}, {0, 4000}};
  setitimer(ITIMER_PROF, &often, nullptr);
}

void StopTimer(const v8::FunctionCallbackInfo<v8::Value>&) {
  const itimerval never = {};
  setitimer(ITIMER_PROF, &never, nullptr);
}

// Takes the signal from whoever has it, and tells him nothing.
void Displace(const v8::FunctionCallbackInfo<v8::Value>&) { Install(&CountSignal); }

// Takes the signal, and calls whoever had it.
void StandBefore(const v8::FunctionCallbackInfo<v8::Value>&) { Install(&CountAndPassOn); }

// Sends this thread as many signals as asked for, each of which looks like V8's.
void Flood(const v8::FunctionCallbackInfo<v8::Value>& arguments) {
  const int count = arguments[0].As<v8::Int32>()->Value();
  for (int i = 0; i < count; ++i) syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), SIGPROF);
}

void CountOfTimer(const v8::FunctionCallbackInfo<v8::Value>& arguments) {
  arguments.GetReturnValue().Set(of_timer.load());
}

void CountOfOthers(const v8::FunctionCallbackInfo<v8::Value>& arguments) {
  arguments.GetReturnValue().Set(of_others.load());
}

}  // namespace

NODE_MODULE_INIT() {
  (void)module;
  (void)context;
  NODE_SET_METHOD(exports, "startTimer", StartTimer);
  NODE_SET_METHOD(exports, "stopTimer", StopTimer);
  NODE_SET_METHOD(exports, "displace", Displace);
  NODE_SET_METHOD(exports, "standBefore", StandBefore);
  NODE_SET_METHOD(exports, "flood", Flood);
  NODE_SET_METHOD(exports, "countOfTimer", CountOfTimer);
  NODE_SET_METHOD(exports, "countOfOthers", CountOfOthers);
}
