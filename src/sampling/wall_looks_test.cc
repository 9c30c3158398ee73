#include "sampling/wall_looks.h"

#include <vector>

#include <gtest/gtest.h>

namespace spanprof::sampling {
namespace {

constexpr uint64_t kInterval = 1000;

TEST(WallLooks, OnlyTimeOffTheCpuIsStoodFor) {
  WallLooks looks;
  looks.Begin(5000, 700);
  looks.Account(6000, 1700);
  EXPECT_EQ(looks.WholeTicksOff(kInterval), 0u);
  looks.Account(8500, 2000);
  EXPECT_EQ(looks.WholeTicksOff(kInterval), 2u);
  looks.TakeOff(2 * kInterval);
  // What was less than a tick is kept.
  looks.Account(9300, 2000);
  EXPECT_EQ(looks.WholeTicksOff(kInterval), 1u);
}

TEST(WallLooks, ClocksThatGoBackAddNothing) {
  WallLooks looks;
  looks.Begin(5000, 700);
  looks.Account(4000, 600);
  EXPECT_EQ(looks.WholeTicksOff(kInterval), 0u);
  looks.Account(4500, 9000);  // more than has passed
  EXPECT_EQ(looks.WholeTicksOff(kInterval), 0u);
}

// The ticks of the looks at a thread that runs for so many percent of the time.
std::vector<uint64_t> TicksOf(uint64_t percent, bool sleeps, uint64_t until) {
  WallLooks looks;
  looks.Begin(0, 0);
  std::vector<uint64_t> ticks;
  for (uint64_t tick = 1; tick < until; ++tick) {
    if (!looks.IsDue(tick)) continue;
    ticks.push_back(tick);
    looks.Account(tick * kInterval, tick * kInterval * percent / 100);
    looks.Schedule(tick, sleeps);
  }
  return ticks;
}

TEST(WallLooks, ComeLessOftenTheLongerNothingChanges) {
  for (const uint64_t percent : {0, 100}) {
    const std::vector<uint64_t> ticks = TicksOf(percent, percent == 0, 1000);
    ASSERT_GT(ticks.size(), 20u);
    for (size_t i = 1; i < ticks.size(); ++i) {
      const uint64_t pause = ticks[i] - ticks[i - 1];
      EXPECT_LE(pause, 1 + ticks[i - 1] / 8);
      EXPECT_LE(pause, WallLooks::kMaxTicks);
      if (ticks[i - 1] > 100) {
        EXPECT_EQ(ticks[i] % WallLooks::kMaxTicks, 0u);
      }
    }
    EXPECT_EQ(ticks.back(), 990u);
  }
}

TEST(WallLooks, ComeWhenAThreadHasWaitedForAboutATick) {
  EXPECT_EQ(TicksOf(20, false, 1000).size(), 999u);
  const size_t half = TicksOf(50, false, 1000).size();
  EXPECT_GT(half, 490u);
  EXPECT_LT(half, 520u);
  const size_t quarter = TicksOf(75, false, 1000).size();
  EXPECT_GT(quarter, 240u);
  EXPECT_LT(quarter, 280u);
}

TEST(WallLooks, ComeOnEveryTickAtFirst) {
  WallLooks looks;
  EXPECT_TRUE(looks.IsDue(1000));
  looks.Schedule(1000, false);
  EXPECT_EQ(looks.next_tick(), 1001u);
}

TEST(WallLooks, ComeOnTheNextTickWhenAThreadFallsAsleepOrWakesUp) {
  for (const bool sleeps : {true, false}) {
    WallLooks looks;
    for (uint64_t tick = 1; tick < 500; ++tick) {
      if (looks.IsDue(tick)) looks.Schedule(tick, sleeps);
    }
    ASSERT_EQ(looks.next_tick(), 500u);
    looks.Schedule(500, !sleeps);
    EXPECT_EQ(looks.next_tick(), 501u);
  }
}

}  // namespace
}  // namespace spanprof::sampling
