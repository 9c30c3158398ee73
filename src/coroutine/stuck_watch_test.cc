#include "coroutine/stuck_watch.h"

#include <vector>

#include <gtest/gtest.h>

#include <spanprof/internal/coroutine_layout.hpp>

namespace spanprof::coroutine {
namespace {

namespace wire = internal::coroutine;

RingEvent At(uint64_t stamp, uint32_t station, wire::Kind kind, uint32_t place = 0) {
  return {stamp, wire::WordOf(wire::IdentityOf(station, 1), kind, place)};
}

TEST(StuckWatch, AWaitIsStuckWhenItIsLongAndLongerThanOthersAtItsPlace) {
  StuckWatch watch;
  watch.OnEvents(std::vector{At(0, 1, wire::kKindSuspend, 7), At(50, 1, wire::kKindResume),
                             At(60, 1, wire::kKindSuspend, 7), At(60, 2, wire::kKindSuspend, 8)});
  // Waits of 50 end at place 7, so 10 times that is usual there.
  const std::vector<StuckWatch::Stuck> early = watch.Find(260, 200);
  ASSERT_EQ(early.size(), 1u);
  EXPECT_EQ(early[0].station, 2u);
  EXPECT_EQ(early[0].place, 8u);
  EXPECT_EQ(early[0].ticks, 200u);
  const std::vector<StuckWatch::Stuck> late = watch.Find(600, 200);
  ASSERT_EQ(late.size(), 1u);  // the other one was named
  EXPECT_EQ(late[0].station, 1u);
}

TEST(StuckWatch, WhoWaitsForAnotherThatIsThereIsNotAtFault) {
  StuckWatch watch;
  watch.OnEvents(std::vector{At(0, 1, wire::kKindSuspend, 7), At(1, 1, wire::kKindAwaits, 2),
                             At(2, 2, wire::kKindResume), At(3, 2, wire::kKindSuspend, 9)});
  const std::vector<StuckWatch::Stuck> stuck = watch.Find(10'000, 200);
  ASSERT_EQ(stuck.size(), 1u);
  EXPECT_EQ(stuck[0].station, 2u);
}

TEST(StuckWatch, OneThatRunsOrEndedIsNotStuck) {
  StuckWatch watch;
  watch.OnEvents(std::vector{At(0, 1, wire::kKindResume), At(0, 2, wire::kKindDone),
                             At(0, 3, wire::kKindSuspend), At(1, 3, wire::kKindDeath),
                             At(0, 4, wire::kKindYield)});
  EXPECT_TRUE(watch.Find(1'000'000, 1).empty());
}

TEST(StuckWatch, AnEarlierEventOfAnotherRingChangesNothing) {
  StuckWatch watch;
  watch.OnEvents(std::vector{At(100, 1, wire::kKindResume)});
  watch.OnEvents(std::vector{At(50, 1, wire::kKindSuspend)});
  EXPECT_TRUE(watch.Find(1'000'000, 1).empty());
}

TEST(StuckWatch, AStationThatNoTargetCanHaveTakesNoMemory) {
  StuckWatch watch;
  watch.OnEvents(std::vector{At(1, wire::kMaxStations - 1, wire::kKindSuspend)});
  EXPECT_EQ(watch.ignored_events(), 1u);
}

}  // namespace
}  // namespace spanprof::coroutine
