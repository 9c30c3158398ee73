// SIGNAL-SAFE: see safe_memory.h.

#include "sampling/safe_memory.h"

#include <atomic>
#include <cerrno>
#include <fcntl.h>
#include <unistd.h>

#include <sys/syscall.h>
#include <sys/uio.h>

#include "base/unique_fd.h"

namespace spanprof::sampling {
namespace {

constexpr uint64_t kPageBytes = 4096;  // or a part of a larger page, which does as well

std::atomic<bool> readv_refused{false};

// Not libc's syscall(): that one writes errno.
long SystemCall(long number, long a, long b, long c, long d, long e, long f) noexcept {
#if defined(__x86_64__)
  long result = number;
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  register long r9 asm("r9") = f;
  asm volatile("syscall"
               : "+a"(result)
               : "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  return result;
#elif defined(__aarch64__)
  register long x8 asm("x8") = number;
  register long x0 asm("x0") = a;
  register long x1 asm("x1") = b;
  register long x2 asm("x2") = c;
  register long x3 asm("x3") = d;
  register long x4 asm("x4") = e;
  register long x5 asm("x5") = f;
  asm volatile("svc #0"
               : "+r"(x0)
               : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
               : "memory");
  return x0;
#else
  (void)number, (void)a, (void)b, (void)c, (void)d, (void)e, (void)f;
  return -ENOSYS;
#endif
}

// True if the eight bytes at `address` can be read.
bool IsReadable(uint64_t address) noexcept {
  constexpr long kNoSuchRequest = ~0L;
  return SystemCall(SYS_rt_sigprocmask, kNoSuchRequest, static_cast<long>(address), 0,
                    sizeof(uint64_t), 0, 0) == -EINVAL;
}

// The sanitizers would rather not see the loads of other frames' memory.
__attribute__((no_sanitize("address", "thread", "undefined"), noinline)) void LoadBytes(
    uint64_t address, void* to, std::size_t size) noexcept {
  const volatile char* from = reinterpret_cast<const volatile char*>(address);
  char* out = static_cast<char*>(to);
  for (std::size_t i = 0; i < size; ++i) out[i] = from[i];
}

std::size_t ReadByProbing(uint64_t address, void* to, std::size_t size) noexcept {
  std::size_t done = 0;
  while (done < size) {
    const uint64_t place = address + done;
    const uint64_t to_page_end = kPageBytes - place % kPageBytes;
    const std::size_t part = to_page_end < size - done ? to_page_end : size - done;
    if (!IsReadable(place & ~uint64_t{7})) break;
    LoadBytes(place, static_cast<char*>(to) + done, part);
    done += part;
  }
  return done;
}

// Copies from the start as far as memory goes, and adds to `done` how far. False: the system
// refuses.
bool ReadByKernel(uint64_t address, void* to, std::size_t size, std::size_t& done) noexcept {
  // Only ever a hint of what the kernel said last; it orders nothing.
  if (readv_refused.load(std::memory_order_relaxed)) return false;
  const long pid = SystemCall(SYS_getpid, 0, 0, 0, 0, 0, 0);  // not cached: fork changes it
  while (done < size) {
    // A part for each page: the kernel promises whole parts only.
    constexpr unsigned kParts = 16;
    iovec remote[kParts];
    unsigned parts = 0;
    std::size_t planned = done;
    while (parts < kParts && planned < size) {
      const uint64_t place = address + planned;
      const uint64_t to_page_end = kPageBytes - place % kPageBytes;
      const std::size_t part = to_page_end < size - planned ? to_page_end : size - planned;
      remote[parts++] = {.iov_base = reinterpret_cast<void*>(place), .iov_len = part};
      planned += part;
    }
    iovec local{.iov_base = static_cast<char*>(to) + done, .iov_len = planned - done};
    const long count = SystemCall(SYS_process_vm_readv, pid, reinterpret_cast<long>(&local), 1,
                                  reinterpret_cast<long>(remote), static_cast<long>(parts), 0);
    if (count == -EPERM || count == -ENOSYS || count == -EACCES || count == -ESRCH) {
      readv_refused.store(true, std::memory_order_relaxed);
      return false;
    }
    if (count <= 0) return true;
    done += static_cast<std::size_t>(count);
    if (done < planned) return true;
  }
  return true;
}

}  // namespace

std::size_t ReadOwnMemory(uint64_t address, void* to, std::size_t size) noexcept {
  if (size == 0 || address + size < address) return 0;
  std::size_t done = 0;
  if (ReadByKernel(address, to, size, done)) return done;
  return done + ReadByProbing(address + done, static_cast<char*>(to) + done, size - done);
}

bool CopyOwnMemory(uint64_t address, void* to, std::size_t size) noexcept {
  if (address + size < address) return false;
  std::size_t done = 0;
  if (size == 0 || ReadByKernel(address, to, size, done)) return done == size;
  // Opened each time: a descriptor that a fork took along would still mean the parent's memory.
  const UniqueFd memory(open("/proc/self/mem", O_RDONLY | O_CLOEXEC));
  while (memory.valid() && done < size) {
    const ssize_t count = pread(memory.get(), static_cast<char*>(to) + done, size - done,
                                static_cast<off_t>(address + done));
    if (count <= 0) break;
    done += static_cast<std::size_t>(count);
  }
  return done == size;
}

void RefuseProcessVmReadvForTesting(bool refuse) noexcept {
  readv_refused.store(refuse, std::memory_order_relaxed);
}

}  // namespace spanprof::sampling
