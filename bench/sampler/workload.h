#pragma once

// A fixed piece of work at a given depth of the stack: the same instructions each time, so that the
// CPU time it takes shows what a profiler adds.

#include <cstdint>

// The CPU time that the calling thread took for it, in nanoseconds.
uint64_t RunWorkload(unsigned depth, uint64_t rounds);

uint64_t ThreadCpuNanoseconds();
