#pragma once

// What a snapshot of another process's contexts could not show, by reason. Names are stable: they
// are the keys of `counters` in JSON.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace spanprof::collect {

enum class ContextCounter {
  kInProgress,         // threads whose slot was being written each time that we looked
  kChanged,            // threads whose slot changed while it was read, each time
  kCollision,          // threads whose slot belongs to another live thread
  kStaleOwner,         // threads whose slot belongs to a thread that has ended
  kForeignOwner,       // threads whose slot names an owner that it cannot have
  kNeverWritten,       // threads that have published nothing
  kUnreadableSlot,     // threads whose slot lies in memory that cannot be read
  kUnsequenced,        // contexts read from a table without sequences: a torn read is possible
  kBadRecordPointer,   // thread records that cannot be read; the slot's ids are shown
  kRecordNotValid,     // thread records without `valid` beside a slot with a span
  kRecordMismatch,     // thread records that contradict their slot; the slot's ids are shown
  kTruncatedRecord,    // thread records whose attributes are cut off
  kMalformedRoot,      // local roots that are not sixteen hex digits
  kUnknownKey,         // attributes whose name the key map does not have
  kStaleTable,         // tables of another process, inherited through a fork
  kInvalidTable,       // memory named like a table that is none
  kScanTruncated,      // scans for a table that stopped at their limit
  kBadProcessContext,  // process contexts that cannot be read
  kDroppedAttribute,   // attributes of the process context that were left out
  kMalformedMapLine,   // lines of /proc/PID/maps that were skipped
  kMapsTruncated,      // lists of mappings that stopped at their limit
  kNotStopped,         // threads of Node.js that could not be stopped, and so not be read
  kMalformedFrame,     // threads of Node.js whose map of stores is none, or cannot be read
  kCount
};

inline constexpr std::array<std::string_view, static_cast<std::size_t>(ContextCounter::kCount)>
    kContextCounterNames = {"in_progress",        "changed",
                            "collision",          "stale_owner",
                            "foreign_owner",      "never_written",
                            "unreadable_slot",    "unsequenced",
                            "bad_record_pointer", "record_not_valid",
                            "record_mismatch",    "truncated_record",
                            "malformed_root",     "unknown_key",
                            "stale_table",        "invalid_table",
                            "scan_truncated",     "bad_process_context",
                            "dropped_attribute",  "malformed_map_line",
                            "maps_truncated",     "not_stopped",
                            "malformed_frame"};

class ContextCounters {
 public:
  void Add(ContextCounter counter, uint64_t count = 1) {
    values_[static_cast<std::size_t>(counter)] += count;
  }
  [[nodiscard]] uint64_t Value(ContextCounter counter) const {
    return values_[static_cast<std::size_t>(counter)];
  }
  // In the order of kContextCounterNames.
  [[nodiscard]] const auto& values() const { return values_; }

 private:
  std::array<uint64_t, static_cast<std::size_t>(ContextCounter::kCount)> values_{};
};

}  // namespace spanprof::collect
