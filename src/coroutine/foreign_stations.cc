#include "coroutine/foreign_stations.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <unistd.h>

#include <sys/stat.h>

namespace spanprof::coroutine {
namespace {

namespace wire = internal::coroutine;

constexpr uint32_t kStationsPerRead = 64;
constexpr off_t kSleepingOffset = 0x14;
constexpr std::size_t kSlotBytes = sizeof(wire::Epoch);
constexpr std::size_t kSlotsOffset = 0x40;
constexpr std::size_t kSequenceOffset = 0x18;

uint64_t Word(const char* at) {
  uint64_t word = 0;
  std::memcpy(&word, at, sizeof word);
  return word;
}

// Reads what there is of these bytes; the rest is zero.
void ReadAt(int file, uint64_t offset, std::string& to) {
  std::size_t have = 0;
  while (have < to.size()) {
    const ssize_t got =
        pread(file, to.data() + have, to.size() - have, static_cast<off_t>(offset + have));
    if (got <= 0) break;
    have += static_cast<std::size_t>(got);
  }
  std::fill(to.begin() + static_cast<std::ptrdiff_t>(have), to.end(), '\0');
}

}  // namespace

bool ForeignStations::HarvestStation(uint32_t index, const char* first, const char* second,
                                     std::vector<SlotEventInfo>& events) {
  Station& station = stations_[index];
  station.dead = second[offsetof(wire::StationData, is_dead)] != 0;
  SlotSequences sequences = {};
  for (unsigned slot = 0; slot < wire::kSlotCount; ++slot) {
    sequences[slot] = Word(second + kSlotsOffset + slot * kSlotBytes + kSequenceOffset);
  }
  // One event looks alike in two numberings, so it is not settled by it.
  if (!station.settled) {
    station.numbering = GuessNumbering(sequences);
    station.settled =
        std::count(sequences.begin(), sequences.end(), 0u) + 2 <= std::ssize(sequences);
  }
  bool any = false;
  const std::size_t known = events.size();
  for (unsigned slot = 0; slot < wire::kSlotCount; ++slot) {
    const char* at = second + kSlotsOffset + slot * kSlotBytes;
    const uint64_t number = EventNumber(station.numbering, slot, sequences[slot]);
    if (number <= station.slots[slot]) continue;
    any = true;
    if (std::memcmp(first + kSlotsOffset + slot * kSlotBytes, at, kSlotBytes) != 0) {
      ++torn_;
      continue;
    }
    events.push_back({target_, index, Word(second), number, Word(at), Word(at + 8), Word(at + 16),
                      at[kSlotBytes - 1] != 0});
    station.slots[slot] = number;
    station.newest = std::max(station.newest, number);
    ++station.received;
  }
  std::sort(events.begin() + static_cast<std::ptrdiff_t>(known), events.end(),
            [](const SlotEventInfo& a, const SlotEventInfo& b) { return a.number < b.number; });
  received_ += events.size() - known;
  return any;
}

bool ForeignStations::Harvest(std::vector<SlotEventInfo>& events) {
  std::string head(0x18, '\0');
  ReadAt(file_.get(), 0, head);
  uint32_t capacity = 0;
  uint32_t allocated = 0;
  std::memcpy(&capacity, head.data() + 0x0C, sizeof capacity);
  std::memcpy(&allocated, head.data() + 0x10, sizeof allocated);
  struct stat status = {};
  if (fstat(file_.get(), &status) != 0) return false;
  const uint64_t room = static_cast<uint64_t>(status.st_size) / sizeof(wire::StationData);
  capacity =
      std::min({capacity, wire::kMaxStations, static_cast<uint32_t>(room == 0 ? 0 : room - 1)});
  untraced_ = allocated > capacity ? allocated - capacity : 0;
  const uint32_t used = std::min(allocated, capacity);
  if (stations_.size() < used) stations_.resize(used);
  bool any = false;
  for (uint32_t begin = 0; begin < used; begin += kStationsPerRead) {
    const uint32_t count = std::min(kStationsPerRead, used - begin);
    const uint64_t offset = wire::kStationsOffset + uint64_t{begin} * sizeof(wire::StationData);
    first_.resize(count * sizeof(wire::StationData));
    second_.resize(first_.size());
    ReadAt(file_.get(), offset, first_);
    // The second read comes after the first: pairs with the writer's release fence.
    std::atomic_thread_fence(std::memory_order_acquire);
    ReadAt(file_.get(), offset, second_);
    for (uint32_t i = 0; i < count; ++i) {
      const std::size_t at = i * sizeof(wire::StationData);
      any |= HarvestStation(begin + i, first_.data() + at, second_.data() + at, events);
    }
  }
  return any;
}

void ForeignStations::SetSleeping(bool sleeping) {
  const uint32_t value = sleeping ? 1 : 0;
  // A word: a probe sees the old or the new one.
  if (pwrite(file_.get(), &value, sizeof value, kSleepingOffset) != sizeof value) return;
}

uint64_t ForeignStations::lost() const {
  uint64_t lost = 0;
  for (const Station& station : stations_) lost += station.newest - station.received;
  return lost;
}

uint64_t ForeignStations::dead() const {
  return static_cast<uint64_t>(
      std::count_if(stations_.begin(), stations_.end(), [](const Station& s) { return s.dead; }));
}

}  // namespace spanprof::coroutine
