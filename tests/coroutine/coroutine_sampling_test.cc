// Coroutines that publish spans and go from thread to thread, and the sampler: every sample in a
// function that encodes a span carries that span.

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <dlfcn.h>
#include <mutex>
#include <thread>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

#include "sampling/sampler.h"
#include "sampling/span_work.h"
#include "tests/coroutine/scheduled_job.h"
#include <spanprof/context.h>

SPANPROF_WORK(1)
SPANPROF_WORK(2)
SPANPROF_WORK(3)
SPANPROF_WORK(4)
SPANPROF_WORK(5)  // runs on a thread between two coroutines, under the thread's own span

namespace spanprof::coroutine {
namespace {

using sampling::ContextStatus;
using sampling::RawSample;
using sampling::WorkOn;

constexpr uint64_t kWanted = 5000;
constexpr unsigned kRounds = 2000;
using Work = void (*)(unsigned);
constexpr Work kWork[] = {work_1, work_2, work_3, work_4};

struct Tally final : public sampling::SampleSink {
  void Take(const RawSample& sample) override {
    const uint64_t work = WorkOn(sample);
    if (work == 0) return;
    ++in_work;
    if (work == 5) ++between;
    const bool right =
        sample.context_status == ContextStatus::kPresent && sample.context.span_id == work;
    if (!right) ++wrong;
  }
  void TakeAsleep(uint32_t, uint64_t, uint64_t, uint64_t) override {}
  std::atomic<uint64_t> in_work{0}, between{0}, wrong{0};
};

// The span is set once: what follows it afterwards is the coroutine.
Job Spanned(uint64_t number, const std::atomic<bool>& stop) {
  spanprof_context_set(number, number);
  while (!stop) {
    kWork[number - 1](kRounds);
    co_await std::suspend_always{};
  }
}

class CoroutineSampling : public testing::TestWithParam<const char*> {};

TEST_P(CoroutineSampling, EverySampleHasTheSpanOfItsCoroutine) {
  ASSERT_EQ(spanprof_init((std::string("ctxstorage=") + GetParam()).c_str()), 0);
  std::atomic<bool> stop = false;
  std::mutex lock;
  std::deque<Job> ready;
  for (uint64_t i = 0; i < 20; ++i) ready.push_back(Spanned(i % 4 + 1, stop));
  Tally tally;
  sampling::SamplerOptions options;
  options.cpu_interval_ns = 200'000;
  ASSERT_TRUE(sampling::Sampler::Instance().Start(options, tally));
  const auto run = [&] {
    spanprof_context_set(5, 5);
    while (!stop) {
      Job job;
      {
        const std::lock_guard guard(lock);
        job = std::move(ready.front());
        ready.pop_front();
      }
      job.Resume();
      work_5(kRounds / 4);
      const std::lock_guard guard(lock);
      ready.push_back(std::move(job));
    }
  };
  std::thread first(run), second(run);
  while (tally.in_work < kWanted) usleep(20'000);
  stop = true;
  first.join();
  second.join();
  sampling::Sampler::Instance().Stop();
  EXPECT_EQ(tally.wrong, 0u) << "of " << tally.in_work;
  EXPECT_GT(tally.between, 0u);
}
INSTANTIATE_TEST_SUITE_P(Storages, CoroutineSampling, testing::Values("profiler", "otel"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace spanprof::coroutine
