// The sampler on programs whose functions encode the span that they run under. Every case is a
// process of its own.

#include "sampling/sampler.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <pthread.h>
#include <set>
#include <signal.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "profile/profile.h"
#include "sampling/profile_builder.h"
#include "sampling/span_work.h"
#include <spanprof/context.hpp>

// Each runs under the span of its number only: the span is set before the call and changed after
// it.
SPANPROF_WORK(1)
SPANPROF_WORK(2)
SPANPROF_WORK(3)
SPANPROF_WORK(4)

namespace spanprof::sampling {
namespace {

using Work = void (*)(unsigned);
constexpr Work kWork[] = {work_1, work_2, work_3, work_4};

struct Tally final : public SampleSink {
  void Take(const RawSample& sample) override {
    ++samples;
    count += sample.count;
    value += sample.value;
    if (sample.kind == static_cast<uint8_t>(profile::SampleKind::kWall)) ++wall_samples;
    complete += sample.complete ? 1 : 0;
    tids.insert(sample.tid);
    names.insert(sample.thread_name);
    if (sample.context_status == ContextStatus::kInProgress) ++in_progress;
    const uint64_t work = WorkOn(sample);
    if (work == 0) return;
    ++in_work;
    const bool right = sample.context_status == ContextStatus::kPresent &&
                       sample.context.span_id == work &&
                       sample.context.root_span_id == work * 100 &&
                       sample.context.trace_id_low == (work % 2 == 0 ? work * 1000 : 0);
    if (!right) ++wrong;
  }
  void TakeAsleep(uint32_t, uint64_t, uint64_t asleep_count, uint64_t) override {
    asleep += asleep_count;
  }
  uint64_t samples = 0, wall_samples = 0, count = 0, value = 0, complete = 0, in_progress = 0,
           in_work = 0, wrong = 0;
  std::atomic<uint64_t> asleep{0};
  std::set<uint32_t> tids;
  std::set<std::string> names;
};

void SwitchSpans(const std::atomic<bool>& stop, unsigned rounds_each) {
  for (uint64_t n = 1; !stop; n = n % 4 + 1) {
    if (n % 2 == 0) {
      spanprof::set(0, n * 1000, n, n * 100);
    } else {
      spanprof::set(n, n * 100);
    }
    kWork[n - 1](rounds_each);
  }
}

// Of each case: with five of them, fifty thousand in every run.
uint64_t SamplesWanted() {
  const char* text = getenv("SPANPROF_SAMPLES");
  return text == nullptr ? 10000 : strtoull(text, nullptr, 10);
}

struct Case {
  const char* storage;
  uint64_t cpu_interval_ns;
  uint64_t wall_interval_ns;
};

class EverySampleHasItsSpan : public testing::TestWithParam<Case> {};

TEST_P(EverySampleHasItsSpan, WhileSpansSwitchEveryFewMicroseconds) {
  ASSERT_EQ(spanprof_init((std::string("ctxstorage=") + GetParam().storage).c_str()), 0);
  Tally tally;
  SamplerOptions options;
  options.cpu_interval_ns = GetParam().cpu_interval_ns;
  options.wall_interval_ns = GetParam().wall_interval_ns;
  const Result<void> started = Sampler::Instance().Start(options, tally);
  ASSERT_TRUE(started) << started.error().message;
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 4; ++i)
    threads.emplace_back(SwitchSpans, std::cref(stop), 200 + 300 * i);
  for (int i = 0; i < 12000 && tally.samples < SamplesWanted(); ++i) usleep(20000);
  stop = true;
  for (std::thread& thread : threads) thread.join();
  Sampler::Instance().Stop();
  EXPECT_EQ(tally.wrong, 0u);
  EXPECT_GE(tally.samples, SamplesWanted());
  EXPECT_GE(tally.in_work * 10, tally.samples * 5) << "too few samples were of the work itself";
  EXPECT_GE(tally.complete * 100, tally.samples * 99);
  printf("%llu samples, %llu in work, %llu in mid-update, %llu complete, %llu wrong\n",
         static_cast<unsigned long long>(tally.samples),
         static_cast<unsigned long long>(tally.in_work),
         static_cast<unsigned long long>(tally.in_progress),
         static_cast<unsigned long long>(tally.complete),
         static_cast<unsigned long long>(tally.wrong));
}
INSTANTIATE_TEST_SUITE_P(Modes, EverySampleHasItsSpan,
                         testing::Values(Case{"profiler", 200'000, 0}, Case{"otel", 200'000, 0},
                                         Case{"profiler", 0, 1'000'000}, Case{"otel", 0, 1'000'000},
                                         Case{"otel", 10'000'000, 1'000'000}),
                         [](const auto& test) {
                           return std::string(test.param.storage) +
                                  (test.param.cpu_interval_ns != 0 ? "_cpu" : "") +
                                  (test.param.wall_interval_ns != 0 ? "_wall" : "");
                         });

TEST(Sampler, CpuSamplesAddUpToTheCpuTimeUsed) {
  ASSERT_EQ(spanprof_init(""), 0);
  Tally tally;
  SamplerOptions options;
  options.cpu_interval_ns = 1'000'000;
  ASSERT_TRUE(Sampler::Instance().Start(options, tally));
  const uint64_t before = ThreadCpuNanoseconds(static_cast<uint32_t>(gettid()));
  uint64_t used = 0;
  while (used < 500'000'000) {
    work_1(100000);
    used = ThreadCpuNanoseconds(static_cast<uint32_t>(gettid())) - before;
  }
  Sampler::Instance().Stop();
  EXPECT_GT(tally.value, used * 8 / 10);
  EXPECT_LT(tally.value, used * 12 / 10);
  EXPECT_GT(Sampler::Instance().actual_cpu_interval_ns(), 0u);
}

TEST(Sampler, ThreadsThatComeLaterAreSampledUnderTheirNames) {
  ASSERT_EQ(spanprof_init(""), 0);
  Tally tally;
  SamplerOptions options;
  options.cpu_interval_ns = 1'000'000;
  ASSERT_TRUE(Sampler::Instance().Start(options, tally));
  std::thread([] {
    pthread_setname_np(pthread_self(), "late-comer");
    const uint64_t tid = static_cast<uint64_t>(gettid());
    while (ThreadCpuNanoseconds(static_cast<uint32_t>(tid)) < 400'000'000) work_1(100000);
  }).join();
  Sampler::Instance().Stop();
  EXPECT_EQ(tally.names.count("late-comer"), 1u);
}

// Not preloaded: what tells of them is the patched pthread_create. Threads that live for less than
// the scan's interval would otherwise go unseen.
TEST(Sampler, ShortThreadsAreSampledFromTheirFirstInstruction) {
  ASSERT_EQ(spanprof_init(""), 0);
  Tally tally;
  SamplerOptions options;
  options.cpu_interval_ns = 1'000'000;
  ASSERT_TRUE(Sampler::Instance().Start(options, tally));
  uint64_t used = 0;
  for (int i = 0; i < 100; ++i) {
    std::thread([&used] {
      const auto tid = static_cast<uint32_t>(gettid());
      while (ThreadCpuNanoseconds(tid) < 5'000'000) work_1(10000);
      used += ThreadCpuNanoseconds(tid);
    }).join();
  }
  Sampler::Instance().Stop();
  uint64_t late = 0;
  const Sampler::Counters counters = Sampler::Instance().counters();
  if (const auto found = counters.find("sampler.late_thread_cpu_ns"); found != counters.end()) {
    late = found->second;
  }
  EXPECT_LT(late * 20, used);
  EXPECT_GT(tally.value * 10, used * 6);  // a timer's last interval is lost with its thread
  EXPECT_GT(tally.complete * 100, tally.samples * 95);
}

TEST(Sampler, SleepingThreadsCostNoSignals) {
  ASSERT_EQ(spanprof_init(""), 0);
  Tally tally;
  SamplerOptions options;
  options.wall_interval_ns = 2'000'000;
  std::atomic<bool> stop{false};
  std::vector<std::thread> sleepers;
  for (int i = 0; i < 8; ++i) {
    sleepers.emplace_back([&stop] {
      while (!stop) sleep(1);
    });
  }
  ASSERT_TRUE(Sampler::Instance().Start(options, tally));
  for (int i = 0; i < 3000 && tally.asleep <= 2000; ++i) usleep(10000);
  Sampler::Instance().Stop();
  stop = true;
  for (std::thread& sleeper : sleepers) sleeper.join();
  EXPECT_GT(tally.asleep, 1000u);
  EXPECT_LT(tally.wall_samples * 10, tally.asleep);
}

TEST(Sampler, LeavesTheProgramsOwnSigprofAlone) {
  static std::atomic<uint64_t> own{0};
  struct sigaction action = {};
  action.sa_sigaction = [](int, siginfo_t* info, void*) {
    if (info->si_code != SI_TIMER) ++own;
  };
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  sigaction(SIGPROF, &action, nullptr);
  const itimerval interval = {{0, 10000}, {0, 10000}};
  setitimer(ITIMER_PROF, &interval, nullptr);
  ASSERT_EQ(spanprof_init(""), 0);
  Tally tally;
  SamplerOptions options;
  options.cpu_interval_ns = 5'000'000;
  ASSERT_TRUE(Sampler::Instance().Start(options, tally));
  const uint64_t own_before = own;
  while (tally.samples < 50) work_1(1000000);
  Sampler::Instance().Stop();
  EXPECT_GT(own, own_before);
}

TEST(Sampler, CanBeStartedAndStoppedAgainAndAgain) {
  ASSERT_EQ(spanprof_init("ctxstorage=otel"), 0);
  std::atomic<bool> stop{false};
  std::thread worker([&stop] { SwitchSpans(stop, 500); });
  for (int i = 0; i < 30; ++i) {
    Tally tally;
    SamplerOptions options;
    options.cpu_interval_ns = 500'000;
    options.wall_interval_ns = 1'000'000;
    ASSERT_TRUE(Sampler::Instance().Start(options, tally));
    EXPECT_FALSE(Sampler::Instance().Start(options, tally));
    usleep(20000);
    Sampler::Instance().Stop();
    EXPECT_EQ(tally.wrong, 0u);
    // Both threads were there before.
    EXPECT_EQ(Sampler::Instance().counters().count("sampler.late_thread_cpu_ns"), 0u);
  }
  stop = true;
  worker.join();
}

TEST(Sampler, AForkedChildIsQuietAndMayStartItsOwn) {
  ASSERT_EQ(spanprof_init("ctxstorage=otel"), 0);
  Tally tally;
  SamplerOptions options;
  options.cpu_interval_ns = 1'000'000;
  options.wall_interval_ns = 4'000'000;
  options.wall_by_cpu_timers = true;
  pthread_atfork([] { Sampler::Instance().PrepareFork(); },
                 [] { Sampler::Instance().FinishForkInParent(); },
                 [] { Sampler::Instance().FinishForkInChild(); });
  ASSERT_TRUE(Sampler::Instance().Start(options, tally));
  for (int i = 0; i < 20; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      if (Sampler::Instance().running()) _exit(1);
      Tally own;
      if (!Sampler::Instance().Start(options, own)) _exit(2);
      std::atomic<bool> stop{false};
      std::thread worker([&stop] { SwitchSpans(stop, 500); });
      while (own.samples < 5) usleep(1000);
      stop = true;
      worker.join();
      Sampler::Instance().Stop();
      _exit(own.wrong == 0 ? 0 : 3);
    }
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_EQ(status, 0);
  }
  Sampler::Instance().Stop();
}

TEST(ProfileBuilder, GathersSamplesWithContextsTagsEndpointsAndMappings) {
  ASSERT_EQ(spanprof_init("attributes=route,service=shop"), 0);
  ProfileBuilder builder(context::ThisCore(), size_t{16} << 20);
  SamplerOptions options;
  options.cpu_interval_ns = 1'000'000;
  Sampler& sampler = Sampler::Instance();
  ASSERT_TRUE(sampler.Start(options, builder));
  spanprof::set(0, 7, 5, 500);
  spanprof::set_tag(0, "/cart");
  const uint32_t tid = static_cast<uint32_t>(gettid());
  while (ThreadCpuNanoseconds(tid) < 300'000'000) work_1(100000);
  spanprof_endpoint_set(500, "GET /cart", 9);
  sampler.Stop();
  const profile::Profile profile = builder.Cut(sampler);
  ASSERT_GT(profile.samples().size(), 20u);
  uint64_t with_span = 0, in_work = 0;
  for (const profile::Sample& sample : profile.samples()) {
    const profile::Context& context = profile.contexts()[sample.context];
    if (context.span_id != 5) continue;
    ++with_span;
    EXPECT_EQ(profile.Text(context.tags[0]), "/cart");
    EXPECT_EQ(profile.Text(profile.EndpointOf(context.root_span_id)), "GET /cart");
    const auto frames = profile.FramesOf(sample.stack);
    ASSERT_FALSE(frames.empty());
    EXPECT_NE(profile.frames()[frames[0]].mapping, profile::kNone);
    for (const profile::FrameId id : frames) {
      const profile::Function& function = profile.functions()[profile.frames()[id].function];
      if (profile.Text(function.name) == "work_1") ++in_work;
    }
    // Unix time, within the profile.
    EXPECT_GE(sample.time_ns, profile.start_time_ns);
    EXPECT_LE(sample.time_ns, profile.start_time_ns + profile.duration_ns);
  }
  EXPECT_GT(with_span, 20u);
  EXPECT_GT(in_work, 20u);
  EXPECT_EQ(profile.attribute_names, std::vector<std::string>{"route"});
  EXPECT_EQ(profile.resource[0].value, "shop");
}

}  // namespace
}  // namespace spanprof::sampling
