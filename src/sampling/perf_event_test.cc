// What perf events cost, and that the sampler does without them where they cost too much. Every
// case is a process of its own.

#include "sampling/perf_event.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <time.h>
#include <unistd.h>

#include <gtest/gtest.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>

#include "context/platform.h"
#include "sampling/sampler.h"

namespace spanprof::sampling {
namespace {

constexpr uint64_t kInterval = 200'000;  // Shorter than any kernel's tick.

struct Total final : public SampleSink {
  void Take(const RawSample& sample) override { value += sample.value; }
  void TakeAsleep(uint32_t, uint64_t, uint64_t, uint64_t) override {}
  uint64_t value = 0;
};

bool HasPerfEvents() {
  const int fd = OpenPerfEvent(context::CurrentThreadId(), kInterval, 0);
  if (fd >= 0) close(fd);
  return fd >= 0;
}

// As the kernel shows this process's descriptors.
size_t OpenEvents() {
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const std::string target = std::filesystem::read_symlink(entry.path(), gone).string();
    if (target.find("perf_event") != std::string::npos) ++count;
  }
  return count;
}

void BurnMilliseconds(uint64_t milliseconds) {
  const uint64_t began = ThreadCpuNanoseconds(context::CurrentThreadId());
  while (ThreadCpuNanoseconds(context::CurrentThreadId()) - began < milliseconds * 1'000'000u) {
  }
}

struct Recorded {
  size_t events = 0;
  uint64_t value = 0;
  Sampler::Counters counters;
};

Recorded Record(unsigned max_cpu_percent) {
  Total total;
  SamplerOptions options;
  options.cpu_interval_ns = kInterval;
  options.max_cpu_percent = max_cpu_percent;
  const Result<void> started = Sampler::Instance().Start(options, total);
  EXPECT_TRUE(started) << started.error().message;
  BurnMilliseconds(100);
  Recorded recorded;
  recorded.events = OpenEvents();
  Sampler::Instance().Stop();
  recorded.value = total.value;
  recorded.counters = Sampler::Instance().counters();
  return recorded;
}

TEST(PerfEvent, CostsMicrosecondsAndIsMeasuredOnce) {
  if (!HasPerfEvents()) GTEST_SKIP() << "this process gets no perf events";
  const uint64_t nanoseconds = PerfEventNanoseconds();
  EXPECT_GT(nanoseconds, 1'000u);
  EXPECT_LT(nanoseconds, 1'000'000u);
  EXPECT_EQ(PerfEventNanoseconds(), nanoseconds);
  EXPECT_EQ(OpenEvents(), 0u);
}

TEST(PerfEvent, IsUsedBelowTheTickWhereThereIsNoLimit) {
  if (!HasPerfEvents()) GTEST_SKIP() << "this process gets no perf events";
  const Recorded recorded = Record(0);
  EXPECT_EQ(recorded.events, 1u);
  EXPECT_EQ(recorded.counters.count("sampler.perf_event_too_dear_ns"), 0u);
}

// No machine takes less than 2 us for one, which is 1 % of the interval.
TEST(PerfEvent, IsNotUsedWhereItWouldTakeMoreThanTheLimit) {
  if (!HasPerfEvents()) GTEST_SKIP() << "this process gets no perf events";
  Recorded recorded = Record(1);
  EXPECT_EQ(recorded.events, 0u);
  EXPECT_EQ(recorded.counters["sampler.perf_event_too_dear_ns"], PerfEventNanoseconds());
  // The timer's samples stand for more time each.
  EXPECT_GT(recorded.value, 60'000'000u);
}

}  // namespace
}  // namespace spanprof::sampling
