#include "sampling/sample_buffer.h"

#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace spanprof::sampling {
namespace {

// Writes a sample whose every part follows from `number`.
bool Put(SampleBuffer& buffer, uint32_t tid, uint64_t number, unsigned max_depth, unsigned depth) {
  const SampleBuffer::Reservation sample = buffer.Reserve(max_depth);
  if (!sample) return false;
  sample->tid = tid;
  sample->count = number;
  for (unsigned i = 0; i < depth; ++i) sample->pcs()[i] = number * 1000 + i;
  buffer.Commit(sample, depth);
  return true;
}

TEST(SampleBuffer, GivesBackWhatWasPutInInOrder) {
  SampleBuffer buffer;
  ASSERT_TRUE(buffer.Create(1 << 16));
  for (uint64_t i = 1; i <= 5; ++i) ASSERT_TRUE(Put(buffer, 1, i, 64, static_cast<unsigned>(i)));
  uint64_t next = 1;
  ASSERT_TRUE(buffer.Drain([&next](const RawSample& sample) {
    EXPECT_EQ(sample.count, next);
    ASSERT_EQ(sample.depth, next);
    for (unsigned i = 0; i < sample.depth; ++i) EXPECT_EQ(sample.pcs()[i], next * 1000 + i);
    ++next;
  }));
  EXPECT_EQ(next, 6u);
  int again = 0;
  ASSERT_TRUE(buffer.Drain([&again](const RawSample&) { ++again; }));
  EXPECT_EQ(again, 0);
}

TEST(SampleBuffer, GivesTheRoomThatAShallowStackDidNotNeedToOthers) {
  SampleBuffer buffer;
  ASSERT_TRUE(buffer.Create(1 << 16));
  int kept = 0;
  while (Put(buffer, 1, 1, 512, 1)) ++kept;
  // Eight samples of 512 frames would fill a bank.
  EXPECT_GT(kept, 100);
}

TEST(SampleBuffer, CountsWhatFindsNoRoomAndGoesOnAfterADrain) {
  SampleBuffer buffer;
  ASSERT_TRUE(buffer.Create(1 << 14));
  while (Put(buffer, 1, 1, 16, 16)) {
  }
  EXPECT_EQ(buffer.dropped(), 1u);
  ASSERT_TRUE(buffer.Drain([](const RawSample&) {}));
  EXPECT_TRUE(Put(buffer, 1, 1, 16, 16));
}

TEST(SampleBuffer, AHandlerThatStaysInTheOldBankDelaysOnlyTheDrain) {
  SampleBuffer buffer;
  ASSERT_TRUE(buffer.Create(1 << 16));
  ASSERT_TRUE(Put(buffer, 1, 1, 8, 8));
  const SampleBuffer::Reservation slow = buffer.Reserve(8);
  ASSERT_TRUE(slow);
  EXPECT_FALSE(buffer.Drain([](const RawSample&) { FAIL() << "a handler is still in there"; }));
  EXPECT_TRUE(Put(buffer, 2, 2, 8, 8));
  slow->tid = 3;
  buffer.Commit(slow, 0);
  std::vector<uint32_t> seen;
  const auto note = [&seen](const RawSample& sample) { seen.push_back(sample.tid); };
  ASSERT_TRUE(buffer.Drain(note));
  EXPECT_EQ(seen, (std::vector<uint32_t>{1, 3}));
  ASSERT_TRUE(buffer.Drain(note));
  EXPECT_EQ(seen, (std::vector<uint32_t>{1, 3, 2}));
}

TEST(SampleBuffer, LosesNothingUncountedWhenThreadsPutAndOneDrains) {
  static constexpr uint32_t kThreads = 3;
  static constexpr uint64_t kEach = 20000;
  SampleBuffer buffer;
  ASSERT_TRUE(buffer.Create(1 << 18));
  std::atomic<uint32_t> running{kThreads};
  std::vector<std::thread> threads;
  std::atomic<uint64_t> put{0};
  for (uint32_t t = 1; t <= kThreads; ++t) {
    threads.emplace_back([&buffer, &running, &put, t] {
      for (uint64_t i = 1; i <= kEach; ++i) {
        if (Put(buffer, t, i, 64, static_cast<unsigned>(i % 60))) ++put;
      }
      --running;
    });
  }
  uint64_t drained = 0;
  std::vector<uint64_t> last(kThreads + 1, 0);
  const auto check = [&drained, &last](const RawSample& sample) {
    ++drained;
    ASSERT_LE(sample.tid, kThreads);
    ASSERT_GT(sample.count, last[sample.tid]);
    last[sample.tid] = sample.count;
    ASSERT_EQ(sample.depth, sample.count % 60);
    for (unsigned i = 0; i < sample.depth; ++i) ASSERT_EQ(sample.pcs()[i], sample.count * 1000 + i);
  };
  while (running != 0) buffer.Drain(check);
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(buffer.Drain(check));
  ASSERT_TRUE(buffer.Drain(check));
  EXPECT_EQ(drained, put.load());
  EXPECT_EQ(put + buffer.dropped(), kThreads * kEach);
}

}  // namespace
}  // namespace spanprof::sampling
