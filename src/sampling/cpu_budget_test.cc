#include "sampling/cpu_budget.h"

#include <gtest/gtest.h>

namespace spanprof::sampling {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;
constexpr uint64_t kPercent = kSecond / 100;

// A process that uses `processors` of them, where sampling costs `cost` a second when it is not
// slowed down.
class Process {
 public:
  Process(unsigned max_percent, uint64_t processors)
      : budget_(max_percent), processors_(processors) {}

  unsigned Second(uint64_t handlers_cost, uint64_t threads_cost) {
    const unsigned slowdown = budget_.slowdown();
    elapsed_ += kSecond;
    cpu_ += kSecond * processors_;
    handlers_ += handlers_cost / slowdown;
    threads_ += threads_cost / slowdown;
    return budget_.Update(elapsed_, cpu_, handlers_, threads_);
  }

 private:
  CpuBudget budget_;
  uint64_t processors_;
  uint64_t elapsed_ = 0, cpu_ = 0, handlers_ = 0, threads_ = 0;
};

TEST(CpuBudget, LeavesAloneWhatIsCheapEnough) {
  Process process(2, 1);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(process.Second(kPercent, kPercent / 2), 1u);
}

TEST(CpuBudget, SlowsDownAtOnceAsFarAsIsNeededAndStays) {
  Process process(2, 1);
  process.Second(0, 0);
  EXPECT_EQ(process.Second(13 * kPercent, 0), 8u);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(process.Second(13 * kPercent, 0), 8u);
}

TEST(CpuBudget, ComesBackWhenItHasBecomeCheap) {
  Process process(2, 1);
  EXPECT_EQ(process.Second(15 * kPercent, 0), 8u);
  unsigned slowdown = 8;
  for (int i = 0; i < 5; ++i) slowdown = process.Second(kPercent / 2, 0);
  EXPECT_EQ(slowdown, 1u);
}

TEST(CpuBudget, ThreadsCountWhenTheyGoOnCosting) {
  Process process(2, 1);
  EXPECT_EQ(process.Second(0, 30 * kPercent), 1u);  // symbols were read
  EXPECT_EQ(process.Second(0, 3 * kPercent), 2u);
  EXPECT_EQ(process.Second(0, 3 * kPercent), 2u);
}

TEST(CpuBudget, TheShareIsOfAllProcessorsThatAreUsed) {
  Process busy(2, 8);
  busy.Second(15 * kPercent, 0);
  EXPECT_EQ(busy.Second(15 * kPercent, 0), 1u);
  Process waiting(2, 0);
  waiting.Second(kPercent, 0);
  EXPECT_EQ(waiting.Second(kPercent, 0), 1u);
  EXPECT_EQ(waiting.Second(3 * kPercent, 0), 2u);
}

TEST(CpuBudget, GivesUpAtTheGreatestSlowdown) {
  Process process(1, 1);
  for (int i = 0; i < 5; ++i) process.Second(1000 * kPercent, 0);
  EXPECT_EQ(process.Second(1000 * kPercent, 0), CpuBudget::kMaxSlowdown);
}

TEST(CpuBudget, NoLimitIsNone) {
  Process process(0, 1);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(process.Second(90 * kPercent, 0), 1u);
}

}  // namespace
}  // namespace spanprof::sampling
