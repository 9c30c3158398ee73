// sigwait and its like: a signal of the profiler's that was sent while the thread had it blocked is
// not what the program waits for. The wait goes on.

#include <cerrno>
#include <csignal>
#include <ctime>

#include "context/core_election.h"
#include "preload/real_function.h"
#include "sampling/cpu_clock.h"

namespace spanprof::preload {
namespace {

constexpr uint64_t kNanosecondsInSecond = 1'000'000'000;

constinit RealFunction<int(const sigset_t*, siginfo_t*, const timespec*)> real_sigtimedwait{
    "sigtimedwait"};

[[gnu::constructor]] void OnLoad() { real_sigtimedwait.Find(); }

int WaitForSignal(const sigset_t* set, siginfo_t* info, const timespec* limit) {
  siginfo_t own_info = {};
  siginfo_t* const seen = info != nullptr ? info : &own_info;
  const bool limited = limit != nullptr && limit->tv_sec >= 0 && limit->tv_nsec >= 0;
  uint64_t deadline = 0;
  if (limited) {
    deadline = sampling::MonotonicNanoseconds() +
               static_cast<uint64_t>(limit->tv_sec) * kNanosecondsInSecond +
               static_cast<uint64_t>(limit->tv_nsec);
  }
  timespec left = limited ? *limit : timespec{};
  for (;;) {
    const int signal = real_sigtimedwait(set, seen, limited ? &left : limit);
    const context::CoreInterface* core = context::ActiveCore();
    if (signal <= 0 || core == nullptr || core->profiler().take_waited_signal(signal, seen) == 0) {
      return signal;
    }
    if (!limited) continue;
    const uint64_t now = sampling::MonotonicNanoseconds();
    const uint64_t rest = deadline > now ? deadline - now : 0;
    left.tv_sec = static_cast<time_t>(rest / kNanosecondsInSecond);
    left.tv_nsec = static_cast<long>(rest % kNanosecondsInSecond);
  }
}

}  // namespace
}  // namespace spanprof::preload

extern "C" {

[[gnu::visibility("default")]] int sigtimedwait(const sigset_t* set, siginfo_t* info,
                                                const timespec* limit) {
  return spanprof::preload::WaitForSignal(set, info, limit);
}

[[gnu::visibility("default")]] int sigwaitinfo(const sigset_t* set, siginfo_t* info) {
  return spanprof::preload::WaitForSignal(set, info, nullptr);
}

[[gnu::visibility("default")]] int sigwait(const sigset_t* set, int* signal) {
  const int saved_errno = errno;
  int result = 0;
  do {
    result = spanprof::preload::WaitForSignal(set, nullptr, nullptr);
  } while (result < 0 && errno == EINTR);
  const int error = result < 0 ? errno : 0;
  errno = saved_errno;
  if (error == 0) *signal = result;
  return error;
}

}  // extern "C"
