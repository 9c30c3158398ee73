#include "context/latency_histogram.h"

#include <gtest/gtest.h>

namespace spanprof::context {
namespace {

TEST(LatencyHistogram, QuantilesAreAtMostAnEighthTooLarge) {
  LatencyHistogram histogram;
  for (uint64_t i = 1; i <= 10000; ++i) histogram.Record(i);
  EXPECT_EQ(histogram.count(), 10000u);
  const auto expect_near = [&histogram](double share, uint64_t exact) {
    EXPECT_GE(histogram.Quantile(share), exact);
    EXPECT_LE(histogram.Quantile(share), exact + exact / 8 + 1);
  };
  expect_near(0.5, 5000);
  expect_near(0.99, 9900);
  expect_near(0.999, 9990);
}

TEST(LatencyHistogram, TakesEveryValue) {
  LatencyHistogram histogram;
  histogram.Record(0);
  histogram.Record(~uint64_t{0});
  EXPECT_EQ(histogram.count(), 2u);
  EXPECT_EQ(histogram.Quantile(0.25), 0u);
  EXPECT_EQ(histogram.Quantile(1.0), ~uint64_t{0});
}

TEST(LatencyHistogram, AnEmptyOneHasNoQuantiles) {
  EXPECT_EQ(LatencyHistogram().Quantile(0.5), 0u);
}

}  // namespace
}  // namespace spanprof::context
