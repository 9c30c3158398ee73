#pragma once

// For tests: work that takes a stack through every kind of code, compiled with -O2 and without
// frame pointers whatever the build is. Each call takes well below a millisecond.

#include <cstdint>
#include <vector>

namespace spanprof::sampling {

struct NativeWorkload {
  const char* name;
  void (*run)();
};
const std::vector<NativeWorkload>& NativeWorkloads();

// Seven functions of different frame shapes (callee-saved registers, variable-length arrays,
// realigned stacks, large frames, frame pointers), which call each other in the order of the digits
// of `order` (base 8, least significant first; 7 ends it), and a leaf at the end.
inline constexpr unsigned kChainLinks = 7;
void RunChain(uint64_t order);

// The chain function that `pc` lies in: 0 to 6, kChainLeaf, kChainRoot (RunChain itself), or -1.
inline constexpr int kChainLeaf = 7;
inline constexpr int kChainRoot = 8;
int ChainFunctionOf(uint64_t pc);

}  // namespace spanprof::sampling
