#pragma once

// The calling thread's thread pointer, for tests that compare it with what a reader outside sees.
// (Not every compiler has a builtin for it.)

#include <cstdint>

namespace spanprof::collect {

inline uint64_t OwnThreadPointer() {
  uint64_t pointer = 0;
#if defined(__x86_64__)
  asm("mov %%fs:0, %0" : "=r"(pointer));
#else
  asm("mrs %0, tpidr_el0" : "=r"(pointer));
#endif
  return pointer;
}

}  // namespace spanprof::collect
