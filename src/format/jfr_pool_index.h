#pragma once

// Where the constants of a chunk are: for each key of each pool the offset of its value. Values are
// read when they are asked for, so a file of pools that nobody refers to costs only this index.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "format/jfr_chunk.h"
#include "format/jfr_metadata.h"

namespace spanprof::format::jfr {

struct PoolEntry {
  uint32_t type = 0;  // position in Metadata::types
  uint64_t key = 0;
  size_t offset = 0;  // of the value
  size_t end = 0;
};

class PoolIndex {
 public:
  // Fails with EFBIG if the index would take more than `max_memory` bytes.
  static Result<PoolIndex> Read(std::string_view bytes, const Metadata& metadata,
                                const std::vector<EventSpan>& checkpoints, size_t max_memory);

  // The position of an entry, by which it can be remembered.
  std::optional<size_t> Find(uint32_t type, uint64_t key) const;
  const PoolEntry& operator[](size_t position) const { return entries_[position]; }
  size_t size() const { return entries_.size(); }

 private:
  Result<void> ReadCheckpoint(std::string_view bytes, const Metadata& metadata,
                              const EventSpan& checkpoint, size_t max_entries);

  std::vector<PoolEntry> entries_;  // sorted by type and key
};

}  // namespace spanprof::format::jfr
