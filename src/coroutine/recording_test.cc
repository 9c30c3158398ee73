#include "coroutine/recording.h"

#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>
#include <sys/stat.h>

namespace spanprof::coroutine {
namespace {

struct Everything : RecordingVisitor {
  void OnTarget(const TargetInfo& target) override { targets.push_back(target); }
  void OnClock(const ClockPair& clock) override { clocks.push_back(clock.counter); }
  void OnEvents(const EventBlock& block) override {
    events.insert(events.end(), block.events.begin(), block.events.end());
    firsts.push_back(block.first);
  }
  void OnCoroutine(const CoroutineInfo& coroutine) override { coroutines.push_back(coroutine); }
  void OnPlace(const PlaceInfo& place) override { places.push_back(place.file); }
  void OnCounters(const Counters& seen) override { counters = seen.values; }
  void OnSlotEvent(const SlotEventInfo& event) override { slot_events.push_back(event.number); }

  std::vector<TargetInfo> targets;
  std::vector<uint64_t> clocks;
  std::vector<RingEvent> events;
  std::vector<uint64_t> firsts;
  std::vector<CoroutineInfo> coroutines;
  std::vector<std::string> places;
  std::map<std::string, uint64_t> counters;
  std::vector<uint64_t> slot_events;
};

class RecordingTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string folder = testing::TempDir() + "/recording-XXXXXX";
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string path() const { return folder_ + "/run.coro"; }
  std::string Bytes() const {
    std::ifstream file(path(), std::ios::binary);
    std::ostringstream bytes;
    bytes << file.rdbuf();
    return bytes.str();
  }
  void WriteSample(bool with_end) const {
    Result<RecordingWriter> writer = RecordingWriter::Create(path());
    ASSERT_TRUE(writer) << TextOf(writer.error());
    ASSERT_TRUE(writer->Write(target_));
    ASSERT_TRUE(writer->Write(ClockPair{1, 500, 1000}));
    ASSERT_TRUE(writer->Write(coroutine_));
    ASSERT_TRUE(writer->Write(PlaceInfo{1, 7, 42, 3, "server.cc", "Task Serve()"}));
    ASSERT_TRUE(writer->WriteEvents(1, 0, 4243, 100, events_));
    ASSERT_TRUE(writer->Write(std::vector<SlotEventInfo>{{0, 1, 2, 3, 4, 5, 6, true}}));
    ASSERT_TRUE(writer->Write(Counters{1, {{"events_lost_ring_full", 12}}}));
    if (with_end) {
      ASSERT_TRUE(writer->WriteEnd());
    }
  }

  std::string folder_;
  const TargetInfo target_ = {1, 4242, 99, 2, "server"};
  const CoroutineInfo coroutine_ = {1, 5, 1, 77, 123456, 0x7f00, 0x5500, false, "accept loop"};
  const std::vector<RingEvent> events_ = {{1000, 0x50013}, {1010, 0x7000050014}, {1300, 0x50013}};
};

TEST_F(RecordingTest, WhatWasWrittenIsRead) {
  WriteSample(true);
  Everything seen;
  const Result<ReadSummary> summary = ReadRecordingFile(path(), seen);
  ASSERT_TRUE(summary) << TextOf(summary.error());
  EXPECT_TRUE(summary->complete);
  EXPECT_FALSE(summary->cut_off);
  EXPECT_EQ(summary->malformed_blocks, 0u);
  EXPECT_EQ(seen.targets, std::vector{target_});
  EXPECT_EQ(seen.coroutines, std::vector{coroutine_});
  EXPECT_EQ(seen.events, events_);
  EXPECT_EQ(seen.firsts, std::vector<uint64_t>{100});
  EXPECT_EQ(seen.places, std::vector<std::string>{"server.cc"});
  EXPECT_EQ(seen.counters.at("events_lost_ring_full"), 12u);
  EXPECT_EQ(seen.slot_events, std::vector<uint64_t>{3});
}

TEST_F(RecordingTest, AFileCutOffAnywhereIsReadableUpToThere) {
  WriteSample(true);
  const std::string bytes = Bytes();
  std::size_t most = 0;
  for (std::size_t length = kRecordingMagicBytes; length < bytes.size(); ++length) {
    Everything seen;
    const Result<ReadSummary> summary = ReadRecording(bytes.substr(0, length), seen);
    ASSERT_TRUE(summary);
    EXPECT_FALSE(summary->complete);
    EXPECT_EQ(summary->malformed_blocks, 0u);
    most = std::max<std::size_t>(most, summary->blocks);
  }
  EXPECT_EQ(most, 7u);
}

TEST_F(RecordingTest, AnyChangedByteIsSurvived) {
  WriteSample(true);
  const std::string bytes = Bytes();
  std::mt19937 random(1);
  for (int round = 0; round < 20'000; ++round) {
    std::string changed = bytes;
    for (int i = 0; i < 3; ++i)
      changed[8 + random() % (changed.size() - 8)] = static_cast<char>(random());
    Everything seen;
    EXPECT_TRUE(ReadRecording(changed, seen));
  }
}

TEST_F(RecordingTest, TheFileIsForItsOwnerAndNothingIsOverwrittenOrFollowed) {
  WriteSample(true);
  struct stat status = {};
  ASSERT_EQ(stat(path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  EXPECT_EQ(RecordingWriter::Create(path()).error().code, EEXIST);
  const std::string link = folder_ + "/link";
  ASSERT_EQ(symlink((folder_ + "/elsewhere").c_str(), link.c_str()), 0);
  EXPECT_FALSE(RecordingWriter::Create(link));
  EXPECT_NE(access((folder_ + "/elsewhere").c_str(), F_OK), 0);
}

TEST_F(RecordingTest, OtherFilesAreRefusedWithAReason) {
  Everything seen;
  const Result<ReadSummary> summary = ReadRecording("#!/bin/sh\n", seen);
  ASSERT_FALSE(summary);
  EXPECT_NE(summary.error().message.find("not a coroutine recording"), std::string::npos);
  EXPECT_FALSE(ReadRecording("", seen));
}

}  // namespace
}  // namespace spanprof::coroutine
