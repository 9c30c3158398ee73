#include "coroutine/foreign_stations.h"

#include <atomic>
#include <cstring>
#include <memory>
#include <new>
#include <thread>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <spanprof/internal/coroutine_station.hpp>

namespace spanprof::coroutine {
namespace {

namespace wire = internal::coroutine;

// A cTP file, and probes of all three kinds writing to it.
class CtpFile {
 public:
  explicit CtpFile(uint32_t stations) : stations_(stations) {
    file_ = memfd_create("ctp", MFD_CLOEXEC);
    const std::size_t bytes = 1024 + std::size_t{stations} * 1024;
    if (ftruncate(file_, static_cast<off_t>(bytes)) != 0) std::abort();
    memory_ =
        static_cast<char*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0));
    header().magic_number = wire::kMagic;
    header().max_stations = stations;
  }
  ~CtpFile() {
    munmap(memory_, 1024 + std::size_t{stations_} * 1024);
    close(file_);
  }
  CtpFile(const CtpFile&) = delete;
  CtpFile& operator=(const CtpFile&) = delete;

  wire::GlobalHeader& header() { return *reinterpret_cast<wire::GlobalHeader*>(memory_); }
  wire::StationData& station(uint32_t i) {
    return *(reinterpret_cast<wire::StationData*>(memory_ + 1024) + i);
  }
  ForeignStations Reader() const { return ForeignStations(UniqueFd(dup(file_)), 0); }

 private:
  uint32_t stations_;
  int file_;
  char* memory_;
};

// Event k of a probe: every field is made of k, so that a mixture is seen.
wire::SlotEvent Values(uint64_t k) {
  wire::SlotEvent event;
  event.timestamp = k * 3;
  event.tid = k * 5;
  event.addr = k * 7;
  event.tail[3] = (k & 1) << wire::kActiveShift;
  return event;
}

void WriteEvent(wire::StationData& station, Numbering numbering, uint64_t k) {
  if (numbering == wire::kNumberingEvents) {
    wire::WriteSlot(station, k, Values(k));
    return;
  }
  // As in the SDKs in use, and as in the text.
  const bool text = numbering == wire::kNumberingText;
  wire::Epoch& slot = station.slots[text ? k % 8 : (k - 1) % 8];
  const uint64_t before = slot.seq.load(std::memory_order_relaxed);
  if (!text) slot.seq.store(before + 1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  const wire::SlotEvent values = Values(k);
  slot.timestamp.store(values.timestamp, std::memory_order_relaxed);
  slot.tid.store(values.tid, std::memory_order_relaxed);
  slot.addr.store(values.addr, std::memory_order_relaxed);
  slot.tail[3].store(values.tail[3], std::memory_order_relaxed);
  slot.seq.store(text ? k : before + 2, std::memory_order_release);
}

bool IsWhole(const SlotEventInfo& event) {
  return event.nanoseconds == event.number * 3 && event.tid == event.number * 5 &&
         event.addr == event.number * 7 && event.active == ((event.number & 1) != 0);
}

TEST(ForeignStations, EventsOfEveryNumberingAreTakenOnceAndInOrder) {
  CtpFile file(3);
  file.header().allocated_count = 3;
  ForeignStations reader = file.Reader();
  const Numbering numberings[] = {wire::kNumberingEvents, wire::kNumberingPerSlot,
                                  wire::kNumberingText};
  std::vector<SlotEventInfo> events;
  for (uint64_t k = 1; k <= 100; ++k) {
    for (uint32_t i = 0; i < 3; ++i) WriteEvent(file.station(i), numberings[i], k);
    if (k % 7 == 0) reader.Harvest(events);
  }
  reader.Harvest(events);
  EXPECT_EQ(reader.received(), 300u);
  EXPECT_EQ(reader.lost(), 0u);
  uint64_t next[3] = {1, 1, 1};
  for (const SlotEventInfo& event : events) {
    EXPECT_EQ(event.number, next[event.station]++);
    EXPECT_TRUE(IsWhole(event));
  }
  EXPECT_FALSE(reader.Harvest(events));
}

TEST(ForeignStations, WhatWasOverwrittenIsCountedExactly) {
  for (const Numbering numbering :
       {wire::kNumberingEvents, wire::kNumberingPerSlot, wire::kNumberingText}) {
    CtpFile file(1);
    file.header().allocated_count = 1;
    ForeignStations reader = file.Reader();
    std::vector<SlotEventInfo> events;
    for (uint64_t k = 1; k <= 4; ++k) WriteEvent(file.station(0), numbering, k);
    reader.Harvest(events);
    for (uint64_t k = 5; k <= 1000; ++k) WriteEvent(file.station(0), numbering, k);
    reader.Harvest(events);
    EXPECT_EQ(reader.received(), 12u);
    EXPECT_EQ(reader.received() + reader.lost(), 1000u);
  }
}

TEST(ForeignStations, NoMixtureIsTakenFromAWriterAtFullSpeed) {
  for (const Numbering numbering : {wire::kNumberingEvents, wire::kNumberingPerSlot}) {
    CtpFile file(1);
    file.header().allocated_count = 1;
    ForeignStations reader = file.Reader();
    std::atomic<bool> stop = false;
    uint64_t written = 0;
    std::thread writer([&] {
      for (uint64_t k = 1; !stop.load(std::memory_order_relaxed); ++k) {
        WriteEvent(file.station(0), numbering, k);
        written = k;
        // Slow enough for the numbering to be seen and fast enough to be met in mid-write.
        if (k < 64) std::this_thread::sleep_for(std::chrono::microseconds(200));
      }
    });
    std::vector<SlotEventInfo> events;
    uint64_t mixed = 0;
    for (int pass = 0; pass < 20'000; ++pass) {
      events.clear();
      reader.Harvest(events);
      for (const SlotEventInfo& event : events) mixed += IsWhole(event) ? 0 : 1;
    }
    stop = true;
    writer.join();
    reader.Harvest(events);
    EXPECT_EQ(mixed, 0u);
    EXPECT_EQ(reader.received() + reader.lost(), written);
  }
}

TEST(ForeignStations, ALyingHeaderAndAShortFileAreSurvived) {
  CtpFile file(2);
  file.header().allocated_count = 0xFFFFFFFF;
  file.header().max_stations = 0xFFFFFFFF;
  ForeignStations reader = file.Reader();
  std::vector<SlotEventInfo> events;
  EXPECT_FALSE(reader.Harvest(events));
  EXPECT_EQ(reader.untraced(), 0xFFFFFFFFu - 2u);
}

TEST(ForeignStations, DeathIsSeen) {
  CtpFile file(2);
  file.header().allocated_count = 2;
  file.station(1).is_dead = 1;
  ForeignStations reader = file.Reader();
  std::vector<SlotEventInfo> events;
  reader.Harvest(events);
  EXPECT_EQ(reader.dead(), 1u);
}

}  // namespace
}  // namespace spanprof::coroutine
