#include "format/pprof_labels.h"

#include <algorithm>

#include "format/format_tags.h"
#include "format/pprof_fields.h"
#include "profile/names.h"

namespace spanprof::format::pprof {

bool IsReservedLabel(std::string_view name) {
  static constexpr std::string_view kReserved[] = {
      kTraceIdLabel,    kSpanIdLabel,      kRootSpanIdLabel,   kEndpointLabel,   kThreadNameLabel,
      kThreadIdLabel,   kThreadStateLabel, kTimeLabel,         kMinuteLabel,     kTraceIdHighLabel,
      kTraceIdLowLabel, kDatadogSpanId,    kDatadogRootSpanId, kDatadogEndpoint, kDatadogThreadName,
      kDatadogThreadId, kDatadogTime,      kPyroscopeSpanName};
  return std::find(std::begin(kReserved), std::end(kReserved), name) != std::end(kReserved);
}

LabelMaker::LabelMaker(const profile::Profile& profile, const WriteOptions& options)
    : profile_(profile) {
  for (const LabelScheme scheme : options.labels) {
    datadog_ |= scheme == LabelScheme::kDatadog;
    pyroscope_ |= scheme == LabelScheme::kPyroscope;
  }
  for (unsigned i = 0; i < profile::kTagCount; ++i) {
    std::string name = TagName(profile, i);
    const bool ambiguous = IsReservedLabel(name) || name.starts_with(kAttributePrefix);
    tag_keys_.push_back(ambiguous ? std::string(kAttributePrefix) + name : std::move(name));
  }
}

void LabelMaker::AddText(std::string_view key, std::string_view text) {
  if (!text.empty()) labels_.push_back({.key = key, .text = text, .number = 0, .unit = {}});
}

void LabelMaker::AddNumber(std::string_view key, uint64_t number, std::string_view unit) {
  if (number != 0) labels_.push_back({.key = key, .text = {}, .number = number, .unit = unit});
}

void LabelMaker::AddContext(const profile::Context& context) {
  const bool has_trace = context.trace_id_high != 0 || context.trace_id_low != 0;
  trace_id_ = has_trace ? profile::TraceIdText(context.trace_id_high, context.trace_id_low) : "";
  span_id_ = context.span_id != 0 ? profile::SpanIdText(context.span_id) : "";
  root_span_id_ = context.root_span_id != 0 ? profile::SpanIdText(context.root_span_id) : "";
  const std::string_view endpoint = profile_.Text(profile_.EndpointOf(context.root_span_id));

  AddText(kSpanIdLabel, span_id_);
  if (pyroscope_) {
    // Pyroscope makes a series of each set of texts, span_id excepted, and drops numbers. An id of
    // which there is one a request must not be a text then. (It would take "profile_id" for a
    // second span_id.)
    AddNumber(kTraceIdHighLabel, context.trace_id_high);
    AddNumber(kTraceIdLowLabel, context.trace_id_low);
    AddNumber(kRootSpanIdLabel, context.root_span_id);
    AddText(kPyroscopeSpanName, endpoint);
  } else {
    AddText(kTraceIdLabel, trace_id_);
    AddText(kRootSpanIdLabel, root_span_id_);
  }
  AddText(kEndpointLabel, endpoint);
  for (unsigned i = 0; i < profile::kTagCount; ++i) {
    AddText(tag_keys_[i], profile_.Text(context.tags[i]));
  }
  if (datadog_) {
    AddNumber(kDatadogSpanId, context.span_id);
    AddNumber(kDatadogRootSpanId, context.root_span_id);
    AddText(kDatadogEndpoint, endpoint);
  }
}

void LabelMaker::AddThread(const profile::Thread& thread) {
  AddText(kThreadNameLabel, profile_.Text(thread.name));
  AddNumber(kThreadIdLabel, thread.tid);
  if (datadog_) {
    AddText(kDatadogThreadName, profile_.Text(thread.name));
    AddNumber(kDatadogThreadId, thread.tid);
  }
}

void LabelMaker::AddTime(const profile::Sample& sample) {
  AddNumber(sample.folded ? kMinuteLabel : kTimeLabel, sample.time_ns, "nanoseconds");
  if (datadog_ && !sample.folded) AddNumber(kDatadogTime, sample.time_ns);
}

const std::vector<Label>& LabelMaker::LabelsOf(const profile::Sample& sample) {
  labels_.clear();
  AddContext(profile_.contexts()[sample.context]);
  AddThread(profile_.threads()[sample.thread]);
  AddText(kThreadStateLabel, NameOf(sample.state));
  AddTime(sample);
  return labels_;
}

}  // namespace spanprof::format::pprof
