#include "base/quantity.h"

#include <limits>

#include <gtest/gtest.h>

namespace spanprof {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals

constexpr std::uint64_t kMaxUint64 = std::numeric_limits<std::uint64_t>::max();

TEST(Quantity, ParsesDurations) {
  EXPECT_EQ(ParseDuration("0"), 0ns);
  EXPECT_EQ(ParseDuration("1000"), 1000ns);
  EXPECT_EQ(ParseDuration("500ns"), 500ns);
  EXPECT_EQ(ParseDuration("10us"), 10us);
  EXPECT_EQ(ParseDuration("1ms"), 1ms);
  EXPECT_EQ(ParseDuration("007s"), 7s);
  EXPECT_EQ(ParseDuration("5m"), 5min);
  EXPECT_EQ(ParseDuration("24h"), 24h);
}

TEST(Quantity, RefusesWhatIsNotADuration) {
  for (const char* text : {"", "ms", "-1ms", "+1ms", " 1ms", "1 ms", "1ms ", "1.5ms", "1e3", "0x10",
                           "1MS", "1d", "1sec", "1msx", "\xD9\xA1ms"}) {
    EXPECT_EQ(ParseDuration(text), std::nullopt) << text;
  }
}

TEST(Quantity, SaturatesDurations) {
  EXPECT_EQ(ParseDuration("9223372036854775807"), std::chrono::nanoseconds::max());
  EXPECT_EQ(ParseDuration("9223372036854775808"), std::chrono::nanoseconds::max());
  EXPECT_EQ(ParseDuration("99999999999h"), std::chrono::nanoseconds::max());
  EXPECT_EQ(ParseDuration("999999999999999999999999999999s"), std::chrono::nanoseconds::max());
  EXPECT_EQ(ParseDuration("999999999999999999999999999999x"), std::nullopt);
}

TEST(Quantity, ParsesSizes) {
  EXPECT_EQ(ParseSize("0"), 0u);
  EXPECT_EQ(ParseSize("1048576"), 1048576u);
  EXPECT_EQ(ParseSize("12b"), 12u);
  EXPECT_EQ(ParseSize("3k"), 3072u);
  EXPECT_EQ(ParseSize("3KB"), 3072u);
  EXPECT_EQ(ParseSize("3KiB"), 3072u);
  EXPECT_EQ(ParseSize("64m"), 67108864u);
  EXPECT_EQ(ParseSize("64MiB"), 67108864u);
  EXPECT_EQ(ParseSize("2gb"), std::uint64_t{2} << 30);
  EXPECT_EQ(ParseSize("1T"), std::uint64_t{1} << 40);
}

TEST(Quantity, RefusesWhatIsNotASize) {
  for (const char* text :
       {"", "m", "-1", "1 m", "1.5g", "1p", "1mi", "1bb", "1bib", "1mbb", "1ib"}) {
    EXPECT_EQ(ParseSize(text), std::nullopt) << text;
  }
}

TEST(Quantity, SaturatesSizes) {
  EXPECT_EQ(ParseSize("18446744073709551615"), kMaxUint64);
  EXPECT_EQ(ParseSize("18446744073709551616"), kMaxUint64);
  EXPECT_EQ(ParseSize("16777216t"), kMaxUint64);
}

TEST(Quantity, FormatsInTheLargestUnitThatIsExact) {
  EXPECT_EQ(FormatDuration(0ns), "0ns");
  EXPECT_EQ(FormatDuration(-5ns), "0ns");
  EXPECT_EQ(FormatDuration(100us), "100us");
  EXPECT_EQ(FormatDuration(1500us), "1500us");
  EXPECT_EQ(FormatDuration(1000ms), "1s");
  EXPECT_EQ(FormatDuration(60s), "1m");
  EXPECT_EQ(FormatDuration(90s), "90s");
  EXPECT_EQ(FormatDuration(24h), "24h");
  EXPECT_EQ(FormatDuration(1000001ns), "1000001ns");
  EXPECT_EQ(FormatSize(0), "0");
  EXPECT_EQ(FormatSize(1000), "1000");
  EXPECT_EQ(FormatSize(1536), "1536");
  EXPECT_EQ(FormatSize(2048), "2k");
  EXPECT_EQ(FormatSize(std::uint64_t{1} << 40), "1t");
}

TEST(Quantity, FormatIsExactAtTheLimits) {
  EXPECT_EQ(ParseDuration(FormatDuration(std::chrono::nanoseconds::max())),
            std::chrono::nanoseconds::max());
  EXPECT_EQ(ParseSize(FormatSize(kMaxUint64)), kMaxUint64);
}

}  // namespace
}  // namespace spanprof
