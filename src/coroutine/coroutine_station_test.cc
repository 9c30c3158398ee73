// The slot protocol in memory that two threads share, and what foreign readers see of it.

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>

#include <gtest/gtest.h>

#include <spanprof/internal/coroutine_station.hpp>

namespace spanprof::internal::coroutine {
namespace {

SlotEvent Values(uint64_t k) {
  SlotEvent event;
  event.timestamp = k;
  event.tid = k * 5;
  event.addr = k * 7;
  for (uint64_t& word : event.tail) word = k * 11;
  return event;
}

TEST(CoroutineStation, NoMixtureIsAcceptedFromAWriterAtFullSpeed) {
  auto station = std::make_unique<StationData>();
  std::atomic<bool> stop = false;
  std::thread writer([&] {
    for (uint64_t k = 1; !stop.load(std::memory_order_relaxed); ++k)
      WriteSlot(*station, k, Values(k));
  });
  uint64_t accepted = 0;
  uint64_t mixed = 0;
  for (uint64_t look = 0; accepted < 50'000; ++look) {
    SlotEvent event;
    if (!ReadSlot(station->slots[look % kSlotCount], kNumberingEvents, event)) continue;
    ++accepted;
    const uint64_t k = event.timestamp;
    const bool whole = event.tid == k * 5 && event.addr == k * 7 && event.tail[0] == k * 11 &&
                       event.tail[3] == k * 11 && event.sequence == 2 * k;
    mixed += whole ? 0 : 1;
  }
  stop = true;
  writer.join();
  EXPECT_EQ(mixed, 0u);
}

// Both kinds of foreign readers take an event by its sequence: above the last one seen, and for the
// discipline in use also even. What they must never take is a slot that is being written.
TEST(CoroutineStation, ForeignReadersTakeEveryPublishedEventOnce) {
  auto station = std::make_unique<StationData>();
  uint64_t seen_by_text[kSlotCount] = {};
  uint64_t seen_by_sdk[kSlotCount] = {};
  uint64_t taken_by_text = 0;
  uint64_t taken_by_sdk = 0;
  for (uint64_t k = 1; k <= 1000; ++k) {
    WriteSlot(*station, k, Values(k));
    for (unsigned slot = 0; slot < kSlotCount; ++slot) {
      const uint64_t sequence = station->slots[slot].seq.load();
      if (sequence > seen_by_text[slot]) {
        seen_by_text[slot] = sequence;
        ++taken_by_text;
      }
      if (sequence % 2 == 0 && sequence > seen_by_sdk[slot]) {
        seen_by_sdk[slot] = sequence;
        ++taken_by_sdk;
      }
    }
  }
  EXPECT_EQ(taken_by_text, 1000u);
  EXPECT_EQ(taken_by_sdk, 1000u);
}

}  // namespace
}  // namespace spanprof::internal::coroutine
