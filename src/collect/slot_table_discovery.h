#pragma once

// Finding the slot table that a process publishes. Its header is hostile input: only a header that
// is valid as a whole, in memory large enough for what it announces, becomes a SlotTable.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include <tl/expected.hpp>

#include "collect/process_maps.h"
#include "collect/remote_memory.h"
#include <spanprof/internal/records.hpp>

namespace spanprof::collect {

// A table whose header was valid: every slot, and every record pointer, lies in its memory.
struct SlotTable {
  uint64_t address = 0;
  uint32_t capacity = 0;
  // False: a publisher that knows only `in_use`, without owner or sequence.
  bool sequenced = false;
  uint64_t record_pointers = 0;  // address of the first; 0: none are published
  uint32_t published_at_seconds = 0;

  [[nodiscard]] uint64_t SlotAddress(uint32_t tid) const {
    return address + internal::SlotTableSlotsOffset() +
           uint64_t{tid % capacity} * sizeof(internal::Slot);
  }
  [[nodiscard]] uint64_t RecordPointerAddress(uint32_t tid) const {
    return record_pointers + uint64_t{tid % capacity} * sizeof(uint64_t);
  }
};

enum class HeaderProblem {
  kMagic,  // no table, or one that is not published yet or not any more
  kVersion,
  kSlotSize,
  kCapacity,
  kFeatures,         // bits that this reader does not know, or that contradict each other
  kReservedBytes,    // a table without features whose reserved bytes are not zero
  kRecordPointers,   // not behind the slots, not aligned
  kMappingTooSmall,  // for the slots or the record pointers that are announced
  kOtherPublisher,   // valid, but made by another process: inherited through a fork
};

struct HeaderRefusal {
  HeaderProblem problem = HeaderProblem::kMagic;
  uint64_t value = 0;  // what was seen
};

// For people: "its version is 7, this reader knows 1".
[[nodiscard]] std::string HeaderRefusalText(const HeaderRefusal& refusal);

// `header` was read at `address`, which has `available` bytes of memory. `publisher_pid` is the
// target's number in its own pid namespace.
[[nodiscard]] tl::expected<SlotTable, HeaderRefusal> CheckSlotTableHeader(
    std::span<const std::byte, sizeof(internal::SlotTableHeader)> header, uint64_t address,
    uint64_t available, uint32_t publisher_pid);

struct SlotTableSearch {
  std::optional<SlotTable> table;
  uint64_t stale_tables = 0;             // valid tables of another publisher
  uint64_t invalid_tables = 0;           // named like one, but refused
  bool scan_truncated = false;           // there was more memory than the scan looks at
  std::optional<HeaderRefusal> refusal;  // of the last table of that name
  ReadStatus status = ReadStatus::kOk;   // the first failure that is not the address's
};

// Looks for memory of the published name first, then for the magic at the start of every page of
// anonymous writable memory, up to a limit. Of several valid tables the newest is taken.
[[nodiscard]] SlotTableSearch FindSlotTable(MemoryReader& memory, const ProcessMaps& maps,
                                            uint32_t publisher_pid);

}  // namespace spanprof::collect
