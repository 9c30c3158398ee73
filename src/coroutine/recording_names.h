#pragma once

// What a recording says about its targets, coroutines and places: the first of two readings, as
// descriptions may stand behind the events that they are about.

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "coroutine/function_name.h"
#include "coroutine/recording.h"
#include "coroutine/recording_clock.h"
#include <spanprof/internal/coroutine_layout.hpp>

namespace spanprof::coroutine {

class RecordingNames : public RecordingVisitor {
 public:
  void OnTarget(const TargetInfo& target) override {
    for (const TargetInfo& known : targets) {
      if (known.target == target.target) return;  // in a second file of a set
    }
    targets.push_back(target);
  }
  void OnClock(const ClockPair& pair) override { clock.Add(pair); }
  void OnPlace(const PlaceInfo& place) override {
    PlaceInfo& kept = places[{place.target, place.place}] = place;
    kept.function = AuthorsFunctionName(place.function);
  }
  void OnCounters(const Counters& seen) override {
    for (const auto& [name, value] : seen.values) {
      uint64_t& known = target_counters_[{seen.target, name}];
      // What the target counts goes on from one recording of it to the next; what the harvester
      // counts is of each.
      const bool of_harvester = name == "events_received" || name == "coroutines_undescribed" ||
                                name == "impossible_ring_heads";
      const uint64_t more = of_harvester ? value : value - std::min(value, known);
      known += more;
      counters[name] += more;
    }
  }
  void OnCoroutine(const CoroutineInfo& info) override {
    coroutines[{info.target, internal::coroutine::IdentityOf(info.station, info.generation)}] =
        info;
  }

  // Null if it was never described.
  [[nodiscard]] const CoroutineInfo* Describe(uint32_t target, uint64_t word) const {
    namespace wire = internal::coroutine;
    const uint64_t identity = wire::IdentityOf(wire::StationOf(word), wire::GenerationOf(word));
    const auto known = coroutines.find({target, identity});
    return known == coroutines.end() ? nullptr : &known->second;
  }
  [[nodiscard]] const PlaceInfo* PlaceAt(uint32_t target, uint32_t place) const {
    const auto known = places.find({target, place});
    return known == places.end() ? nullptr : &known->second;
  }

  std::vector<TargetInfo> targets;
  RecordingClock clock;
  std::map<std::pair<uint32_t, uint32_t>, PlaceInfo> places;
  std::map<std::pair<uint32_t, uint64_t>, CoroutineInfo> coroutines;
  std::map<std::string, uint64_t> counters;

 private:
  std::map<std::pair<uint32_t, std::string>, uint64_t> target_counters_;
};

}  // namespace spanprof::coroutine
