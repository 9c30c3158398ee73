// Contexts, set all the time, are what was set.

#include <cerrno>
#include <thread>
#include <vector>

#include "scenario.h"
#include <spanprof/context.h>

namespace spanprof::hostile {

#if defined(SPANPROF_HOSTILE_STRANGER)

const Scenario kSpans[] = {{nullptr, nullptr}};

#else

namespace {

void SwitchSpans(uint64_t thread_number) {
  static const uint32_t tag = spanprof_intern("hostile", 7);
  for (uint64_t i = 1; i <= 20'000; ++i) {
    const uint64_t span = thread_number * 1'000'000 + i;
    spanprof_context wanted = {};
    wanted.size = sizeof wanted;
    wanted.trace_id_high = span * 3;
    wanted.trace_id_low = span * 5;
    wanted.span_id = span;
    wanted.root_span_id = span * 7;
    if (i % 3 == 0) {
      wanted.tags[0] = tag;
      ExpectEqual(spanprof_context_update(&wanted), 0, "spanprof_context_update");
    } else {
      spanprof_context_set_trace(wanted.trace_id_high, wanted.trace_id_low, span, span * 7);
    }
    spanprof_context seen = {};
    seen.size = sizeof seen;
    ExpectEqual(spanprof_context_get(&seen), 0, "spanprof_context_get");
    const uint32_t wanted_tag = i >= 3 ? tag : 0;  // a tag stays until it is changed
    const bool right = seen.tags[0] == wanted_tag && seen.span_id == span &&
                       seen.root_span_id == span * 7 && seen.trace_id_high == span * 3 &&
                       seen.trace_id_low == span * 5;
    Expect(right, "the context that was set", static_cast<int64_t>(seen.span_id),
           static_cast<int64_t>(span));
  }
  spanprof_context_clear();
}

void SwitchesSpansOnThreads() {
  std::vector<std::thread> threads;
  for (uint64_t i = 1; i <= 3; ++i) threads.emplace_back(SwitchSpans, i);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

const Scenario kSpans[] = {
    {"switches spans on threads", SwitchesSpansOnThreads},
    {nullptr, nullptr},
};

#endif

}  // namespace spanprof::hostile
