#include "coroutine/flight_buffer.h"

#include <algorithm>
#include <utility>

#include <spanprof/internal/coroutine_clock.hpp>
#include <spanprof/internal/coroutine_layout.hpp>

namespace spanprof::coroutine {
namespace {

namespace wire = internal::coroutine;

// Of stations whose last event is remembered: what a target can make us keep, 24 MiB, is bounded.
constexpr uint32_t kMaxRememberedStations = 1u << 20;
// What happened before stands in rings of its own, one for each thread.
constexpr uint32_t kFirstEarlierRing = wire::kMaxRings;

}  // namespace

void FlightBuffer::Take(BlockType type, std::string_view block, std::chrono::nanoseconds now) {
  now_ = now;
  switch (type) {
    case BlockType::kTarget:
    case BlockType::kClock:
    case BlockType::kPlace:
    case BlockType::kCounters:
      // Few, and needed however old they are.
      (void)ReadBlock(block, *this);
      break;
    case BlockType::kEnd:
      break;
    default:
      bytes_ += block.size();
      kept_.push_back({now, type, std::string(block)});
  }
  Trim(now);
}

void FlightBuffer::Trim(std::chrono::nanoseconds now) {
  while (!kept_.empty() && (bytes_ > max_bytes_ || now - kept_.front().time > window_)) {
    forgotten_for_room_ += now - kept_.front().time > window_ ? 0 : 1;
    Forget();
  }
  // Of a target that ended before the window there is nothing left to explain.
  std::erase_if(targets_, [&](const auto& entry) {
    return entry.second.ended && now - *entry.second.ended > window_;
  });
}

void FlightBuffer::Forget() {
  (void)ReadBlock(kept_.front().block, *this);
  bytes_ -= kept_.front().block.size();
  kept_.pop_front();
}

void FlightBuffer::OnTarget(const TargetInfo& target) { targets_[target.target].info = target; }

void FlightBuffer::OnClock(const ClockPair& clock) {
  std::vector<ClockPair>& clocks = targets_[clock.target].clocks;
  if (clocks.size() == 3) clocks.pop_back();
  clocks.push_back(clock);
}

void FlightBuffer::OnPlace(const PlaceInfo& place) {
  targets_[place.target].places[place.place] = place;
}

void FlightBuffer::OnCounters(const Counters& counters) {
  Target& target = targets_[counters.target];
  target.counters = counters;
  const auto ended = counters.values.find("targets_ended");
  if (ended != counters.values.end() && ended->second != 0) target.ended = now_;
}

void FlightBuffer::OnCoroutine(const CoroutineInfo& coroutine) {
  // One whose death was forgotten is not described again: its successor has another generation.
  targets_[coroutine.target].coroutines[coroutine.station] = coroutine;
}

void FlightBuffer::OnEvents(const EventBlock& block) {
  forgotten_events_ += block.events.size();
  Target& target = targets_[block.target];
  for (const RingEvent& event : block.events) {
    const uint32_t kind = wire::KindOf(event.word);
    if (kind == wire::kKindAwaits || kind == wire::kKindReady) continue;
    const uint32_t station = wire::StationOf(event.word);
    if (station >= target.last.size()) {
      if (station >= kMaxRememberedStations) {
        ++states_not_kept_;
        continue;
      }
      target.last.resize(std::max<std::size_t>(station + 1, 2 * target.last.size()));
    }
    LastEvent& last = target.last[station];
    // Rings are emptied one after another: another thread's event may be later than this one.
    if (last.event.word != 0 && last.event.stamp > event.stamp) continue;
    if (kind == wire::kKindDeath) {
      last = {};
      const auto described = target.coroutines.find(station);
      if (described != target.coroutines.end() &&
          (described->second.generation & wire::kGenerationMask) ==
              wire::GenerationOf(event.word)) {
        target.coroutines.erase(described);
      }
    } else {
      last = {event, block.tid};
    }
  }
}

void FlightBuffer::OnSlotEvent(const SlotEventInfo& /*event*/) { ++forgotten_events_; }

Result<void> FlightBuffer::WriteTarget(const Target& target, RecordingWriter& writer) const {
  if (auto written = writer.Write(target.info); !written) return written;
  for (const ClockPair& clock : target.clocks) {
    if (auto written = writer.Write(clock); !written) return written;
  }
  for (const auto& [number, place] : target.places) {
    if (auto written = writer.Write(place); !written) return written;
  }
  for (const auto& [station, coroutine] : target.coroutines) {
    if (auto written = writer.Write(coroutine); !written) return written;
  }
  std::map<uint32_t, std::vector<RingEvent>> earlier;  // by thread
  for (const LastEvent& last : target.last) {
    if (last.event.word != 0) earlier[last.tid].push_back(last.event);
  }
  uint32_t ring = kFirstEarlierRing;
  for (auto& [tid, events] : earlier) {
    std::sort(events.begin(), events.end(),
              [](const RingEvent& a, const RingEvent& b) { return a.stamp < b.stamp; });
    for (std::size_t begin = 0; begin < events.size(); begin += kMaxChunkEvents) {
      const std::size_t count = std::min(events.size() - begin, kMaxChunkEvents);
      auto written = writer.WriteEvents(target.info.target, ring, tid, begin,
                                        std::span(events).subspan(begin, count));
      if (!written) return written;
    }
    ++ring;
  }
  return {};
}

Result<void> FlightBuffer::WriteTo(RecordingWriter& writer) const {
  for (const auto& [number, target] : targets_) {
    if (target.info.pid == 0) continue;  // counters only: those of foreign probes
    if (auto written = WriteTarget(target, writer); !written) return written;
  }
  for (const Kept& kept : kept_) {
    if (auto written = writer.WriteBlock(kept.type, kept.block); !written) return written;
  }
  Counters own = {0, {}};
  for (const auto& [number, target] : targets_) {
    if (number == 0) {
      own.values = target.counters.values;
    } else if (!target.counters.values.empty()) {
      if (auto written = writer.Write(target.counters); !written) return written;
    }
  }
  own.values["flight_events_forgotten"] = forgotten_events_;
  own.values["flight_blocks_forgotten_for_room"] = forgotten_for_room_;
  own.values["flight_states_not_kept"] = states_not_kept_;
  return writer.Write(own);
}

Result<void> FlightSink::Take(BlockType type, std::string_view block) {
  buffer_->Take(type, block, std::chrono::nanoseconds(wire::MonotonicNanoseconds()));
  return {};
}

}  // namespace spanprof::coroutine
