// Writes a profile for the Firefox Profiler: a "processed profile", gzip'ed, of the version whose
// tables are shared by all threads (62; newer ones are upgraded to by the viewer).
//
// A thread there has samples of one weight only, so a thread of ours is one for each kind of sample
// that it has. The spans are markers on the first of these. Resource and counters stand under
// "More info".

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "format/firefox_tables.h"
#include "format/format.h"
#include "format/gzip.h"
#include "format/html_text.h"
#include "format/perfetto_timeline.h"
#include "profile/names.h"

namespace spanprof::format {
namespace {

constexpr int kProcessedVersion = 62;
constexpr int kGeckoVersion = 24;
constexpr size_t kMaxVisibleThreads = 15;
constexpr std::string_view kMarkerType = "span";

std::string Quoted(std::string_view text) {
  std::string json;
  AppendJsonText(json, text);
  return json;
}

class Writer {
 public:
  explicit Writer(const profile::Profile& profile)
      : profile_(profile), timelines_(BuildTimelines(profile)), tables_(profile) {}

  std::string Write() {
    JsonList threads;
    for (const ThreadTimeline& thread : timelines_.threads) AddThread(thread, threads);
    JsonList root;
    root.AddKey("meta", Meta());
    root.AddKey("libs", tables_.Libraries());
    root.AddKey("pages", "[]");
    root.AddKey("counters", "[]");
    root.AddKey("profilerOverhead", "[]");
    root.AddKey("threads", threads.AsArray());
    root.AddKey("shared", tables_.Write());
    return root.AsObject();
  }

 private:
  std::string TagKey(unsigned position) const { return "tag" + std::to_string(position); }

  std::string MarkerSchema() const {
    JsonList fields;
    const auto add_field = [&](std::string_view key, std::string_view label) {
      JsonList field;
      field.AddKey("key", Quoted(key));
      field.AddKey("label", Quoted(label));
      field.AddKey("format", R"("unique-string")");
      fields.AddRaw(field.AsObject());
    };
    add_field(kEndpointLabel, "Endpoint");
    add_field(kTraceIdLabel, "Trace");
    add_field(kSpanIdLabel, "Span");
    add_field(kRootSpanIdLabel, "Local root span");
    const size_t tags = std::min<size_t>(profile_.attribute_names.size(), profile::kTagCount);
    for (unsigned i = 0; i < tags; ++i) add_field(TagKey(i), TagName(profile_, i));
    JsonList schema;
    schema.AddKey("name", Quoted(kMarkerType));
    schema.AddKey("display", R"(["marker-chart","marker-table","timeline-overview"])");
    schema.AddKey("tooltipLabel", R"("{marker.name}")");
    schema.AddKey("tableLabel", Quoted("{marker.name} ({marker.data.span_id})"));
    schema.AddKey("chartLabel", R"("{marker.name}")");
    schema.AddKey("fields", fields.AsArray());
    return "[" + schema.AsObject() + "]";
  }

  // What the viewer shows under "More info".
  std::string Extra() const {
    JsonList resource;
    JsonList counters;
    const auto add_entry = [](JsonList& entries, std::string_view key, std::string_view value) {
      JsonList entry;
      entry.AddKey("label", Quoted(key));
      entry.AddKey("format", R"("string")");
      entry.AddKey("value", Quoted(value));
      entries.AddRaw(entry.AsObject());
    };
    for (const auto& [key, value] : profile_.resource) add_entry(resource, key, value);
    for (const auto& [name, count] : profile_.counters()) {
      add_entry(counters, name, std::to_string(count));
    }
    if (timelines_.spans_left_out != 0) {
      add_entry(counters, "firefox.spans_left_out", std::to_string(timelines_.spans_left_out));
    }
    JsonList sections;
    for (const auto& [label, entries] :
         {std::pair("Resource", &resource), std::pair("Dropped, and why", &counters)}) {
      JsonList section;
      section.AddKey("label", Quoted(label));
      section.AddKey("entries", entries->AsArray());
      sections.AddRaw(section.AsObject());
    }
    return sections.AsArray();
  }

  std::string Meta() const {
    uint64_t interval = 0;
    for (const profile::Period& period : profile_.periods) {
      if (interval == 0) interval = period.actual_ns;
    }
    JsonList meta;
    meta.AddKey("version", std::to_string(kGeckoVersion));
    meta.AddKey("preprocessedProfileVersion", std::to_string(kProcessedVersion));
    meta.AddKey("product", Quoted(timelines_.process));
    meta.AddKey("importedFrom", R"("spanprof")");
    meta.AddKey("interval", MillisecondsText(interval == 0 ? 1'000'000 : interval));
    meta.AddKey("startTime", MillisecondsText(timelines_.begin_ns));
    meta.AddKey("processType", "0");
    meta.AddKey("stackwalk", "1");
    meta.AddKey("debug", "false");
    meta.AddKey("symbolicated", "true");
    meta.AddKey("symbolicationNotSupported", "true");
    meta.AddKey("usesOnlyOneStackType", "true");
    meta.AddKey("sourceCodeIsNotOnSearchfox", "true");
    meta.AddKey("extensions", R"({"length":0,"id":[],"name":[],"baseURL":[]})");
    meta.AddKey("sampleUnits", R"({"time":"ms","eventDelay":"ms","threadCPUDelta":"ns"})");
    meta.AddKey("pausedRanges", "[]");
    meta.AddKey("categories", FirefoxTables::Categories());
    meta.AddKey("markerSchema", MarkerSchema());
    meta.AddKey("extra", Extra());
    // Those with the most samples are shown first.
    std::vector<std::pair<size_t, size_t>> by_size = sizes_of_threads_;
    std::sort(by_size.begin(), by_size.end(), [](const auto& a, const auto& b) {
      return a.first != b.first ? a.first > b.first : a.second < b.second;
    });
    by_size.resize(std::min(by_size.size(), kMaxVisibleThreads));
    JsonList visible;
    for (const auto& [size, index] : by_size) visible.AddNumber(index);
    meta.AddKey("initialVisibleThreads", visible.AsArray());
    if (!by_size.empty()) {
      meta.AddKey("initialSelectedThreads", "[" + std::to_string(by_size[0].second) + "]");
    }
    return meta.AsObject();
  }

  void AddThread(const ThreadTimeline& thread, JsonList& threads) {
    std::array<std::vector<uint32_t>, profile::kSampleKindCount> samples;
    for (const uint32_t index : thread.samples) {
      samples[static_cast<size_t>(profile_.samples()[index].kind)].push_back(index);
    }
    bool is_first = true;
    for (size_t kind = 0; kind < samples.size(); ++kind) {
      if (samples[kind].empty()) continue;
      const auto sample_kind = static_cast<profile::SampleKind>(kind);
      sizes_of_threads_.emplace_back(samples[kind].size(), sizes_of_threads_.size());
      const bool is_main = is_first && IsMain(thread);
      const std::string name = thread.name.empty() ? std::to_string(thread.tid) : thread.name;
      JsonList json;
      json.AddKey("name", Quoted(name + " (" + std::string(NameOf(sample_kind)) + ")"));
      json.AddKey("isMainThread", is_main ? "true" : "false");
      json.AddKey("processName", Quoted(timelines_.process));
      json.AddKey("processType", R"("default")");
      json.AddKey("pid", Quoted(std::to_string(timelines_.pid)));
      json.AddKey(
          "tid", Quoted(std::to_string(thread.tid) + (is_first ? "" : "." + std::to_string(kind))));
      json.AddKey("processStartupTime", "0");
      json.AddKey("processShutdownTime", "null");
      json.AddKey("registerTime", "0");
      json.AddKey("unregisterTime", "null");
      json.AddKey("pausedRanges", "[]");
      json.AddKey("showMarkersInTimeline", is_first ? "true" : "false");
      json.AddKey("samples", Samples(samples[kind], sample_kind));
      json.AddKey("markers", Markers(is_first ? thread.spans : std::vector<SpanInterval>()));
      threads.AddRaw(json.AsObject());
      is_first = false;
    }
  }

  // The viewer wants one of each process.
  bool IsMain(const ThreadTimeline& thread) const {
    const auto& threads = timelines_.threads;
    const bool is_known = std::any_of(threads.begin(), threads.end(), [&](const auto& candidate) {
      return candidate.tid == timelines_.pid;
    });
    return thread.tid == (is_known ? timelines_.pid : threads.front().tid);
  }

  std::string Samples(const std::vector<uint32_t>& indices, profile::SampleKind kind) const {
    uint64_t any_value = 0;
    for (const uint32_t index : indices) any_value |= profile_.samples()[index].value;
    const bool is_bytes = kind == profile::SampleKind::kAllocation;
    JsonList stacks;
    JsonList deltas;
    JsonList weights;
    uint64_t previous = timelines_.begin_ns;
    for (const uint32_t index : indices) {
      const profile::Sample& sample = profile_.samples()[index];
      stacks.AddRaw(sample.stack == profile::kNone ? "null" : std::to_string(sample.stack - 1));
      const uint64_t time = TimeOf(timelines_, sample);
      deltas.AddRaw(MillisecondsText(time - previous));
      previous = time;
      weights.AddRaw(any_value == 0 ? std::to_string(sample.count)
                     : is_bytes     ? std::to_string(sample.value)
                                    : MillisecondsText(sample.value));
    }
    JsonList table;
    table.AddKey("length", std::to_string(indices.size()));
    table.AddKey("stack", stacks.AsArray());
    table.AddKey("timeDeltas", deltas.AsArray());
    table.AddKey("weight", weights.AsArray());
    table.AddKey("weightType", any_value == 0 ? R"("samples")"
                               : is_bytes     ? R"("bytes")"
                                              : R"("tracing-ms")");
    return table.AsObject();
  }

  std::string MarkerData(const profile::Context& context) {
    JsonList data;
    const auto add = [&](std::string_view key, std::string_view text) {
      data.AddKey(key, std::to_string(tables_.Text(text)));
    };
    data.AddKey("type", Quoted(kMarkerType));
    const auto endpoint = profile_.EndpointOf(context.root_span_id);
    if (endpoint != profile::kNone) add(kEndpointLabel, profile_.Text(endpoint));
    if (context.trace_id_high != 0 || context.trace_id_low != 0) {
      add(kTraceIdLabel, profile::TraceIdText(context.trace_id_high, context.trace_id_low));
    }
    add(kSpanIdLabel, profile::SpanIdText(context.span_id));
    add(kRootSpanIdLabel, profile::SpanIdText(context.root_span_id));
    for (unsigned i = 0; i < profile::kTagCount; ++i) {
      if (context.tags[i] != profile::kNone) add(TagKey(i), profile_.Text(context.tags[i]));
    }
    return data.AsObject();
  }

  std::string Markers(const std::vector<SpanInterval>& spans) {
    JsonList begins;
    JsonList ends;
    JsonList names;
    JsonList phases;
    JsonList categories;
    JsonList data;
    for (const SpanInterval& span : spans) {
      const profile::Context& context = profile_.contexts()[span.context];
      begins.AddRaw(MillisecondsText(span.begin_ns - timelines_.begin_ns));
      ends.AddRaw(MillisecondsText(span.end_ns - timelines_.begin_ns));
      names.AddNumber(tables_.Text(SpanTitle(profile_, context)));
      phases.AddNumber(1);  // an interval
      categories.AddNumber(0);
      data.AddRaw(MarkerData(context));
    }
    JsonList table;
    table.AddKey("length", std::to_string(spans.size()));
    table.AddKey("startTime", begins.AsArray());
    table.AddKey("endTime", ends.AsArray());
    table.AddKey("name", names.AsArray());
    table.AddKey("phase", phases.AsArray());
    table.AddKey("category", categories.AsArray());
    table.AddKey("data", data.AsArray());
    return table.AsObject();
  }

  const profile::Profile& profile_;
  Timelines timelines_;
  FirefoxTables tables_;
  std::vector<std::pair<size_t, size_t>> sizes_of_threads_;  // with the index
};

}  // namespace

Result<std::string> WriteFirefox(const profile::Profile& profile, const WriteOptions& /*options*/) {
  return Compress(Writer(profile).Write());
}

}  // namespace spanprof::format
