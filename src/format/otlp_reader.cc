// Reads OTLP profiles: an ExportProfilesServiceRequest or a ProfilesData, which have the same
// fields. What several resources hold becomes one profile, with the resource of the first.

#include <algorithm>
#include <cerrno>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <protozero/pbf_reader.hpp>

#include "format/format.h"
#include "format/format_budget.h"
#include "format/format_text.h"
#include "format/otlp_dictionary_reader.h"
#include "format/otlp_fields.h"
#include "format/otlp_sample_attributes.h"
#include "format/pprof_value_types.h"

namespace spanprof::format {
namespace {

using namespace otlp;  // NOLINT(google-build-using-namespace): the field numbers
using protozero::pbf_reader;
using protozero::pbf_wire_type;

class Reader {
 public:
  Reader(std::string_view bytes, const ReadLimits& limits)
      : bytes_(bytes),
        budget_(limits.max_memory),
        profile_(limits.max_memory),
        dictionary_(budget_, profile_) {}

  Result<profile::Profile> Read() {
    bool any = false;
    try {
      const auto read_dictionary = [&](pbf_reader& field) {
        const protozero::data_view view = field.get_view();
        return dictionary_.Read({view.data(), view.size()});
      };
      const auto read_resource = [&](pbf_reader& field) {
        any = true;
        return ReadResourceProfiles(field.get_message());
      };
      if (!ForEach(RequestField::kDictionary, read_dictionary)) return Large();
      attributes_.emplace(dictionary_, profile_);
      if (!ForEach(RequestField::kResourceProfiles, read_resource)) return Large();
    } catch (const protozero::exception& error) {
      return Fail(EINVAL, "not OTLP profiles, or broken ones: at byte " + std::to_string(offset_) +
                              ": " + error.what());
    }
    if (!any) return Fail(EINVAL, "not OTLP profiles: no resource_profiles in it");
    if (IsOverfull(profile_)) return Large();
    for (const auto& [name, count] : counters_) profile_.AddToCounter(name, count);
    return std::move(profile_);
  }

 private:
  tl::unexpected<Error> Large() const { return TooLarge("the OTLP file", budget_.limit()); }

  template <class Handle>
  bool ForEach(protozero::pbf_tag_type wanted, Handle handle) {
    pbf_reader top(bytes_.data(), bytes_.size());
    while (true) {
      offset_ = bytes_.size() - top.length();
      if (!top.next()) return true;
      if (top.tag() != wanted || top.wire_type() != pbf_wire_type::length_delimited) {
        top.skip();
      } else if (!handle(top)) {
        return false;
      }
    }
  }

  bool ReadResourceProfiles(pbf_reader message) {
    bool fits = true;
    while (fits && message.next()) {
      switch (message.tag_and_type()) {
        case protozero::tag_and_type(ResourceProfilesField::kResource,
                                     pbf_wire_type::length_delimited):
          fits = ReadResource(message.get_message());
          break;
        case protozero::tag_and_type(ResourceProfilesField::kScopeProfiles,
                                     pbf_wire_type::length_delimited):
          fits = ReadScopeProfiles(message.get_message());
          break;
        default:
          message.skip();
      }
    }
    return fits;
  }

  bool ReadScopeProfiles(pbf_reader message) {
    while (message.next()) {
      if (message.tag() != ScopeProfilesField::kProfiles ||
          message.wire_type() != pbf_wire_type::length_delimited) {
        message.skip();
      } else if (!ReadProfileMessage(message.get_message())) {
        return false;
      }
    }
    return true;
  }

  bool ReadResource(pbf_reader message) {
    while (message.next()) {
      if (message.tag() != ResourceField::kAttributes ||
          message.wire_type() != pbf_wire_type::length_delimited) {
        message.skip();
        continue;
      }
      pbf_reader key_value = message.get_message();
      std::string_view key;
      Value value;
      while (key_value.next()) {
        switch (key_value.tag_and_type()) {
          case protozero::tag_and_type(KeyValueField::kKey, pbf_wire_type::length_delimited): {
            const protozero::data_view view = key_value.get_view();
            key = {view.data(), view.size()};
            break;
          }
          case protozero::tag_and_type(KeyValueField::kKeyStrindex, pbf_wire_type::varint):
            key = dictionary_.Text(key_value.get_int32());
            break;
          case protozero::tag_and_type(KeyValueField::kValue, pbf_wire_type::length_delimited):
            value = dictionary_.ReadValue(key_value.get_message());
            break;
          default:
            key_value.skip();
        }
      }
      if (!AddResource(key, value)) return false;
    }
    return true;
  }

  bool AddResource(std::string_view key, const Value& value) {
    if (value.type == Value::Type::kOther) {
      profile_.AddToCounter("otlp.dropped_attribute", 1);
      return true;
    }
    std::string text(value.text);
    if (value.type == Value::Type::kNumber) text = std::to_string(value.number);
    const auto found =
        std::find_if(profile_.resource.begin(), profile_.resource.end(),
                     [&](const profile::Attribute& known) { return known.key == key; });
    if (found != profile_.resource.end()) {
      if (found->value != text) profile_.AddToCounter("otlp.resource_conflict", 1);
      return true;
    }
    // Searched one by one: a resource has a few dozen.
    if (profile_.resource.size() == kMaxResource ||
        !budget_.Take(key.size() + text.size() + sizeof(profile::Attribute))) {
      profile_.AddToCounter("otlp.dropped_attribute", 1);
      return true;
    }
    profile_.resource.push_back({std::string(key), std::move(text)});
    return true;
  }

  pprof::ValueType ReadValueType(pbf_reader message) {
    pprof::ValueType type;
    while (message.next()) {
      switch (message.tag_and_type()) {
        case protozero::tag_and_type(ValueTypeField::kTypeStrindex, pbf_wire_type::varint):
          type.type = dictionary_.Text(message.get_int32());
          break;
        case protozero::tag_and_type(ValueTypeField::kUnitStrindex, pbf_wire_type::varint):
          type.unit = dictionary_.Text(message.get_int32());
          break;
        default:
          message.skip();
      }
    }
    return type;
  }

  // What stands around the samples of one profile message.
  struct Head {
    pprof::ValueMeaning meaning;
    uint64_t start = 0;
    uint64_t duration = 0;
    uint64_t period = 0;  // in nanoseconds or bytes
    uint64_t requested_period = 0;
  };

  bool ReadProfileMessage(pbf_reader message) {
    const Head head = ReadHead(message);
    JoinHead(head);
    while (message.next()) {
      if (message.tag() != ProfileField::kSamples ||
          message.wire_type() != pbf_wire_type::length_delimited) {
        message.skip();
        continue;
      }
      ReadSample(message.get_message(), head);
      if (++samples_ % kSamplesPerCheck == 0 && IsOverfull(profile_)) return false;
    }
    return true;
  }

  Head ReadHead(pbf_reader message) {
    Head head;
    pprof::ValueType type;
    pprof::ValueType period_type;
    uint64_t period = 0;
    while (message.next()) {
      if (message.tag() == ProfileField::kAttributeIndices) {
        ForEachNumber(message, [&](int64_t index) { ReadHeadAttribute(index, head); });
        continue;
      }
      switch (message.tag_and_type()) {
        case protozero::tag_and_type(ProfileField::kSampleType, pbf_wire_type::length_delimited):
          type = ReadValueType(message.get_message());
          break;
        case protozero::tag_and_type(ProfileField::kPeriodType, pbf_wire_type::length_delimited):
          period_type = ReadValueType(message.get_message());
          break;
        case protozero::tag_and_type(ProfileField::kPeriod, pbf_wire_type::varint):
          period = message.get_uint64();
          break;
        case protozero::tag_and_type(ProfileField::kTimeUnixNano, pbf_wire_type::fixed64):
          head.start = message.get_fixed64();
          break;
        case protozero::tag_and_type(ProfileField::kDurationNano, pbf_wire_type::varint):
          head.duration = message.get_uint64();
          break;
        default:
          message.skip();
      }
    }
    head.meaning = pprof::MeaningsOf({type})[0];
    head.period = period * pprof::ScaleOf(period_type.unit);
    return head;
  }

  void ReadHeadAttribute(int64_t index, Head& head) {
    if (index < 0 || static_cast<uint64_t>(index) >= dictionary_.attributes().size()) {
      return dictionary_.CountBadReference();
    }
    const Attribute& attribute = dictionary_.attributes()[static_cast<size_t>(index)];
    std::string_view key = attribute.key;
    const auto number = static_cast<uint64_t>(attribute.value.number);
    if (key == kRequestedPeriod) {
      head.requested_period = number;
    } else if (key.starts_with(kTagNamePrefix)) {
      const auto position = ParseDecimal(key.substr(kTagNamePrefix.size()));
      if (!position || *position >= profile::kTagCount) return;
      auto& names = profile_.attribute_names;
      if (names.size() <= *position) names.resize(*position + 1);
      names[*position] = attribute.value.text;
    } else if (key.starts_with(kCounterPrefix)) {
      key.remove_prefix(kCounterPrefix.size());
      if (budget_.Take(key.size() + 64)) counters_.emplace_back(key, number);
    }
  }

  void JoinHead(const Head& head) {
    if (head.start != 0 || head.duration != 0) {
      const bool is_first = profile_.start_time_ns == 0 && profile_.duration_ns == 0;
      const uint64_t end =
          std::max(head.start + head.duration, profile_.start_time_ns + profile_.duration_ns);
      profile_.start_time_ns = is_first ? head.start : std::min(profile_.start_time_ns, head.start);
      profile_.duration_ns = end - profile_.start_time_ns;
    }
    if (head.period != 0 || head.requested_period != 0) {
      profile_.periods[static_cast<size_t>(*head.meaning.kind)] = {
          .requested_ns = head.requested_period, .actual_ns = head.period};
    }
  }

  void ReadSample(pbf_reader message, const Head& head) {
    SampleContext seen;
    Link link;
    profile::Sample sample;
    values_.clear();
    times_.clear();
    while (message.next()) {
      switch (message.tag()) {
        case SampleField::kStackIndex:
          ForEachNumber(message, [&](int64_t i) { sample.stack = dictionary_.StackAt(i); });
          break;
        case SampleField::kLinkIndex:
          ForEachNumber(message, [&](int64_t i) { link = dictionary_.LinkAt(i); });
          break;
        case SampleField::kAttributeIndices:
          ForEachNumber(message, [&](int64_t i) { attributes_->Read(i, seen); });
          break;
        case SampleField::kValues:
          ForEachNumber(message, [&](int64_t value) {
            if (values_.size() < MaxPairs()) values_.push_back(value);
          });
          break;
        case SampleField::kTimestampsUnixNano:
          ReadTimes(message);
          break;
        default:
          message.skip();
      }
    }
    seen.context.trace_id_high = link.trace_id_high;
    seen.context.trace_id_low = link.trace_id_low;
    seen.context.span_id = link.span_id;
    if (seen.endpoint != profile::kNone) {
      profile_.SetEndpoint(seen.context.root_span_id, profile_.Text(seen.endpoint));
    }
    sample.context = profile_.AddContext(seen.context);
    sample.thread = profile_.AddThread(seen.tid, profile_.Text(seen.thread_name));
    sample.state = seen.state;
    sample.folded = seen.folded;
    sample.kind = *head.meaning.kind;
    AddSamples(sample, seen.count, head);
  }

  void ReadTimes(pbf_reader& message) {
    if (message.wire_type() == pbf_wire_type::length_delimited) {
      for (const uint64_t time : message.get_packed_fixed64()) {
        if (times_.size() < MaxPairs()) times_.push_back(time);
      }
    } else if (message.wire_type() == pbf_wire_type::fixed64) {
      times_.push_back(message.get_fixed64());
    } else {
      message.skip();
    }
  }

  // More than this cannot be kept, and the profile that they make will be refused.
  size_t MaxPairs() const { return budget_.limit() / sizeof(profile::Sample); }

  // One for each pair of time and value. Without values, each time is one; without times, all
  // values have none.
  void AddSamples(profile::Sample& sample, std::optional<uint64_t> count, const Head& head) {
    if (!values_.empty() && !times_.empty() && values_.size() != times_.size()) {
      profile_.AddToCounter("otlp.values_without_times", 1);
    }
    const size_t pairs = values_.empty() ? times_.size() : values_.size();
    for (size_t i = 0; i < pairs; ++i) {
      const int64_t signed_value = values_.empty() ? 1 : values_[i];
      if (signed_value < 0) {
        profile_.AddToCounter("otlp.negative_value", 1);
        continue;
      }
      const auto value = static_cast<uint64_t>(signed_value);
      sample.time_ns = i < times_.size() ? times_[i] : 0;
      if (head.meaning.is_count || values_.empty()) {
        sample.count = value;
        sample.value = value * head.period;
      } else {
        sample.count = count.value_or(1);
        sample.value = value * head.meaning.scale;
      }
      profile_.AddSample(sample);
    }
  }

  static constexpr size_t kMaxResource = 1024;
  static constexpr size_t kSamplesPerCheck = 4096;

  std::string_view bytes_;
  ReadBudget budget_;
  profile::Profile profile_;
  DictionaryReader dictionary_;
  std::optional<SampleAttributes> attributes_;  // once the dictionary has been read
  std::vector<std::pair<std::string, uint64_t>> counters_;
  std::vector<int64_t> values_;  // of the sample that is being read
  std::vector<uint64_t> times_;
  uint64_t samples_ = 0;
  size_t offset_ = 0;  // of the top-level field that is being read
};

}  // namespace

Result<profile::Profile> ReadOtlp(std::string_view bytes, const ReadLimits& limits) {
  return Reader(bytes, limits).Read();
}

}  // namespace spanprof::format
