#pragma once

// Which copy of the library is the process's active core. The first copy to be initialised maps a
// page named SPANPROF_CORE that leads to its interface; every later copy finds the page in the
// process's own list of mappings. Once elected, a core stays the active one for the process's life.

#include <atomic>

#include "base/result.h"
#include "context/core_interface.h"

namespace spanprof::context {

inline constexpr char kCoreAnnouncementName[] = "SPANPROF_CORE";

extern std::atomic<const CoreInterface*> active_core;

// Null before this copy's first ElectCore. Inline: it is all that a call costs before that.
inline const CoreInterface* ActiveCore() { return active_core.load(std::memory_order_acquire); }

// The active core of the process: this copy's if there is none yet. Fails with EPROTO when the
// active one speaks another version. Not signal-safe.
Result<const CoreInterface*> ElectCore();

// In a forked child: the announcement is this process's now. Signal-safe.
void AnnounceProcessAfterFork();

}  // namespace spanprof::context
