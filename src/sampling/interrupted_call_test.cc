// Calls that wait in a thread which is sampled: they last as long, and return what they would have.
// Every case is a process of its own.

#include "sampling/interrupted_call.h"

#include <atomic>
#include <cerrno>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/syscall.h>

#include "sampling/sampler.h"
#include <spanprof/context.hpp>

namespace spanprof::sampling {
namespace {

struct CountingSink final : public SampleSink {
  void Take(const RawSample&) override { ++samples; }
  void TakeAsleep(uint32_t, uint64_t, uint64_t, uint64_t) override {}
  std::atomic<uint64_t> samples{0};
};

class SampledAllTheTime : public testing::Test {
 protected:
  SampledAllTheTime() {
    EXPECT_EQ(spanprof_init(""), 0);
    SamplerOptions options;
    options.cpu_interval_ns = 1'000'000;
    options.wall_interval_ns = 500'000;
    EXPECT_TRUE(Sampler::Instance().Start(options, sink_));
  }
  ~SampledAllTheTime() override {
    Sampler::Instance().Stop();
    EXPECT_GT(sink_.samples, 0u);
  }
  CountingSink sink_;
};

constexpr uint64_t kWaitNs = 5'000'000;
constexpr timespec kWait = {0, kWaitNs};

// Until a sample has interrupted enough of them; each is a full wait.
template <class Call>
void ExpectFullWaits(const CountingSink& sink, const char* what, Call wait) {
  const uint64_t enough = sink.samples + 20;
  for (int i = 0; i < 1000 && sink.samples < enough; ++i) {
    const uint64_t start = MonotonicNanoseconds();
    const int result = wait();
    const uint64_t took = MonotonicNanoseconds() - start;
    ASSERT_EQ(result, 0) << what << ": " << (result < 0 ? errno : result);
    ASSERT_GE(took, kWaitNs - 1'000'000) << what;
  }
}

TEST_F(SampledAllTheTime, SleepsLastAsLong) {
  ExpectFullWaits(sink_, "nanosleep", [] { return nanosleep(&kWait, nullptr); });
  ExpectFullWaits(sink_, "nanosleep with the rest", [] {
    timespec time = kWait;
    return nanosleep(&time, &time);
  });
  ExpectFullWaits(sink_, "clock_nanosleep", [] {
    timespec until = {};
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += kWait.tv_nsec;
    if (until.tv_nsec >= 1'000'000'000) {
      until.tv_nsec -= 1'000'000'000;
      ++until.tv_sec;
    }
    return clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
  });
}

TEST_F(SampledAllTheTime, WaitsForDescriptorsLastAsLong) {
  ExpectFullWaits(sink_, "poll", [] { return poll(nullptr, 0, kWaitNs / 1'000'000); });
  ExpectFullWaits(sink_, "ppoll", [] { return ppoll(nullptr, 0, &kWait, nullptr); });
  const int poller = epoll_create1(EPOLL_CLOEXEC);
  ExpectFullWaits(sink_, "epoll_wait", [poller] {
    epoll_event event = {};
    return epoll_wait(poller, &event, 1, kWaitNs / 1'000'000);
  });
  close(poller);
}

// The kernel keeps one of several signals with one number: SIGPROF has to be the program's alone.
TEST_F(SampledAllTheTime, ABlockedSigprofIsTheProgramsOwn) {
  static std::atomic<int> calls{0};
  signal(SIGPROF, [](int) { ++calls; });
  sigset_t block, pending;
  sigemptyset(&block);
  sigaddset(&block, SIGPROF);
  pthread_sigmask(SIG_BLOCK, &block, nullptr);
  const uint64_t enough = sink_.samples + 10;
  while (sink_.samples < enough) sigpending(&pending);
  sigpending(&pending);
  EXPECT_EQ(sigismember(&pending, SIGPROF), 0);
  raise(SIGPROF);
  pthread_sigmask(SIG_UNBLOCK, &block, nullptr);
  EXPECT_EQ(calls, 1);
}

// A thread that was cancelled before it has begun ends in the program's code, not in ours.
TEST_F(SampledAllTheTime, ThreadsCanBeCancelledAtOnce) {
  for (int i = 0; i < 300; ++i) {
    pthread_t thread = {};
    ASSERT_EQ(pthread_create(
                  &thread, nullptr,
                  [](void*) -> void* {
                    for (;;) pause();
                  },
                  nullptr),
              0);
    pthread_cancel(thread);
    void* result = nullptr;
    pthread_join(thread, &result);
    ASSERT_EQ(result, PTHREAD_CANCELED);
  }
  Sampler::Instance().Flush();  // no handler has left without its sample
}

TEST(InterruptedCall, ASignalThatACallWaitsForIsKnown) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGURG);
  BlockedCall call;
  call.number = SYS_rt_sigtimedwait;
  call.arguments[0] = reinterpret_cast<uint64_t>(&set);
  EXPECT_TRUE(WaitsForSignal(call, SIGURG));
  EXPECT_FALSE(WaitsForSignal(call, SIGPROF));
  call.number = SYS_read;
  EXPECT_FALSE(WaitsForSignal(call, SIGURG));
}

}  // namespace
}  // namespace spanprof::sampling
