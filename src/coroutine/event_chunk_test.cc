#include "coroutine/event_chunk.h"

#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <spanprof/internal/coroutine_layout.hpp>

namespace spanprof::coroutine {
namespace {

namespace wire = internal::coroutine;

std::vector<RingEvent> RandomEvents(std::size_t count, unsigned seed) {
  std::mt19937_64 random(seed);
  std::vector<RingEvent> events;
  uint64_t stamp = random();
  for (std::size_t i = 0; i < count; ++i) {
    stamp += random() % 1000;
    if (random() % 16 == 0) stamp = random();
    events.push_back({stamp, random() % 4 == 0 ? random() : random() & 0xFFFF});
  }
  return events;
}

TEST(EventChunk, EveryRecordComesBackAsItWas) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    const std::vector<RingEvent> events = RandomEvents(seed * 7, seed);
    std::string bytes;
    AppendEvents(bytes, events);
    std::vector<RingEvent> back;
    ASSERT_TRUE(ParseEvents(bytes, events.size(), back));
    EXPECT_EQ(back, events);
  }
}

TEST(EventChunk, OneCoroutineThatGoesToAndFroTakesFourBytesAnEvent) {
  std::vector<RingEvent> events;
  for (uint64_t i = 0; i < 1000; ++i) {
    const bool resume = i % 2 == 0;
    events.push_back(
        {1'000'000 + i * 60,
         wire::WordOf(wire::IdentityOf(3, 1), resume ? wire::kKindResume : wire::kKindSuspend,
                      resume ? 0 : 17)});
  }
  std::string bytes;
  AppendEvents(bytes, events);
  EXPECT_LT(bytes.size(), 4 * events.size());
}

TEST(EventChunk, BytesThatAreNotThatManyEventsAreRefused) {
  const std::vector<RingEvent> events = RandomEvents(100, 1);
  std::string bytes;
  AppendEvents(bytes, events);
  std::vector<RingEvent> back;
  EXPECT_FALSE(ParseEvents(bytes, 101, back));
  EXPECT_FALSE(ParseEvents(bytes, 99, back));
  EXPECT_FALSE(ParseEvents(bytes.substr(0, bytes.size() - 1), 100, back));
  EXPECT_FALSE(ParseEvents(bytes, uint64_t{1} << 60, back));
}

}  // namespace
}  // namespace spanprof::coroutine
