// The interface of this copy's own core: plain functions over ThisCore(), with the C interface's
// conventions (negative errno values, null checks, the size field).

#include <cstring>
#include <errno.h>

#include "context/core.h"
#include "context/core_interface.h"
#include "context/counters.h"
#include "context/profiler_interface.h"
#include "context/thread_locals.h"

namespace spanprof::context {
namespace {

// The first version of spanprof_context; later ones only add fields at the end.
constexpr uint32_t kSmallestContext = sizeof(spanprof_context);

char last_error[512];

bool Valid(const spanprof_context* context) {
  return context != nullptr && context->size >= kSmallestContext;
}

std::string_view View(const char* text, size_t length) {
  return text == nullptr ? std::string_view() : std::string_view(text, length);
}

int Init(const char* options) {
  const Result<void> result = ThisCore().Init(options == nullptr ? "" : options);
  last_error[0] = '\0';
  if (result) return 0;
  SetLastError(TextOf(result.error()).c_str());
  return result.error().code == 0 ? -EINVAL : -result.error().code;
}

int Get(spanprof_context* out) {
  if (!Valid(out)) return -EINVAL;
  Core& core = ThisCore();
  const uint32_t size = out->size;
  *out = {size, 0, 0, 0, 0, 0, {}};
  if (!core.initialized()) return -ENODEV;
  internal::ThreadContext* context = spanprof_thread_v1;
  if (!IsAttached(context)) return 0;
  // In a forked child, or after another init, that has not seen a call of this thread yet.
  if (!core.IsOfThisGeneration(*context)) return 0;
  const uint64_t start = core.measures_latency() ? Ticks() : 0;
  const ReadStatus status = ReadOwnContext(*context, out);
  if (start != 0) core.read_latency().Record(Ticks() - start);
  if (status == ReadStatus::kOk) return 0;
  Count(status == ReadStatus::kTorn      ? Counter::kReadTorn
        : status == ReadStatus::kChanged ? Counter::kReadChanged
                                         : Counter::kReadInProgress);
  *out = {size, 0, 0, 0, 0, 0, {}};
  return -EAGAIN;
}

int GetByTid(int tid, spanprof_context* out) {
  if (!Valid(out)) return -EINVAL;
  const uint32_t size = out->size;
  const int result = ThisCore().GetByTid(tid, out);
  if (result != 0) *out = {size, 0, 0, 0, 0, 0, {}};
  return result;
}

void Swap(const spanprof_context* in, spanprof_context* out) {
  ThisCore().Swap(Valid(in) ? in : nullptr, out);
}

int Latency(int which, spanprof_latency_summary* out) {
  if (out == nullptr || which < SPANPROF_LATENCY_WRITE || which > SPANPROF_LATENCY_HANDLER_READ) {
    return -EINVAL;
  }
  Core& core = ThisCore();
  const LatencyHistogram& histogram =
      which == SPANPROF_LATENCY_WRITE ? core.write_latency() : core.read_latency();
  const double scale = NanosecondsPerTick();
  const auto nanoseconds = [&histogram, scale](double share) {
    return static_cast<uint64_t>(static_cast<double>(histogram.Quantile(share)) * scale);
  };
  *out = {histogram.count(), nanoseconds(0.5), nanoseconds(0.99), nanoseconds(0.999)};
  return 0;
}

int NoProfiler() {
  SetLastError("this copy of spanprof was built without its profiler");
  return -ENOTSUP;
}

}  // namespace

void SetLastError(const char* text) {
  strncpy(last_error, text, sizeof last_error - 1);
  last_error[sizeof last_error - 1] = '\0';
}

constexpr ProfilerInterface kNoProfiler = {
    .start = [](const char*) { return NoProfiler(); },
    .stop = NoProfiler,
    .dump = [](const char*) { return NoProfiler(); },
    .is_running = [] { return 0; },
    .finish_before_exit = [] {},
    .resume = [] {},
    .thread_started = [] {},
    .thread_ended = [] {},
    .answer_sigaction = [](int, const struct sigaction*, struct sigaction*) { return 0; },
    .take_waited_signal = [](int, const siginfo_t*) { return 0; },
    .use_runtime = [](sampling::Runtime&) { return NoProfiler(); },
};

const CoreInterface& ThisCoreInterface() {
  static constexpr CoreInterface kInterface = {
      .version = kCoreInterfaceVersion,
      .size = sizeof(CoreInterface),
      .attach_current_thread =
          [] { return ThisCore().AttachCurrentThread(internal::StackPointer()); },
      .init = Init,
      .is_initialized = [] { return ThisCore().initialized() ? 1 : 0; },
      .is_otel_mode = [] { return ThisCore().publishes_outside() ? 1 : 0; },
      .shutdown = [] { ThisCore().Shutdown(); },
      .error = []() -> const char* { return last_error; },
      .context_set = [](uint64_t span, uint64_t root) { ThisCore().Set(span, root); },
      .context_set_trace = [](uint64_t high, uint64_t low, uint64_t span,
                              uint64_t root) { ThisCore().SetTrace(high, low, span, root); },
      .intern = [](const char* value,
                   size_t length) { return ThisCore().Intern(View(value, length)); },
      .context_set_tag = [](unsigned slot, const char* value,
                            size_t length) { return ThisCore().SetTag(slot, View(value, length)); },
      .context_set_tag_id = [](unsigned slot,
                               uint32_t id) { return ThisCore().SetTagId(slot, id); },
      .context_update =
          [](const spanprof_context* context) {
            return Valid(context) ? ThisCore().Update(*context) : -EINVAL;
          },
      .context_swap = Swap,
      .context_get = Get,
      .context_get_by_tid = GetByTid,
      .context_clear = [] { ThisCore().Clear(); },
      .endpoint_set =
          [](uint64_t root, const char* name, size_t length) {
            return ThisCore().SetEndpoint(root, View(name, length));
          },
      .attribute = [](const char* name,
                      size_t length) { return ThisCore().AddAttribute(View(name, length)); },
      .resource_set =
          [](const char* key, const char* value) {
            return key == nullptr || value == nullptr ? -EINVAL
                                                      : ThisCore().SetResource(key, value);
          },
      .counter_name = CounterName,
      .counter_value = CounterValue,
      .latency = Latency,
      .profiler = []() -> const ProfilerInterface& {
        return *profiler_interface.load(std::memory_order_acquire);
      },
  };
  return kInterface;
}

}  // namespace spanprof::context
