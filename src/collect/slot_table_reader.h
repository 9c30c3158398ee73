#pragma once

// Reading one thread's slot, and the OTEP 4947 record that its sequence brackets, while the thread
// runs. What is returned was published together, or is refused with the reason.
//
//   SlotTableReader reader(memory, table, namespace_tids_of_live_tasks);
//   SlotReading reading = reader.Read(namespace_tid);
//
// The protocol (docs/protocols.md): {word}, {ids, record pointer}; refuse a busy word or another
// owner; {record}, {word}; accept if the word is the same. Steps are ordered on every machine.

#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "collect/remote_memory.h"
#include "collect/slot_table_discovery.h"

namespace spanprof::collect {

enum class SlotOutcome {
  kRead,
  kNeverWritten,  // no owner: no thread has published here, or it has left
  kInProgress,    // was being written each time that we looked
  kChanged,       // was written between the two looks each time: a torn read avoided
  kCollision,     // belongs to another live thread of the process, or nobody can tell to which
  kStaleOwner,    // belongs to a thread that is not alive
  kForeignOwner,  // belongs to a thread that could never have this slot
  kUnreadable,    // its memory cannot be read
};

struct SlotReading {
  SlotOutcome outcome = SlotOutcome::kUnreadable;
  ReadStatus status = ReadStatus::kOk;  // why it is unreadable
  uint64_t trace_id_high = 0;
  uint64_t trace_id_low = 0;  // may carry the local root instead
  uint64_t span_id = 0;
  // False: by the protocol of a publisher without sequences, which makes a torn read unlikely only.
  bool sequenced = false;
  bool bad_record_pointer = false;  // there should be a record, and it cannot be read
  bool has_record = false;
  std::array<std::byte, internal::kOtelRecordBytes> record{};
};

class SlotTableReader {
 public:
  static constexpr unsigned kMaxAttempts = 8;

  // `live_tids` are the process's tasks in its own pid namespace. `memory` must outlive the reader.
  SlotTableReader(MemoryReader& memory, const SlotTable& table, std::vector<uint32_t> live_tids);

  // `tid` in the publisher's pid namespace.
  [[nodiscard]] SlotReading Read(uint32_t tid);

 private:
  [[nodiscard]] SlotReading TrySequenced(uint32_t tid);
  [[nodiscard]] SlotReading TryUnsequenced(uint32_t tid);
  [[nodiscard]] SlotOutcome WhoseIsIt(uint32_t owner, uint32_t tid) const;

  MemoryReader& memory_;
  SlotTable table_;
  std::vector<uint32_t> live_tids_;                      // ascending
  std::unordered_map<uint32_t, uint32_t> slot_sharers_;  // of tables without owners
};

}  // namespace spanprof::collect
