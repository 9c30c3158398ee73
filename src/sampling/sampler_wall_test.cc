// Wall samples of threads that run, wait, and do both: with the sampler's thread asking for each of
// them, and with timers for those that run. Every case is a process of its own.

#include <atomic>
#include <map>
#include <thread>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

#include "profile/profile.h"
#include "sampling/sampler.h"
#include <spanprof/context.h>

namespace spanprof::sampling {
namespace {

constexpr uint64_t kInterval = 4'000'000;

struct ByThread final : public SampleSink {
  void Take(const RawSample& sample) override {
    if (sample.kind != static_cast<uint8_t>(profile::SampleKind::kWall)) return;
    value[sample.tid] += sample.value;
    ++signals[sample.tid];
  }
  void TakeAsleep(uint32_t tid, uint64_t, uint64_t, uint64_t slept) override {
    value[tid] += slept;
    asleep[tid] += slept;
  }
  std::map<uint32_t, uint64_t> value, asleep, signals;
};

void Burn(uint64_t nanoseconds) {
  const auto tid = static_cast<uint32_t>(gettid());
  const uint64_t until = ThreadCpuNanoseconds(tid) + nanoseconds;
  while (ThreadCpuNanoseconds(tid) < until) {
  }
}

// A thread that does the same thing over and over, how long it was there and ran.
class Repeating {
 public:
  template <class Action>
  explicit Repeating(Action action) {
    thread_ = std::thread([this, action] {
      tid = static_cast<uint32_t>(gettid());
      const uint64_t began = MonotonicNanoseconds();
      while (!stop_) action();
      lived_ns = MonotonicNanoseconds() - began;
      ran_ns = ThreadCpuNanoseconds(tid);
    });
  }
  void Stop() {
    stop_ = true;
    thread_.join();
  }

  uint32_t tid = 0;
  uint64_t lived_ns = 0;
  uint64_t ran_ns = 0;

 private:
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

class WallTime : public testing::TestWithParam<bool> {
 protected:
  void Start(uint64_t interval_ns) {
    ASSERT_EQ(spanprof_init(""), 0);
    SamplerOptions options;
    options.wall_interval_ns = interval_ns;
    options.wall_by_cpu_timers = GetParam();
    ASSERT_TRUE(Sampler::Instance().Start(options, sink_));
  }
  ByThread sink_;
  std::vector<uint32_t> tids_;
};

TEST_P(WallTime, AddsUpToTheTimeThatEachThreadWasThere) {
  Start(kInterval);
  Repeating runs([] { Burn(1'000'000); });
  Repeating waits([] { usleep(400'000); });
  Repeating does_both([] {
    Burn(6'000'000);
    usleep(6'000);
  });
  Repeating waits_often([] { usleep(2'000); });
  sleep(2);
  for (Repeating* thread : {&runs, &waits, &does_both, &waits_often}) {
    thread->Stop();
  }
  Sampler::Instance().Stop();
  for (const Repeating* thread : {&runs, &waits, &does_both, &waits_often}) {
    EXPECT_GT(sink_.value[thread->tid] * 10, thread->lived_ns * 8);
    EXPECT_LT(sink_.value[thread->tid] * 10, thread->lived_ns * 12);
  }
  EXPECT_GT(sink_.asleep[waits.tid] * 10, waits.lived_ns * 8);
  for (const Repeating* thread : {&runs, &does_both}) {
    const uint64_t awake = sink_.value[thread->tid] - sink_.asleep[thread->tid];
    EXPECT_GT(awake * 10, thread->ran_ns * 7);
    EXPECT_GT(sink_.signals[thread->tid], 10u);
  }
}

// Threads that begin while all others are looked at on every tenth tick.
TEST_P(WallTime, HasThreadsThatOnlyWaitAndAreGoneSoon) {
  Start(kInterval);
  for (int i = 0; i < 8; ++i) {
    usleep(450'000);
    uint32_t tid = 0;
    std::thread([&tid] {
      tid = static_cast<uint32_t>(gettid());
      usleep(6 * kInterval / 1000);
    }).join();
    tids_.push_back(tid);
  }
  Sampler::Instance().Stop();
  size_t seen = 0;
  for (const uint32_t tid : tids_) seen += sink_.value.count(tid);
  // On a busy machine the sampler's thread may come too late for some.
  EXPECT_GE(seen, 5u);
}

// Threads that have slept for long are looked at on every tenth tick: it ends shortly before one.
TEST_P(WallTime, IsWholeWhenItEndsWhileAThreadSleeps) {
  constexpr uint64_t kLongInterval = 20'000'000;
  constexpr uint64_t kLooks = WallLooks::kMaxTicks * kLongInterval;
  Repeating waits([] { usleep(3'000'000); });
  usleep(100'000);
  Start(kLongInterval);
  const uint64_t began = MonotonicNanoseconds();
  sleep(2);
  while (MonotonicNanoseconds() % kLooks < kLooks * 8 / 10) usleep(1000);
  const uint64_t passed = MonotonicNanoseconds() - began;
  Sampler::Instance().Stop();
  waits.Stop();
  EXPECT_GT(sink_.value[waits.tid] + 4 * kLongInterval, passed);
}

INSTANTIATE_TEST_SUITE_P(Ways, WallTime, testing::Bool(),
                         [](const auto& test) { return test.param ? "by_timers" : "by_asking"; });

}  // namespace
}  // namespace spanprof::sampling
