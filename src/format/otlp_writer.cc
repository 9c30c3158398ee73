// Writes OTLP profiles: an ExportProfilesServiceRequest with one resource, one scope, and one
// profile for each kind of sample.
//
// An OTLP sample is a stack, a link to a span and attributes, with any number of (time, value)
// pairs: samples of ours that differ in nothing else are such pairs of one. Its address is the ELF
// virtual address, as the OpenTelemetry eBPF profiler writes it.

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include <protozero/pbf_writer.hpp>

#include "format/format.h"
#include "format/format_tags.h"
#include "format/format_text.h"
#include "format/otlp_dictionary_writer.h"
#include "format/otlp_fields.h"
#include "format/pprof_fields.h"
#include "profile/names.h"

namespace spanprof::format {
namespace otlp {

bool IsReservedAttribute(std::string_view name) {
  static constexpr std::string_view kReserved[] = {
      kRootSpanIdLabel,     kEndpointLabel,     kThreadNameLabel, kThreadIdLabel, kThreadStateLabel,
      kThreadNameAttribute, kThreadIdAttribute, kSampleCount,     kSampleFolded};
  return std::find(std::begin(kReserved), std::end(kReserved), name) != std::end(kReserved);
}

}  // namespace otlp

namespace {

using namespace otlp;  // NOLINT(google-build-using-namespace): the field numbers

// Two hashes of the contents, so that a request which is sent again has the same ids.
std::string ProfileIdOf(std::string_view contents, std::string_view dictionary) {
  std::string id;
  for (const uint64_t basis : {0xCBF2'9CE4'8422'2325u, 0x9E37'79B9'7F4A'7C15u}) {
    uint64_t hash = basis;
    for (const std::string_view part : {contents, dictionary}) {
      for (const char c : part) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100'0000'01B3u;
    }
    AppendBigEndian(id, hash | 1);  // all zero would be invalid
  }
  return id;
}

class Writer {
 public:
  explicit Writer(const profile::Profile& profile) : profile_(profile), dictionary_(profile) {
    for (unsigned i = 0; i < profile::kTagCount; ++i) {
      std::string name = TagName(profile, i);
      const bool ambiguous = IsReservedAttribute(name) || name.starts_with(kAttributePrefix);
      tag_keys_.push_back(ambiguous ? std::string(kAttributePrefix) + name : std::move(name));
    }
  }

  std::string Write() {
    std::vector<std::string> profiles;
    for (size_t kind = 0; kind < profile::kSampleKindCount; ++kind) {
      const std::string samples = SamplesOf(static_cast<profile::SampleKind>(kind));
      if (samples.empty() && profile_.periods[kind] == profile::Period{}) continue;
      profiles.push_back(ProfileOf(kind, samples, profiles.empty()));
    }
    // The counters must be told even if there are no samples.
    if (profiles.empty()) profiles.push_back(ProfileOf(0, {}, true));
    const std::string dictionary = dictionary_.Write();

    std::string bytes;
    protozero::pbf_writer request(bytes);
    {
      protozero::pbf_writer resource_profiles(request, RequestField::kResourceProfiles);
      WriteResource(resource_profiles);
      protozero::pbf_writer scope_profiles(resource_profiles,
                                           ResourceProfilesField::kScopeProfiles);
      {
        protozero::pbf_writer scope(scope_profiles, ScopeProfilesField::kScope);
        scope.add_string(ScopeField::kName, "spanprof");
      }
      for (std::string& profile : profiles) {
        protozero::pbf_writer(profile).add_bytes(ProfileField::kProfileId,
                                                 ProfileIdOf(profile, dictionary));
        scope_profiles.add_message(ScopeProfilesField::kProfiles, profile);
      }
    }
    request.add_message(RequestField::kDictionary, dictionary);
    return bytes;
  }

 private:
  void WriteResource(protozero::pbf_writer& resource_profiles) {
    protozero::pbf_writer resource(resource_profiles, ResourceProfilesField::kResource);
    for (const profile::Attribute& attribute : profile_.resource) {
      protozero::pbf_writer key_value(resource, ResourceField::kAttributes);
      key_value.add_string(KeyValueField::kKey, ToUtf8(attribute.key));
      protozero::pbf_writer value(key_value, KeyValueField::kValue);
      value.add_string(AnyValueField::kString, ToUtf8(attribute.value));
    }
  }

  void WriteValueType(protozero::pbf_writer& out, protozero::pbf_tag_type field, size_t kind) {
    protozero::pbf_writer type(out, field);
    type.add_int32(ValueTypeField::kTypeStrindex, dictionary_.Text(pprof::kValueNames[kind].value));
    type.add_int32(ValueTypeField::kUnitStrindex,
                   dictionary_.Text(UnitOf(static_cast<profile::SampleKind>(kind))));
  }

  std::string ProfileOf(size_t kind, const std::string& samples, bool is_first) {
    std::string bytes;
    protozero::pbf_writer out(bytes);
    WriteValueType(out, ProfileField::kSampleType, kind);
    bytes += samples;
    out.add_fixed64(ProfileField::kTimeUnixNano, profile_.start_time_ns);
    out.add_uint64(ProfileField::kDurationNano, profile_.duration_ns);
    std::vector<int32_t> attributes;
    if (const profile::Period& period = profile_.periods[kind]; period != profile::Period{}) {
      WriteValueType(out, ProfileField::kPeriodType, kind);
      out.add_int64(ProfileField::kPeriod, static_cast<int64_t>(period.actual_ns));
      attributes.push_back(
          dictionary_.IntAttribute(kRequestedPeriod, static_cast<int64_t>(period.requested_ns)));
    }
    if (is_first) AddHeadAttributes(attributes);
    out.add_packed_int32(ProfileField::kAttributeIndices, attributes.begin(), attributes.end());
    return bytes;
  }

  void AddHeadAttributes(std::vector<int32_t>& attributes) {
    for (size_t i = 0; i < profile_.attribute_names.size() && i < profile::kTagCount; ++i) {
      attributes.push_back(dictionary_.TextAttribute(
          std::string(kTagNamePrefix) + std::to_string(i), profile_.attribute_names[i]));
    }
    for (const auto& [name, count] : profile_.counters()) {
      attributes.push_back(dictionary_.IntAttribute(std::string(kCounterPrefix) + name,
                                                    static_cast<int64_t>(count)));
    }
  }

  // What samples have in common that are written as one.
  using Key = std::tuple<profile::StackId, profile::ContextId, profile::ThreadId,
                         profile::ThreadState, bool, uint64_t>;
  struct Pairs {
    std::vector<int64_t> values;
    std::vector<uint64_t> times;
  };

  std::string SamplesOf(profile::SampleKind kind) {
    std::map<Key, Pairs> groups;
    std::string bytes;
    for (const profile::Sample& sample : profile_.samples()) {
      if (sample.kind != kind) continue;
      const Key key(sample.stack, sample.context, sample.thread, sample.state, sample.folded,
                    sample.count);
      const auto value = static_cast<int64_t>(sample.value);
      if (sample.time_ns == 0) {
        // Without times there is only one value a sample.
        WriteSample(bytes, key, {.values = {value}, .times = {}});
        continue;
      }
      Pairs& pairs = groups[key];
      pairs.values.push_back(value);
      pairs.times.push_back(sample.time_ns);
    }
    for (const auto& [key, pairs] : groups) WriteSample(bytes, key, pairs);
    return bytes;
  }

  void WriteSample(std::string& bytes, const Key& key, const Pairs& pairs) {
    const auto& [stack, context_id, thread_id, state, folded, count] = key;
    const profile::Context& context = profile_.contexts()[context_id];
    std::vector<int32_t> attributes;
    AddContext(context, attributes);
    AddThread(profile_.threads()[thread_id], attributes);
    if (state != profile::ThreadState::kUnknown) {
      attributes.push_back(dictionary_.TextAttribute(kThreadStateLabel, NameOf(state)));
    }
    if (folded) attributes.push_back(dictionary_.BoolAttribute(kSampleFolded, true));
    if (count != 1) {
      attributes.push_back(dictionary_.IntAttribute(kSampleCount, static_cast<int64_t>(count)));
    }
    protozero::pbf_writer out(bytes);
    protozero::pbf_writer sample(out, ProfileField::kSamples);
    sample.add_int32(SampleField::kStackIndex, dictionary_.Stack(stack));
    sample.add_packed_int32(SampleField::kAttributeIndices, attributes.begin(), attributes.end());
    sample.add_int32(SampleField::kLinkIndex, dictionary_.Link(context));
    sample.add_packed_int64(SampleField::kValues, pairs.values.begin(), pairs.values.end());
    sample.add_packed_fixed64(SampleField::kTimestampsUnixNano, pairs.times.begin(),
                              pairs.times.end());
  }

  void AddContext(const profile::Context& context, std::vector<int32_t>& attributes) {
    if (context.root_span_id != 0) {
      attributes.push_back(
          dictionary_.TextAttribute(kRootSpanIdLabel, profile::SpanIdText(context.root_span_id)));
    }
    const profile::StringId endpoint = profile_.EndpointOf(context.root_span_id);
    if (endpoint != profile::kNone) {
      attributes.push_back(dictionary_.TextAttribute(kEndpointLabel, profile_.Text(endpoint)));
    }
    for (unsigned i = 0; i < profile::kTagCount; ++i) {
      if (context.tags[i] == profile::kNone) continue;
      attributes.push_back(dictionary_.TextAttribute(tag_keys_[i], profile_.Text(context.tags[i])));
    }
  }

  void AddThread(const profile::Thread& thread, std::vector<int32_t>& attributes) {
    if (thread.name != profile::kNone) {
      attributes.push_back(
          dictionary_.TextAttribute(kThreadNameAttribute, profile_.Text(thread.name)));
    }
    if (thread.tid != 0)
      attributes.push_back(dictionary_.IntAttribute(kThreadIdAttribute, thread.tid));
  }

  const profile::Profile& profile_;
  DictionaryWriter dictionary_;
  std::vector<std::string> tag_keys_;  // by position
};

}  // namespace

Result<std::string> WriteOtlp(const profile::Profile& profile, const WriteOptions& /*options*/) {
  return Writer(profile).Write();
}

}  // namespace spanprof::format
