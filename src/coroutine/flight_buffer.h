#pragma once

// The last seconds of a recording, in memory: what is older, or more than there is room for, is
// forgotten and counted. Of what is forgotten stays what a reader of the rest needs: who the
// targets and the coroutines are, and the last thing that each coroutine did, so that one which has
// been stuck for longer is still seen to be. Not thread-safe.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "coroutine/recording.h"

namespace spanprof::coroutine {

class FlightBuffer : private RecordingVisitor {
 public:
  FlightBuffer(std::chrono::nanoseconds window, std::size_t max_bytes)
      : window_(window), max_bytes_(max_bytes) {}

  void Take(BlockType type, std::string_view block, std::chrono::nanoseconds now);
  // Everything as a recording of its own, but for its end.
  [[nodiscard]] Result<void> WriteTo(RecordingWriter& writer) const;

  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  [[nodiscard]] uint64_t forgotten_events() const { return forgotten_events_; }

 private:
  struct Kept {
    std::chrono::nanoseconds time;
    BlockType type;
    std::string block;
  };
  struct LastEvent {
    RingEvent event;  // word 0: none
    uint32_t tid = 0;
  };
  // What is known of a target from what was forgotten, and from what is kept apart.
  struct Target {
    TargetInfo info;
    std::vector<ClockPair> clocks;  // the first, and the last
    std::map<uint32_t, PlaceInfo> places;
    std::map<uint32_t, CoroutineInfo> coroutines;  // by station: the newest
    std::vector<LastEvent> last;                   // by station
    Counters counters;
    std::optional<std::chrono::nanoseconds> ended;
  };

  void Trim(std::chrono::nanoseconds now);
  void Forget();
  [[nodiscard]] Result<void> WriteTarget(const Target& target, RecordingWriter& writer) const;

  void OnTarget(const TargetInfo& target) override;
  void OnClock(const ClockPair& clock) override;
  void OnPlace(const PlaceInfo& place) override;
  void OnCounters(const Counters& counters) override;
  void OnCoroutine(const CoroutineInfo& coroutine) override;
  void OnEvents(const EventBlock& block) override;
  void OnSlotEvent(const SlotEventInfo& event) override;

  std::chrono::nanoseconds window_;
  std::size_t max_bytes_;
  std::chrono::nanoseconds now_{0};
  std::deque<Kept> kept_;
  std::size_t bytes_ = 0;
  std::map<uint32_t, Target> targets_;
  uint64_t forgotten_events_ = 0;
  uint64_t forgotten_for_room_ = 0;  // blocks that were not old yet
  uint64_t states_not_kept_ = 0;
};

// Gives what a harvester writes to a buffer.
class FlightSink : public BlockSink {
 public:
  explicit FlightSink(FlightBuffer& buffer) : buffer_(&buffer) {}
  [[nodiscard]] Result<void> Take(BlockType type, std::string_view block) override;

 private:
  FlightBuffer* buffer_;
};

}  // namespace spanprof::coroutine
