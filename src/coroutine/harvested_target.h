#pragma once

// One process that is being recorded: its rings are emptied into a recording, its coroutines and
// places described there, its dead stations given back. Not thread-safe.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "coroutine/recording.h"
#include "coroutine/stuck_watch.h"
#include "coroutine/target_area.h"

namespace spanprof::coroutine {

struct HarvestTotals {
  uint64_t received = 0;    // events
  uint64_t lost = 0;        // events that found their ring full, or no ring
  uint64_t coroutines = 0;  // different ones
  uint64_t untraced = 0;    // coroutines that found no station

  HarvestTotals& operator+=(const HarvestTotals& other) {
    received += other.received;
    lost += other.lost;
    coroutines += other.coroutines;
    untraced += other.untraced;
    return *this;
  }
};

// One that was found while it is being recorded.
struct StuckCoroutine {
  uint32_t pid = 0;
  std::string who;    // its name, or the function that it is in
  std::string where;  // file:line
  uint64_t nanoseconds = 0;
};

class HarvestedTarget {
 public:
  // `writer` may be null: then events are taken and not kept.
  HarvestedTarget(TargetArea area, uint32_t number, RecordingWriter* writer);

  // Describes the target in the recording. Once, at the beginning.
  [[nodiscard]] Result<void> Begin();
  // Takes everything that is there. Returns the number of events.
  [[nodiscard]] Result<uint64_t> Pass();
  // Whether a ring has anything in it.
  [[nodiscard]] bool HasEvents();
  // The present clock, names that came late, and the counters: what a reader of what was written
  // up to now needs. At the end, and whenever somebody wants to read before it.
  [[nodiscard]] Result<void> Finish();
  // From now on coroutines are looked after, and those that get stuck are found.
  void WatchForStuck() { stuck_watch_.emplace(); }
  [[nodiscard]] std::vector<StuckCoroutine> FindStuck(uint64_t limit_nanoseconds);

  [[nodiscard]] TargetArea& area() { return area_; }
  [[nodiscard]] bool ended() const;
  [[nodiscard]] int process() const { return process_.get(); }
  // How full the fullest ring was in the last pass, in percent.
  [[nodiscard]] unsigned fullest_percent() const { return fullest_percent_; }
  [[nodiscard]] HarvestTotals Totals();

 private:
  // The target's ring clock.
  [[nodiscard]] uint64_t Now() const;
  [[nodiscard]] Result<uint64_t> Drain(uint32_t index, RingView& ring);
  [[nodiscard]] Result<void> Note(uint64_t word);
  [[nodiscard]] Result<void> Describe(uint32_t station, uint32_t generation);
  [[nodiscard]] Result<void> WriteDescription(uint32_t station, uint32_t generation);
  [[nodiscard]] Result<void> WritePlaces();
  [[nodiscard]] Result<void> WriteClock();
  void FindDeadStations();
  void GiveBack(uint32_t station);
  [[nodiscard]] uint64_t LostInRings();

  TargetArea area_;
  uint32_t number_;
  RecordingWriter* writer_;
  UniqueFd process_;
  std::vector<RingEvent> batch_;
  std::optional<StuckWatch> stuck_watch_;
  std::vector<uint16_t> generations_;  // of the coroutine that was described, plus 1
  std::vector<bool> named_;
  std::vector<uint32_t> deaths_;         // seen in this pass
  std::vector<uint32_t> deaths_before_;  // seen in the one before: nothing of them is left in rings
  uint32_t places_written_ = 0;
  uint64_t received_ = 0;
  uint64_t coroutines_ = 0;
  uint64_t undescribed_ = 0;
  uint64_t impossible_heads_ = 0;
  uint64_t lost_at_last_search_ = 0;
  uint64_t last_search_nanoseconds_ = 0;
  unsigned fullest_percent_ = 0;
};

}  // namespace spanprof::coroutine
