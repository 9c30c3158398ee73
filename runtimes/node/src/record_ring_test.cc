#include "record_ring.h"

#include <csignal>

#include <gtest/gtest.h>
#include <sys/time.h>

namespace spanprof::node {
namespace {

void Put(RecordRing& ring, int64_t number) {
  SampleRecord* record = ring.Reserve();
  if (record == nullptr) return;
  record->from_ns = number;
  record->to_ns = -number;
  ring.Commit();
}

TEST(RecordRing, KeepsTheOrderAroundItsEnd) {
  RecordRing ring;
  ASSERT_TRUE(ring.Create(4));
  int64_t put = 0;
  int64_t taken = 0;
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < 3; ++i) Put(ring, put++);
    ASSERT_EQ(ring.size(), 3u);
    for (size_t i = 0; i < 3; ++i) EXPECT_EQ(ring[i].from_ns, taken++);
    ring.RemoveOldest(3);
  }
  EXPECT_EQ(ring.dropped(), 0u);
}

TEST(RecordRing, WhatFindsNoRoomIsCountedAndTheOldStay) {
  RecordRing ring;
  ASSERT_TRUE(ring.Create(4));
  for (int64_t i = 0; i < 6; ++i) Put(ring, i);
  EXPECT_EQ(ring.size(), 4u);
  EXPECT_EQ(ring.dropped(), 2u);
  EXPECT_EQ(ring[0].from_ns, 0);
  ring.RemoveOldest(2);
  Put(ring, 7);
  EXPECT_EQ(ring[2].from_ns, 7);
}

RecordRing* interrupted_ring = nullptr;
int64_t handled = 0;

TEST(RecordRing, ASignalMayPutARecordAtAnyMoment) {
  RecordRing ring;
  ASSERT_TRUE(ring.Create(64));
  interrupted_ring = &ring;
  struct sigaction action = {};
  action.sa_handler = [](int) { Put(*interrupted_ring, handled++); };
  sigaction(SIGALRM, &action, nullptr);
  const itimerval often = {{0, 50}, {0, 50}};
  setitimer(ITIMER_REAL, &often, nullptr);
  int64_t next = 0;
  while (next < 2000) {
    const size_t count = ring.size();
    for (size_t i = 0; i < count; ++i) {
      ASSERT_EQ(ring[i].from_ns, next);
      ASSERT_EQ(ring[i].to_ns, -next);
      ++next;
    }
    ring.RemoveOldest(count);
  }
  const itimerval never = {};
  setitimer(ITIMER_REAL, &never, nullptr);
  EXPECT_EQ(ring.dropped(), 0u);
}

}  // namespace
}  // namespace spanprof::node
