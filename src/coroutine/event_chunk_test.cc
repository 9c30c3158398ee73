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
    uint64_t word = random() % 4 == 0 ? random() : random() & 0xFFFF;
    if (wire::KindOf(word) == 15) word ^= 1;
    events.push_back({stamp, word});
  }
  return events;
}

std::string Encoded(const std::vector<RingEvent>& events) {
  std::string bytes(events.size() * kMostEventBytes + kEncodingSlack, '\0');
  bytes.resize(static_cast<std::size_t>(EncodeEvents(events, bytes.data()) - bytes.data()));
  return bytes;
}

// So many coroutines in turn, each resumed and suspended.
std::vector<RingEvent> InTurn(uint32_t coroutines, std::size_t count, uint64_t step) {
  std::vector<RingEvent> events;
  for (std::size_t i = 0; i < count; ++i) {
    const uint64_t identity = wire::IdentityOf((i / 2) % coroutines, 1);
    events.push_back({1'000'000 + i * step, i % 2 == 0
                                                ? wire::WordOf(identity, wire::kKindResume, 0)
                                                : wire::WordOf(identity, wire::kKindSuspend, 17)});
  }
  return events;
}

TEST(EventChunk, EveryRecordComesBackAsItWas) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    const std::vector<RingEvent> events = RandomEvents(seed * 7, seed);
    std::vector<RingEvent> back;
    ASSERT_TRUE(ParseEvents(Encoded(events), events.size(), back));
    EXPECT_EQ(back, events);
  }
}

TEST(EventChunk, CoroutinesInTurnComeBackAsTheyWere) {
  for (const uint32_t coroutines : {1u, 2u, 100u, 5000u}) {
    // An odd number of events ends in the middle of a pair; long steps are not paired.
    for (const uint64_t step : {uint64_t{30}, uint64_t{255}, uint64_t{256}, uint64_t{70'000}}) {
      const std::vector<RingEvent> events = InTurn(coroutines, 16'385, step);
      std::vector<RingEvent> back;
      ASSERT_TRUE(ParseEvents(Encoded(events), events.size(), back));
      EXPECT_EQ(back, events);
    }
  }
}

TEST(EventChunk, CoroutinesInTurnTakeLittleMoreThanThreeBytesForTwoEvents) {
  for (const uint32_t coroutines : {1u, 100u, 1000u}) {
    const std::vector<RingEvent> events = InTurn(coroutines, 16'384, 60);
    // Before the first turn is over there is nothing to guess from.
    EXPECT_LT(Encoded(events).size(), 3 * events.size() / 2 + 8 * coroutines) << coroutines;
  }
}

TEST(EventChunk, AKindThatNoProbeWritesIsNotTakenForAPair) {
  std::vector<RingEvent> back;
  ASSERT_TRUE(ParseEvents(Encoded({{5, 15}, {6, 14}}), 2, back));
  EXPECT_EQ(back, (std::vector<RingEvent>{{5, 0}, {6, 14}}));
}

TEST(EventChunk, BytesThatAreNotThatManyEventsAreRefused) {
  const std::vector<RingEvent> events = RandomEvents(100, 1);
  const std::string bytes = Encoded(events);
  std::vector<RingEvent> back;
  EXPECT_FALSE(ParseEvents(bytes, 101, back));
  EXPECT_FALSE(ParseEvents(bytes, 99, back));
  EXPECT_FALSE(ParseEvents(bytes.substr(0, bytes.size() - 1), 100, back));
  EXPECT_FALSE(ParseEvents(bytes, uint64_t{1} << 60, back));
}

}  // namespace
}  // namespace spanprof::coroutine
