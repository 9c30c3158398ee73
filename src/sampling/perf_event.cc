#include "sampling/perf_event.h"

#include <algorithm>
#include <atomic>
#include <errno.h>
#include <fcntl.h>
#include <system_error>
#include <thread>
#include <unistd.h>

#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include "context/platform.h"
#include "sampling/cpu_clock.h"
#include "sampling/signal_dispatch.h"

namespace spanprof::sampling {
namespace {

// Not libc's close: that is a point at which a cancelled thread ends, and this may be a thread of
// the program's that has hardly begun.
void Close(int fd) { syscall(SYS_close, fd); }

// So often that a millisecond has enough of them, and far below what the kernel allows.
constexpr uint64_t kMeasuredPeriodNs = 100'000;
constexpr uint64_t kMeasuredWorkNs = 2'000'000;
constexpr int kRounds = 3;
// What a measurement leaves out: the way into a handler and back.
constexpr uint64_t kDeliveryNs = 2'000;

// The same work each time, in registers only. Returns its CPU time.
uint64_t TimeOfWork(uint32_t tid, uint64_t steps) {
  const uint64_t began = ThreadCpuNanoseconds(tid);
  for (uint64_t i = 0; i < steps; ++i) __asm__ volatile("" : "+r"(i));
  return ThreadCpuNanoseconds(tid) - began;
}

// On a thread that has all signals blocked: the kernel does all but enter a handler.
uint64_t MeasureHere() {
  const uint32_t tid = context::CurrentThreadId();
  const int fd = OpenPerfEvent(tid, kMeasuredPeriodNs, 0);
  if (fd < 0) return 0;
  uint64_t steps = 100'000;
  while (TimeOfWork(tid, steps) < kMeasuredWorkNs / 2) steps *= 2;
  // Whatever else happens makes it slower: the fastest is the nearest.
  uint64_t without = ~uint64_t{0};
  uint64_t with = ~uint64_t{0};
  for (int i = 0; i < kRounds; ++i) {
    without = std::min(without, TimeOfWork(tid, steps));
    ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
    with = std::min(with, TimeOfWork(tid, steps));
    ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
  }
  Close(fd);
  const uint64_t events = with / kMeasuredPeriodNs;
  const uint64_t each = events == 0 || with < without ? 0 : (with - without) / events;
  // When they come less often, the kernel's code and data have left the caches: about a quarter
  // more was seen.
  return each + each / 4 + kDeliveryNs;
}

}  // namespace

int OpenPerfEvent(uint32_t tid, uint64_t period_ns, int lowest_fd) {
  perf_event_attr attributes = {};
  attributes.size = sizeof attributes;
  attributes.type = PERF_TYPE_SOFTWARE;
  attributes.config = PERF_COUNT_SW_CPU_CLOCK;
  attributes.sample_period = period_ns;
  attributes.disabled = 1;
  attributes.wakeup_events = 1;
  attributes.exclude_hv = 1;
  int fd = static_cast<int>(
      syscall(SYS_perf_event_open, &attributes, tid, -1, -1, PERF_FLAG_FD_CLOEXEC));
  if (fd < 0 && (errno == EACCES || errno == EPERM)) {
    attributes.exclude_kernel = 1;  // all that perf_event_paranoid=2 allows
    fd = static_cast<int>(
        syscall(SYS_perf_event_open, &attributes, tid, -1, -1, PERF_FLAG_FD_CLOEXEC));
  }
  if (fd < 0) return -1;
  // Before O_ASYNC: signals have the number that it was set by.
  if (const int high = fcntl(fd, F_DUPFD_CLOEXEC, lowest_fd); high >= 0) {
    Close(fd);
    fd = high;
  }
  f_owner_ex owner = {};
  owner.type = F_OWNER_TID;
  owner.pid = static_cast<pid_t>(tid);
  if (fcntl(fd, F_SETFL, O_ASYNC) == 0 && fcntl(fd, F_SETSIG, kSamplingSignal) == 0 &&
      fcntl(fd, F_SETOWN_EX, &owner) == 0) {
    return fd;
  }
  Close(fd);
  return -1;
}

uint64_t PerfEventNanoseconds() {
  // No lock, which a fork could leave taken: two threads may measure it at once.
  constexpr uint64_t kUnknown = ~uint64_t{0};
  static std::atomic<uint64_t> known{kUnknown};
  uint64_t nanoseconds = known.load(std::memory_order_relaxed);
  if (nanoseconds != kUnknown) return nanoseconds;
  const context::SignalBlocker no_signals;
  try {
    std::thread([&nanoseconds] { nanoseconds = MeasureHere(); }).join();
  } catch (const std::system_error&) {
    return 0;  // no thread: perhaps the next time
  }
  known.store(nanoseconds, std::memory_order_relaxed);
  return nanoseconds;
}

}  // namespace spanprof::sampling
