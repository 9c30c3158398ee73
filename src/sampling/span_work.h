#pragma once

// For tests: functions that each run under the span of their number only, and which of them a
// sample is in. The program has to export its functions (ENABLE_EXPORTS).

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>

#include "sampling/sample_buffer.h"

#define SPANPROF_WORK(n)                                                                  \
  extern "C" __attribute__((noinline, visibility("default"))) void work_##n(unsigned i) { \
    for (unsigned k = 0; k < i; ++k) __asm__ volatile("" ::"i"(n) : "memory");            \
    __asm__ volatile("");                                                                 \
  }

namespace spanprof::sampling {

// The number of the work function on a stack; 0: none.
inline uint64_t WorkOn(const RawSample& sample) {
  for (unsigned i = 0; i < sample.depth; ++i) {
    Dl_info info = {};
    const uint64_t pc = i == 0 ? sample.pcs()[i] : sample.pcs()[i] - 1;
    if (dladdr(reinterpret_cast<void*>(pc), &info) == 0 || info.dli_sname == nullptr) continue;
    if (strncmp(info.dli_sname, "work_", 5) == 0) return strtoul(info.dli_sname + 5, nullptr, 10);
  }
  return 0;
}

}  // namespace spanprof::sampling
