#include "cli/value_text.h"

#include <gtest/gtest.h>

namespace spanprof::cli {
namespace {

using profile::SampleKind;

TEST(ValueText, OneUnitServesAColumn) {
  const ValueUnit unit = UnitFor(SampleKind::kCpu, 2'500'000'000);
  EXPECT_EQ(unit.name, "s");
  EXPECT_EQ(ValueText(2'500'000'000, unit), "2.500");
  EXPECT_EQ(ValueText(1'000'000, unit), "0.001");
}

TEST(ValueText, AllocationsAreInBytes) {
  EXPECT_EQ(ValueWithUnit(SampleKind::kAllocation, 65536), "64 KiB");
  EXPECT_EQ(ValueWithUnit(SampleKind::kAllocation, 100), "100 B");
}

TEST(ValueText, TimesHaveNoMoreDigitsThanTheyNeed) {
  EXPECT_EQ(ValueWithUnit(SampleKind::kCpu, 10'000'000'000), "10 s");
  EXPECT_EQ(ValueWithUnit(SampleKind::kWall, 1'500'000), "1.5 ms");
  EXPECT_EQ(ValueWithUnit(SampleKind::kCpu, 0), "0 ns");
}

TEST(ValueText, AShareOfNothingIsNothing) {
  EXPECT_EQ(PercentText(1, 3), "33.3");
  EXPECT_EQ(PercentText(0, 0), "0.0");
}

}  // namespace
}  // namespace spanprof::cli
