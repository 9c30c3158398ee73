#pragma once

// Makes an UnwindTable from rows in ascending order of address. Not for a signal handler.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "sampling/unwind_rule.h"
#include "sampling/unwind_table.h"

namespace spanprof::sampling {

class UnwindTableBuilder {
 public:
  // Rows lie in [begin, end); end - begin is at most 2^32 - 1. The memory of the table stays below
  // `max_bytes`.
  UnwindTableBuilder(uint64_t begin, uint64_t end, std::size_t max_bytes);

  // `rule` holds from `address` to the next row. A row at the address of the last one replaces it;
  // one before it, or outside the range, is left out. False when memory has run out: then the table
  // ends there, and what is beyond has no information.
  bool Add(uint64_t address, const UnwindRule& rule);

  [[nodiscard]] std::shared_ptr<const UnwindTable> Finish();

  // Rows whose rule did not fit into the list of different ones; they say kUnsupported.
  [[nodiscard]] std::size_t excess_rules() const { return excess_rules_; }

 private:
  struct HashOfRule {
    std::size_t operator()(const UnwindRule& rule) const;
  };
  uint16_t NumberOf(const UnwindRule& rule);
  void CloseBlocksBefore(uint64_t block);

  uint64_t begin_;
  uint64_t end_;
  std::size_t max_bytes_;
  uint64_t last_offset_ = 0;
  bool full_ = false;
  std::size_t excess_rules_ = 0;
  std::unordered_map<UnwindRule, uint16_t, HashOfRule> numbers_;
  std::shared_ptr<UnwindTable> table_;
};

}  // namespace spanprof::sampling
