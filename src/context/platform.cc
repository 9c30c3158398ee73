#include "context/platform.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <sys/mman.h>
#include <sys/resource.h>

#if defined(__linux__)
#include <sys/prctl.h>
#include <sys/syscall.h>
#elif defined(__APPLE__)
#include <mach/vm_inherit.h>
#endif

namespace spanprof::context {
namespace {

constexpr uint32_t kLargestThreadIdLimit = 1u << 22;

#if defined(__linux__)
// Spelled out: the C library's headers may be older than the kernel.
constexpr int kSetVma = 0x53564d41;
constexpr unsigned long kSetVmaAnonName = 0;
constexpr unsigned kMemfdCloexec = 1, kMemfdAllowSealing = 2, kMemfdNoexecSeal = 8;
constexpr int kMadviseWipeOnFork = 18;

int CreateMemfd(const char* name) {
  long fd = syscall(SYS_memfd_create, name, kMemfdCloexec | kMemfdAllowSealing | kMemfdNoexecSeal);
  if (fd < 0 && errno == EINVAL) {  // before Linux 6.3
    fd = syscall(SYS_memfd_create, name, kMemfdCloexec | kMemfdAllowSealing);
  }
  return static_cast<int>(fd);
}

// ftruncate beyond RLIMIT_FSIZE raises SIGXFSZ, which ends the process: never try.
bool FileSizeLimitAllows(size_t bytes) {
  rlimit limit = {};
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0) return false;
  return limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= bytes;
}

void* MapMemfd(const char* name, size_t bytes) {
  if (!FileSizeLimitAllows(bytes)) return nullptr;
  const int fd = CreateMemfd(name);
  if (fd < 0) return nullptr;
  void* address = MAP_FAILED;
  if (ftruncate(fd, static_cast<off_t>(bytes)) == 0) {
    address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, fd, 0);
  }
  close(fd);
  return address == MAP_FAILED ? nullptr : address;
}
#endif

}  // namespace

#if defined(__linux__)

uint32_t CurrentThreadId() { return static_cast<uint32_t>(syscall(SYS_gettid)); }

bool ThreadExists(uint32_t tid) {
  return syscall(SYS_tgkill, getpid(), static_cast<int>(tid), 0) == 0 || errno != ESRCH;
}

uint32_t ThreadIdLimit() {
  const int fd = open("/proc/sys/kernel/pid_max", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return kLargestThreadIdLimit;
  char text[16];
  const ssize_t length = read(fd, text, sizeof text);
  close(fd);
  uint64_t limit = 0;
  for (ssize_t i = 0; i < length && text[i] >= '0' && text[i] <= '9'; ++i) {
    limit = limit * 10 + static_cast<uint64_t>(text[i] - '0');
  }
  return limit == 0 || limit > kLargestThreadIdLimit ? kLargestThreadIdLimit
                                                     : static_cast<uint32_t>(limit);
}

uint64_t BootTimeNanoseconds() {
  timespec now = {};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

NamedMapping MapNamed(const char* name, size_t bytes) {
  NamedMapping mapping;
  mapping.address = MapMemfd(name, bytes);
  if (mapping.address != nullptr) {
    mapping.naming = Naming::kMemfd;
    AnnounceName(mapping.address, bytes, name);
    return mapping;
  }
  mapping.address = MapAnonymous(bytes);
  if (mapping.address != nullptr &&
      prctl(kSetVma, kSetVmaAnonName, mapping.address, bytes, name) == 0) {
    mapping.naming = Naming::kAnonymousNamed;
  }
  return mapping;
}

void AnnounceName(void* address, size_t bytes, const char* name) {
  const int saved_errno = errno;
  prctl(kSetVma, kSetVmaAnonName, address, bytes, name);
  errno = saved_errno;
}

bool WipeOnFork(void* address, size_t bytes) {
  return madvise(address, bytes, kMadviseWipeOnFork) == 0;
}

void DoNotInherit(void* address, size_t bytes) { madvise(address, bytes, MADV_DONTFORK); }

void ZeroMapping(void* address, size_t bytes) {
  // A private mapping, anonymous or of a memfd that nobody writes to, falls back to zero pages.
  if (madvise(address, bytes, MADV_DONTNEED) != 0) memset(address, 0, bytes);
}

#elif defined(__APPLE__)

uint32_t CurrentThreadId() {
  uint64_t id = 0;
  pthread_threadid_np(nullptr, &id);
  const uint32_t low = static_cast<uint32_t>(id & (kLargestThreadIdLimit - 1));
  return low == 0 ? kLargestThreadIdLimit - 1 : low;
}

bool ThreadExists(uint32_t) { return true; }

uint32_t ThreadIdLimit() { return kLargestThreadIdLimit; }

uint64_t BootTimeNanoseconds() { return clock_gettime_nsec_np(CLOCK_MONOTONIC_RAW); }

NamedMapping MapNamed(const char*, size_t bytes) {
  return {MapAnonymous(bytes), Naming::kUnnamed};  // memory has no names here: readers scan
}

void AnnounceName(void*, size_t, const char*) {}

bool WipeOnFork(void* address, size_t bytes) {
  (void)address;
  (void)bytes;
  return false;
}

void DoNotInherit(void* address, size_t bytes) { minherit(address, bytes, VM_INHERIT_NONE); }

void ZeroMapping(void* address, size_t bytes) {
  mmap(address, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANON | MAP_FIXED, -1, 0);
}

#endif

uint32_t CurrentProcessId() { return static_cast<uint32_t>(getpid()); }

#if !defined(MAP_NORESERVE)
#define MAP_NORESERVE 0
#endif

void* MapAnonymous(size_t bytes) {
  void* address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return address == MAP_FAILED ? nullptr : address;
}

void* MapAligned(size_t bytes, size_t alignment) {
  char* raw = static_cast<char*>(MapAnonymous(bytes + alignment));
  if (raw == nullptr) return nullptr;
  const uintptr_t start = reinterpret_cast<uintptr_t>(raw);
  const uintptr_t aligned = (start + alignment - 1) & ~(uintptr_t{alignment} - 1);
  const size_t before = aligned - start;
  if (before != 0) munmap(raw, before);
  const size_t after = alignment - before;
  if (after != 0) munmap(raw + before + bytes, after);
  return raw + before;
}

void Unmap(void* address, size_t bytes) { munmap(address, bytes); }

size_t PageSize() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }

SignalBlocker::SignalBlocker() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &previous_);
}

SignalBlocker::~SignalBlocker() { pthread_sigmask(SIG_SETMASK, &previous_, nullptr); }

}  // namespace spanprof::context
