#include "coroutine/flight_buffer.h"

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <spanprof/internal/coroutine_layout.hpp>

namespace spanprof::coroutine {
namespace {

namespace wire = internal::coroutine;
using std::chrono::seconds;

// Takes blocks at the time that the test says.
class ClockedSink : public BlockSink {
 public:
  ClockedSink(FlightBuffer& buffer, const seconds& now) : buffer_(&buffer), now_(&now) {}
  Result<void> Take(BlockType type, std::string_view block) override {
    buffer_->Take(type, block, *now_);
    return {};
  }

 private:
  FlightBuffer* buffer_;
  const seconds* now_;
};

struct Dumped : RecordingVisitor {
  void OnTarget(const TargetInfo& target) override { targets.push_back(target); }
  void OnEvents(const EventBlock& block) override {
    for (const RingEvent& event : block.events) stamps.push_back(event.stamp);
  }
  void OnCoroutine(const CoroutineInfo& info) override { names.push_back(info.name); }
  void OnPlace(const PlaceInfo& place) override { places.push_back(place.file); }
  void OnCounters(const Counters& seen) override {
    for (const auto& [name, value] : seen.values) counters[name] = value;
  }
  std::vector<TargetInfo> targets;
  std::vector<uint64_t> stamps;
  std::vector<std::string> names;
  std::vector<std::string> places;
  std::map<std::string, uint64_t> counters;
};

class FlightBufferTest : public testing::Test {
 protected:
  FlightBufferTest() : writer_(std::make_unique<ClockedSink>(buffer_, now_)) {
    EXPECT_TRUE(writer_.Write(TargetInfo{1, 4242, 99, 1, "server"}));
    EXPECT_TRUE(writer_.Write(PlaceInfo{1, 7, 42, 3, "server.cc", "Serve()"}));
  }

  void Describe(uint32_t station, const std::string& name) {
    CoroutineInfo info;
    info.target = 1;
    info.station = station;
    info.generation = 1;
    info.name = name;
    EXPECT_TRUE(writer_.Write(info));
  }
  void Happens(uint64_t stamp, uint32_t station, wire::Kind kind) {
    const RingEvent event = {stamp, wire::WordOf(wire::IdentityOf(station, 1), kind, 0)};
    EXPECT_TRUE(writer_.WriteEvents(1, 0, 4243, position_++, {&event, 1}));
  }

  Dumped Dump() {
    std::string path = testing::TempDir() + "/flight-XXXXXX";
    EXPECT_NE(mkdtemp(path.data()), nullptr);
    const std::string file = path + "/dump";
    {
      Result<RecordingWriter> writer = RecordingWriter::Create(file);
      EXPECT_TRUE(writer && buffer_.WriteTo(*writer) && writer->WriteEnd());
    }
    Dumped dumped;
    const Result<ReadSummary> summary = ReadRecordingFile(file, dumped);
    EXPECT_TRUE(summary && summary->complete && summary->malformed_blocks == 0);
    std::filesystem::remove_all(path);
    return dumped;
  }

  FlightBuffer buffer_{seconds(10), 4096};
  seconds now_{0};
  RecordingWriter writer_;
  uint64_t position_ = 0;
};

TEST_F(FlightBufferTest, KeepsWhatIsYoungerThanTheWindow) {
  Describe(1, "worker");
  for (now_ = seconds(0); now_ < seconds(30); ++now_) {
    Happens(static_cast<uint64_t>(now_.count()), 1,
            now_.count() % 2 == 0 ? wire::kKindResume : wire::kKindSuspend);
  }
  const Dumped dumped = Dump();
  // 19 to 29 are in the window; 18 is the last thing that it did before.
  ASSERT_EQ(dumped.stamps.size(), 12u);
  EXPECT_EQ(dumped.stamps.front(), 18u);
  EXPECT_EQ(dumped.stamps.back(), 29u);
  EXPECT_EQ(dumped.counters.at("flight_events_forgotten"), 19u);
  EXPECT_EQ(dumped.counters.at("flight_blocks_forgotten_for_room"), 0u);
  EXPECT_EQ(dumped.targets.size(), 1u);
  EXPECT_EQ(dumped.places, std::vector<std::string>{"server.cc"});
  EXPECT_EQ(dumped.names, std::vector<std::string>{"worker"});
}

TEST_F(FlightBufferTest, RemembersWhoIsStuckAndForgetsTheDead) {
  Describe(1, "stuck");
  Describe(2, "short");
  Happens(5, 1, wire::kKindSuspend);
  Happens(6, 2, wire::kKindDeath);
  now_ = seconds(3600);
  Happens(100, 3, wire::kKindResume);
  const Dumped dumped = Dump();
  EXPECT_EQ(dumped.stamps, (std::vector<uint64_t>{5, 100}));
  EXPECT_EQ(dumped.names, std::vector<std::string>{"stuck"});
}

TEST_F(FlightBufferTest, ForgetsATargetThatEndedBeforeTheWindow) {
  Happens(5, 1, wire::kKindSuspend);
  ASSERT_TRUE(writer_.Write(Counters{1, {{"targets_ended", 1}}}));
  now_ = seconds(9);
  ASSERT_TRUE(writer_.Write(TargetInfo{2, 4300, 99, 1, "another"}));
  EXPECT_EQ(Dump().targets.size(), 2u);
  now_ = seconds(20);
  ASSERT_TRUE(writer_.Write(ClockPair{2, 1, 1}));
  const Dumped dumped = Dump();
  ASSERT_EQ(dumped.targets.size(), 1u);
  EXPECT_EQ(dumped.targets[0].pid, 4300u);
}

TEST_F(FlightBufferTest, NeverTakesMoreMemoryThanItMay) {
  for (uint64_t i = 0; i < 10'000; ++i) {
    Happens(i, 1, wire::kKindResume);
    ASSERT_LE(buffer_.bytes(), 4096u);
  }
  const Dumped dumped = Dump();
  EXPECT_EQ(dumped.stamps.back(), 9'999u);
  EXPECT_GT(dumped.counters.at("flight_blocks_forgotten_for_room"), 0u);
  EXPECT_EQ(dumped.counters.at("flight_events_forgotten") + dumped.stamps.size(), 10'001u);
}

TEST_F(FlightBufferTest, AStationThatNoTargetCanHaveTakesNoMemory) {
  Happens(1, wire::kMaxStations - 1, wire::kKindResume);
  now_ = seconds(60);
  Happens(2, 1, wire::kKindResume);
  EXPECT_EQ(Dump().counters.at("flight_states_not_kept"), 1u);
}

}  // namespace
}  // namespace spanprof::coroutine
