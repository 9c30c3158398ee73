#include "cli/empty_selection.h"

#include <algorithm>
#include <cerrno>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/nearest_name.h"
#include "base/printable_text.h"
#include "cli/time_option.h"
#include "profile/names.h"

namespace spanprof::cli {
namespace {

using profile::Filter;
using profile::GroupBy;
using profile::Profile;

constexpr std::size_t kMaxShown = 5;

// The values that samples have, those of most samples first.
std::vector<std::string> ValuesOf(const Profile& profile, GroupBy by, const std::string& tag = {}) {
  std::map<std::string, std::uint64_t> counts;
  for (unsigned i = 0; i < profile::kSampleKindCount; ++i) {
    const profile::SampleKind kind{static_cast<std::uint8_t>(i)};
    for (const profile::Group& group : GroupSamples(profile, by, kind, tag)) {
      if (group.name != "(none)") counts[group.name] += group.total_count;
    }
  }
  std::vector<std::pair<std::string, std::uint64_t>> sorted(counts.begin(), counts.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::vector<std::string> values;
  for (auto& [name, count] : sorted) values.push_back(std::move(name));
  return values;
}

std::string ListOf(const std::vector<std::string>& values) {
  std::string text;
  for (std::size_t i = 0; i < std::min(values.size(), kMaxShown); ++i) {
    if (i != 0) text += ", ";
    text += Quoted(values[i]);
  }
  if (values.size() > kMaxShown) {
    text += " and " + std::to_string(values.size() - kMaxShown) + " more";
  }
  return text;
}

std::string Nearest(std::string_view word, const std::vector<std::string>& values) {
  const std::vector<std::string_view> names(values.begin(), values.end());
  const std::string_view nearest = NearestName(word, names);
  return nearest.empty() ? std::string() : "did you mean " + Quoted(nearest) + "? ";
}

// `what` as in "no sample has the endpoint 'x'"; `kind` as in "the endpoints are".
Error NoSuch(const std::string& what, const std::string& word, const std::string& kind,
             const std::string& by, const std::vector<std::string>& values) {
  Error error{ENOENT, "no sample has the " + what + " " + Quoted(word), {}};
  if (values.empty()) {
    error.hint = "the profile has no " + kind;
  } else {
    error.hint = Nearest(word, values) + "the " + kind + " are " + ListOf(values);
    if (values.size() > kMaxShown) error.hint += "; spanprof report --by " + by + " shows them";
  }
  return error;
}

Error NoSuchTag(const Profile& profile, const std::string& name, const std::string& value) {
  const auto& names = profile.attribute_names;
  if (std::find(names.begin(), names.end(), name) == names.end()) {
    Error error{ENOENT, "the profile has no tag " + Quoted(name), {}};
    error.hint = names.empty() ? "it was recorded without tags; attributes= names them"
                               : Nearest(name, names) + "its tags are " + ListOf(names);
    return error;
  }
  return NoSuch("tag " + Quoted(name) + " with the value", value, "values", "tag:" + name,
                ValuesOf(profile, GroupBy::kTag, name));
}

Error NoSuchType(const Profile& profile, profile::SampleKind kind) {
  std::string there;
  for (const std::string& name : ValuesOf(profile, GroupBy::kKind)) {
    there += (there.empty() ? "" : ", ") + name;
  }
  return {ENOENT, "the profile has no " + std::string(NameOf(kind)) + " samples",
          "give --type with one that it has: " + there};
}

Error NoSuchTime(const Profile& profile) {
  std::uint64_t first = ~std::uint64_t{0};
  std::uint64_t last = 0;
  for (const profile::Sample& sample : profile.samples()) {
    if (sample.time_ns == 0) continue;
    first = std::min(first, sample.time_ns);
    last = std::max(last, sample.time_ns);
  }
  return {ENOENT, "no sample lies between --from and --to",
          "the first is of " + TimeText(first) + ", the last of " + TimeText(last)};
}

bool SelectsNothing(const Profile& profile, const Filter& filter) {
  return Select(profile, filter).samples().empty();
}

}  // namespace

Error ExplainEmptySelection(const Profile& profile, const Filter& filter) {
  if (profile.samples().empty()) {
    return {ENOENT, "the profile has no samples at all",
            "`spanprof report` shows what its sampler counted"};
  }
  // Each condition alone. Copies are made, but only on this path, which ends in an error.
  if (filter.kind && SelectsNothing(profile, {.kind = filter.kind})) {
    return NoSuchType(profile, *filter.kind);
  }
  if (filter.endpoint && SelectsNothing(profile, {.endpoint = filter.endpoint})) {
    return NoSuch("endpoint", *filter.endpoint, "endpoints", "endpoint",
                  ValuesOf(profile, GroupBy::kEndpoint));
  }
  if (filter.trace_id && SelectsNothing(profile, {.trace_id = filter.trace_id})) {
    return NoSuch("trace id", profile::TraceIdText(filter.trace_id->first, filter.trace_id->second),
                  "trace ids", "trace", ValuesOf(profile, GroupBy::kTrace));
  }
  if (filter.span_id && SelectsNothing(profile, {.span_id = filter.span_id})) {
    return NoSuch("span id", profile::SpanIdText(*filter.span_id), "span ids", "span",
                  ValuesOf(profile, GroupBy::kSpan));
  }
  if (filter.root_span_id && SelectsNothing(profile, {.root_span_id = filter.root_span_id})) {
    return NoSuch("root span id", profile::SpanIdText(*filter.root_span_id), "root span ids",
                  "root-span", ValuesOf(profile, GroupBy::kRootSpan));
  }
  for (const auto& tag : filter.tags) {
    if (SelectsNothing(profile, {.tags = {tag}})) return NoSuchTag(profile, tag.first, tag.second);
  }
  if (filter.thread && SelectsNothing(profile, {.thread = filter.thread})) {
    return NoSuch("thread", *filter.thread, "threads", "thread",
                  ValuesOf(profile, GroupBy::kThread));
  }
  if (SelectsNothing(profile, {.from_ns = filter.from_ns, .to_ns = filter.to_ns})) {
    return NoSuchTime(profile);
  }
  return {ENOENT, "each of the filters fits some samples, but no sample passes all of them",
          "leave one out"};
}

}  // namespace spanprof::cli
