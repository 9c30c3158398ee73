#include "format/jfr_profile_reader.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "format/jfr_schema.h"
#include "profile/names.h"

namespace spanprof::format::jfr {
namespace {

using profile::SampleKind;
using profile::ThreadState;
using Use = ConstantMemo::Use;

__extension__ using Wide = __int128;

constexpr size_t kMaxEnumName = 64;
constexpr size_t kMaxThreadName = 4096;
constexpr size_t kTraceIdSize = 32;
constexpr uint64_t kNsPerSecond = 1'000'000'000;

constexpr std::string_view kCpuTimeSampleName = "jdk.CPUTimeSample";

// The events that are samples: ours and the JDK's, async-profiler's and Datadog's.
struct SampleEvent {
  std::string_view name;
  SampleKind kind;
};
constexpr std::array kSampleEvents = {
    SampleEvent{kExecutionSampleName, SampleKind::kCpu},
    SampleEvent{kWallSampleName, SampleKind::kWall},
    SampleEvent{kAllocationSampleName, SampleKind::kAllocation},
    SampleEvent{kLockName, SampleKind::kLock},
    SampleEvent{kCpuTimeSampleName, SampleKind::kCpu},
    SampleEvent{"jdk.ObjectAllocationInNewTLAB", SampleKind::kAllocation},
    SampleEvent{"jdk.ObjectAllocationOutsideTLAB", SampleKind::kAllocation},
    SampleEvent{"profiler.WallClockSample", SampleKind::kWall},
    SampleEvent{"datadog.ExecutionSample", SampleKind::kCpu},
    SampleEvent{"datadog.MethodSample", SampleKind::kWall}};

ThreadState StateOf(std::string_view name) {
  if (name == "STATE_RUNNABLE") return ThreadState::kRunning;
  if (name == "STATE_SLEEPING") return ThreadState::kSleeping;
  if (name.starts_with("STATE_BLOCKED")) return ThreadState::kBlocked;
  if (name.starts_with("STATE_IN_OBJECT_WAIT") || name.starts_with("STATE_PARKED")) {
    return ThreadState::kWaiting;
  }
  return ThreadState::kUnknown;
}

// "20 ms" of the JDK, "10000000" of async-profiler; 0 for what is no time.
uint64_t ParsePeriod(std::string_view text) {
  uint64_t number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return 0;
  std::string_view unit(rest, static_cast<size_t>(text.data() + text.size() - rest));
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  if (unit.empty() || unit == "ns") return number;
  if (unit == "us") return number * 1'000;
  if (unit == "ms") return number * 1'000'000;
  if (unit == "s") return number * kNsPerSecond;
  return 0;
}

bool ParseTraceId(std::string_view text, profile::Context& context) {
  if (text.size() != kTraceIdSize) return false;
  const auto parse = [](std::string_view digits, uint64_t& id) {
    const auto [rest, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), id, 16);
    return error == std::errc() && rest == digits.data() + digits.size();
  };
  uint64_t high = 0;
  uint64_t low = 0;
  if (!parse(text.substr(0, 16), high) || !parse(text.substr(16), low)) return false;
  context.trace_id_high = high;
  context.trace_id_low = low;
  return true;
}

}  // namespace

ProfileReader::ProfileReader(const ChunkContents& contents, const ChunkHeader& header,
                             profile::Profile& profile)
    : contents_(contents),
      header_(header),
      profile_(profile),
      memo_(contents.pools().size()),
      stacks_(contents, memo_, profile) {
  for (const Type& type : contents.metadata().types()) roles_.push_back(RoleOf(type));
  profile.start_time_ns = header.start_ns;
  profile.duration_ns = header.duration_ns;
  TakeAttributeNames();
}

ProfileReader::Role ProfileReader::RoleOf(const Type& type) {
  Role role;
  if (type.super_type != kEventSuperType) return role;
  for (const SampleEvent& event : kSampleEvents) {
    if (event.name == type.name) role.sample = event.kind;
  }
  if (type.name == kCounterName) role.fact = Role::Fact::kCounter;
  if (type.name == kPeriodName) role.fact = Role::Fact::kPeriod;
  if (type.name == kEndpointName) role.fact = Role::Fact::kEndpoint;
  if (type.name == kResourceName) role.fact = Role::Fact::kResource;
  if (type.name == "jdk.ActiveSetting") role.fact = Role::Fact::kSetting;
  return role;
}

// The attributes are the fields behind `endpoint`, of contexts or of samples in the flat form.
void ProfileReader::TakeAttributeNames() {
  std::optional<uint32_t> type = contents_.metadata().FindName(kContextName);
  if (!type) type = contents_.metadata().FindName(kExecutionSampleName);
  if (!type) return;
  const std::vector<Field>& fields = contents_.metadata().types()[*type].fields;
  auto field = std::find_if(fields.begin(), fields.end(),
                            [](const Field& f) { return f.name == kEndpointField; });
  if (field == fields.end()) return;
  for (++field; field != fields.end(); ++field) {
    if (profile_.attribute_names.size() == profile::kTagCount) break;
    profile_.attribute_names.emplace_back(field->label);
  }
}

bool ProfileReader::ReadFact(const EventSpan& event) {
  const std::optional<uint32_t> type = contents_.metadata().FindId(event.type);
  if (!type) return true;
  if (contents_.metadata().types()[*type].name == kCpuTimeSampleName) has_cpu_time_samples_ = true;
  if (roles_[*type].fact == Role::Fact::kNone) return true;
  if (!contents_.Read(*type, event.fields, event.end, record_)) return false;
  switch (roles_[*type].fact) {
    case Role::Fact::kCounter:
      ReadCounter(record_);
      break;
    case Role::Fact::kPeriod:
      ReadPeriod(record_);
      break;
    case Role::Fact::kSetting:
      ReadSetting(record_);
      break;
    case Role::Fact::kEndpoint:
      if (const FieldValue* endpoint = record_.Find(kEndpointField)) {
        SetEndpoint(record_.Number("localRootSpanId", 0), *endpoint);
      }
      break;
    case Role::Fact::kResource: {
      const FieldValue* key = record_.Find("key");
      const FieldValue* value = record_.Find("value");
      if (key != nullptr && value != nullptr) {
        profile_.resource.push_back({.key = contents_.Text(*key), .value = contents_.Text(*value)});
        fact_bytes_ += sizeof(profile::Attribute) + profile_.resource.back().key.size() +
                       profile_.resource.back().value.size();
      }
      break;
    }
    case Role::Fact::kNone:
      break;
  }
  return true;
}

void ProfileReader::ReadCounter(const Record& record) {
  if (const FieldValue* name = record.Find("name")) {
    counters_.emplace_back(contents_.Text(*name), record.Number("value", 0));
    fact_bytes_ += 2 * (sizeof(counters_.back()) + counters_.back().first.size());
  }
}

void ProfileReader::ReadPeriod(const Record& record) {
  const FieldValue* name = record.Find("kind");
  if (name == nullptr) return;
  if (const auto kind = profile::SampleKindOf(contents_.Text(*name, kMaxEnumName))) {
    profile_.periods[static_cast<size_t>(*kind)] = {.requested_ns = record.Number("requested", 0),
                                                    .actual_ns = record.Number("actual", 0)};
  }
}

// How others say how often they sampled.
void ProfileReader::ReadSetting(const Record& record) {
  const FieldValue* name = record.Find("name");
  const FieldValue* value = record.Find("value");
  if (name == nullptr || value == nullptr) return;
  const std::string setting = contents_.Text(*name, kMaxEnumName);
  if (setting != "period" && setting != "interval") return;
  const std::optional<uint32_t> type = contents_.metadata().FindId(record.Number("id", 0));
  if (!type || !roles_[*type].sample) return;
  const uint64_t period = ParsePeriod(contents_.Text(*value, kMaxEnumName));
  if (period == 0) return;
  profile_.periods[static_cast<size_t>(*roles_[*type].sample)] = {.requested_ns = period,
                                                                  .actual_ns = period};
}

bool ProfileReader::ReadSample(const EventSpan& event) {
  const std::optional<uint32_t> type = contents_.metadata().FindId(event.type);
  if (!type || !roles_[*type].sample) return true;
  if (has_cpu_time_samples_ && contents_.metadata().types()[*type].name == kExecutionSampleName) {
    return true;
  }
  if (!contents_.Read(*type, event.fields, event.end, record_)) return false;
  profile::Sample sample;
  sample.kind = *roles_[*type].sample;
  sample.time_ns = UnixTime(record_.Number("startTime", 0));
  const FieldValue* thread = record_.Find("sampledThread");
  if (thread == nullptr) thread = record_.Find("eventThread");
  if (thread != nullptr) sample.thread = Thread(*thread);
  if (const FieldValue* stack = record_.Find("stackTrace")) sample.stack = stacks_.Stack(*stack);
  if (const FieldValue* state = record_.Find("state")) sample.state = State(*state);
  sample.context = Context(record_);
  ReadCountAndValue(record_, sample);
  profile_.AddSample(sample);
  return true;
}

void ProfileReader::ReadCountAndValue(const Record& record, profile::Sample& sample) {
  sample.folded = record.Number("folded", 0) != 0;
  switch (sample.kind) {
    case SampleKind::kAllocation:
      sample.count = record.Number("samples", 1);
      sample.value =
          record.Number("weight", record.Number("tlabSize", record.Number("allocationSize", 0)));
      return;
    case SampleKind::kLock:
      sample.count = record.Number("samples", 1);
      if (const FieldValue* duration = record.Find("duration")) {
        sample.value = Nanoseconds(*duration);
      }
      return;
    case SampleKind::kCpu:
    case SampleKind::kWall:
      break;
  }
  sample.count = record.Number("weight", record.Number("samples", 1));
  sample.value = sample.count * profile_.periods[static_cast<size_t>(sample.kind)].actual_ns;
  for (const std::string_view name : {"samplingPeriod", "timeSpan"}) {
    if (const FieldValue* span = record.Find(name)) sample.value = Nanoseconds(*span);
  }
  const FieldValue* value = record.Find("value");
  if (value == nullptr) return;
  if (!value->field->pooled) {
    sample.value = value->number;
    return;
  }
  const std::optional<size_t> constant = contents_.FindConstant(*value);
  if (constant && contents_.ReadConstant(*constant, value_record_)) {
    sample.value = value_record_.Number("nanoseconds", 0);
    sample.folded = value_record_.Number("folded", 0) != 0;
  }
}

profile::ThreadId ProfileReader::Thread(const FieldValue& value) {
  const std::optional<size_t> position = contents_.FindConstant(value);
  if (!position) return profile::kNone;
  if (const auto known = memo_.Find(Use::kThread, *position)) return *known;
  Record record;
  if (!contents_.ReadConstant(*position, record)) return profile::kNone;
  std::string name;
  for (const std::string_view field : {"osName", "javaName"}) {
    const FieldValue* found = record.Find(field);
    if (found == nullptr) continue;
    if (std::string text = contents_.Text(*found, kMaxThreadName); !text.empty())
      name = std::move(text);
  }
  const auto tid = static_cast<uint32_t>(record.Number("osThreadId", 0));
  return memo_.Store(Use::kThread, *position, profile_.AddThread(tid, name));
}

ThreadState ProfileReader::State(const FieldValue& value) {
  const std::optional<size_t> position = contents_.FindConstant(value);
  if (!position) return ThreadState::kUnknown;
  if (const auto known = memo_.Find(Use::kState, *position)) {
    return static_cast<ThreadState>(*known);
  }
  const ThreadState state = StateOf(contents_.TextOfConstant(*position, kMaxEnumName));
  memo_.Store(Use::kState, *position, static_cast<uint32_t>(state));
  return state;
}

profile::ContextId ProfileReader::Context(const Record& event) {
  const FieldValue* pooled = event.Find("context");
  if (pooled == nullptr) {
    return event.Find("spanId") == nullptr ? profile::kNone : ReadContext(event);
  }
  if (contents_.metadata().types()[pooled->field->type].name != kContextName) return profile::kNone;
  const std::optional<size_t> position = contents_.FindConstant(*pooled);
  if (!position) return profile::kNone;
  if (const auto known = memo_.Find(Use::kContext, *position)) return *known;
  Record record;
  if (!contents_.ReadConstant(*position, record)) return profile::kNone;
  return memo_.Store(Use::kContext, *position, ReadContext(record));
}

profile::ContextId ProfileReader::ReadContext(const Record& record) {
  profile::Context context;
  context.span_id = record.Number("spanId", 0);
  context.root_span_id = record.Number("localRootSpanId", 0);
  if (const FieldValue* trace_id = record.Find("traceId")) {
    ParseTraceId(contents_.Text(*trace_id, kTraceIdSize), context);
  }
  if (const FieldValue* endpoint = record.Find(kEndpointField)) {
    SetEndpoint(context.root_span_id, *endpoint);
    const auto first = static_cast<size_t>(endpoint - record.values.data()) + 1;
    for (size_t i = first; i < record.values.size() && i - first < profile::kTagCount; ++i) {
      context.tags[i - first] = stacks_.Text(record.values[i]);
    }
  }
  return profile_.AddContext(context);
}

void ProfileReader::SetEndpoint(uint64_t root_span_id, const FieldValue& endpoint) {
  const profile::StringId text = stacks_.Text(endpoint);
  if (text == profile::kNone || profile_.EndpointOf(root_span_id) == text) return;
  profile_.SetEndpoint(root_span_id, std::string(profile_.Text(text)));
}

void ProfileReader::Finish() {
  for (const auto& [name, value] : counters_) profile_.AddToCounter(name, value);
}

uint64_t ProfileReader::UnixTime(uint64_t ticks) const {
  const auto elapsed = static_cast<int64_t>(ticks - header_.start_ticks);
  if (header_.ticks_per_second == kNsPerSecond) {
    return header_.start_ns + static_cast<uint64_t>(elapsed);
  }
  const Wide ns = Wide{elapsed} * kNsPerSecond / header_.ticks_per_second;
  return header_.start_ns + static_cast<uint64_t>(ns);
}

uint64_t ProfileReader::Nanoseconds(const FieldValue& span) const {
  if (span.field->unit != Unit::kTimespanTicks) return span.number;
  return static_cast<uint64_t>(Wide{span.number} * kNsPerSecond / header_.ticks_per_second);
}

}  // namespace spanprof::format::jfr
