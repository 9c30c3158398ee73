#include "glibc_2_28.h"

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>

// The same function under its first version, with the caller's own arguments and return address:
// dlsym looks at the latter to find out who calls.
#define SPANPROF_FIRST_VERSION(name, version)                    \
  __asm__(".symver spanprof_first_" #name ", " #name "@" version \
          "\n"                                                   \
          ".pushsection .text\n"                                 \
          ".globl " #name                                        \
          "\n"                                                   \
          ".hidden " #name                                       \
          "\n"                                                   \
          ".type " #name ", @function\n" #name                   \
          ":\n"                                                  \
          "  jmp *spanprof_first_" #name                         \
          "@GOTPCREL(%rip)\n"                                    \
          ".size " #name ", . - " #name                          \
          "\n"                                                   \
          ".popsection\n")

// 2.32 and 2.34 took these over from libpthread and libdl, under new versions.
SPANPROF_FIRST_VERSION(__pthread_key_create, "GLIBC_2.2.5");
SPANPROF_FIRST_VERSION(dlsym, "GLIBC_2.2.5");
SPANPROF_FIRST_VERSION(pthread_attr_getstack, "GLIBC_2.2.5");
SPANPROF_FIRST_VERSION(pthread_create, "GLIBC_2.2.5");
SPANPROF_FIRST_VERSION(pthread_detach, "GLIBC_2.2.5");
SPANPROF_FIRST_VERSION(pthread_getattr_np, "GLIBC_2.2.5");
SPANPROF_FIRST_VERSION(pthread_getspecific, "GLIBC_2.2.5");
SPANPROF_FIRST_VERSION(pthread_join, "GLIBC_2.2.5");
SPANPROF_FIRST_VERSION(pthread_key_create, "GLIBC_2.2.5");
SPANPROF_FIRST_VERSION(pthread_key_delete, "GLIBC_2.2.5");
SPANPROF_FIRST_VERSION(pthread_mutex_trylock, "GLIBC_2.2.5");
SPANPROF_FIRST_VERSION(pthread_once, "GLIBC_2.2.5");
SPANPROF_FIRST_VERSION(pthread_setname_np, "GLIBC_2.12");
SPANPROF_FIRST_VERSION(pthread_setspecific, "GLIBC_2.2.5");
SPANPROF_FIRST_VERSION(pthread_sigmask, "GLIBC_2.2.5");

namespace spanprof::node {
namespace {

constexpr int64_t kNanosecondsPerSecond = 1'000'000'000;
// The wall clock may be set back during a wait. So none is longer than this.
constexpr int64_t kLongestWait = kNanosecondsPerSecond;

int64_t Nanoseconds(const timespec& time) {
  return int64_t{time.tv_sec} * kNanosecondsPerSecond + time.tv_nsec;
}

int64_t Now(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return Nanoseconds(time);
}

using ClockWait = int (*)(pthread_cond_t*, pthread_mutex_t*, clockid_t, const timespec*);

ClockWait FindClockWait() {
  void* const found = dlsym(RTLD_DEFAULT, "pthread_cond_clockwait");
  return found == nullptr ? WaitByWallClock : reinterpret_cast<ClockWait>(found);
}

struct ObjectSearch {
  uintptr_t address;
  dl_find_object* result;
};

// For dl_iterate_phdr: 1 ends the search.
int LookAtObject(dl_phdr_info* info, size_t /*size*/, void* argument) {
  const auto& search = *static_cast<ObjectSearch*>(argument);
  bool inside = false;
  uintptr_t lowest = UINTPTR_MAX;
  uintptr_t highest = 0;
  uintptr_t frame_header = 0;
  for (size_t i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info->dlpi_phdr[i];
    const uintptr_t start = info->dlpi_addr + header.p_vaddr;
    if (header.p_type == PT_GNU_EH_FRAME) frame_header = start;
    if (header.p_type != PT_LOAD) continue;
    const uintptr_t end = start + header.p_memsz;
    inside |= search.address >= start && search.address < end;
    lowest = start < lowest ? start : lowest;
    highest = end > highest ? end : highest;
  }
  if (!inside || frame_header == 0) return 0;
  *search.result = {};
  search.result->dlfo_map_start = reinterpret_cast<void*>(lowest);
  search.result->dlfo_map_end = reinterpret_cast<void*>(highest);
  search.result->dlfo_eh_frame = reinterpret_cast<void*>(frame_header);
  return 1;
}

}  // namespace

int WaitByWallClock(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                    const timespec* deadline) {
  const int64_t left = Nanoseconds(*deadline) - Now(clock);
  const bool whole = left <= kLongestWait;
  const int64_t end = Now(CLOCK_REALTIME) + (whole ? left : kLongestWait);
  const timespec wall{.tv_sec = end / kNanosecondsPerSecond,
                      .tv_nsec = end % kNanosecondsPerSecond};
  const int status = pthread_cond_timedwait(condition, mutex, &wall);
  return status == ETIMEDOUT && !whole ? 0 : status;
}

}  // namespace spanprof::node

// For this link alone, whoever looks for such names in the process.
#pragma GCC visibility push(hidden)
extern "C" {

// libstdc++ leaves out atomic instructions where it knows of one thread only: never.
char __libc_single_threaded = 0;  // NOLINT: the C library's name

int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                           const timespec* deadline) {
  static const spanprof::node::ClockWait kWait = spanprof::node::FindClockWait();
  return kWait(condition, mutex, clock, deadline);
}

// Before 2.33 these were functions of headers. On this processor the kernel's structure is theirs.
int stat(const char* path, struct stat* status) {
  return static_cast<int>(syscall(SYS_stat, path, status));
}
int lstat(const char* path, struct stat* status) {
  return static_cast<int>(syscall(SYS_lstat, path, status));
}
int fstat(int file, struct stat* status) {
  return static_cast<int>(syscall(SYS_fstat, file, status));
}
int fstatat(int folder, const char* path, struct stat* status, int flags) {
  return static_cast<int>(syscall(SYS_newfstatat, folder, path, status, flags));
}
int fstat64(int file, struct stat64* status) {
  return static_cast<int>(syscall(SYS_fstat, file, status));
}

// 2.35: how libgcc finds the tables of the function in which an address lies.
int _dl_find_object(void* address, dl_find_object* result) {  // NOLINT: the C library's name
  spanprof::node::ObjectSearch search{reinterpret_cast<uintptr_t>(address), result};
  return dl_iterate_phdr(spanprof::node::LookAtObject, &search) == 1 ? 0 : -1;
}

// 2.36: what std::random_device asks. As there, a system without random numbers is the end.
uint32_t arc4random() {
  uint32_t number = 0;
  while (getrandom(&number, sizeof number, 0) != ssize_t{sizeof number}) {
    if (errno != EINTR) abort();
  }
  return number;
}

}  // extern "C"
#pragma GCC visibility pop
