#pragma once

// SIGNAL-SAFE, all but making one. The unwind rules of an ELF object, by address: immutable,
// position-independent, and its own memory, so that it stays usable when the object is unloaded.
//
// Rules repeat, so a row is a number of two bytes into a list of the different ones, and the byte
// of its start within a block of 256 bytes of code. An index has each block's first row. A look-up
// thus touches three cache lines, however large the object; three bytes a row and one for 64 of
// code.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sampling/unwind_rule.h"

namespace spanprof::sampling {

class UnwindTable {
 public:
  static constexpr unsigned kBlockBits = 8;

  // The rule for the instruction at `address` (an ELF virtual address); null outside the table.
  [[nodiscard]] const UnwindRule* Find(uint64_t address) const noexcept {
    const uint64_t offset = address - begin_;
    if (offset >= size_) return nullptr;
    const uint64_t block = offset >> kBlockBits;
    const uint8_t within = static_cast<uint8_t>(offset);
    const uint32_t first = block_first_[block];
    uint32_t row = block_first_[block + 1];
    while (row > first && row_start_[row - 1] > within) --row;
    // The first row starts at begin_, so there is always one before `row`.
    return &rules_[row_rule_[row - 1]];
  }

  [[nodiscard]] uint64_t begin() const { return begin_; }
  [[nodiscard]] uint64_t end() const { return begin_ + size_; }
  [[nodiscard]] std::size_t row_count() const { return row_start_.size(); }
  [[nodiscard]] std::size_t rule_count() const { return rules_.size(); }
  [[nodiscard]] std::size_t memory_bytes() const {
    return sizeof(*this) + block_first_.capacity() * sizeof(uint32_t) + row_start_.capacity() +
           row_rule_.capacity() * sizeof(uint16_t) + rules_.capacity() * sizeof(UnwindRule);
  }

 private:
  friend class UnwindTableBuilder;
  UnwindTable() = default;

  uint64_t begin_ = 0;
  uint64_t size_ = 0;
  std::vector<uint32_t> block_first_;  // one more than there are blocks
  std::vector<uint8_t> row_start_;     // low byte of the start's distance from begin_
  std::vector<uint16_t> row_rule_;
  std::vector<UnwindRule> rules_;
};

}  // namespace spanprof::sampling
