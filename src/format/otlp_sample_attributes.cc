#include "format/otlp_sample_attributes.h"

#include <string>
#include <string_view>

#include "format/format.h"
#include "format/format_tags.h"
#include "format/format_text.h"
#include "format/otlp_fields.h"
#include "profile/names.h"

namespace spanprof::format::otlp {

const SampleAttributes::Meaning& SampleAttributes::MeaningOf(size_t index) {
  Meaning& meaning = meanings_[index];
  if (meaning.role != Role::kNotYet) return meaning;
  const Attribute& attribute = dictionary_.attributes()[index];
  std::string_view key = attribute.key;
  meaning.number = static_cast<uint64_t>(attribute.value.number);
  meaning.role = Role::kIgnored;
  if (key == kRootSpanIdLabel) {
    meaning.role = Role::kRootSpanId;
    meaning.number = ParseHex(attribute.value.text).value_or(0);
  } else if (key == kEndpointLabel) {
    meaning.role = Role::kEndpoint;
  } else if (key == kThreadNameAttribute || key == kThreadNameLabel) {
    meaning.role = Role::kThreadName;
  } else if (key == kThreadIdAttribute || key == kThreadIdLabel) {
    meaning.role = Role::kThreadId;
  } else if (key == kThreadStateLabel) {
    meaning.role = Role::kState;
  } else if (key == kSampleCount) {
    meaning.role = Role::kCount;
  } else if (key == kSampleFolded) {
    meaning.role = Role::kFolded;
  } else if (!key.empty()) {
    if (key.starts_with(kAttributePrefix)) key.remove_prefix(kAttributePrefix.size());
    if (const auto position = FindOrAddTag(profile_, key)) {
      meaning.role = Role::kTag;
      meaning.position = *position;
    }
  }
  if (attribute.value.type == Value::Type::kText) {
    meaning.text = profile_.Intern(attribute.value.text);
  } else if (attribute.value.type == Value::Type::kNumber && meaning.role == Role::kTag) {
    meaning.text = profile_.Intern(std::to_string(attribute.value.number));
  }
  return meaning;
}

void SampleAttributes::Read(int64_t index, SampleContext& seen) {
  if (index < 0 || static_cast<uint64_t>(index) >= meanings_.size()) {
    return dictionary_.CountBadReference();
  }
  const Meaning& meaning = MeaningOf(static_cast<size_t>(index));
  switch (meaning.role) {
    case Role::kRootSpanId:
      seen.context.root_span_id = meaning.number;
      break;
    case Role::kEndpoint:
      seen.endpoint = meaning.text;
      break;
    case Role::kThreadName:
      seen.thread_name = meaning.text;
      break;
    case Role::kThreadId:
      seen.tid = static_cast<uint32_t>(meaning.number);
      break;
    case Role::kState:
      seen.state = profile::ThreadStateOf(profile_.Text(meaning.text)).value_or(seen.state);
      break;
    case Role::kCount:
      seen.count = meaning.number;
      break;
    case Role::kFolded:
      seen.folded = meaning.number != 0;
      break;
    case Role::kTag:
      seen.context.tags[meaning.position] = meaning.text;
      break;
    case Role::kNotYet:
    case Role::kIgnored:
      profile_.AddToCounter("otlp.dropped_attribute", 1);
      break;
  }
}

}  // namespace spanprof::format::otlp
