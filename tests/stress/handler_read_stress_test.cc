// A signal handler reads the context of the very thread that it interrupted, at any instruction of
// every context call.

#include <array>
#include <csignal>
#include <memory>
#include <string>
#include <thread>
#include <tuple>

#include <gtest/gtest.h>

#include "context/core.h"
#include "scripted_writer.h"
#include "signal_storm.h"
#include "stress_run.h"

namespace spanprof::stress {
namespace {

enum class Path { kGet, kFindThread };

struct Interrupted {
  Progress progress;
  std::unique_ptr<ScriptedWriter> writer;
  Tally tally;
  std::atomic<uint64_t> signals{0};
  bool storm_ok = false;
};

thread_local Interrupted* this_thread = nullptr;
Path read_path = Path::kGet;

context::ReadStatus ReadHere(const Interrupted& self, spanprof_context* out) {
  out->size = sizeof *out;
  if (read_path == Path::kGet) {
    return spanprof_context_get(out) == 0 ? context::ReadStatus::kOk
                                          : context::ReadStatus::kInProgress;
  }
  const auto tid = static_cast<uint32_t>(self.progress.tid.load(std::memory_order_relaxed));
  internal::ThreadContext* context = context::ThisCore().FindThread(tid);
  if (context != nullptr) return context::ReadOwnContext(*context, out);
  *out = {};
  return context::ReadStatus::kOk;
}

void OnSignal(int) {
  const int saved_errno = errno;
  if (Interrupted* self = this_thread) {
    self->signals.fetch_add(1, std::memory_order_relaxed);
    const uint64_t completed = self->progress.completed.load(std::memory_order_relaxed);
    const uint64_t started = self->progress.started.load(std::memory_order_relaxed);
    spanprof_context seen = {};
    switch (ReadHere(*self, &seen)) {
      case context::ReadStatus::kOk:
        self->tally.Add(Judge(FromContext(seen), self->writer->key(), completed, started));
        break;
      case context::ReadStatus::kTorn:
        // Found by the checksum, behind which the order of the stores should stand.
        self->tally.Add(Verdict::kTorn);
        break;
      default:
        self->tally.refused.fetch_add(1, std::memory_order_relaxed);
    }
  }
  errno = saved_errno;
}

class HandlerReadStress : public ::testing::TestWithParam<std::tuple<const char*, Path>> {};

TEST_P(HandlerReadStress, SeesOnlyWholeContextsOfItsThread) {
  const auto [storage, path] = GetParam();
  read_path = path;
  ASSERT_EQ(InitForStress(storage), 0) << spanprof_error();
  ASSERT_EQ(spanprof_is_otel_mode(), std::string(storage) == "otel" ? 1 : 0);

  constexpr unsigned kThreads = 3;
  std::array<Interrupted, kThreads> threads;
  std::atomic<bool> stop{false};
  const SignalHandler handler(SIGUSR1, &OnSignal);
  std::array<std::thread, kThreads> running;
  for (unsigned i = 0; i < kThreads; ++i) {
    running[i] = std::thread([&self = threads[i], &stop, i] {
      self.writer = std::make_unique<ScriptedWriter>(self.progress, i + 1);
      this_thread = &self;
      {
        const SignalStorm storm(SIGUSR1);
        self.storm_ok = storm.ok();
        self.writer->RunUntil(stop);
      }
      this_thread = nullptr;
    });
  }

  uint64_t signals = 0, right = 0;
  const StressRun run;
  while (!run.Done(signals >= kEnoughSignals && right >= kEnoughReads)) {
    SleepMilliseconds(20);
    signals = right = 0;
    for (const Interrupted& thread : threads) {
      signals += thread.signals;
      right += thread.tally.right;
    }
  }
  stop = true;
  for (std::thread& thread : running) thread.join();

  uint64_t steps = 0, refused = 0;
  for (const Interrupted& thread : threads) {
    ASSERT_TRUE(thread.storm_ok);
    EXPECT_EQ(thread.tally.wrong(), 0u) << thread.tally.Text();
    EXPECT_EQ(thread.writer->wrong_swaps(), 0u);
    steps += thread.writer->steps();
    refused += thread.tally.refused;
  }
  run.ReportRate("updates", steps);
  run.ReportRate("signals", signals);
  run.Report("reads_accepted", right);
  run.Report("reads_refused", refused);
  EXPECT_GE(signals, kEnoughSignals);
  EXPECT_GE(right, kEnoughReads);
  EXPECT_EQ(CounterNamed("read_torn"), 0u);
  EXPECT_EQ(CounterNamed("abandoned_write"), 0u);
  EXPECT_EQ(CounterNamed("nested_write_refused"), 0u);
  if (path == Path::kGet) {
    EXPECT_EQ(CounterNamed("read_in_progress"), refused);
  }
}

INSTANTIATE_TEST_SUITE_P(Storages, HandlerReadStress,
                         ::testing::Combine(::testing::Values("profiler", "otel"),
                                            ::testing::Values(Path::kGet, Path::kFindThread)),
                         [](const auto& parameter) {
                           return std::string(std::get<0>(parameter.param)) +
                                  (std::get<1>(parameter.param) == Path::kGet ? "ByGet"
                                                                              : "ByFindThread");
                         });

}  // namespace
}  // namespace spanprof::stress
