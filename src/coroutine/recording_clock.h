#pragma once

// The stamps of a target's rings as CLOCK_MONOTONIC nanoseconds, by the pairs of both clocks that
// the recording has: a straight line through the first and the last.

#include <cstdint>
#include <map>

#include "coroutine/recording.h"

namespace spanprof::coroutine {

class RecordingClock {
 public:
  void Add(const ClockPair& pair) {
    auto [known, is_new] = lines_.try_emplace(pair.target, Line{pair, pair});
    if (is_new) return;
    if (pair.counter < known->second.first.counter) known->second.first = pair;
    if (pair.counter > known->second.last.counter) known->second.last = pair;
  }

  [[nodiscard]] uint64_t Nanoseconds(uint32_t target, uint64_t stamp) const {
    const auto known = lines_.find(target);
    if (known == lines_.end()) return stamp;
    const auto& [first, last] = known->second;
    const double ticks = static_cast<double>(last.counter - first.counter);
    const double rate = ticks > 0 && last.nanoseconds > first.nanoseconds
                            ? static_cast<double>(last.nanoseconds - first.nanoseconds) / ticks
                            : 1.0;
    const double since = static_cast<double>(static_cast<int64_t>(stamp - first.counter)) * rate;
    const double most = 9e18;  // what fits, whatever a hostile file says
    if (since > most || since < -most) return first.nanoseconds;
    return first.nanoseconds + static_cast<uint64_t>(static_cast<int64_t>(since));
  }

 private:
  struct Line {
    ClockPair first;
    ClockPair last;
  };
  std::map<uint32_t, Line> lines_;
};

}  // namespace spanprof::coroutine
