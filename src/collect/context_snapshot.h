#pragma once

// Everything that a process publishes about its contexts, read once from outside while it runs.
//
//   auto directory = ProcessDirectory::Open(pid);
//   ProcessMemory memory(directory->pid());
//   auto snapshot = ReadContextSnapshot(*directory, memory, "spanprof context 4242");
//
// Each thread's ids and attributes were published together. Different threads are read one after
// the other: the snapshot as a whole is not of one instant.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "base/result.h"
#include "collect/context_counters.h"
#include "collect/process_context_payload.h"
#include "collect/process_directory.h"
#include "collect/remote_memory.h"

namespace spanprof::collect {

enum class RecordKind { kSlotTable, kOtep4947, kOtep4719 };

// "slot_table", "otep_4947", "otep_4719".
[[nodiscard]] std::string_view RecordKindName(RecordKind kind);

struct ThreadContextSnapshot {
  pid_t tid = 0;     // as the reader sees it
  std::string name;  // any bytes
  // 0: none. A local root is never shown as a trace id, not even in part: where a slot cannot tell
  // which of the two it holds, it is the root.
  uint64_t trace_id_high = 0;
  uint64_t trace_id_low = 0;
  uint64_t span_id = 0;
  uint64_t root_span_id = 0;
  std::map<std::string, std::string> attributes;  // any bytes, both
  RecordKind source = RecordKind::kSlotTable;     // of the above; kSlotTable or kOtep4947
  bool unsequenced = false;  // by a protocol that makes a torn read unlikely, not impossible

  [[nodiscard]] bool HasTraceId() const { return (trace_id_high | trace_id_low) != 0; }
  [[nodiscard]] bool HasContext() const {
    return HasTraceId() || span_id != 0 || root_span_id != 0 || !attributes.empty();
  }
};

struct ContextSnapshot {
  pid_t pid = 0;
  std::vector<RecordKind> records;  // what the process publishes
  std::map<std::string, AttributeValue> resource;
  std::string schema_version;
  std::vector<ThreadContextSnapshot> threads;  // all live ones, with a context or without
  std::vector<std::string> notes;              // for people
  ContextCounters counters;
};

// Fails if the process cannot be read (EPERM, EACCES), does not exist (ESRCH) or publishes nothing
// (ENODATA); the error says which and what to do. `command` is what the user ran, for hints.
[[nodiscard]] Result<ContextSnapshot> ReadContextSnapshot(const ProcessDirectory& directory,
                                                          MemoryReader& memory,
                                                          std::string_view command);

}  // namespace spanprof::collect
