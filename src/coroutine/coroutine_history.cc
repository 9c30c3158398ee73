#include "coroutine/coroutine_history.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <unordered_map>
#include <utility>

#include "coroutine/ordered_events.h"
#include "coroutine/recording_names.h"
#include "coroutine/recording_set.h"
#include <spanprof/internal/coroutine_layout.hpp>

namespace spanprof::coroutine {
namespace wire = internal::coroutine;

const char* EventKindText(uint32_t kind) {
  static constexpr const char* kNames[] = {"none",  "birth", "adopted", "resume", "suspend",
                                           "yield", "done",  "death",   "awaits", "ready"};
  static_assert(std::size(kNames) == wire::kKindCount);
  return kind < wire::kKindCount ? kNames[kind] : "unknown";
}

const char* StatusText(CoroutineStatus status) {
  switch (status) {
    case CoroutineStatus::kNew:
      return "new";
    case CoroutineStatus::kRunning:
      return "running";
    case CoroutineStatus::kSuspended:
      return "suspended";
    case CoroutineStatus::kYielded:
      return "yielded";
    case CoroutineStatus::kDone:
      return "done";
    case CoroutineStatus::kDead:
      return "dead";
  }
  return "unknown";
}

void LatencyHistogram::Add(uint64_t nanoseconds, std::size_t coroutine) {
  ++buckets[std::min(63, static_cast<int>(std::bit_width(nanoseconds)))];
  ++count;
  if (nanoseconds < longest && longest_of) return;
  longest = nanoseconds;
  longest_of = coroutine;
}

uint64_t LatencyHistogram::Quantile(double part) const {
  const auto wanted = static_cast<uint64_t>(static_cast<double>(count) * part);
  uint64_t seen = 0;
  for (int i = 0; i < 64; ++i) {
    seen += buckets[i];
    if (seen > wanted) return std::min(longest, uint64_t{1} << i);
  }
  return longest;
}

// The second reading: the events.
class HistoryBuilder : public OrderedEvents {
 public:
  HistoryBuilder(CoroutineHistory& history, const RecordingNames& names, HistoryObserver* observer)
      : history_(&history), names_(&names), observer_(observer) {}

  // Of a probe that is not ours: its station has no generations, and no places.
  void OnSlotEvent(const SlotEventInfo& event) override {
    const auto kind = event.active ? wire::kKindResume : wire::kKindSuspend;
    const uint64_t word = wire::WordOf(wire::IdentityOf(event.station, 0), kind, 0);
    foreign_probe_id_ = event.probe_id;
    Take(event.target, event.tid, word, event.nanoseconds);
    foreign_probe_id_ = 0;
  }

 protected:
  void OnEvent(const Event& event) override {
    Take(event.target, event.tid, event.record.word,
         names_->clock.Nanoseconds(event.target, event.record.stamp));
  }

 private:
  void Take(uint32_t target, uint64_t tid, uint64_t word, uint64_t now) {
    const uint32_t kind = wire::KindOf(word);
    history_->end_ = std::max(history_->end_, now);
    ++history_->events_;
    const std::size_t index = Find(target, word, kind, now);
    Coroutine& coroutine = history_->coroutines_[index];
    HistoryEvent seen = {history_->events_,   now,         index, tid, kind,
                         wire::PlaceOf(word), std::nullopt};
    switch (kind) {
      case wire::kKindResume:
        Resume(coroutine, index, tid, now);
        break;
      case wire::kKindSuspend:
        Leave(coroutine, CoroutineStatus::kSuspended, wire::PlaceOf(word), now);
        break;
      case wire::kKindYield:
        Leave(coroutine, CoroutineStatus::kYielded, wire::PlaceOf(word), now);
        break;
      case wire::kKindDone:
        Leave(coroutine, CoroutineStatus::kDone, 0, now);
        coroutine.finished = true;
        break;
      case wire::kKindDeath:
        if (coroutine.status == CoroutineStatus::kRunning) EndRun(coroutine, now);
        coroutine.status = CoroutineStatus::kDead;
        coroutine.since = now;
        break;
      case wire::kKindAwaits: {
        seen.place = 0;  // it is a station
        const auto awaited = newest_.find(StationKey(target, wire::PlaceOf(word)));
        if (awaited == newest_.end() || awaited->second == index) break;
        seen.awaited = awaited->second;
        coroutine.awaits = awaited->second;
        history_->coroutines_[awaited->second].awaited_by = index;
        break;
      }
      case wire::kKindReady:
        ready_[index] = now;
        break;
      default:
        break;  // birth and adoption: Find has made it
    }
    if (observer_ != nullptr) observer_->OnEvent(*history_, seen);
  }

  static uint64_t StationKey(uint32_t target, uint32_t station) {
    return (uint64_t{target} << 32) | station;
  }

  std::size_t Find(uint32_t target, uint64_t word, uint32_t kind, uint64_t now) {
    const uint32_t station = wire::StationOf(word);
    const uint32_t generation = wire::GenerationOf(word);
    const uint64_t key = StationKey(target, station);
    const auto known = newest_.find(key);
    const bool is_birth = kind == wire::kKindBirth || kind == wire::kKindAdopted;
    if (known != newest_.end() && generations_[known->second] == generation && !is_birth) {
      return known->second;
    }
    Coroutine coroutine;
    coroutine.target = target;
    coroutine.probe_id = foreign_probe_id_;
    coroutine.birth = now;
    coroutine.since = now;
    if (const CoroutineInfo* description = names_->Describe(target, word)) {
      coroutine.probe_id = description->probe_id;
      coroutine.name = description->name;
      coroutine.adopted = description->adopted;
    }
    const std::size_t index = history_->coroutines_.size();
    history_->coroutines_.push_back(std::move(coroutine));
    generations_.push_back(generation);
    newest_[key] = index;
    return index;
  }

  void Resume(Coroutine& coroutine, std::size_t index, uint64_t tid, uint64_t now) {
    const auto ready = ready_.find(index);
    if (coroutine.status == CoroutineStatus::kSuspended) {
      PlaceWaits& waits = history_->waits_[{coroutine.target, coroutine.place}];
      ++waits.count;
      waits.longest = std::max(waits.longest, now - std::min(now, coroutine.since));
      if (observer_ != nullptr) {
        const uint64_t since_ready = ready == ready_.end() ? 0 : ready->second;
        observer_->OnWait(*history_,
                          {index, coroutine.place, coroutine.since, now, since_ready, tid});
      }
    }
    if (ready != ready_.end()) {
      history_->latency_.Add(now - std::min(now, ready->second), index);
      ready_.erase(ready);
    }
    if (coroutine.resumes != 0 && coroutine.tid != tid) ++coroutine.migrations;
    ++coroutine.resumes;
    coroutine.tid = tid;
    coroutine.status = CoroutineStatus::kRunning;
    coroutine.since = now;
    if (coroutine.awaits) history_->coroutines_[*coroutine.awaits].awaited_by.reset();
    coroutine.awaits.reset();
  }

  void Leave(Coroutine& coroutine, CoroutineStatus status, uint32_t place, uint64_t now) {
    if (coroutine.status == CoroutineStatus::kRunning) EndRun(coroutine, now);
    coroutine.status = status;
    coroutine.since = now;
    if (place != 0) coroutine.place = place;
  }

  static void EndRun(Coroutine& coroutine, uint64_t now) {
    const uint64_t run = now - std::min(now, coroutine.since);
    coroutine.run_nanoseconds += run;
    if (run <= coroutine.longest_run) return;
    coroutine.longest_run = run;
    coroutine.longest_run_began = coroutine.since;
    coroutine.longest_run_from = coroutine.place;
  }

  CoroutineHistory* history_;
  const RecordingNames* names_;
  HistoryObserver* observer_;
  uint64_t foreign_probe_id_ = 0;
  std::unordered_map<uint64_t, std::size_t> newest_;  // by target and station
  std::vector<uint32_t> generations_;                 // by index
  std::unordered_map<std::size_t, uint64_t> ready_;
};

Result<CoroutineHistory> CoroutineHistory::Read(const std::string& path,
                                                HistoryObserver* observer) {
  return Read(std::vector<std::string>{path}, observer);
}

Result<CoroutineHistory> CoroutineHistory::Read(const std::vector<std::string>& paths,
                                                HistoryObserver* observer) {
  const Result<RecordingSet> recordings = RecordingSet::Open(paths);
  if (!recordings) return tl::make_unexpected(recordings.error());
  CoroutineHistory history;
  history.complete_ = recordings->complete();
  RecordingNames names;
  if (auto read = recordings->Read(names); !read) return tl::make_unexpected(read.error());
  history.targets_ = names.targets;
  history.places_ = names.places;
  history.counters_ = names.counters;
  HistoryBuilder builder(history, names, observer);
  if (auto read = recordings->Read(builder); !read) return tl::make_unexpected(read.error());
  builder.Flush();
  return history;
}

std::string CoroutineHistory::PlaceText(uint32_t target, uint32_t place) const {
  const auto known = places_.find({target, place});
  if (place == 0) return "its start";
  if (known == places_.end()) return "place " + std::to_string(place);
  return known->second.file + ":" + std::to_string(known->second.line) + " in " +
         known->second.function;
}

std::string CoroutineHistory::GroupName(const Coroutine& coroutine) const {
  if (!coroutine.name.empty()) return coroutine.name;
  const auto place = places_.find({coroutine.target, coroutine.place});
  const bool is_known = place != places_.end() && !place->second.function.empty();
  return is_known ? place->second.function : "coroutine";
}

std::string CoroutineHistory::CoroutineText(const Coroutine& coroutine) const {
  return GroupName(coroutine) + " #" + std::to_string(coroutine.probe_id & 0xFFFFFF) + "." +
         std::to_string(coroutine.probe_id >> 24);
}

const PlaceWaits& CoroutineHistory::WaitsAt(uint32_t target, uint32_t place) const {
  static const PlaceWaits kNone;
  const auto known = waits_.find({target, place});
  return known == waits_.end() ? kNone : known->second;
}

uint64_t CoroutineHistory::lost() const {
  uint64_t lost = 0;
  for (const char* name :
       {"events_lost_ring_full", "events_lost_no_ring", "events_lost_overwritten"}) {
    const auto known = counters_.find(name);
    if (known != counters_.end()) lost += known->second;
  }
  return lost;
}

}  // namespace spanprof::coroutine
