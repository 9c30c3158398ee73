#include "coroutine/recording_set.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace spanprof::coroutine {
namespace {

// The first look at a file: who is in it.
class Contents : public RecordingVisitor {
 public:
  void OnTarget(const TargetInfo& target) override { targets.push_back(target); }
  void OnClock(const ClockPair& clock) override {
    // The first pair of a target is of its start; the second is of the harvester's.
    if (++clocks_[clock.target] == 2) begin = std::min(begin, clock.nanoseconds);
  }
  void OnSlotEvent(const SlotEventInfo& event) override {
    has_foreign = true;
    begin = std::min(begin, event.nanoseconds);
  }

  std::vector<TargetInfo> targets;
  uint64_t begin = std::numeric_limits<uint64_t>::max();
  bool has_foreign = false;

 private:
  std::map<uint32_t, unsigned> clocks_;
};

class Renumbering : public RecordingVisitor {
 public:
  Renumbering(const std::map<uint32_t, uint32_t>& numbers, RecordingVisitor& inner)
      : numbers_(&numbers), inner_(&inner) {}

  void OnTarget(const TargetInfo& target) override { Pass(target, &RecordingVisitor::OnTarget); }
  void OnClock(const ClockPair& clock) override { Pass(clock, &RecordingVisitor::OnClock); }
  void OnCoroutine(const CoroutineInfo& info) override {
    Pass(info, &RecordingVisitor::OnCoroutine);
  }
  void OnPlace(const PlaceInfo& place) override { Pass(place, &RecordingVisitor::OnPlace); }
  void OnPass(const PassMark& pass) override { Pass(pass, &RecordingVisitor::OnPass); }
  void OnCounters(const Counters& counters) override {
    Pass(counters, &RecordingVisitor::OnCounters);
  }
  void OnSlotEvent(const SlotEventInfo& event) override {
    Pass(event, &RecordingVisitor::OnSlotEvent);
  }
  void OnEvents(const EventBlock& block) override { Pass(block, &RecordingVisitor::OnEvents); }

 private:
  template <class T>
  void Pass(const T& value, void (RecordingVisitor::*take)(const T&)) {
    const auto number = numbers_->find(value.target);
    if (number == numbers_->end() || number->second == value.target) {
      (inner_->*take)(value);
      return;
    }
    T renumbered = value;
    renumbered.target = number->second;
    (inner_->*take)(renumbered);
  }

  const std::map<uint32_t, uint32_t>* numbers_;
  RecordingVisitor* inner_;
};

}  // namespace

Result<RecordingSet> RecordingSet::Open(const std::vector<std::string>& paths) {
  RecordingSet set;
  std::vector<Contents> contents;
  for (const std::string& path : paths) {
    const Result<ReadSummary> summary = ReadRecordingFile(path, contents.emplace_back());
    if (!summary) return tl::make_unexpected(summary.error());
    set.complete_ &= summary->complete && summary->malformed_blocks == 0;
    set.files_.push_back({path, contents.back().begin, {}});
  }
  std::map<Identity, uint32_t> known;
  uint32_t next = 1;
  bool foreign_seen = false;
  for (std::size_t i = 0; i < set.files_.size(); ++i) {
    std::map<std::pair<uint32_t, uint64_t>, uint32_t> areas;
    for (const TargetInfo& target : contents[i].targets) {
      const uint32_t area = areas[{target.pid, target.start_ticks}]++;
      const auto [entry, is_new] = known.try_emplace({target.pid, target.start_ticks, area}, next);
      if (is_new) ++next;
      set.files_[i].numbers[target.target] = entry->second;
    }
    // Foreign probes, number 0, are other ones in each file.
    if (!contents[i].has_foreign) continue;
    set.files_[i].numbers[0] = std::exchange(foreign_seen, true) ? next++ : 0;
  }
  std::sort(set.files_.begin(), set.files_.end(),
            [](const File& a, const File& b) { return a.begin < b.begin; });
  return set;
}

Result<void> RecordingSet::Read(RecordingVisitor& visitor) const {
  for (const File& file : files_) {
    Renumbering renumbering(file.numbers, visitor);
    const Result<ReadSummary> summary = ReadRecordingFile(file.path, renumbering);
    if (!summary) return tl::make_unexpected(summary.error());
  }
  return {};
}

}  // namespace spanprof::coroutine
