#pragma once

// Finds stuck coroutines while they are being recorded: suspended for longer than a limit and for
// ten times longer than any wait that has ended at that place, and not for a coroutine which is
// itself there. The same rule as in findings.h. Of one target. Not thread-safe.

#include <cstdint>
#include <span>
#include <vector>

#include "coroutine/event_chunk.h"

namespace spanprof::coroutine {

class StuckWatch {
 public:
  void OnEvents(std::span<const RingEvent> events);

  struct Stuck {
    uint32_t station = 0;
    uint32_t place = 0;
    uint64_t ticks = 0;  // for how long
  };
  // Those that have become stuck since the last call; each is named once a wait. Times are the
  // ring's clock.
  [[nodiscard]] std::vector<Stuck> Find(uint64_t now, uint64_t limit);

  // Events of stations that no target of ours has.
  [[nodiscard]] uint64_t ignored_events() const { return ignored_events_; }

 private:
  struct State {
    uint64_t stamp = 0;
    uint64_t word = 0;
    uint32_t awaits = 0;  // station + 1
    bool named = false;
  };

  std::vector<State> states_;            // by station
  std::vector<uint64_t> longest_waits_;  // by place
  uint64_t ignored_events_ = 0;
};

}  // namespace spanprof::coroutine
