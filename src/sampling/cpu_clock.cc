// SIGNAL-SAFE (TakePerfCount, IsPerfSignal).

#include "sampling/cpu_clock.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "sampling/perf_event.h"
#include "sampling/signal_dispatch.h"

namespace spanprof::sampling {
namespace {

constexpr uint32_t kPerfSamplesUnread = 16;

uint64_t Nanoseconds(const timespec& time) {
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(time.tv_nsec);
}

timespec FromNanoseconds(uint64_t nanoseconds) {
  timespec time = {};
  time.tv_sec = static_cast<time_t>(nanoseconds / 1'000'000'000u);
  time.tv_nsec = static_cast<long>(nanoseconds % 1'000'000'000u);
  return time;
}

// The kernel's own name for the CPU clock of one thread, which POSIX has a call for only if one has
// its pthread_t.
clockid_t ThreadClock(uint32_t tid) {
  constexpr unsigned kPerThread = 4, kScheduler = 2;
  return static_cast<clockid_t>((~tid << 3) | kPerThread | kScheduler);
}

uint64_t ReadClock(clockid_t clock) {
  timespec time = {};
  return syscall(SYS_clock_gettime, clock, &time) == 0 ? Nanoseconds(time) : 0;
}

// Not libc's: those are points at which a cancelled thread ends, and we are in a handler, or on a
// thread of the program's that has hardly begun.
void Close(int fd) { syscall(SYS_close, fd); }
bool ReadCount(int fd, uint64_t* count) {
  return syscall(SYS_read, fd, count, sizeof *count) == sizeof *count;
}

// A program may have closed our descriptor and opened something else in its place.
bool IsStillPerfEvent(int fd, uint32_t tid) {
  f_owner_ex owner = {};
  if (fcntl(fd, F_GETOWN_EX, &owner) != 0) return false;
  if (owner.type != F_OWNER_TID || static_cast<uint32_t>(owner.pid) != tid) return false;
  return fcntl(fd, F_GETSIG) == kSamplingSignal;
}

void SetTimer(int id, uint64_t first_ns, uint64_t interval_ns) {
  itimerspec spec = {};
  spec.it_interval = FromNanoseconds(interval_ns);
  spec.it_value = FromNanoseconds(first_ns);
  syscall(SYS_timer_settime, id, 0, &spec, nullptr);
}

// `id` is where handlers learn of the timer, before it can expire.
bool ArmTimer(SampledThread& thread, std::atomic<int>& id, uint64_t interval_ns) {
  const uint32_t tid = thread.tid.load(std::memory_order_relaxed);
  sigevent event = {};
  event.sigev_signo = kSamplingSignal;
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_value.sival_ptr = &thread;
#if defined(sigev_notify_thread_id)
  event.sigev_notify_thread_id = static_cast<pid_t>(tid);
#else
  event._sigev_un._tid = static_cast<pid_t>(tid);
#endif
  int created = -1;
  if (syscall(SYS_timer_create, ThreadClock(tid), &event, &created) != 0) return false;
  id.store(created, std::memory_order_release);
  // The first one anywhere in the interval, or threads that start together are sampled together.
  const uint64_t phase = (uint64_t{tid} * 0x9E3779B97F4A7C15u) % interval_ns;
  SetTimer(created, phase + 1, interval_ns);
  return true;
}

void DeleteTimer(std::atomic<int>& id) {
  if (const int timer = id.exchange(-1, std::memory_order_acq_rel); timer >= 0) {
    syscall(SYS_timer_delete, timer);
  }
}

}  // namespace

uint64_t KernelTickNanoseconds() {
  timespec resolution = {};
  if (clock_getres(CLOCK_MONOTONIC_COARSE, &resolution) != 0) return 4'000'000;
  return Nanoseconds(resolution);
}

uint64_t ThreadCpuNanoseconds(uint32_t tid) { return ReadClock(ThreadClock(tid)); }
uint64_t ProcessCpuNanoseconds() { return ReadClock(CLOCK_PROCESS_CPUTIME_ID); }

uint64_t MonotonicNanoseconds() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return Nanoseconds(now);
}

void CpuClock::Configure(uint64_t interval_ns, bool may_use_perf) {
  ChangeInterval(interval_ns);
  use_perf_ = may_use_perf && interval_ns < KernelTickNanoseconds();
  perf_events_ = 0;
  rlimit files = {};
  perf_limit_ = 0;
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
    perf_limit_ = static_cast<uint32_t>(files.rlim_cur < 65536 ? files.rlim_cur / 4 : 16384);
  }
}

bool CpuClock::ArmPerf(SampledThread& thread) {
  if (perf_events_ >= perf_limit_) return false;
  const uint32_t tid = thread.tid.load(std::memory_order_relaxed);
  const int fd = OpenPerfEvent(tid, interval_ns(), static_cast<int>(perf_limit_) * 3);
  if (fd < 0) return false;
  thread.perf_count = 0;
  thread.perf_taken_ns = 0;
  thread.perf_unread = 0;
  thread.perf_fd.store(fd, std::memory_order_release);
  // It goes on by itself. To stop it at each signal and start it anew in the handler takes longer
  // than all the rest of a sample, and the kernel keeps no more than one signal waiting anyway.
  if (ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) != 0) {
    thread.perf_fd.store(-1, std::memory_order_release);
    Close(fd);
    return false;
  }
  ++perf_events_;
  return true;
}

CpuClock::Source CpuClock::Arm(SampledThread& thread) {
  if (use_perf_ && ArmPerf(thread)) return Source::kPerf;
  return ArmTimer(thread, thread.timer_id, interval_ns()) ? Source::kTimer : Source::kNone;
}

bool CpuClock::ArmWallTimer(SampledThread& thread, uint64_t interval_ns) {
  return ArmTimer(thread, thread.wall_timer_id, interval_ns);
}

void CpuClock::RearmWallTimer(const SampledThread& thread, uint64_t interval_ns) {
  const int id = thread.wall_timer_id.load(std::memory_order_acquire);
  if (id >= 0) SetTimer(id, interval_ns, interval_ns);
}

void CpuClock::Rearm(const SampledThread& thread) const {
  const uint64_t interval = interval_ns();
  if (const int id = thread.timer_id.load(std::memory_order_acquire); id >= 0) {
    SetTimer(id, interval, interval);
  }
  const int fd = thread.perf_fd.load(std::memory_order_acquire);
  if (fd >= 0 && IsStillPerfEvent(fd, thread.tid.load(std::memory_order_relaxed))) {
    uint64_t period = interval;
    ioctl(fd, PERF_EVENT_IOC_PERIOD, &period);
  }
}

void CpuClock::Disarm(SampledThread& thread) {
  DeleteTimer(thread.timer_id);
  DeleteTimer(thread.wall_timer_id);
  if (const int fd = thread.perf_fd.exchange(-1, std::memory_order_acq_rel); fd >= 0) {
    if (IsStillPerfEvent(fd, thread.tid.load(std::memory_order_relaxed))) Close(fd);
    --perf_events_;
  }
}

uint64_t CpuClock::TakePerfCount(SampledThread& thread, uint64_t now_ns) const {
  const int fd = thread.perf_fd.load(std::memory_order_acquire);
  const uint64_t interval = interval_ns();
  uint64_t count = 0;
  uint64_t intervals = 1;
  // A thread cannot have used more CPU time than has passed, so the count need not be read each
  // time: only now and then, so that nothing adds up.
  const bool surely_one = now_ns - thread.perf_taken_ns < interval + interval / 2;
  thread.perf_taken_ns = now_ns;
  if (surely_one && ++thread.perf_unread < kPerfSamplesUnread) {
    thread.perf_count += interval;
  } else if (fd >= 0 && ReadCount(fd, &count)) {
    thread.perf_unread = 0;
    if (count > thread.perf_count) {
      const uint64_t passed = (count - thread.perf_count) / interval;
      if (passed > 1) intervals = passed;
      thread.perf_count += intervals * interval;
    }
    if (thread.perf_count > count) thread.perf_count = count;
  }
  return intervals;
}

bool CpuClock::PerfIsDue(const SampledThread& thread) const {
  const int fd = thread.perf_fd.load(std::memory_order_acquire);
  uint64_t count = 0;
  return fd >= 0 && ReadCount(fd, &count) && count >= thread.perf_count + interval_ns();
}

bool CpuClock::IsPerfSignal(int si_code) {
  return si_code == POLL_IN || si_code == POLL_HUP || si_code == POLL_MSG || si_code == POLL_ERR;
}

}  // namespace spanprof::sampling
