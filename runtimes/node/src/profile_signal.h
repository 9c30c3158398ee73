#pragma once

// The process's SIGPROF while V8 samples: our handler stands before V8's, notes the time around it,
// and passes on what is not V8's to whoever had the signal before.
//
// One handler a process, installed when the first thread is sampled and taken away with the last,
// before V8 takes its own away.

#include <functional>

#include "signal_state.h"

namespace spanprof::node {

// `start` makes V8 begin to sample in this thread. Both are done under one lock, so that V8's
// handler and ours come and go in order whatever other threads do.
void BeginSignals(SignalState* state, const std::function<void()>& start);
// The thread's state gets no more signals. `stop` makes V8 end.
void EndSignals(const std::function<void()>& stop);

// Somebody has installed a handler of his own since, and does not call ours.
bool HandlerIsDisplaced();

// Signals that came for somebody else and were passed on, in the whole process.
uint64_t ForeignSignals();

}  // namespace spanprof::node
