#include "sampling/stack_bounds.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <pthread.h>

#include <sys/resource.h>

#include "context/platform.h"

namespace spanprof::sampling {

StackBounds OwnStackBounds(uint32_t tid) {
  StackBounds bounds;
  pthread_attr_t attributes;
  if (tid == context::CurrentProcessId() || pthread_getattr_np(pthread_self(), &attributes) != 0) {
    return bounds;
  }
  void* low = nullptr;
  size_t bytes = 0;
  if (pthread_attr_getstack(&attributes, &low, &bytes) == 0) {
    bounds.low = reinterpret_cast<uintptr_t>(low);
    bounds.high = bounds.low + bytes;
  }
  pthread_attr_destroy(&attributes);
  return bounds;
}

ReadableMappings::ReadableMappings() {
  FILE* maps = fopen("/proc/self/maps", "re");
  if (maps == nullptr) return;
  char* line = nullptr;
  size_t capacity = 0;
  while (getline(&line, &capacity, maps) > 0) {
    unsigned long long low = 0, high = 0;
    char permissions[5] = {};
    if (sscanf(line, "%llx-%llx %4s", &low, &high, permissions) != 3 || permissions[0] != 'r') {
      continue;
    }
    ranges_.push_back({low, high, strstr(line, "[stack]") != nullptr});
  }
  free(line);
  fclose(maps);
}

StackBounds ReadableMappings::StackAround(uint64_t stack_pointer) const {
  for (const Range& range : ranges_) {
    if (stack_pointer < range.low || stack_pointer >= range.high) continue;
    // The main thread's stack grows on its own as far as its limit.
    rlimit limit = {};
    uint64_t low = range.low;
    if (range.is_main_stack && getrlimit(RLIMIT_STACK, &limit) == 0 &&
        limit.rlim_cur < range.high) {
      low = std::min(low, range.high - static_cast<uint64_t>(limit.rlim_cur));
    }
    return {low, range.high};
  }
  return {};
}

}  // namespace spanprof::sampling
