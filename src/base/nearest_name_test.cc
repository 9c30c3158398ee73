#include "base/nearest_name.h"

#include <array>
#include <string>

#include <gtest/gtest.h>

namespace spanprof {
namespace {

constexpr std::array<std::string_view, 6> kNames = {"ctxstorage", "ctxslots", "cpu",
                                                    "to",         "file",     "profiler"};

TEST(NearestName, FindsMisspellings) {
  EXPECT_EQ(NearestName("ctxstorge", kNames), "ctxstorage");
  EXPECT_EQ(NearestName("ctxstroage", kNames), "ctxstorage");
  EXPECT_EQ(NearestName("storage", kNames), "ctxstorage");
  EXPECT_EQ(NearestName("ctxslot", kNames), "ctxslots");
  EXPECT_EQ(NearestName("pcu", kNames), "cpu");
  EXPECT_EQ(NearestName("CPU", kNames), "cpu");
  EXPECT_EQ(NearestName("profiller", kNames), "profiler");
}

TEST(NearestName, IsSilentWhenNothingIsNear) {
  for (std::string_view word : {"", "x", "interval", "event", "ctxstorage.ctxstorage", "zzz"}) {
    EXPECT_EQ(NearestName(word, kNames), "") << word;
  }
  EXPECT_EQ(NearestName(std::string(100000, 'c'), kNames), "");
  EXPECT_EQ(NearestName("cpu", {}), "");
}

TEST(NearestName, PrefersTheNearestThenTheFirst) {
  constexpr std::array<std::string_view, 3> kClose = {"mood", "moon", "mooned"};
  EXPECT_EQ(NearestName("moon", kClose), "moon");
  EXPECT_EQ(NearestName("moox", kClose), "mood");
}

}  // namespace
}  // namespace spanprof
