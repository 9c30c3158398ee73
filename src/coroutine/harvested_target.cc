#include "coroutine/harvested_target.h"

#include <algorithm>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <poll.h>
#include <span>
#include <string>
#include <unistd.h>
#include <utility>

#include <sys/syscall.h>

#include "coroutine/function_name.h"
#include <spanprof/internal/coroutine_clock.hpp>

namespace spanprof::coroutine {
namespace {

namespace wire = internal::coroutine;

constexpr std::size_t kBatchEvents = 16384;  // what fits a core's cache
constexpr uint64_t kSearchInterval = 1'000'000'000;
constexpr uint64_t kIdentityMask = wire::IdentityOf(wire::kMaxStations - 1, wire::kGenerationMask);

std::string CommandName(uint32_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/comm");
  std::string name;
  std::getline(file, name);
  return name;
}

}  // namespace

HarvestedTarget::HarvestedTarget(TargetArea area, uint32_t number, RecordingWriter* writer)
    : area_(std::move(area)),
      number_(number),
      writer_(writer),
      process_(static_cast<int>(syscall(SYS_pidfd_open, area_.header().pid, 0))) {
  batch_.resize(kBatchEvents);
}

bool HarvestedTarget::ended() const {
  if (!process_.valid()) return true;  // it was gone before we could look
  pollfd end = {process_.get(), POLLIN, 0};
  return poll(&end, 1, 0) > 0;
}

uint64_t HarvestedTarget::Now() const {
  return area_.header().clock_kind == wire::kClockCycles ? wire::CycleCounter()
                                                         : wire::MonotonicNanoseconds();
}

Result<void> HarvestedTarget::WriteClock() {
  if (writer_ == nullptr) return {};
  const uint64_t nanoseconds = wire::MonotonicNanoseconds();
  return writer_->Write(ClockPair{number_, Now(), nanoseconds});
}

Result<void> HarvestedTarget::Begin() {
  const wire::GlobalHeader& header = area_.header();
  // Whoever harvested before us may have died with stations in its hands.
  FindDeadStations();
  if (writer_ == nullptr) return {};
  const TargetInfo target = {number_, header.pid, header.start_ticks, header.clock_kind,
                             CommandName(header.pid)};
  if (auto written = writer_->Write(target); !written) return written;
  const ClockPair first = {number_, header.clock_counter, header.clock_nanoseconds};
  if (auto written = writer_->Write(first); !written) return written;
  return WriteClock();
}

Result<void> HarvestedTarget::Describe(uint32_t station, uint32_t generation) {
  if (station >= generations_.size()) {
    generations_.resize(std::max<std::size_t>(station + 1, generations_.size() * 2));
    named_.resize(generations_.size());
  }
  generations_[station] = static_cast<uint16_t>(generation + 1);
  named_[station] = false;
  ++coroutines_;
  return WriteDescription(station, generation);
}

Result<void> HarvestedTarget::WriteDescription(uint32_t station, uint32_t generation) {
  const wire::StationData* data = area_.Station(station);
  if (data == nullptr ||
      (data->generation.load(std::memory_order_relaxed) & wire::kGenerationMask) != generation) {
    ++undescribed_;
    return {};
  }
  if (writer_ == nullptr) return {};
  CoroutineInfo info;
  info.target = number_;
  info.station = station;
  info.generation = generation;
  info.probe_id = data->probe_id.load(std::memory_order_relaxed);
  info.birth_nanoseconds = data->birth_ts.load(std::memory_order_relaxed);
  info.frame = data->frame.load(std::memory_order_relaxed);
  info.resume_function = data->resume_function.load(std::memory_order_relaxed);
  info.adopted = data->adopted.load(std::memory_order_relaxed) != 0;
  // Pairs with the release store behind the name's bytes.
  const std::size_t length =
      std::min<std::size_t>(data->name_length.load(std::memory_order_acquire), wire::kNameBytes);
  info.name.assign(data->name, length);
  named_[station] = length != 0;
  return writer_->Write(info);
}

Result<void> HarvestedTarget::Note(uint64_t word) {
  const uint32_t station = wire::StationOf(word);
  const uint32_t generation = wire::GenerationOf(word);
  if (station >= generations_.size() || generations_[station] != generation + 1) {
    if (auto described = Describe(station, generation); !described) return described;
  }
  if (wire::KindOf(word) == wire::kKindDeath) {
    if (!named_[station]) {  // it may have got its name later
      if (auto described = WriteDescription(station, generation); !described) return described;
    }
    deaths_.push_back(station);
  }
  return {};
}

Result<uint64_t> HarvestedTarget::Drain(uint32_t index, RingView& ring) {
  wire::RingControl& control = ring.control();
  // Acquire: pairs with the probe's release store. The thread's number is read after it: records of
  // a new owner come with its number.
  const uint64_t head = control.head.load(std::memory_order_acquire);
  const uint32_t tid = control.tid.load(std::memory_order_relaxed);
  const uint64_t available = head - ring.tail;
  if (available > area_.ring_records()) {
    ++impossible_heads_;
    ring.tail = head;
    control.tail.store(head, std::memory_order_release);
    return 0;
  }
  fullest_percent_ =
      std::max(fullest_percent_, static_cast<unsigned>(available * 100 / area_.ring_records()));
  const uint64_t mask = area_.ring_records() - 1;
  const wire::Record* records = ring.records();
  while (ring.tail != head) {
    const uint64_t count = std::min<uint64_t>(head - ring.tail, kBatchEvents);
    uint64_t noted_identity = ~uint64_t{0};
    for (uint64_t i = 0; i < count; ++i) {
      const wire::Record& record = records[(ring.tail + i) & mask];
      const uint64_t word = record.word.load(std::memory_order_relaxed);
      batch_[i] = {record.stamp.load(std::memory_order_relaxed), word};
      // A suspension is of the coroutine that was resumed just before.
      const bool is_death = wire::KindOf(word) == wire::kKindDeath;
      const uint64_t identity = word & kIdentityMask;
      if (identity == noted_identity && !is_death) continue;
      noted_identity = identity;
      const uint32_t station = wire::StationOf(word);
      const bool known =
          station < generations_.size() && generations_[station] == wire::GenerationOf(word) + 1;
      if (known && !is_death) continue;
      if (auto noted = Note(word); !noted) return tl::make_unexpected(noted.error());
    }
    const std::span<const RingEvent> events(batch_.data(), count);
    if (writer_ != nullptr) {
      auto written = writer_->WriteEvents(number_, index, tid, ring.tail, events);
      if (!written) return tl::make_unexpected(written.error());
    }
    if (stuck_watch_) stuck_watch_->OnEvents(events);
    // Only now, when they are in the file: if we are killed before this, they are taken again, and
    // a reader knows them by their position.
    ring.tail += count;
    control.tail.store(ring.tail, std::memory_order_release);
    received_ += count;
  }
  return available;
}

Result<uint64_t> HarvestedTarget::Pass() {
  uint64_t taken = 0;
  fullest_percent_ = 0;
  const uint64_t begun = Now();
  std::vector<RingView>& rings = area_.Rings();
  for (uint32_t i = 0; i < rings.size(); ++i) {
    // Before the head: who sees the thread gone then sees all that it wrote.
    const bool abandoned =
        rings[i].control().state.load(std::memory_order_acquire) == wire::kRingAbandoned;
    Result<uint64_t> count = Drain(i, rings[i]);
    if (!count) return count;
    taken += *count;
    if (abandoned) area_.FreeRing(i);
  }
  if (taken != 0 && writer_ != nullptr) {
    if (auto written = writer_->Write(PassMark{number_, begun}); !written) {
      return tl::make_unexpected(written.error());
    }
  }
  if (auto written = WritePlaces(); !written) return tl::make_unexpected(written.error());
  const uint64_t now = wire::MonotonicNanoseconds();
  if (now - last_search_nanoseconds_ > kSearchInterval && LostInRings() != lost_at_last_search_) {
    FindDeadStations();  // a death may be among what was lost
  }
  // A death that was seen in the pass before: this pass has taken everything that came before it.
  for (const uint32_t station : deaths_before_) GiveBack(station);
  deaths_before_ = std::move(deaths_);
  deaths_.clear();
  return taken;
}

bool HarvestedTarget::HasEvents() {
  std::vector<RingView>& rings = area_.Rings();
  return std::any_of(rings.begin(), rings.end(), [](const RingView& ring) {
    return ring.control().head.load(std::memory_order_acquire) != ring.tail;
  });
}

Result<void> HarvestedTarget::WritePlaces() {
  const uint32_t count = area_.PlaceCount();
  while (places_written_ < count) {
    ++places_written_;
    const std::optional<wire::Place> place = area_.ReadPlace(places_written_);
    if (!place || writer_ == nullptr) continue;
    const PlaceInfo info = {number_,       places_written_, place->line,
                            place->column, place->file,     place->function};
    if (auto written = writer_->Write(info); !written) return written;
  }
  return {};
}

void HarvestedTarget::FindDeadStations() {
  lost_at_last_search_ = LostInRings();
  last_search_nanoseconds_ = wire::MonotonicNanoseconds();
  const uint32_t count = area_.StationCount();
  for (uint32_t i = 0; i < count; ++i) {
    const wire::StationData* station = area_.Station(i);
    if (station == nullptr) return;
    if (station->state.load(std::memory_order_relaxed) == wire::kStationDead) deaths_.push_back(i);
  }
}

void HarvestedTarget::GiveBack(uint32_t index) {
  wire::StationData* station = area_.Station(index);
  if (station == nullptr) return;
  uint32_t dead = wire::kStationDead;
  // Acquire: pairs with the store that marked it dead. Who wins this gives it back, once.
  if (!station->state.compare_exchange_strong(dead, wire::kStationFree,
                                              std::memory_order_acquire)) {
    return;
  }
  std::atomic<uint64_t>& top = area_.header().free_stations;
  uint64_t seen = top.load(std::memory_order_relaxed);
  do {
    station->next_free.store(static_cast<uint32_t>(seen), std::memory_order_relaxed);
    // Release: who takes it sees next_free.
  } while (!top.compare_exchange_weak(seen, (((seen >> 32) + 1) << 32) | (index + 1),
                                      std::memory_order_release, std::memory_order_relaxed));
}

std::vector<StuckCoroutine> HarvestedTarget::FindStuck(uint64_t limit_nanoseconds) {
  std::vector<StuckCoroutine> found;
  if (!stuck_watch_) return found;
  const wire::GlobalHeader& header = area_.header();
  const uint64_t now = Now();
  const uint64_t now_nanoseconds = wire::MonotonicNanoseconds();
  const auto ticks = static_cast<double>(now - header.clock_counter);
  const auto nanoseconds = static_cast<double>(now_nanoseconds - header.clock_nanoseconds);
  const double rate = ticks > 0 && nanoseconds > 0 ? ticks / nanoseconds : 1;  // ticks a nanosecond
  const auto limit = static_cast<uint64_t>(static_cast<double>(limit_nanoseconds) * rate);
  for (const StuckWatch::Stuck& stuck : stuck_watch_->Find(now, limit)) {
    StuckCoroutine coroutine;
    coroutine.pid = header.pid;
    coroutine.nanoseconds = static_cast<uint64_t>(static_cast<double>(stuck.ticks) / rate);
    if (const wire::StationData* data = area_.Station(stuck.station)) {
      const std::size_t length = std::min<std::size_t>(
          data->name_length.load(std::memory_order_acquire), wire::kNameBytes);
      coroutine.who.assign(data->name, length);
    }
    if (const auto place = area_.ReadPlace(stuck.place)) {
      coroutine.where = std::string(place->file) + ":" + std::to_string(place->line);
      if (coroutine.who.empty()) coroutine.who = AuthorsFunctionName(place->function);
    }
    found.push_back(std::move(coroutine));
  }
  return found;
}

uint64_t HarvestedTarget::LostInRings() {
  uint64_t lost = 0;
  for (const RingView& ring : area_.Rings()) {
    lost += ring.control().lost.load(std::memory_order_relaxed);
  }
  return lost;
}

HarvestTotals HarvestedTarget::Totals() {
  const wire::GlobalHeader& header = area_.header();
  HarvestTotals totals;
  totals.received = received_;
  totals.lost = LostInRings() + header.lost_no_ring.load(std::memory_order_relaxed);
  totals.coroutines = coroutines_;
  totals.untraced = header.untraced_no_station.load(std::memory_order_relaxed);
  return totals;
}

Result<void> HarvestedTarget::Finish() {
  if (writer_ == nullptr) return {};
  if (auto written = WriteClock(); !written) return written;
  // Those that are alive may have got their names after they were described.
  for (uint32_t station = 0; station < generations_.size(); ++station) {
    if (generations_[station] == 0 || named_[station]) continue;
    const wire::StationData* data = area_.Station(station);
    if (data == nullptr || data->name_length.load(std::memory_order_relaxed) == 0) continue;
    const uint32_t generation = generations_[station] - 1u;
    if (auto written = WriteDescription(station, generation); !written) return written;
  }
  const wire::GlobalHeader& header = area_.header();
  Counters counters = {number_, {}};
  uint64_t written_to_rings = 0;
  for (const RingView& ring : area_.Rings()) {
    written_to_rings += ring.control().head.load(std::memory_order_relaxed);
  }
  counters.values["events_received"] = received_;
  counters.values["events_written_to_rings"] = written_to_rings;
  counters.values["events_lost_ring_full"] = LostInRings();
  counters.values["events_lost_no_ring"] = header.lost_no_ring.load(std::memory_order_relaxed);
  counters.values["coroutines"] = header.births.load(std::memory_order_relaxed);
  counters.values["coroutines_adopted"] = header.adopted_coroutines.load(std::memory_order_relaxed);
  counters.values["coroutines_untraced_no_station"] =
      header.untraced_no_station.load(std::memory_order_relaxed);
  counters.values["coroutines_undescribed"] = undescribed_;
  counters.values["places_not_kept"] = header.places_not_kept.load(std::memory_order_relaxed);
  counters.values["impossible_ring_heads"] = impossible_heads_;
  counters.values["targets_ended"] = ended() ? 1 : 0;
  return writer_->Write(counters);
}

}  // namespace spanprof::coroutine
