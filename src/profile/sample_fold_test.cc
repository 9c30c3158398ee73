#include "profile/sample_fold.h"

#include <gtest/gtest.h>

namespace spanprof::profile {
namespace {

constexpr uint64_t kMinute = 5 * kFoldNanoseconds;

TEST(FoldSamples, MergesWhatIsEqualWithinAMinute) {
  std::vector<Sample> samples = {
      {.time_ns = kMinute + 10, .thread = 1, .value = 1},
      {.time_ns = kMinute + 20, .thread = 2, .value = 2},
      {.time_ns = kMinute + 30, .thread = 1, .count = 3, .value = 4},
      {.time_ns = kMinute + 30 + kFoldNanoseconds, .thread = 1, .value = 8},
  };
  const FoldResult result = FoldSamples(samples, FoldLevel::kExact, 0);
  EXPECT_EQ(result.folded_away, 1u);
  EXPECT_EQ(result.coarsened, 0u);
  ASSERT_EQ(samples.size(), 3u);
  EXPECT_EQ(samples[0],
            (Sample{.time_ns = kMinute, .thread = 1, .folded = true, .count = 4, .value = 5}));
  // What is alone keeps its time.
  EXPECT_EQ(samples[1], (Sample{.time_ns = kMinute + 20, .thread = 2, .value = 2}));
  EXPECT_EQ(samples[2],
            (Sample{.time_ns = kMinute + 30 + kFoldNanoseconds, .thread = 1, .value = 8}));
}

TEST(FoldSamples, KeepsApartWhatDiffersInAnyField) {
  const Sample base{.time_ns = kMinute, .thread = 1, .context = 1, .stack = 1};
  std::vector<Sample> samples(7, base);
  samples[1].thread = 2;
  samples[2].context = 2;
  samples[3].stack = 2;
  samples[4].kind = SampleKind::kWall;
  samples[5].state = ThreadState::kBlocked;
  samples[6].time_ns += kFoldNanoseconds;
  FoldSamples(samples, FoldLevel::kExact, 0);
  EXPECT_EQ(samples.size(), 7u);
}

TEST(FoldSamples, StopsAtTheGoalOldestFirst) {
  std::vector<Sample> samples;
  for (uint64_t minute = 9; minute > 0; --minute) {
    for (int i = 0; i < 10; ++i) samples.push_back({.time_ns = minute * kFoldNanoseconds + 1});
  }
  const FoldResult result = FoldSamples(samples, FoldLevel::kExact, 75);
  EXPECT_EQ(samples.size(), 75u);
  EXPECT_EQ(result.folded_away, 15u);
  for (const Sample& sample : samples) {
    EXPECT_TRUE(!sample.folded || sample.time_ns <= 2 * kFoldNanoseconds);
  }
}

TEST(FoldSamples, CoarserLevelsForgetAndSaySo) {
  std::vector<Sample> samples = {
      {.time_ns = kMinute + 1, .thread = 1, .context = 1, .stack = 1, .value = 1},
      {.time_ns = kMinute + 2, .thread = 1, .context = 2, .stack = 1, .value = 2},
      {.time_ns = kMinute + 3, .thread = 1, .context = kNone, .stack = 1, .value = 4},
      {.time_ns = kMinute + 4, .thread = 2, .context = 7, .stack = 9, .value = 8},
  };
  FoldResult result = FoldSamples(samples, FoldLevel::kContext, 0);
  ASSERT_EQ(samples.size(), 2u);
  EXPECT_EQ(
      samples[0],
      (Sample{
          .time_ns = kMinute, .thread = 1, .stack = 1, .folded = true, .count = 3, .value = 7}));
  EXPECT_EQ(samples[1].context, 7u) << "alone, so it has no reason to forget";
  EXPECT_EQ(result.folded_away, 2u);
  EXPECT_EQ(result.coarsened, 2u) << "the third had no context to forget";

  samples.push_back({.time_ns = kMinute + kFoldNanoseconds, .value = 16});
  result = FoldSamples(samples, FoldLevel::kTotal, 1);
  ASSERT_EQ(samples.size(), 1u);
  EXPECT_EQ(samples[0], (Sample{.time_ns = kMinute, .folded = true, .count = 5, .value = 31}));
  EXPECT_EQ(result.coarsened, 3u);
}

TEST(FoldSamples, DoesNotMergeWhatWouldOverflow) {
  std::vector<Sample> samples = {{.count = 1, .value = ~uint64_t{0}}, {.count = 1, .value = 1}};
  EXPECT_EQ(FoldSamples(samples, FoldLevel::kTotal, 0).folded_away, 0u);
  EXPECT_EQ(samples.size(), 2u);
}

}  // namespace
}  // namespace spanprof::profile
