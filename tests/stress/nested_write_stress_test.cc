// A signal handler that sets contexts itself. One that interrupts a write of its thread is refused;
// any other is a context like every other, and what it interrupted overwrites it whole.

#include <csignal>
#include <string>
#include <thread>
#include <tuple>

#include <gtest/gtest.h>

#include "scripted_writer.h"
#include "signal_storm.h"
#include "stress_run.h"
#include <spanprof/context.hpp>

namespace spanprof::stress {
namespace {

constexpr uint32_t kMainKey = 1, kHandlerKey = 2;

// The kind of call is in the number's last bits; all tags of a context are the same one, so that a
// mixture of two shows.
enum Kind : unsigned {
  kSet,
  kSetTrace,
  kUpdate,
  kScope,
  kSwap,
  kClear,
  kSetTag,
  kInlineSet,
  kKinds
};

Kind KindOf(uint64_t number) { return static_cast<Kind>(number % kKinds); }

Fields UniformFields(uint32_t key, uint64_t number) {
  Fields fields = FullFields(key, number);
  fields.tag_classes.fill(static_cast<uint8_t>(1 + number / kKinds % (kClasses - 1)));
  return fields;
}

// True if the call was made and not refused; void calls are judged by what can be read after them.
bool Write(uint32_t key, uint64_t number) {
  const Fields fields = UniformFields(key, number);
  const spanprof_context context = ToContext(key, fields);
  switch (KindOf(number)) {
    case kSet:
      spanprof_context_set(fields.span_id, fields.root_span_id);
      break;
    case kSetTrace:
      spanprof_context_set_trace(fields.trace_id_high, fields.trace_id_low, fields.span_id,
                                 fields.root_span_id);
      break;
    case kScope:
    case kUpdate:
      return spanprof_context_update(&context) == 0;
    case kSwap:
      spanprof_context_swap(&context, nullptr);
      break;
    case kClear:
      spanprof_context_clear();
      break;
    case kSetTag:
      return spanprof_context_set_tag_id(0, 0) == 0;
    default:
      spanprof::set(fields.span_id, fields.root_span_id);
  }
  spanprof_context seen = {};
  seen.size = sizeof seen;
  return spanprof_context_get(&seen) != -EAGAIN;
}

// Whether the context is what one call of (key, number) leaves, with tags of one earlier call.
bool IsLeftBy(const spanprof_context& seen, uint32_t key, uint64_t number) {
  const Kind kind = KindOf(number);
  // Tag 0 alone is taken away by kSetTag; the others are always the same.
  for (unsigned i = 2; i < kTags; ++i) {
    if (seen.tags[i] != seen.tags[1]) return false;
  }
  if (seen.tags[0] != 0 && seen.tags[0] != seen.tags[1]) return false;
  if (kind == kClear) return FromContext(seen).IsNone();
  if (kind == kSetTag) return seen.tags[0] == 0;
  const Fields wanted = UniformFields(key, number);
  if (seen.span_id != wanted.span_id || seen.root_span_id != wanted.root_span_id) return false;
  const bool has_trace = kind != kSet && kind != kInlineSet;
  if (seen.trace_id_high != (has_trace ? wanted.trace_id_high : 0)) return false;
  if (seen.trace_id_low != (has_trace ? wanted.trace_id_low : 0)) return false;
  const bool whole = kind == kUpdate || kind == kScope || kind == kSwap;
  if (seen.trace_flags != (whole ? wanted.trace_flags : 0)) return false;
  return !whole || seen.tags[0] == ToContext(key, wanted).tags[0];
}

struct HandlerState {
  std::atomic<uint64_t> signals{0}, accepted{0}, refused{0}, last_accepted{0};
  std::atomic<uint64_t> wrong_after_write{0};
};
HandlerState handler_state;

[[gnu::noinline]] void WriteInHandler() {
  HandlerState& state = handler_state;
  const uint64_t number = state.signals.fetch_add(1, std::memory_order_relaxed);
  if (!Write(kHandlerKey, number)) {
    state.refused.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  state.last_accepted.store(number, std::memory_order_relaxed);
  state.accepted.fetch_add(1, std::memory_order_relaxed);
  spanprof_context seen = {};
  seen.size = sizeof seen;
  if (spanprof_context_get(&seen) != 0 || !IsLeftBy(seen, kHandlerKey, number)) {
    state.wrong_after_write.fetch_add(1, std::memory_order_relaxed);
  }
}

[[gnu::noinline]] void WriteFromDeepStack() {
  volatile char* pad = static_cast<volatile char*>(__builtin_alloca(12000));
  pad[0] = 0;
  WriteInHandler();
}

void OnSignal(int) {
  const int saved_errno = errno;
  if (handler_state.signals.load(std::memory_order_relaxed) % 2 == 0) {
    WriteInHandler();
  } else {
    WriteFromDeepStack();
  }
  errno = saved_errno;
}

class NestedWriteStress : public ::testing::TestWithParam<std::tuple<const char*, HandlerStack>> {
 protected:
  // One write of the main flow, from a stack depth that changes, and what is read after it.
  [[gnu::noinline]] void WriteAndCheck(uint64_t number, unsigned depth) {
    volatile char* pad = static_cast<volatile char*>(__builtin_alloca(64 + depth));
    pad[0] = 0;
    const uint64_t accepted_before = handler_state.accepted.load(std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (!Write(kMainKey, number)) ++refused_;
    spanprof_context seen = {};
    seen.size = sizeof seen;
    if (spanprof_context_get(&seen) != 0) ++refused_;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    const uint64_t accepted_after = handler_state.accepted.load(std::memory_order_relaxed);
    const uint64_t last = handler_state.last_accepted.load(std::memory_order_relaxed);
    if (IsLeftBy(seen, kMainKey, number)) return;
    // Handlers that came in between may have left theirs: the last one, or one before it if the
    // last came behind the read.
    for (uint64_t back = 0; back <= 8 && accepted_after != accepted_before; ++back) {
      if (back <= last && IsLeftBy(seen, kHandlerKey, last - back)) return;
    }
    if (wrong_++ == 0) {
      first_wrong_ = "call " + std::to_string(KindOf(number)) + " left span of call " +
                     std::to_string(KindOf(StepOfSpan(seen.span_id))) + " by key " +
                     std::to_string(KeyOfSpan(seen.span_id)) + ", trace id " +
                     (seen.trace_id_high != 0 ? "set" : "none") + "; handler's last call was " +
                     std::to_string(KindOf(last));
    }
  }

  // Nothing interrupts any more: the last write is what everybody reads.
  void CheckLastWrite() {
    const spanprof_context last = ToContext(kMainKey, UniformFields(kMainKey, kUpdate));
    EXPECT_EQ(spanprof_context_update(&last), 0);
    spanprof_context seen = {};
    seen.size = sizeof seen;
    EXPECT_EQ(spanprof_context_get(&seen), 0);
    EXPECT_TRUE(FromContext(seen) == FromContext(last));
    if (spanprof_is_otel_mode() != 0) {
      EXPECT_EQ(spanprof_context_get_by_tid(CurrentTid(), &seen), 0);
      EXPECT_TRUE(FromContext(seen) == FromContext(last));
    }
  }

  uint64_t wrong_ = 0, refused_ = 0;
  std::string first_wrong_;
};

TEST_P(NestedWriteStress, NeverCorruptsAContext) {
  if (kThreadSanitizer) {
    GTEST_SKIP() << "the thread sanitizer delays signals and calls the handler itself, without the "
                    "signal frame by which the library knows that it interrupts a write";
  }
  const auto [storage, stack] = GetParam();
  ASSERT_EQ(InitForStress(storage), 0) << spanprof_error();
  // Mapped before the thread's own stack, so that it lies above it on most systems: a handler's
  // frames are then above those of what it interrupted.
  AlternateStack alternate(stack);
  const SignalHandler handler(SIGUSR1, &OnSignal, stack);
  uint64_t number = kKinds;
  bool has_stack = false, has_storm = false;
  const StressRun run;
  std::thread([&] {
    has_stack = alternate.Install();
    if (!has_stack) return;
    spanprof_context_clear();
    {
      const SignalStorm storm(SIGUSR1);
      has_storm = storm.ok();
      const auto enough = [] {
        return handler_state.signals >= kEnoughSignals && handler_state.refused > 0;
      };
      while (has_storm && (number % 64 != 0 || !run.Done(enough()))) {
        WriteAndCheck(number, number % 3 == 0 ? 16384 : 0);
        ++number;
      }
    }
    CheckLastWrite();
    alternate.Remove();
  }).join();
  if (!has_stack) GTEST_SKIP() << "the system has no SS_AUTODISARM";
  ASSERT_TRUE(has_storm);
  run.ReportRate("writes", number);
  run.ReportRate("signals", handler_state.signals);
  run.Report("handler_writes_accepted", handler_state.accepted);
  run.Report("handler_writes_refused", handler_state.refused);
  EXPECT_GE(handler_state.signals, kEnoughSignals);
  EXPECT_GT(handler_state.refused, 0u);
  EXPECT_EQ(wrong_, 0u) << first_wrong_;
  EXPECT_EQ(refused_, 0u) << "of the main flow, which interrupts nobody";
  EXPECT_EQ(handler_state.wrong_after_write, 0u);
  EXPECT_EQ(CounterNamed("nested_write_refused"), handler_state.refused);
  EXPECT_EQ(CounterNamed("abandoned_write"), 0u) << "nobody left a handler by longjmp";
  EXPECT_EQ(CounterNamed("read_torn"), 0u);
}

std::string StackName(HandlerStack stack) {
  if (stack == HandlerStack::kNormal) return "NormalStack";
  return stack == HandlerStack::kAlternate ? "AlternateStack" : "DisarmedAlternateStack";
}

INSTANTIATE_TEST_SUITE_P(Storages, NestedWriteStress,
                         ::testing::Values(std::make_tuple("profiler", HandlerStack::kNormal),
                                           std::make_tuple("otel", HandlerStack::kNormal),
                                           std::make_tuple("otel", HandlerStack::kAlternate),
                                           std::make_tuple("profiler",
                                                           HandlerStack::kAlternateDisarmed)),
                         [](const auto& parameter) {
                           return std::string(std::get<0>(parameter.param)) +
                                  StackName(std::get<1>(parameter.param));
                         });

}  // namespace
}  // namespace spanprof::stress
