// For test programs of debug builds: malloc and its like, and pthread_mutex_lock, abort when one of
// the profiler's signal handlers calls them. The loader allocates thread-local variables by malloc
// when they are first touched, so that is found too.

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#include "sampling/handler_guard.h"

#if defined(SPANPROF_CHECK_HANDLERS)

namespace {

void RefuseInHandler(const char* function) {
  if (spanprof::sampling::handler_depth == 0) return;
  spanprof::sampling::handler_depth = 0;  // for what abort() runs
  const char* const parts[] = {"spanprof: a signal handler called ", function, "\n"};
  for (const char* part : parts) {
    if (write(STDERR_FILENO, part, strlen(part)) < 0) break;
  }
  abort();
}

}  // namespace

extern "C" {

// NOLINTBEGIN(readability-identifier-naming): glibc's names for its own, behind those that we
// replace
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* memory, size_t size);
void* __libc_memalign(size_t alignment, size_t size);
void __libc_free(void* memory);
// NOLINTEND(readability-identifier-naming)

[[gnu::visibility("default")]] void* malloc(size_t size) {
  RefuseInHandler("malloc");
  return __libc_malloc(size);
}
[[gnu::visibility("default")]] void* calloc(size_t count, size_t size) {
  RefuseInHandler("calloc");
  return __libc_calloc(count, size);
}
[[gnu::visibility("default")]] void* realloc(void* memory, size_t size) {
  RefuseInHandler("realloc");
  return __libc_realloc(memory, size);
}
[[gnu::visibility("default")]] void* aligned_alloc(size_t alignment, size_t size) {
  RefuseInHandler("aligned_alloc");
  return __libc_memalign(alignment, size);
}
[[gnu::visibility("default")]] void free(void* memory) {
  RefuseInHandler("free");
  __libc_free(memory);
}

[[gnu::visibility("default")]] int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  RefuseInHandler("pthread_mutex_lock");
  using Lock = int(pthread_mutex_t*);
  static Lock* const kReal = reinterpret_cast<Lock*>(dlsym(RTLD_NEXT, "pthread_mutex_lock"));
  return kReal(mutex);
}

}  // extern "C"

#endif
