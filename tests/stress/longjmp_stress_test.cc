// A handler that leaves by siglongjmp while it interrupts a write: the write never goes on, and the
// thread's contexts must keep working.

#include <csetjmp>
#include <csignal>
#include <string>
#include <tuple>

#include <gtest/gtest.h>

#include "scripted_writer.h"
#include "signal_storm.h"
#include "stress_run.h"
#include <spanprof/context.hpp>

namespace spanprof::stress {
namespace {

constexpr uint32_t kKey = 1;

sigjmp_buf back_to_loop;
std::atomic<bool> may_jump{false};
std::atomic<uint64_t> signals{0}, jumps_from_write{0};

void OnSignal(int) {
  signals.fetch_add(1, std::memory_order_relaxed);
  if (!may_jump.load(std::memory_order_relaxed)) return;
  spanprof_context seen = {};
  seen.size = sizeof seen;
  if (spanprof_context_get(&seen) != -EAGAIN) return;
  may_jump.store(false, std::memory_order_relaxed);
  jumps_from_write.fetch_add(1, std::memory_order_relaxed);
  siglongjmp(back_to_loop, 1);
}

enum class Call { kSet, kInlineSet, kUpdate };

void Write(Call call, uint64_t number) {
  const Fields fields = FullFields(kKey, number);
  if (call == Call::kSet) {
    spanprof_context_set(fields.span_id, fields.root_span_id);
  } else if (call == Call::kInlineSet) {
    spanprof::set(fields.span_id, fields.root_span_id);
  } else {
    const spanprof_context context = ToContext(kKey, fields);
    spanprof_context_update(&context);
  }
}

// The number of a context, 0 for an empty one; ~0 when it cannot be read.
uint64_t NumberNow() {
  spanprof_context seen = {};
  seen.size = sizeof seen;
  if (spanprof_context_get(&seen) != 0) return ~uint64_t{0};
  return seen.span_id == 0 ? 0 : StepOfSpan(seen.span_id);
}

class LongjmpStress : public ::testing::TestWithParam<std::tuple<const char*, HandlerStack, Call>> {
};

TEST_P(LongjmpStress, ContextsGoOnAfterAnAbandonedWrite) {
  if (kThreadSanitizer) {
    GTEST_SKIP() << "the thread sanitizer delays signals to a point where no write is going on";
  }
  const auto [storage, stack, call] = GetParam();
#ifndef __OPTIMIZE__
  if (call == Call::kInlineSet) {
    GTEST_SKIP() << "without optimisation the library's frames are as large as a signal's, so an "
                    "abandoned inline write is not told from an interrupted one";
  }
#endif
  ASSERT_EQ(InitForStress(storage), 0) << spanprof_error();
  AlternateStack alternate(stack);
  ASSERT_TRUE(alternate.Install());
  const SignalHandler handler(SIGUSR1, &OnSignal, stack);

  // All of this survives the jumps: it is static.
  static uint64_t number, wrong, first_wrong_found;
  number = wrong = 0;
  constexpr uint64_t kEnoughJumps = 20;
  static const StressRun run;
  {
    const SignalStorm storm(SIGUSR1);
    ASSERT_TRUE(storm.ok());
    while (number % 64 != 0 || number == 0 || !run.Done(jumps_from_write >= kEnoughJumps)) {
      ++number;
      if (sigsetjmp(back_to_loop, 1) == 0) {
        may_jump = true;
        Write(call, number);
        may_jump = false;
        continue;
      }
      // At the same depth as the write that was left.
      ++number;
      Write(call, number);
      const uint64_t found = NumberNow();
      if (found != number && wrong++ == 0) first_wrong_found = found;
    }
  }
  alternate.Remove();
  run.ReportRate("writes", number);
  run.ReportRate("signals", signals);
  run.Report("writes_left_by_longjmp", jumps_from_write);
  EXPECT_GE(jumps_from_write, kEnoughJumps);
  EXPECT_EQ(wrong, 0u) << "writes behind a jump that had no effect, the first left "
                       << first_wrong_found;
  EXPECT_EQ(CounterNamed("abandoned_write"), jumps_from_write);
  EXPECT_EQ(CounterNamed("nested_write_refused"), 0u);
  EXPECT_EQ(CounterNamed("read_torn"), 0u);
  if (spanprof_is_otel_mode() != 0) {
    Write(Call::kUpdate, ++number);
    spanprof_context seen = {};
    seen.size = sizeof seen;
    ASSERT_EQ(spanprof_context_get_by_tid(CurrentTid(), &seen), 0);
    EXPECT_TRUE(FromContext(seen) == FullFields(kKey, number));
  }
}

std::string CaseName(
    const ::testing::TestParamInfo<std::tuple<const char*, HandlerStack, Call>>& info) {
  const auto [storage, stack, call] = info.param;
  constexpr const char* kCalls[] = {"Set", "InlineSet", "Update"};
  return std::string(storage) +
         (stack == HandlerStack::kNormal ? "NormalStack" : "AlternateStack") +
         kCalls[static_cast<unsigned>(call)];
}

INSTANTIATE_TEST_SUITE_P(
    Stacks, LongjmpStress,
    ::testing::Values(std::make_tuple("profiler", HandlerStack::kNormal, Call::kSet),
                      std::make_tuple("profiler", HandlerStack::kAlternate, Call::kInlineSet),
                      std::make_tuple("otel", HandlerStack::kNormal, Call::kInlineSet),
                      std::make_tuple("otel", HandlerStack::kNormal, Call::kUpdate),
                      std::make_tuple("otel", HandlerStack::kAlternate, Call::kSet)),
    &CaseName);

}  // namespace
}  // namespace spanprof::stress
