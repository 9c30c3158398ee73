// The call chain of native_workloads.h. Every function stands in a section of its own, so that a pc
// can be told by two labels that the linker makes.

#include <alloca.h>
#include <cstring>

#include "sampling/native_workloads.h"

#if defined(__clang__)
#define CHAIN_SECTION(name) [[gnu::noinline, gnu::section(#name)]]
#else
#define CHAIN_SECTION(name) [[gnu::noinline, gnu::noclone, gnu::section(#name)]]
#endif

#define CHAIN_BOUNDS(name)                                  \
  extern const char __start_##name[] asm("__start_" #name); \
  extern const char __stop_##name[] asm("__stop_" #name)

CHAIN_BOUNDS(chain_link0);
CHAIN_BOUNDS(chain_link1);
CHAIN_BOUNDS(chain_link2);
CHAIN_BOUNDS(chain_link3);
CHAIN_BOUNDS(chain_link4);
CHAIN_BOUNDS(chain_link5);
CHAIN_BOUNDS(chain_link6);
CHAIN_BOUNDS(chain_leaf);
CHAIN_BOUNDS(chain_root);

namespace spanprof::sampling {
namespace {

volatile uint64_t sink = 0;
volatile unsigned array_size = 200;

uint64_t Next(uint64_t order);

CHAIN_SECTION(chain_leaf) uint64_t Leaf(uint64_t order) {
  for (unsigned i = 0; i < 30; ++i) sink = sink + order;
  return sink;
}

// Nothing but the call and something after it.
CHAIN_SECTION(chain_link0) uint64_t Link0(uint64_t order) { return Next(order) + sink; }

// All callee-saved registers.
CHAIN_SECTION(chain_link1) uint64_t Link1(uint64_t order) {
  uint64_t a = sink, b = a * 3, c = b ^ order, d = c + a, e = d * b, f = e - c, g = f ^ d;
  asm volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f), "+r"(g));
  const uint64_t result = Next(order);
  asm volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f), "+r"(g));
  return result + a + b + c + d + e + f + g;
}

// A frame pointer, because of alloca.
CHAIN_SECTION(chain_link2) uint64_t Link2(uint64_t order) {
  const unsigned size = array_size + static_cast<unsigned>(order % 512);
  auto* memory = static_cast<unsigned char*>(alloca(size));
  memory[0] = memory[size - 1] = 1;
  asm volatile("" : : "r"(memory) : "memory");
  return Next(order) + memory[size - 1];
}

// A realigned stack: the CFA is an expression.
CHAIN_SECTION(chain_link3) uint64_t Link3(uint64_t order) {
  alignas(64) unsigned char memory[128];
  asm volatile("" : : "r"(memory) : "memory");
  return Next(order) + memory[order % 2];
}

// A frame larger than a page.
CHAIN_SECTION(chain_link4) uint64_t Link4(uint64_t order) {
  volatile unsigned char memory[9000];
  memory[17] = 1;
  return Next(order) + memory[17];
}

// Realigned and of variable size.
CHAIN_SECTION(chain_link5) uint64_t Link5(uint64_t order) {
  alignas(32) unsigned char memory[64];
  auto* more = static_cast<unsigned char*>(alloca(array_size));
  more[0] = 1;
  asm volatile("" : : "r"(memory), "r"(more) : "memory");
  return Next(order) + memory[0] + more[0];
}

// Optimised less, with a frame pointer.
#if defined(__GNUC__) && !defined(__clang__)
[[gnu::optimize("O0", "no-omit-frame-pointer")]]
#endif
CHAIN_SECTION(chain_link6) uint64_t Link6(uint64_t order) {
  const uint64_t result = Next(order);
  return result + sink;
}

[[gnu::always_inline]] inline uint64_t Next(uint64_t order) {
  using Function = uint64_t (*)(uint64_t);
  static constexpr Function kFunctions[] = {Link0, Link1, Link2, Link3, Link4, Link5, Link6, Leaf};
  return kFunctions[order % 8](order / 8);
}

}  // namespace

CHAIN_SECTION(chain_root) void RunChain(uint64_t order) { sink = Next(order); }

int ChainFunctionOf(uint64_t pc) {
  const auto lies = [pc](const char* start, const char* stop) {
    return pc >= reinterpret_cast<uint64_t>(start) && pc < reinterpret_cast<uint64_t>(stop);
  };
  if (lies(__start_chain_link0, __stop_chain_link0)) return 0;
  if (lies(__start_chain_link1, __stop_chain_link1)) return 1;
  if (lies(__start_chain_link2, __stop_chain_link2)) return 2;
  if (lies(__start_chain_link3, __stop_chain_link3)) return 3;
  if (lies(__start_chain_link4, __stop_chain_link4)) return 4;
  if (lies(__start_chain_link5, __stop_chain_link5)) return 5;
  if (lies(__start_chain_link6, __stop_chain_link6)) return 6;
  if (lies(__start_chain_leaf, __stop_chain_leaf)) return kChainLeaf;
  if (lies(__start_chain_root, __stop_chain_root)) return kChainRoot;
  return -1;
}

}  // namespace spanprof::sampling
