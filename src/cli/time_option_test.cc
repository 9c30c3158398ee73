#include "cli/time_option.h"

#include <gtest/gtest.h>

namespace spanprof::cli {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

std::uint64_t Absolute(std::string_view text) {
  const auto time = ParseTime(text);
  EXPECT_TRUE(time) << text;
  EXPECT_FALSE(time->is_relative) << text;
  return time ? time->nanoseconds : 0;
}

TEST(TimeOption, ReadsRfc3339WithOffsetAndFraction) {
  EXPECT_EQ(Absolute("1970-01-01T00:00:00Z"), 0u);
  EXPECT_EQ(Absolute("2026-11-15T12:00:00Z"), 1794744000 * kSecond);
  EXPECT_EQ(Absolute("2026-11-15 13:00:00.25+01:00"), 1794744000 * kSecond + kSecond / 4);
  EXPECT_EQ(Absolute("2026-11-15T06:30:00-05:30"), 1794744000 * kSecond);
  EXPECT_EQ(Absolute("2024-02-29T00:00:00Z"), 1709164800 * kSecond);
}

TEST(TimeOption, ReadsUnixSeconds) {
  EXPECT_EQ(Absolute("1794744000"), 1794744000 * kSecond);
  EXPECT_EQ(Absolute("1794744000.000000001"), 1794744000 * kSecond + 1);
}

TEST(TimeOption, CountsFromTheProfilesStart) {
  EXPECT_EQ(ParseTime("+10s")->UnixNanoseconds(5 * kSecond), 15 * kSecond);
  EXPECT_EQ(ParseTime("+2")->UnixNanoseconds(kSecond), 3 * kSecond);
  EXPECT_EQ(ParseTime("+1.5")->UnixNanoseconds(kSecond), 5 * kSecond / 2);
  EXPECT_EQ(ParseTime("+500ms")->UnixNanoseconds(kSecond), 3 * kSecond / 2);
  EXPECT_EQ(ParseTime("+1h")->UnixNanoseconds(~std::uint64_t{0} - 5), ~std::uint64_t{0});
}

TEST(TimeOption, RefusesWhatIsNoTime) {
  for (const char* text :
       {"", "+", "now", "10s", "-5", "1.", "2026-11-15", "2026-11-15T12:00:00",
        "2026-02-30T00:00:00Z", "2026-11-15T24:00:00Z", "2026-11-15T12:00:00+1:00",
        "2026-11-15T12:00:00Zx", "1969-12-31T23:59:59Z", "9999-01-01T00:00:00Z",
        "99999999999999999999"}) {
    EXPECT_FALSE(ParseTime(text)) << text;
  }
}

TEST(TimeOption, WritesWhatItReads) {
  for (const char* text : {"1970-01-01T00:00:00Z", "2026-11-15T12:00:00.25Z",
                           "2024-02-29T23:59:59.000000001Z", "2554-07-21T23:34:32Z"}) {
    EXPECT_EQ(TimeText(Absolute(text)), text);
  }
}

}  // namespace
}  // namespace spanprof::cli
