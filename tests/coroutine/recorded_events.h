#pragma once

// What is in recordings, for tests: every event with its position in its ring, and the names of
// what it is about.

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "coroutine/recording.h"

namespace spanprof::coroutine {

class RecordedEvents : public RecordingVisitor {
 public:
  void OnTarget(const TargetInfo& target) override;
  void OnEvents(const EventBlock& block) override;
  void OnCoroutine(const CoroutineInfo& coroutine) override;
  void OnPlace(const PlaceInfo& place) override;
  void OnCounters(const Counters& seen) override;
  void OnSlotEvent(const SlotEventInfo& event) override { slot_events.push_back(event); }

  // Reads one file more; a test fails if it is not readable.
  ReadSummary Add(const std::string& path);

  // Different events. They are told apart by process, ring and position, so an event in two files
  // counts once.
  [[nodiscard]] uint64_t Count() const;
  // Positions that are missing between the first and the last of a ring.
  [[nodiscard]] uint64_t Gaps() const;
  // "birth name", "resume name", "suspend name file:line", "awaits name other", in order of time.
  [[nodiscard]] std::vector<std::string> Lines() const;

  std::vector<TargetInfo> targets;
  std::vector<SlotEventInfo> slot_events;
  std::map<std::string, uint64_t> counters;
  std::map<uint64_t, std::string> names;  // by identity
  std::set<uint32_t> tids;

 private:
  std::map<uint32_t, uint32_t> pids_;
  std::map<std::pair<uint32_t, uint32_t>, std::map<uint64_t, uint64_t>> ranges_;  // first, end
  std::vector<RingEvent> events_;
  std::map<uint32_t, std::string> places_;
};

}  // namespace spanprof::coroutine
