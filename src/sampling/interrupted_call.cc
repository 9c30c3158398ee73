// SIGNAL-SAFE, except for ReadBlockedCall.

#include "sampling/interrupted_call.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <linux/futex.h>
#include <sys/syscall.h>

#include "sampling/safe_memory.h"

namespace spanprof::sampling {
namespace {

constexpr uint64_t kKernelSignalSetBytes = 8;
constexpr uint64_t kNoTimeLimit = 0;  // as an argument: a null pointer

// The registers of a call. `again` is the address of its instruction.
#if defined(__x86_64__)
constexpr int kArgumentRegisters[6] = {REG_RDI, REG_RSI, REG_RDX, REG_R10, REG_R8, REG_R9};
constexpr unsigned kCallBytes = 2;

uint64_t Register(const ucontext_t& at, int name) {
  return static_cast<uint64_t>(at.uc_mcontext.gregs[name]);
}
uint64_t ProgramCounter(const ucontext_t& at) { return Register(at, REG_RIP); }
uint64_t StackPointer(const ucontext_t& at) { return Register(at, REG_RSP); }
int64_t ResultOf(const ucontext_t& at) { return at.uc_mcontext.gregs[REG_RAX]; }
uint64_t Argument(const ucontext_t& at, const BlockedCall&, unsigned i) {
  return Register(at, kArgumentRegisters[i]);
}
void CallAgain(ucontext_t& at, const BlockedCall& call, const uint64_t (&arguments)[6]) {
  for (unsigned i = 0; i < 6; ++i) {
    at.uc_mcontext.gregs[kArgumentRegisters[i]] = static_cast<greg_t>(arguments[i]);
  }
  at.uc_mcontext.gregs[REG_RAX] = call.number;
  at.uc_mcontext.gregs[REG_RIP] -= kCallBytes;
}
#elif defined(__aarch64__)
constexpr unsigned kCallBytes = 4;

uint64_t ProgramCounter(const ucontext_t& at) { return at.uc_mcontext.pc; }
uint64_t StackPointer(const ucontext_t& at) { return at.uc_mcontext.sp; }
int64_t ResultOf(const ucontext_t& at) { return static_cast<int64_t>(at.uc_mcontext.regs[0]); }
// The first argument's register has the result.
uint64_t Argument(const ucontext_t& at, const BlockedCall& call, unsigned i) {
  return i == 0 ? call.arguments[0] : at.uc_mcontext.regs[i];
}
void CallAgain(ucontext_t& at, const BlockedCall& call, const uint64_t (&arguments)[6]) {
  for (unsigned i = 0; i < 6; ++i) at.uc_mcontext.regs[i] = arguments[i];
  at.uc_mcontext.regs[8] = static_cast<uint64_t>(call.number);
  at.uc_mcontext.pc -= kCallBytes;
}
#else
uint64_t ProgramCounter(const ucontext_t&) { return 0; }
uint64_t StackPointer(const ucontext_t&) { return 0; }
int64_t ResultOf(const ucontext_t&) { return 0; }
uint64_t Argument(const ucontext_t&, const BlockedCall&, unsigned) { return 0; }
void CallAgain(ucontext_t&, const BlockedCall&, const uint64_t (&)[6]) {}
#endif

// Whether a signal waits until the handler returns. It may be the program's, and the call is then
// to end with EINTR.
bool ASignalIsPending(const ucontext_t& at) {
  uint64_t pending = 0;
  uint64_t blocked = 0;
  memcpy(&blocked, &at.uc_sigmask, sizeof blocked);
  if (syscall(SYS_rt_sigpending, &pending, kKernelSignalSetBytes) != 0) return true;
  return (pending & ~blocked) != 0;
}

uint64_t Nanoseconds(const timespec& time) {
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(time.tv_nsec);
}

// In the upper half of a register with an int in it, which the kernel does not look at: the limit
// is what we left of another one.
constexpr uint64_t kLimitIsOurs = uint64_t{0x5350414E} << 32;
constexpr uint64_t kUpperHalf = ~uint64_t{0} << 32;

// The limits of one interrupted call.
struct Limits {
  uint64_t now_ns;
  uint32_t tid;
  CallTimeouts timeouts;
  CallTimeout& own;

  uint64_t KeepDeadline(uint64_t deadline_ns) const {
    own.tid = tid;
    own.deadline_ns = deadline_ns;
    return deadline_ns > now_ns ? deadline_ns - now_ns : 0;
  }
};

// A limit in milliseconds, -1 for none: what is left of it.
uint64_t MillisecondsLeft(uint64_t argument, const Limits& limits) {
  const auto limit = static_cast<int32_t>(argument);
  if (limit < 0) return argument;
  const bool known = (argument & kUpperHalf) == kLimitIsOurs && limits.own.tid == limits.tid;
  const uint64_t left = limits.KeepDeadline(
      known ? limits.own.deadline_ns : limits.now_ns + static_cast<uint64_t>(limit) * 1'000'000u);
  return kLimitIsOurs | ((left + 999'999) / 1'000'000u);
}

// A sleep's arguments, for what is left of it.
bool SleepOn(uint64_t& requested, uint64_t remaining, const Limits& limits) {
  if (remaining != 0) {  // the kernel has put there what is left
    requested = remaining;
    return true;
  }
  const auto first = reinterpret_cast<uint64_t>(limits.timeouts.all);
  uint64_t deadline = 0;
  if (requested >= first && requested < first + limits.timeouts.count * sizeof(CallTimeout)) {
    const CallTimeout& earlier = limits.timeouts.all[(requested - first) / sizeof(CallTimeout)];
    if (earlier.tid != limits.tid) return false;  // another thread has it now
    deadline = earlier.deadline_ns;
  } else {
    timespec all = {};
    if (ReadOwnMemory(requested, &all, sizeof all) != sizeof all) return false;
    deadline = limits.now_ns + Nanoseconds(all);
  }
  const uint64_t left = limits.KeepDeadline(deadline);
  limits.own.left.tv_sec = static_cast<time_t>(left / 1'000'000'000u);
  limits.own.left.tv_nsec = static_cast<long>(left % 1'000'000'000u);
  requested = reinterpret_cast<uint64_t>(&limits.own.left);
  return true;
}

// The arguments with which a call goes on. False: it is left to end.
bool PrepareArguments(long number, const Limits& limits, uint64_t (&arguments)[6]) {
  switch (number) {
    case SYS_nanosleep:
      return SleepOn(arguments[0], arguments[1], limits);
    case SYS_clock_nanosleep:
      return (arguments[1] & TIMER_ABSTIME) != 0 || SleepOn(arguments[2], arguments[3], limits);
#if defined(SYS_poll)
    case SYS_poll:
      arguments[2] = MillisecondsLeft(arguments[2], limits);
      return true;
#endif
#if defined(SYS_epoll_wait)
    case SYS_epoll_wait:
#endif
    case SYS_epoll_pwait:
      arguments[3] = MillisecondsLeft(arguments[3], limits);
      return true;
#if defined(SYS_select)
    case SYS_select:
#endif
#if defined(SYS_pause)
    case SYS_pause:
#endif
    case SYS_pselect6:  // the kernel has put what is left where the limit was
    case SYS_ppoll:
    case SYS_rt_sigsuspend:
      return true;
    case SYS_rt_sigtimedwait:
      return arguments[2] == kNoTimeLimit;
    case SYS_futex: {
      const uint64_t operation = arguments[1] & static_cast<uint64_t>(FUTEX_CMD_MASK);
      return operation == FUTEX_WAIT_BITSET;  // its limit is a point in time
    }
    default:
      return false;
  }
}

}  // namespace

bool ReadBlockedCall(uint32_t tid, BlockedCall* call) {
  char path[64];
  snprintf(path, sizeof path, "/proc/self/task/%u/syscall", tid);
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  char text[256];
  const ssize_t length = read(fd, text, sizeof text - 1);
  close(fd);
  if (length <= 0) return false;
  text[length] = '\0';
  unsigned long long values[8] = {};
  if (sscanf(text, "%ld %llx %llx %llx %llx %llx %llx %llx %llx", &call->number, &values[0],
             &values[1], &values[2], &values[3], &values[4], &values[5], &values[6],
             &values[7]) != 9) {
    call->number = -1;  // "running", or blocked outside of a call
    return false;
  }
  for (unsigned i = 0; i < 6; ++i) call->arguments[i] = values[i];
  call->stack_pointer = values[6];
  call->program_counter = values[7];
  return call->number >= 0;
}

bool WaitsForSignal(const BlockedCall& call, int signal) {
  if (call.number != SYS_rt_sigtimedwait) return false;
  uint64_t set = 0;
  if (ReadOwnMemory(call.arguments[0], &set, sizeof set) != sizeof set) return true;
  return ((set >> (signal - 1)) & 1) != 0;
}

bool ContinueCall(const BlockedCall& call, uint64_t now_ns, uint32_t tid, CallTimeouts timeouts,
                  uint32_t index, ucontext_t& at) {
  if (call.number < 0 || ResultOf(at) != -EINTR) return false;
  if (ProgramCounter(at) != call.program_counter || StackPointer(at) != call.stack_pointer) {
    return false;
  }
  uint64_t arguments[6];
  for (unsigned i = 0; i < 6; ++i) {
    arguments[i] = Argument(at, call, i);
    if (arguments[i] != call.arguments[i]) return false;
  }
  if (ASignalIsPending(at)) return false;
  const Limits limits = {now_ns, tid, timeouts, timeouts.all[index]};
  if (!PrepareArguments(call.number, limits, arguments)) return false;
  CallAgain(at, call, arguments);
  return true;
}

#if defined(__x86_64__)

namespace {

// Those that signal(7) lists as started anew with SA_RESTART.
bool MayEndWithEintr(const ucontext_t& at) {
  switch (Register(at, REG_RAX)) {
    case SYS_read:
    case SYS_readv:
    case SYS_write:
    case SYS_writev:
    case SYS_ioctl:
    case SYS_open:
    case SYS_openat:
    case SYS_wait4:
    case SYS_waitid:
    case SYS_accept:
    case SYS_accept4:
    case SYS_connect:
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_recvmmsg:
    case SYS_sendto:
    case SYS_sendmsg:
    case SYS_sendmmsg:
    case SYS_flock:
    case SYS_fcntl:
    case SYS_mq_timedreceive:
    case SYS_mq_timedsend:
    case SYS_getrandom:
      return true;
    case SYS_futex: {
      const uint64_t operation = Register(at, REG_RSI) & static_cast<uint64_t>(FUTEX_CMD_MASK);
      return operation == FUTEX_WAIT || operation == FUTEX_WAIT_BITSET;
    }
    default:
      return false;
  }
}

}  // namespace

bool FindInterruptedCall(const ucontext_t& at, BlockedCall* call) {
  // The instruction leaves the address behind it in rcx.
  if (ResultOf(at) != -EINTR || Register(at, REG_RCX) != Register(at, REG_RIP)) return false;
  unsigned char code[7] = {};  // mov $number, %eax; syscall
  if (ReadOwnMemory(Register(at, REG_RIP) - sizeof code, code, sizeof code) != sizeof code) {
    return false;
  }
  if (code[0] != 0xB8 || code[5] != 0x0F || code[6] != 0x05) return false;
  uint32_t number = 0;
  memcpy(&number, &code[1], sizeof number);
  call->number = number;
  for (unsigned i = 0; i < 6; ++i) call->arguments[i] = Register(at, kArgumentRegisters[i]);
  call->stack_pointer = StackPointer(at);
  call->program_counter = ProgramCounter(at);
  return true;
}

bool EndCall(ucontext_t& at) {
  // Before a first call something else is in rcx.
  if (Register(at, REG_RCX) != Register(at, REG_RIP) + kCallBytes) return false;
  unsigned char code[kCallBytes] = {};
  if (ReadOwnMemory(Register(at, REG_RIP), code, sizeof code) != sizeof code) return false;
  if (code[0] != 0x0F || code[1] != 0x05 || !MayEndWithEintr(at)) return false;
  at.uc_mcontext.gregs[REG_RAX] = -EINTR;
  at.uc_mcontext.gregs[REG_RIP] += kCallBytes;
  return true;
}

#else

bool FindInterruptedCall(const ucontext_t&, BlockedCall*) { return false; }
bool EndCall(ucontext_t&) { return false; }

#endif

}  // namespace spanprof::sampling
