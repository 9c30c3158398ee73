#pragma once

// The cheapest thing that a context call could be: a call into a shared library that stores four
// words through a thread-local pointer. And the same call doing nothing at all.

#include <cstdint>

extern "C" {
__attribute__((visibility("default"))) void floor_prepare_thread(void);
__attribute__((visibility("default"))) void floor_empty(uint64_t a, uint64_t b);
__attribute__((visibility("default"))) void floor_four_stores(uint64_t a, uint64_t b);
}
