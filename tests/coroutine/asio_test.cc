// asio::awaitable, whose promise is Asio's: its events, and its spans across threads and strands.

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include <asio.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coroutine/harvester.h"
#include "sampling/sampler.h"
#include "sampling/span_work.h"
#include "tests/coroutine/recorded_events.h"
#include "tests/coroutine/self_recording.h"
#include "tests/coroutine/target_process.h"
#include <spanprof/context.h>
#include <spanprof/coroutine.hpp>

SPANPROF_WORK(1)
SPANPROF_WORK(2)
SPANPROF_WORK(3)
SPANPROF_WORK(4)
SPANPROF_WORK(5)  // runs on the same threads without a span

namespace spanprof::coroutine {
namespace {

using asio::awaitable;
using asio::use_awaitable;
using testing::ElementsAre;
using testing::HasSubstr;

std::string Here(int line) { return "asio_test.cc:" + std::to_string(line); }

std::vector<std::string> Recorded(const std::function<void()>& body) {
  return RecordedHere([] { const coroutine_probe first("first"); }, body);
}

void RunCoroutine(const std::function<awaitable<void>()>& coroutine) {
  asio::io_context context;
  std::exception_ptr problem;
  asio::co_spawn(context, coroutine,
                 [&](std::exception_ptr thrown) { problem = std::move(thrown); });
  context.run();
  if (problem) std::rethrow_exception(problem);
}

awaitable<void> Soon() {
  asio::steady_timer timer(co_await asio::this_coro::executor, std::chrono::milliseconds(1));
  co_await timer.async_wait(use_awaitable);
}

TEST(Asio, WaitsHaveTheirPlaces) {
  int first_line = 0;
  int second_line = 0;
  const auto lines = Recorded([&] {
    RunCoroutine([&]() -> awaitable<void> {
      coroutine_probe probe("session");
      asio::steady_timer timer(co_await asio::this_coro::executor, std::chrono::milliseconds(1));
      first_line = __LINE__ + 1;
      co_await probe(timer.async_wait(use_awaitable));
      second_line = __LINE__ + 1;
      co_await probe(Soon());
    });
  });
  EXPECT_THAT(
      lines, ElementsAre("birth session", "resume session", "suspend session " + Here(first_line),
                         "resume session", "suspend session " + Here(second_line), "resume session",
                         "death session"));
}

awaitable<int> Query(coroutine_probe& probe, int& line) {
  line = __LINE__ + 1;
  co_await probe(Soon());
  co_return 7;
}

TEST(Asio, WaitsOfAnAwaitedCoroutineAreThoseOfTheOneThatHandsItsProbeDown) {
  int line = 0;
  const auto lines = Recorded([&] {
    RunCoroutine([&]() -> awaitable<void> {
      coroutine_probe probe("session");
      EXPECT_EQ(co_await Query(probe, line), 7);
    });
  });
  EXPECT_THAT(lines, ElementsAre("birth session", "resume session", "suspend session " + Here(line),
                                 "resume session", "death session"));
}

awaitable<std::unique_ptr<int>> MoveOnly() {
  co_await Soon();
  co_return std::make_unique<int>(3);
}

TEST(Asio, ResultsComeThroughWithTheirTypes) {
  RunCoroutine([]() -> awaitable<void> {
    coroutine_probe probe;
    const std::unique_ptr<int> result = co_await probe(MoveOnly());
    EXPECT_EQ(*result, 3);
    static_assert(std::is_same_v<decltype(probe(MoveOnly())), awaitable<std::unique_ptr<int>>>);
  });
}

TEST(Asio, AWaitThatFailsIsOver) {
  const auto lines = Recorded([&] {
    RunCoroutine([]() -> awaitable<void> {
      coroutine_probe probe("reader");
      asio::ip::tcp::socket socket(co_await asio::this_coro::executor);  // not connected
      char byte = 0;
      bool failed = false;
      try {
        co_await probe(socket.async_receive(asio::buffer(&byte, 1), use_awaitable));
      } catch (const asio::system_error&) {
        failed = true;
      }
      EXPECT_TRUE(failed) << "it received from nobody";
    });
  });
  EXPECT_THAT(
      lines, ElementsAre("birth reader", "resume reader", HasSubstr("suspend reader asio_test.cc:"),
                         "resume reader", "death reader"));
}

TEST(Asio, ACoroutineThatIsDestroyedInItsWaitWasNotResumed) {
  const auto lines = Recorded([] {
    asio::io_context context;
    asio::co_spawn(
        context,
        []() -> awaitable<void> {
          coroutine_probe probe("forgotten");
          asio::steady_timer timer(co_await asio::this_coro::executor, std::chrono::hours(1));
          co_await probe(timer.async_wait(use_awaitable));
        },
        asio::detached);
    context.poll();
  });
  EXPECT_THAT(lines, ElementsAre("birth forgotten", "resume forgotten",
                                 HasSubstr("suspend forgotten asio_test.cc:"), "death forgotten"));
}

// ---- Spans ----

using Work = void (*)(unsigned);
constexpr Work kWork[] = {work_1, work_2, work_3, work_4};
constexpr unsigned kRounds = 2000;
constexpr uint64_t kWanted = 2000;

struct Tally final : public sampling::SampleSink {
  void Take(const sampling::RawSample& sample) override {
    const uint64_t work = sampling::WorkOn(sample);
    if (work == 0) return;
    ++in_work;
    if (work == 5) ++between;
    const bool has_span =
        sample.context_status == sampling::ContextStatus::kPresent && sample.context.span_id != 0;
    const uint64_t span = has_span ? sample.context.span_id : 0;
    if (span != (work == 5 ? 0 : work)) ++wrong;
  }
  void TakeAsleep(uint32_t, uint64_t, uint64_t, uint64_t) override {}
  std::atomic<uint64_t> in_work{0}, between{0}, wrong{0};
};

// The span is set once: what follows it from thread to thread is the coroutine.
awaitable<void> Spanned(uint64_t number, const std::atomic<bool>& stop,
                        std::atomic<uint64_t>& migrations) {
  coroutine_probe probe;
  spanprof_context_set(number, number);
  auto thread = std::this_thread::get_id();
  while (!stop) {
    kWork[number - 1](kRounds);
    co_await probe(asio::post(co_await asio::this_coro::executor, use_awaitable));
    if (std::this_thread::get_id() != thread) ++migrations;
    thread = std::this_thread::get_id();
  }
}

awaitable<void> WithoutSpan(const std::atomic<bool>& stop) {
  while (!stop) {
    work_5(kRounds);
    co_await asio::post(co_await asio::this_coro::executor, use_awaitable);
  }
}

TEST(Asio, EverySampleHasTheSpanOfItsCoroutineAcrossThreadsAndStrands) {
  ASSERT_EQ(spanprof_init(""), 0);
  asio::io_context context;
  std::atomic<bool> stop = false;
  std::atomic<uint64_t> migrations = 0;
  for (uint64_t i = 0; i < 20; ++i) {
    // Each with a strand of its own, as connections have; every fifth without a span.
    const auto strand = asio::make_strand(context);
    if (i % 5 == 4) {
      asio::co_spawn(strand, WithoutSpan(stop), asio::detached);
    } else {
      asio::co_spawn(strand, Spanned(i % 5 + 1, stop, migrations), asio::detached);
    }
  }
  Tally tally;
  sampling::SamplerOptions options;
  options.cpu_interval_ns = 200'000;
  ASSERT_TRUE(sampling::Sampler::Instance().Start(options, tally));
  std::thread first([&] { context.run(); });
  std::thread second([&] { context.run(); });
  while (tally.in_work < kWanted || tally.between == 0) usleep(20'000);
  stop = true;
  first.join();
  second.join();
  sampling::Sampler::Instance().Stop();
  EXPECT_EQ(tally.wrong, 0u) << "of " << tally.in_work;
  EXPECT_GT(migrations, 0u);
  RecordProperty("samples", std::to_string(tally.in_work));
}

}  // namespace
}  // namespace spanprof::coroutine
