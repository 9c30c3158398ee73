#pragma once

// SIGNAL-SAFE to read. The executable memory of the process at one moment, by address, with the
// unwind table of each ELF object. Immutable once published; refers to no memory of the objects.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "sampling/unwind_table.h"

namespace spanprof::sampling {

struct CodeRegion {
  uint64_t start = 0;
  uint64_t end = 0;
  uint64_t bias = 0;                   // address less ELF virtual address
  const UnwindTable* table = nullptr;  // null: frame pointers are all there is
};

struct CodeSnapshot {
  std::vector<CodeRegion> regions;                         // ascending and disjoint
  std::vector<std::shared_ptr<const UnwindTable>> tables;  // keeps them
  std::vector<uint64_t> signal_returns;                    // see ListSignalReturns()
  uint64_t fiber_start = 0;                                // see FindFiberStart()

  // Null if `pc` lies in none.
  [[nodiscard]] const CodeRegion* Find(uint64_t pc) const noexcept {
    const CodeRegion* base = regions.data();
    std::size_t count = regions.size();
    if (count == 0) return nullptr;
    // The last region that starts at or below pc, without a branch that would be guessed wrong.
    while (count > 1) {
      const std::size_t half = count / 2;
      base = base[half].start <= pc ? base + half : base;
      count -= half;
    }
    return pc >= base->start && pc < base->end ? base : nullptr;
  }
};

}  // namespace spanprof::sampling
