#include "sample_join.h"

#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace spanprof::node {
namespace {

struct Bracket {
  int64_t from_ns;
  int64_t to_ns;
};

TEST(SampleJoin, AStampBelongsToTheBracketThatHoldsIt) {
  const std::vector<Bracket> records = {{1'000'900, 1'008'100}, {2'000'000, 2'009'000}};
  SampleJoin join;
  size_t record = 99;
  // Microsecond 1000 is the one that the first bracket begins in.
  EXPECT_EQ(join.Next(records, records.size(), 1000, &record), JoinOutcome::kJoined);
  EXPECT_EQ(record, 0u);
  EXPECT_EQ(join.Next(records, records.size(), 2009, &record), JoinOutcome::kJoined);
  EXPECT_EQ(record, 1u);
  EXPECT_EQ(join.records_without_sample(), 0u);
}

TEST(SampleJoin, ASampleOutsideAllBracketsHasNoRecordAndTakesNone) {
  const std::vector<Bracket> records = {{1'000'000, 1'008'000}, {2'000'000, 2'009'000}};
  SampleJoin join;
  size_t record = 99;
  EXPECT_EQ(join.Next(records, records.size(), 999, &record), JoinOutcome::kNoRecord);
  EXPECT_EQ(join.Next(records, records.size(), 1004, &record), JoinOutcome::kJoined);
  EXPECT_EQ(join.Next(records, records.size(), 1500, &record), JoinOutcome::kNoRecord);
  EXPECT_EQ(join.Next(records, records.size(), 2004, &record), JoinOutcome::kJoined);
  EXPECT_EQ(join.Next(records, records.size(), 2100, &record), JoinOutcome::kNoRecord);
}

TEST(SampleJoin, ARecordIsUsedOnce) {
  const std::vector<Bracket> records = {{1'000'000, 1'008'000}};
  SampleJoin join;
  size_t record = 99;
  EXPECT_EQ(join.Next(records, 1, 1003, &record), JoinOutcome::kJoined);
  EXPECT_EQ(join.Next(records, 1, 1003, &record), JoinOutcome::kNoRecord);
}

TEST(SampleJoin, TwoCandidatesAreNoJoin) {
  const std::vector<Bracket> records = {{1'000'000, 1'008'000}, {1'008'200, 1'012'000}};
  SampleJoin join;
  size_t record = 99;
  EXPECT_EQ(join.Next(records, records.size(), 1008, &record), JoinOutcome::kTwoRecords);
  EXPECT_EQ(join.Next(records, records.size(), 1010, &record), JoinOutcome::kJoined);
  EXPECT_EQ(record, 1u);
}

TEST(SampleJoin, AskingForARecordOfALaterTimeLeavesTheEarlierOnes) {
  const std::vector<Bracket> records = {
      {1'000'000, 1'001'000}, {2'000'000, 2'001'000}, {3'000'000, 3'001'000}};
  SampleJoin join;
  EXPECT_FALSE(join.Has(records, records.size(), 2500));
  EXPECT_TRUE(join.Has(records, records.size(), 3001));
  EXPECT_FALSE(join.Has(records, records.size(), 3002));
  EXPECT_FALSE(join.Has(records, records.size(), 999));
  size_t record = 99;
  EXPECT_EQ(join.Next(records, records.size(), 1000, &record), JoinOutcome::kJoined);
  EXPECT_EQ(record, 0u);
}

TEST(SampleJoin, RecordsThatV8DroppedTheSampleOfAreCounted) {
  const std::vector<Bracket> records = {
      {1'000'000, 1'001'000}, {2'000'000, 2'001'000}, {3'000'000, 3'001'000}};
  SampleJoin join;
  size_t record = 99;
  EXPECT_EQ(join.Next(records, records.size(), 3000, &record), JoinOutcome::kJoined);
  EXPECT_EQ(record, 2u);
  EXPECT_EQ(join.records_without_sample(), 2u);
  EXPECT_EQ(join.records_passed(), 3u);
}

TEST(SampleJoin, WhateverIsDroppedOnEitherSideNoSampleGetsTheRecordOfAnother) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    std::vector<Bracket> records;
    std::vector<std::pair<int64_t, int>> samples;  // stamp, index of its record or -1
    int64_t now = 1'000'000'000;
    for (int i = 0; i < 300; ++i) {
      now += 100'000 + static_cast<int64_t>(random() % 400'000);
      const int64_t from = now;
      const int64_t stamp = from + static_cast<int64_t>(random() % 20'000);
      now = stamp + static_cast<int64_t>(random() % 20'000);
      const bool has_record = random() % 10 != 0;
      if (random() % 10 != 0) {
        samples.emplace_back(stamp / 1000, has_record ? static_cast<int>(records.size()) : -1);
      }
      if (has_record) records.push_back({from, now});
    }
    SampleJoin join;
    for (const auto& [stamp, expected] : samples) {
      size_t record = 0;
      const JoinOutcome outcome = join.Next(records, records.size(), stamp, &record);
      if (expected < 0) {
        ASSERT_NE(outcome, JoinOutcome::kJoined);
      } else {
        ASSERT_EQ(outcome, JoinOutcome::kJoined);
        ASSERT_EQ(record, static_cast<size_t>(expected));
      }
    }
  }
}

}  // namespace
}  // namespace spanprof::node
