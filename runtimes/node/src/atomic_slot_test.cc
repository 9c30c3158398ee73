#include "atomic_slot.h"

#include <csignal>
#include <cstdint>

#include <gtest/gtest.h>
#include <sys/time.h>

namespace spanprof::node {
namespace {

struct Pair {
  volatile uint64_t first = 0;
  volatile uint64_t second = 0;
};

AtomicSlot<Pair> slot;
volatile uint64_t looks = 0;
volatile uint64_t torn = 0;

TEST(AtomicSlot, GivesWhatWasSetLast) {
  AtomicSlot<int> number;
  EXPECT_EQ(number.Get(), 0);
  for (int i = 1; i < 5; ++i) {
    number.Set([i](int& place) { place = i; });
    EXPECT_EQ(number.Get(), i);
  }
  int released = 0;
  number.ReleaseBoth([&released](int& place) { released += place; });
  EXPECT_EQ(released, 4 + 3);
}

TEST(AtomicSlot, AHandlerSeesWholeValuesOnly) {
  struct sigaction action = {};
  action.sa_handler = [](int) {
    looks = looks + 1;
    const Pair& pair = slot.Get();
    if (pair.first != pair.second) torn = torn + 1;
  };
  sigaction(SIGALRM, &action, nullptr);
  const itimerval often = {{0, 50}, {0, 50}};
  setitimer(ITIMER_REAL, &often, nullptr);
  for (uint64_t i = 0; looks < 2000; ++i) {
    slot.Set([i](Pair& place) {
      place.first = i;
      place.second = i;
    });
  }
  const itimerval never = {};
  setitimer(ITIMER_REAL, &never, nullptr);
  EXPECT_EQ(torn, 0u);
}

}  // namespace
}  // namespace spanprof::node
