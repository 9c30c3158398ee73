#include "coroutine/live_coroutines.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>
#include <unordered_map>
#include <utility>

#include "collect/access_error.h"
#include "collect/remote_memory.h"
#include "coroutine/function_name.h"
#include "coroutine/harvester.h"
#include "coroutine/recording_clock.h"
#include "coroutine/target_area.h"
#include <spanprof/internal/coroutine_clock.hpp>
#include <spanprof/internal/coroutine_layout.hpp>

namespace spanprof::coroutine {
namespace {

namespace wire = internal::coroutine;

// Of a station, what must not change while its coroutine is looked at.
struct StationCopy {
  uint32_t index = 0;
  uint32_t generation = 0;
  uint64_t probe_id = 0;
  uint64_t birth = 0;
  uint64_t present = 0;
  uint64_t awaited_by = 0;
  uint64_t resume_function = 0;
  std::string name;
};

struct PresentRecord {
  uint64_t stamp = 0;
  uint64_t word = 0;
};

std::vector<StationCopy> CopyLiveStations(TargetArea& area) {
  std::vector<StationCopy> copies;
  const uint32_t count = area.StationCount();
  for (uint32_t i = 0; i < count; ++i) {
    const wire::StationData* station = area.Station(i);
    if (station == nullptr) break;
    if (station->state.load(std::memory_order_acquire) != wire::kStationLive) continue;
    StationCopy copy;
    copy.index = i;
    copy.generation = station->generation.load(std::memory_order_relaxed);
    copy.probe_id = station->probe_id.load(std::memory_order_relaxed);
    copy.birth = station->birth_ts.load(std::memory_order_relaxed);
    copy.present = station->present.load(std::memory_order_relaxed);
    copy.awaited_by = station->awaited_by.load(std::memory_order_relaxed);
    copy.resume_function = station->resume_function.load(std::memory_order_relaxed);
    const uint32_t length = station->name_length.load(std::memory_order_acquire);
    copy.name.assign(station->name, std::min<std::size_t>(length, wire::kNameBytes));
    copies.push_back(std::move(copy));
  }
  return copies;
}

CoroutineStatus StatusOf(uint64_t word) {
  switch (wire::KindOf(word)) {
    case wire::kKindResume:
      return CoroutineStatus::kRunning;
    case wire::kKindSuspend:
      return CoroutineStatus::kSuspended;
    case wire::kKindYield:
      return CoroutineStatus::kYielded;
    case wire::kKindDone:
      return CoroutineStatus::kDone;
    default:
      return CoroutineStatus::kNew;
  }
}

// Reads the last records of all of them. Those that could not be read have word 0.
Result<std::vector<PresentRecord>> ReadPresent(pid_t pid, const std::vector<StationCopy>& copies) {
  std::vector<PresentRecord> records(copies.size());
  collect::ProcessMemory memory(pid);
  constexpr std::size_t kAtOnce = collect::MemoryReader::kMaxRanges;
  for (std::size_t begin = 0; begin < copies.size(); begin += kAtOnce) {
    const std::size_t end = std::min(copies.size(), begin + kAtOnce);
    std::vector<collect::MemoryRange> ranges;
    for (std::size_t i = begin; i < end; ++i) {
      ranges.push_back({copies[i].present, std::as_writable_bytes(std::span(&records[i], 1))});
    }
    collect::ReadStatus status = memory.ReadVectors(ranges);
    if (status == collect::ReadStatus::kOk) continue;
    if (status == collect::ReadStatus::kNotPermitted) {
      return tl::make_unexpected(
          collect::ExplainAccessError(pid, EPERM, "spanprof coro ps " + std::to_string(pid)));
    }
    // One of them is gone: one by one.
    for (std::size_t i = begin; i < end; ++i) {
      status = memory.ReadVectors(std::span(&ranges[i - begin], 1));
      if (status != collect::ReadStatus::kOk) records[i] = {};
    }
  }
  return records;
}

std::string BaseName(const char* path) {
  const char* slash = std::strrchr(path, '/');
  return slash == nullptr ? path : slash + 1;
}

Result<void> ReadArea(pid_t pid, TargetArea& area, LiveCoroutines& live) {
  const std::vector<StationCopy> copies = CopyLiveStations(area);
  const Result<std::vector<PresentRecord>> records = ReadPresent(pid, copies);
  if (!records) return tl::make_unexpected(records.error());
  const wire::GlobalHeader& header = area.header();
  RecordingClock clock;
  const uint64_t now = wire::MonotonicNanoseconds();
  clock.Add({0, header.clock_counter, header.clock_nanoseconds});
  clock.Add({0, header.clock_kind == wire::kClockCycles ? wire::CycleCounter() : now, now});
  std::unordered_map<uint64_t, std::size_t> indexes;
  std::vector<std::pair<std::size_t, uint64_t>> awaited;
  for (std::size_t i = 0; i < copies.size(); ++i) {
    const StationCopy& copy = copies[i];
    const PresentRecord& record = (*records)[i];
    const uint64_t identity = wire::IdentityOf(copy.index, copy.generation);
    // The frame may have been another coroutine's by the time it was read.
    if (wire::IdentityOf(wire::StationOf(record.word), wire::GenerationOf(record.word)) !=
        identity) {
      ++live.unreadable;
      continue;
    }
    LiveCoroutine coroutine;
    coroutine.probe_id = copy.probe_id;
    coroutine.identity = identity;
    coroutine.name = copy.name;
    coroutine.resume_function = copy.resume_function;
    coroutine.status = StatusOf(record.word);
    coroutine.age_nanoseconds = now - std::min(now, copy.birth);
    coroutine.since_nanoseconds = now - std::min(now, clock.Nanoseconds(0, record.stamp));
    if (const auto place = area.ReadPlace(wire::PlaceOf(record.word))) {
      coroutine.place = BaseName(place->file) + ":" + std::to_string(place->line);
      if (coroutine.name.empty()) coroutine.name = AuthorsFunctionName(place->function);
    }
    indexes[identity] = live.coroutines.size();
    if (copy.awaited_by != 0) awaited.emplace_back(live.coroutines.size(), copy.awaited_by);
    live.coroutines.push_back(std::move(coroutine));
  }
  for (const auto& [index, awaiter] : awaited) {
    const auto known = indexes.find(awaiter);
    // One that runs again waits no more.
    if (known == indexes.end() || known->second == index ||
        live.coroutines[known->second].status != CoroutineStatus::kSuspended) {
      continue;
    }
    live.coroutines[index].awaited_by = known->second;
  }
  return {};
}

}  // namespace

Result<LiveCoroutines> ReadLiveCoroutines(pid_t pid, unsigned milliseconds) {
  Result<std::vector<TargetArea>> areas = TargetArea::FindInProcess(pid);
  if (!areas) return tl::make_unexpected(areas.error());
  LiveCoroutines live;
  Result<Harvester> harvester = Harvester::Create(nullptr);
  if (!harvester) return tl::make_unexpected(harvester.error());
  const Result<void> attached = harvester->AttachProcess(pid);
  if (!attached && attached.error().code != EBUSY) return tl::make_unexpected(attached.error());
  live.recorded_by_another = !attached;
  if (attached) {
    const uint64_t end = wire::MonotonicNanoseconds() + uint64_t{milliseconds} * 1'000'000;
    while (wire::MonotonicNanoseconds() < end && harvester->live_targets() > 0) {
      if (auto worked = harvester->Work(10); !worked) return tl::make_unexpected(worked.error());
    }
  }
  for (TargetArea& area : *areas) {
    if (auto read = ReadArea(pid, area, live); !read) return tl::make_unexpected(read.error());
  }
  if (attached) {
    if (auto finished = harvester->Finish(); !finished) {
      return tl::make_unexpected(finished.error());
    }
  }
  return live;
}

}  // namespace spanprof::coroutine
