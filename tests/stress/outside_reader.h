#pragma once

// An independent reader of the slot table and the OTEP records of another process, written from the
// documented protocol alone: it shares no code and no constant with the library, so that both have
// to be right for a test to pass.

#include <cstdint>
#include <optional>

#include <sys/types.h>

#include "self_checking_context.h"

namespace spanprof::stress {

enum class OutsideStatus {
  kAccepted,
  kBusy,         // was being written
  kChanged,      // was written while we read
  kNotOwner,     // the slot belongs to another thread, or to none
  kNoTable,      // no mapping of that name, or its header is not valid (yet, or any more)
  kOtherTable,   // of another process: inherited through a fork
  kUnreadable,   // the process is gone, or the record's address cannot be read
  kInconsistent  // accepted by the protocol, and its parts contradict each other
};
const char* OutsideStatusName(OutsideStatus status);

struct OutsideContext {
  Fields fields;       // of slot and record together
  bool valid = false;  // the OTEP record's
};

class OutsideReader {
 public:
  explicit OutsideReader(pid_t pid) : pid_(pid) {}

  // Finds the mapping again; a process may have been forked or initialised since.
  OutsideStatus Find();
  // One try. `tid` as the process itself knows it.
  OutsideStatus Read(int tid, OutsideContext* out);
  // Up to `tries` times while it is busy or changed.
  OutsideStatus ReadWithRetries(int tid, OutsideContext* out, int tries = 1000);

 private:
  OutsideStatus CheckHeader();

  pid_t pid_;
  uint64_t table_ = 0;
  uint32_t capacity_ = 0;
  uint32_t pointers_offset_ = 0;
};

// How many mappings of a process have that name.
unsigned CountMappings(pid_t pid, const char* name);

}  // namespace spanprof::stress
