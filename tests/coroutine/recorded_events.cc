#include "tests/coroutine/recorded_events.h"

#include <algorithm>

#include <gtest/gtest.h>

#include <spanprof/internal/coroutine_layout.hpp>

namespace spanprof::coroutine {

namespace wire = internal::coroutine;

void RecordedEvents::OnTarget(const TargetInfo& target) {
  targets.push_back(target);
  pids_[target.target] = target.pid;
}

void RecordedEvents::OnEvents(const EventBlock& block) {
  tids.insert(block.tid);
  auto& ranges = ranges_[{pids_[block.target], block.ring}];
  const uint64_t end = block.first + block.events.size();
  auto& known_end = ranges[block.first];
  known_end = std::max(known_end, end);
  constexpr std::size_t kEnoughForLines = 100'000;
  if (events_.size() < kEnoughForLines) {
    events_.insert(events_.end(), block.events.begin(), block.events.end());
  }
}

void RecordedEvents::OnCoroutine(const CoroutineInfo& coroutine) {
  names[wire::IdentityOf(coroutine.station, coroutine.generation)] = coroutine.name;
}

void RecordedEvents::OnPlace(const PlaceInfo& place) {
  const std::size_t slash = place.file.rfind('/');
  places_[place.place] = place.file.substr(slash == std::string::npos ? 0 : slash + 1) + ":" +
                         std::to_string(place.line);
}

void RecordedEvents::OnCounters(const Counters& seen) {
  for (const auto& [name, value] : seen.values) counters[name] = value;
}

ReadSummary RecordedEvents::Add(const std::string& path) {
  const Result<ReadSummary> summary = ReadRecordingFile(path, *this);
  if (!summary) {
    ADD_FAILURE() << TextOf(summary.error());
    return {};
  }
  EXPECT_EQ(summary->malformed_blocks, 0u) << path;
  return *summary;
}

uint64_t RecordedEvents::Count() const {
  uint64_t count = 0;
  for (const auto& [ring, ranges] : ranges_) {
    uint64_t counted_to = 0;
    for (const auto& [first, end] : ranges) {
      const uint64_t from = std::max(first, counted_to);
      if (end > from) count += end - from;
      counted_to = std::max(counted_to, end);
    }
  }
  return count;
}

uint64_t RecordedEvents::Gaps() const {
  uint64_t gaps = 0;
  for (const auto& [ring, ranges] : ranges_) {
    uint64_t reached = ranges.begin()->first;
    for (const auto& [first, end] : ranges) {
      if (first > reached) gaps += first - reached;
      reached = std::max(reached, end);
    }
  }
  return gaps;
}

std::vector<std::string> RecordedEvents::Lines() const {
  static const char* const kKinds[] = {"none",  "birth", "adopted", "resume", "suspend",
                                       "yield", "done",  "death",   "awaits", "ready"};
  std::vector<RingEvent> events = events_;
  std::stable_sort(events.begin(), events.end(),
                   [](const RingEvent& a, const RingEvent& b) { return a.stamp < b.stamp; });
  std::vector<std::string> lines;
  for (const RingEvent& event : events) {
    const uint32_t kind = wire::KindOf(event.word);
    const uint64_t identity =
        wire::IdentityOf(wire::StationOf(event.word), wire::GenerationOf(event.word));
    const auto name = names.find(identity);
    std::string line = kind < wire::kKindCount ? kKinds[kind] : "impossible";
    line += " " + (name == names.end() ? "?" : name->second);
    const uint32_t place = wire::PlaceOf(event.word);
    if (kind == wire::kKindAwaits) {
      const auto other = names.find(wire::IdentityOf(place, 1));
      line += " " + (other == names.end() ? "?" : other->second);
    } else if (place != 0) {
      const auto where = places_.find(place);
      line += " " + (where == places_.end() ? "?" : where->second);
    }
    lines.push_back(line);
  }
  return lines;
}

}  // namespace spanprof::coroutine
