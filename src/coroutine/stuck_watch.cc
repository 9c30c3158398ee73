#include "coroutine/stuck_watch.h"

#include <algorithm>

#include <spanprof/internal/coroutine_layout.hpp>

namespace spanprof::coroutine {
namespace {

namespace wire = internal::coroutine;

constexpr uint64_t kLongerThanUsual = 10;
constexpr uint32_t kMaxWatchedStations = 1u << 20;

}  // namespace

void StuckWatch::OnEvents(std::span<const RingEvent> events) {
  for (const RingEvent& event : events) {
    const uint32_t kind = wire::KindOf(event.word);
    const uint32_t station = wire::StationOf(event.word);
    if (kind == wire::kKindReady) continue;
    if (station >= states_.size()) {
      if (station >= kMaxWatchedStations) {
        ++ignored_events_;
        continue;
      }
      states_.resize(std::max<std::size_t>(station + 1, 2 * states_.size()));
    }
    State& state = states_[station];
    if (kind == wire::kKindAwaits) {
      state.awaits = wire::PlaceOf(event.word) + 1;
      continue;
    }
    // Rings are emptied one after another: another thread's event may be later than this one.
    if (state.stamp > event.stamp) continue;
    if (wire::KindOf(state.word) == wire::kKindSuspend && kind == wire::kKindResume) {
      const uint32_t place = wire::PlaceOf(state.word);
      if (place >= longest_waits_.size() && place < wire::kMaxPlaces) {
        longest_waits_.resize(place + 1);
      }
      if (place < longest_waits_.size()) {
        longest_waits_[place] = std::max(longest_waits_[place], event.stamp - state.stamp);
      }
    }
    if (kind == wire::kKindResume) state.awaits = 0;
    state.stamp = event.stamp;
    state.word = event.word;
    state.named = false;
  }
}

std::vector<StuckWatch::Stuck> StuckWatch::Find(uint64_t now, uint64_t limit) {
  std::vector<Stuck> stuck;
  for (uint32_t station = 0; station < states_.size(); ++station) {
    State& state = states_[station];
    if (wire::KindOf(state.word) != wire::kKindSuspend || state.named) continue;
    const uint64_t waited = now - std::min(now, state.stamp);
    if (waited < limit) continue;
    const uint32_t place = wire::PlaceOf(state.word);
    const uint64_t usual = place < longest_waits_.size() ? longest_waits_[place] : 0;
    if (waited / kLongerThanUsual <= usual) continue;
    if (state.awaits != 0 && state.awaits <= states_.size()) {
      const uint32_t awaited = wire::KindOf(states_[state.awaits - 1].word);
      if (awaited != wire::kKindNone && awaited != wire::kKindDone && awaited != wire::kKindDeath) {
        continue;  // that one is at fault, or its own wait is
      }
    }
    state.named = true;
    stuck.push_back({station, place, waited});
  }
  return stuck;
}

}  // namespace spanprof::coroutine
