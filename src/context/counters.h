#pragma once

// Everything that the core refuses, drops or gives up is counted here, each with its reason.
// Counting is a relaxed addition: signal-safe.

#include <cstdint>

namespace spanprof::context {

enum class Counter : unsigned {
  kNestedWriteRefused,    // a signal handler's write that interrupted one of its own thread
  kAbandonedWrite,        // a write that a longjmp left for good; its context was cleared
  kExitingThreadRefused,  // a write after the thread's own clean-up had run
  kThreadNotAttached,     // no memory, or a thread id beyond the registry
  kSlotCollision,         // a thread whose slot in the table belongs to another live thread
  kSlotTakenFromDead,     // a slot whose owner had gone without giving it back
  kDictionaryFull,        // a tag value that found no room
  kTagValueTooLong,       // a tag value of more than 4096 bytes
  kUnknownTag,            // a tag position or an id that does not exist
  kAttributeCut,          // a tag value that the OTEP record could not hold whole
  kEndpointEvicted,       // an endpoint that made room for a newer one
  kEndpointDropped,       // an endpoint that a concurrent call kept out
  kReadInProgress,        // a read that met a write
  kReadChanged,           // a read by tid that was overtaken by a write, and tried again
  kReadTorn,              // a record whose checksum did not fit its ids; must stay 0
  kReadForeignOwner,      // a read by tid whose slot belonged to another thread
  kReadNoThread,          // a read by tid of a thread that never published
  kForkUnannounced,       // a forked child that was recognised only by its wiped memory
  kCount
};

inline constexpr unsigned kCounterCount = static_cast<unsigned>(Counter::kCount);

// Counts nothing before the core's state exists.
void Count(Counter counter, uint64_t amount = 1);
uint64_t CounterValue(unsigned index);
// Null behind the last one.
const char* CounterName(unsigned index);

}  // namespace spanprof::context
