#include "format/pprof_label_reader.h"

#include <algorithm>
#include <limits>
#include <string>

#include "format/format.h"
#include "format/format_tags.h"
#include "format/format_text.h"
#include "format/pprof_fields.h"
#include "profile/names.h"

namespace spanprof::format::pprof {
namespace {

constexpr std::string_view kBadLabel = "pprof.bad_label";
constexpr std::string_view kDroppedLabel = "pprof.dropped_label";

}  // namespace

LabelReader::Meaning LabelReader::MeaningOfTag(std::string_view name) {
  const auto position = FindOrAddTag(profile_, name);
  if (!position) return {.role = Role::kNoPlace, .position = 0};
  return {.role = Role::kTag, .position = *position};
}

LabelReader::Meaning LabelReader::MeaningOf(uint64_t key, bool is_text) {
  const auto known = meanings_.find(key << 1 | static_cast<uint64_t>(is_text));
  if (known != meanings_.end()) return known->second;
  static constexpr struct {
    std::string_view name;
    Role role;
  } kRoles[] = {
      {kTraceIdLabel, Role::kTraceId},
      {kTraceIdHighLabel, Role::kTraceIdHigh},
      {kTraceIdLowLabel, Role::kTraceIdLow},
      {kSpanIdLabel, Role::kSpanId},
      {kRootSpanIdLabel, Role::kRootSpanId},
      {kEndpointLabel, Role::kEndpoint},
      {kThreadNameLabel, Role::kThreadName},
      {kThreadIdLabel, Role::kThreadId},
      {kThreadStateLabel, Role::kState},
      {kTimeLabel, Role::kTime},
      {kMinuteLabel, Role::kMinute},
      {kDatadogSpanId, Role::kOtherSpanId},
      {kDatadogRootSpanId, Role::kOtherRootSpanId},
      {kDatadogEndpoint, Role::kOtherEndpoint},
      {kPyroscopeSpanName, Role::kOtherEndpoint},
      {kDatadogThreadName, Role::kOtherThreadName},
      {kDatadogThreadId, Role::kOtherThreadId},
      {kDatadogTime, Role::kOtherTime},
  };
  const std::string_view name = Text(key);
  const auto* role = std::find_if(std::begin(kRoles), std::end(kRoles),
                                  [&](const auto& candidate) { return candidate.name == name; });
  Meaning meaning;
  if (role != std::end(kRoles)) {
    meaning.role = role->role;
  } else if (!is_text) {
    meaning.role = Role::kUnknownNumber;
  } else if (name.substr(0, kAttributePrefix.size()) == kAttributePrefix) {
    meaning = MeaningOfTag(name.substr(kAttributePrefix.size()));
  } else {
    meaning = MeaningOfTag(name);
  }
  meanings_.insert({key << 1 | static_cast<uint64_t>(is_text), meaning});
  return meaning;
}

// Ours are hex texts or numbers; other people's are numbers, or decimal texts in Go.
uint64_t LabelReader::ReadId(std::string_view text, uint64_t number, bool is_ours) {
  if (text.empty()) return number;
  const auto id = is_ours ? ParseHex(text) : ParseDecimal(text);
  if (!id) profile_.AddToCounter(kBadLabel, 1);
  return id.value_or(0);
}

void LabelReader::ReadTraceId(std::string_view text) {
  const auto high = ParseHex(text.substr(0, 16));
  const auto low = text.size() == 32 ? ParseHex(text.substr(16)) : std::nullopt;
  if (!high || !low) {
    profile_.AddToCounter(kBadLabel, 1);
    return;
  }
  seen_.context.trace_id_high = *high;
  seen_.context.trace_id_low = *low;
}

void LabelReader::Add(uint64_t key, uint64_t text_index, uint64_t number) {
  const std::string_view text = Text(text_index);
  const Meaning meaning = MeaningOf(key, text_index != 0);
  switch (meaning.role) {
    case Role::kTraceId:
      return ReadTraceId(text);
    case Role::kTraceIdHigh:
      seen_.context.trace_id_high = number;
      return;
    case Role::kTraceIdLow:
      seen_.context.trace_id_low = number;
      return;
    case Role::kSpanId:
      seen_.context.span_id = ReadId(text, number, true);
      return;
    case Role::kRootSpanId:
      seen_.context.root_span_id = ReadId(text, number, true);
      return;
    case Role::kEndpoint:
      seen_.endpoint = text;
      return;
    case Role::kThreadName:
      seen_.thread_name = text;
      return;
    case Role::kThreadId:
      seen_.thread_id = ReadId(text, number, false);
      return;
    case Role::kTime:
      seen_.time = number;
      return;
    case Role::kMinute:
      seen_.minute = number;
      return;
    case Role::kOtherSpanId:
      seen_.other_span_id = ReadId(text, number, false);
      return;
    case Role::kOtherRootSpanId:
      seen_.other_root_span_id = ReadId(text, number, false);
      return;
    case Role::kOtherEndpoint:
      seen_.other_endpoint = text;
      return;
    case Role::kOtherThreadName:
      seen_.other_thread_name = text;
      return;
    case Role::kOtherThreadId:
      seen_.other_thread_id = ReadId(text, number, false);
      return;
    case Role::kOtherTime:
      seen_.other_time = number;
      return;
    case Role::kState:
      seen_.state = profile::ThreadStateOf(text).value_or(profile::ThreadState::kUnknown);
      return;
    case Role::kTag:
      seen_.context.tags[meaning.position] = profile_.Intern(text);
      return;
    case Role::kUnknownNumber:
    case Role::kNoPlace:
      profile_.AddToCounter(kDroppedLabel, 1);
      return;
  }
}

void LabelReader::EndSample(profile::Sample& sample) {
  profile::Context& context = seen_.context;
  if (context.span_id == 0) context.span_id = seen_.other_span_id;
  if (context.root_span_id == 0) context.root_span_id = seen_.other_root_span_id;
  const std::string_view endpoint = seen_.endpoint.empty() ? seen_.other_endpoint : seen_.endpoint;
  if (!endpoint.empty()) {
    if (context.root_span_id != 0) {
      const profile::StringId known = profile_.EndpointOf(context.root_span_id);
      if (profile_.Text(known) != endpoint) profile_.SetEndpoint(context.root_span_id, endpoint);
    } else if (const Meaning tag = MeaningOfTag(kEndpointLabel); tag.role == Role::kTag) {
      // Someone else's: there is no root to look it up by.
      context.tags[tag.position] = profile_.Intern(endpoint);
    }
  }
  sample.context = profile_.AddContext(context);

  const uint64_t tid = seen_.thread_id != 0 ? seen_.thread_id : seen_.other_thread_id;
  constexpr uint64_t kMaxTid = std::numeric_limits<uint32_t>::max();
  if (tid > kMaxTid) profile_.AddToCounter(kBadLabel, 1);
  sample.thread =
      profile_.AddThread(static_cast<uint32_t>(tid > kMaxTid ? 0 : tid),
                         seen_.thread_name.empty() ? seen_.other_thread_name : seen_.thread_name);
  sample.state = seen_.state;
  sample.folded = seen_.minute != 0;
  sample.time_ns = seen_.minute != 0 ? seen_.minute
                   : seen_.time != 0 ? seen_.time
                                     : seen_.other_time;
}

}  // namespace spanprof::format::pprof
