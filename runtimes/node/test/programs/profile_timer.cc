// An addon that uses SIGPROF for itself, as other profilers in a process do: a timer of the
// process's CPU time, and a handler that counts.

#include <csignal>
#include <node.h>

#include <sys/time.h>

namespace {

volatile sig_atomic_t count = 0;

void Start(const v8::FunctionCallbackInfo<v8::Value>&) {
  struct sigaction action = {};
  action.sa_sigaction = [](int, siginfo_t* info, void*) {
    if (info->si_code == SI_KERNEL) count = count + 1;
  };
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  sigaction(SIGPROF, &action, nullptr);
  const itimerval often = {{0, 4000}, {0, 4000}};
  setitimer(ITIMER_PROF, &often, nullptr);
}

void Stop(const v8::FunctionCallbackInfo<v8::Value>&) {
  const itimerval never = {};
  setitimer(ITIMER_PROF, &never, nullptr);
}

void Count(const v8::FunctionCallbackInfo<v8::Value>& arguments) {
  arguments.GetReturnValue().Set(static_cast<int>(count));
}

}  // namespace

NODE_MODULE_INIT() {
  (void)module;
  (void)context;
  NODE_SET_METHOD(exports, "start", Start);
  NODE_SET_METHOD(exports, "stop", Stop);
  NODE_SET_METHOD(exports, "count", Count);
}
