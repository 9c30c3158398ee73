#include "format/pprof_comments.h"

#include "format/format_text.h"
#include "profile/names.h"

namespace spanprof::format::pprof {
namespace {

constexpr std::string_view kOurs = "spanprof.";
constexpr std::string_view kCounter = "spanprof.counter.";
constexpr std::string_view kPeriod = "spanprof.period.";        // kind=requested,actual
constexpr std::string_view kAttribute = "spanprof.attribute.";  // position=name
constexpr std::string_view kPlainComment = "pprof.comment";

bool RemovePrefix(std::string_view& text, std::string_view prefix) {
  if (text.substr(0, prefix.size()) != prefix) return false;
  text.remove_prefix(prefix.size());
  return true;
}

// A resource attribute whose key looks like one of ours must not be taken for it.
std::string ResourceKey(std::string_view key) {
  if (key.substr(0, kOurs.size()) != kOurs) return EscapeKey(key);
  return "%73" + EscapeKey(key.substr(1));
}

void ReadPeriod(std::string_view kind_name, std::string_view value, profile::Profile& profile) {
  const auto kind = profile::SampleKindOf(kind_name);
  const size_t comma = value.find(',');
  if (!kind || comma == std::string_view::npos) return;
  profile.periods[static_cast<size_t>(*kind)] = {
      .requested_ns = ParseDecimal(value.substr(0, comma)).value_or(0),
      .actual_ns = ParseDecimal(value.substr(comma + 1)).value_or(0)};
}

void ReadAttribute(std::string_view position_text, std::string_view name,
                   profile::Profile& profile) {
  const auto position = ParseDecimal(position_text);
  if (!position || *position >= profile::kTagCount) return;
  auto& names = profile.attribute_names;
  if (names.size() <= *position) names.resize(*position + 1);
  names[*position] = name;
}

}  // namespace

std::vector<std::string> CommentsOf(const profile::Profile& profile) {
  std::vector<std::string> comments;
  for (const profile::Attribute& attribute : profile.resource) {
    comments.push_back(ResourceKey(attribute.key) + "=" + attribute.value);
  }
  for (size_t i = 0; i < profile.attribute_names.size() && i < profile::kTagCount; ++i) {
    comments.push_back(std::string(kAttribute) + std::to_string(i) + "=" +
                       profile.attribute_names[i]);
  }
  for (size_t i = 0; i < profile::kSampleKindCount; ++i) {
    const profile::Period& period = profile.periods[i];
    if (period == profile::Period{}) continue;
    comments.push_back(
        std::string(kPeriod) + std::string(NameOf(static_cast<profile::SampleKind>(i))) + "=" +
        std::to_string(period.requested_ns) + "," + std::to_string(period.actual_ns));
  }
  for (const auto& [name, count] : profile.counters()) {
    comments.push_back(std::string(kCounter) + EscapeKey(name) + "=" + std::to_string(count));
  }
  return comments;
}

void ReadComment(std::string_view comment, profile::Profile& profile) {
  const size_t equals = comment.find('=');
  if (equals == std::string_view::npos || equals == 0) {
    profile.resource.push_back({std::string(kPlainComment), std::string(comment)});
    return;
  }
  std::string_view key = comment.substr(0, equals);
  const std::string_view value = comment.substr(equals + 1);
  if (RemovePrefix(key, kCounter)) {
    profile.AddToCounter(UnescapeKey(key), ParseDecimal(value).value_or(0));
  } else if (RemovePrefix(key, kPeriod)) {
    ReadPeriod(key, value, profile);
  } else if (RemovePrefix(key, kAttribute)) {
    ReadAttribute(key, value, profile);
  } else {
    profile.resource.push_back({UnescapeKey(key), std::string(value)});
  }
}

}  // namespace spanprof::format::pprof
