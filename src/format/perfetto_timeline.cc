#include "format/perfetto_timeline.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <string_view>
#include <utility>

#include "format/format_text.h"
#include "profile/names.h"

namespace spanprof::format {
namespace {

std::string_view ResourceValue(const profile::Profile& profile, std::string_view key) {
  for (const profile::Attribute& attribute : profile.resource) {
    if (attribute.key == key) return attribute.value;
  }
  return {};
}

void SetProcess(const profile::Profile& profile, Timelines& timelines) {
  const auto pid = ParseDecimal(ResourceValue(profile, "process.pid"));
  timelines.pid = pid && *pid < kFirstMadeUpTid ? static_cast<uint32_t>(*pid) : 0;
  timelines.process = ResourceValue(profile, "service.name");
  if (timelines.process.empty()) {
    timelines.process = ResourceValue(profile, "process.executable.name");
  }
  if (timelines.process.empty()) timelines.process = "spanprof";
}

void SetTimes(const profile::Profile& profile, Timelines& timelines) {
  uint64_t first = std::numeric_limits<uint64_t>::max();
  uint64_t last = 0;
  for (const profile::Sample& sample : profile.samples()) {
    if (sample.time_ns == 0) continue;
    first = std::min(first, sample.time_ns);
    last = std::max(last, sample.time_ns);
  }
  if (profile.start_time_ns != 0) first = std::min(first, profile.start_time_ns);
  if (first > last && profile.start_time_ns == 0) first = 0;  // no times at all
  timelines.begin_ns = first;
  timelines.end_ns = std::max(first, last);
  const uint64_t end = profile.start_time_ns + profile.duration_ns;
  if (end >= profile.start_time_ns) timelines.end_ns = std::max(timelines.end_ns, end);
}

// The time that one of the samples stands for which this one counts.
uint64_t SpanOfOne(const profile::Sample& sample) {
  if (sample.kind == profile::SampleKind::kAllocation) return 0;
  return sample.value / std::max<uint64_t>(1, sample.count);
}

void AddSpans(const profile::Profile& profile, const Timelines& timelines, ThreadTimeline& thread) {
  SpanInterval open;
  uint64_t reaches_to = 0;
  const auto close = [&](uint64_t before) {
    if (open.context != profile::kNone) {
      open.end_ns = std::max(open.begin_ns, std::min(before, reaches_to));
      thread.spans.push_back(open);
    }
    open = {};
  };
  for (const uint32_t index : thread.samples) {
    const profile::Sample& sample = profile.samples()[index];
    if (sample.folded || sample.time_ns == 0) continue;
    if (sample.context != open.context) {
      close(sample.time_ns);
      open = {.context = sample.context, .begin_ns = sample.time_ns};
    }
    const uint64_t left = std::max(timelines.end_ns, sample.time_ns) - sample.time_ns;
    reaches_to = sample.time_ns + std::min(left, SpanOfOne(sample));
  }
  close(std::numeric_limits<uint64_t>::max());
}

void KeepLongestSpans(Timelines& timelines, size_t max_spans) {
  std::vector<uint64_t> lengths;
  for (const ThreadTimeline& thread : timelines.threads) {
    for (const SpanInterval& span : thread.spans) lengths.push_back(span.end_ns - span.begin_ns);
  }
  if (lengths.size() <= max_spans) return;
  timelines.spans_left_out = lengths.size() - max_spans;
  const auto last = lengths.begin() + static_cast<std::ptrdiff_t>(max_spans);
  std::nth_element(lengths.begin(), last, lengths.end(), std::greater<>());
  const uint64_t limit = max_spans == 0 ? std::numeric_limits<uint64_t>::max() : *last;
  // Those that are longer than this one all fit; of those of its length, the first that do.
  size_t longer = 0;
  for (const uint64_t length : lengths) longer += length > limit ? 1 : 0;
  size_t room_for_equal = max_spans - longer;
  for (ThreadTimeline& thread : timelines.threads) {
    std::erase_if(thread.spans, [&](const SpanInterval& span) {
      const uint64_t length = span.end_ns - span.begin_ns;
      if (length != limit) return length < limit;
      if (room_for_equal == 0) return true;
      --room_for_equal;
      return false;
    });
  }
}

}  // namespace

uint64_t TimeOf(const Timelines& timelines, const profile::Sample& sample) {
  return std::max(timelines.begin_ns, sample.time_ns);
}

Timelines BuildTimelines(const profile::Profile& profile, size_t max_spans) {
  Timelines timelines;
  SetProcess(profile, timelines);
  SetTimes(profile, timelines);
  // A thread that was renamed is one thread; those without a tid are told apart by name.
  std::map<uint32_t, uint32_t> number_of_tid;
  std::vector<uint32_t> number_of_thread;
  for (profile::ThreadId id = 0; id < profile.threads().size(); ++id) {
    const uint32_t known = profile.threads()[id].tid;
    const uint32_t tid = known != 0 ? known : kFirstMadeUpTid + id;
    const auto [entry, is_new] =
        number_of_tid.emplace(tid, static_cast<uint32_t>(timelines.threads.size()));
    if (is_new) timelines.threads.push_back({.tid = tid, .name = {}, .samples = {}, .spans = {}});
    number_of_thread.push_back(entry->second);
  }
  for (uint32_t i = 0; i < profile.samples().size(); ++i) {
    timelines.threads[number_of_thread[profile.samples()[i].thread]].samples.push_back(i);
  }
  std::erase_if(timelines.threads, [](const ThreadTimeline& t) { return t.samples.empty(); });
  std::sort(timelines.threads.begin(), timelines.threads.end(),
            [](const ThreadTimeline& a, const ThreadTimeline& b) { return a.tid < b.tid; });
  for (ThreadTimeline& thread : timelines.threads) {
    std::sort(thread.samples.begin(), thread.samples.end(), [&](uint32_t a, uint32_t b) {
      return std::pair(profile.samples()[a].time_ns, a) <
             std::pair(profile.samples()[b].time_ns, b);
    });
    const profile::Sample& last = profile.samples()[thread.samples.back()];
    thread.name = profile.Text(profile.threads()[last.thread].name);
    AddSpans(profile, timelines, thread);
  }
  KeepLongestSpans(timelines, max_spans);
  return timelines;
}

std::string SpanTitle(const profile::Profile& profile, const profile::Context& context) {
  const std::string_view endpoint = profile.Text(profile.EndpointOf(context.root_span_id));
  if (!endpoint.empty()) return std::string(endpoint);
  return "span " + profile::SpanIdText(context.span_id);
}

}  // namespace spanprof::format
