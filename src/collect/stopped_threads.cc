#include "collect/stopped_threads.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <elf.h>
#include <optional>
#include <system_error>
#include <thread>
#include <unistd.h>

#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>

namespace spanprof::collect {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kLongestWait{500};

std::optional<uint64_t> ThreadPointer(pid_t tid) {
#if defined(__x86_64__)
  user_regs_struct registers{};
  iovec to = {&registers, sizeof(registers)};
  if (ptrace(PTRACE_GETREGSET, tid, NT_PRSTATUS, &to) != 0) return std::nullopt;
  return registers.fs_base;
#else
  uint64_t pointer = 0;
  iovec to = {&pointer, sizeof(pointer)};
  if (ptrace(PTRACE_GETREGSET, tid, NT_ARM_TLS, &to) != 0) return std::nullopt;
  return pointer;
#endif
}

enum class Stop { kStopped, kEnded, kTooLate };

// `signal` is one that the thread was about to get, and gets when it goes on.
Stop WaitForStop(pid_t tid, int& signal) {
  const auto deadline = Clock::now() + kLongestWait;
  for (useconds_t pause = 20;; pause = std::min<useconds_t>(pause * 2, 1000)) {
    int status = 0;
    const pid_t waited = waitpid(tid, &status, __WALL | WNOHANG);
    if (waited < 0 && errno != EINTR) return Stop::kEnded;
    if (waited == tid) {
      if (!WIFSTOPPED(status)) return Stop::kEnded;
      const int event = status >> 16;
      signal = event == 0 ? WSTOPSIG(status) : 0;
      return Stop::kStopped;
    }
    if (Clock::now() >= deadline) return Stop::kTooLate;
    usleep(pause);
  }
}

void LookAt(pid_t tid, const std::function<void(pid_t, uint64_t)>& look, StopCounts& counts) {
  if (ptrace(PTRACE_SEIZE, tid, nullptr, nullptr) != 0) {
    ++(errno == ESRCH ? counts.ended : counts.refused);
    return;
  }
  int signal = 0;
  Stop stop = Stop::kEnded;
  if (ptrace(PTRACE_INTERRUPT, tid, nullptr, nullptr) == 0) stop = WaitForStop(tid, signal);
  switch (stop) {
    case Stop::kEnded:
      ++counts.ended;
      return;
    case Stop::kTooLate:
      ++counts.too_late;  // let go when our own thread ends
      return;
    case Stop::kStopped:
      break;
  }
  if (const auto pointer = ThreadPointer(tid)) {
    ++counts.looked_at;
    look(tid, *pointer);
  } else {
    ++counts.ended;  // killed while it stood
  }
  ptrace(PTRACE_DETACH, tid, nullptr, reinterpret_cast<void*>(static_cast<intptr_t>(signal)));
}

}  // namespace

StopCounts LookAtStoppedThreads(std::span<const pid_t> tids,
                                const std::function<void(pid_t, uint64_t)>& look) {
  StopCounts counts;
  try {
    // The kernel detaches what a thread traces when that thread ends, stopped or not.
    std::thread tracer([&] {
      for (const pid_t tid : tids) LookAt(tid, look, counts);
    });
    tracer.join();
  } catch (const std::system_error&) {
    counts.refused = tids.size();  // no thread is to be had
  }
  return counts;
}

}  // namespace spanprof::collect
