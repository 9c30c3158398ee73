// A coroutine carries its trace context from thread to thread, and gives each thread back its own.

#include <cstdint>
#include <thread>

#include <gtest/gtest.h>

#include "tests/coroutine/scheduled_job.h"
#include <spanprof/context.h>
#include <spanprof/coroutine.hpp>

namespace spanprof::coroutine {
namespace {

uint64_t ActiveSpan() {
  spanprof_context context = {};
  context.size = sizeof context;
  return spanprof_context_get(&context) == 0 ? context.span_id : ~uint64_t{0};
}

Job PublishesSpan(uint64_t span, uint64_t* seen) {
  seen[0] = ActiveSpan();  // its creator's
  spanprof_context_set(span, span);
  co_await std::suspend_always{};
  seen[1] = ActiveSpan();
  spanprof_context_set(span + 1, span);
  co_await std::suspend_always{};
  seen[2] = ActiveSpan();
}

class CoroutineContext : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(spanprof_init("ctxstorage=profiler"), 0); }
};

TEST_F(CoroutineContext, FollowsTheCoroutineAcrossThreadsAndLeavesTheThreadsTheirOwn) {
  uint64_t seen[3] = {};
  spanprof_context_set(1, 1);
  const Job job = PublishesSpan(500, seen);
  spanprof_context_set(2, 2);
  EXPECT_EQ(ActiveSpan(), 2u);
  job.Resume();
  EXPECT_EQ(seen[0], 1u);
  EXPECT_EQ(ActiveSpan(), 2u);
  std::thread([&] {
    spanprof_context_set(3, 3);
    job.Resume();
    EXPECT_EQ(ActiveSpan(), 3u);
  }).join();
  EXPECT_EQ(seen[1], 500u);
  EXPECT_EQ(ActiveSpan(), 2u);
  job.Resume();
  EXPECT_EQ(seen[2], 501u);
  EXPECT_EQ(ActiveSpan(), 2u);
}

TEST_F(CoroutineContext, ManyCoroutinesOnTwoThreadsNeverSeeAnothersSpan) {
  struct Loop {
    static Job Run(uint64_t span, const bool& stop, uint64_t& wrong) {
      spanprof_context_set(span, span);
      while (!stop) {
        co_await std::suspend_always{};
        wrong += ActiveSpan() == span ? 0 : 1;
      }
    }
  };
  bool stop = false;
  uint64_t wrong = 0;
  std::vector<Job> jobs;
  for (uint64_t i = 0; i < 50; ++i) jobs.push_back(Loop::Run(1000 + i, stop, wrong));
  for (int round = 0; round < 100; ++round) {
    std::thread([&] {
      spanprof_context_set(7, 7);
      for (const Job& job : jobs) {
        job.Resume();
        wrong += ActiveSpan() == 7 ? 0 : 1;
      }
    }).join();
    for (const Job& job : jobs) job.Resume();
  }
  EXPECT_EQ(wrong, 0u);
}

}  // namespace
}  // namespace spanprof::coroutine
