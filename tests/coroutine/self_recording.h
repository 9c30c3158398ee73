#pragma once

// For tests of probes: this process records itself.

#include <functional>
#include <string>
#include <vector>

namespace spanprof::coroutine {

// What `body` does, as RecordedEvents::Lines has it. `first` runs before: one coroutine, which
// makes the memory that is attached to.
std::vector<std::string> RecordedHere(const std::function<void()>& first,
                                      const std::function<void()>& body);

}  // namespace spanprof::coroutine
