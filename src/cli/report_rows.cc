#include "cli/report_rows.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <map>
#include <utility>

#include "base/nearest_name.h"
#include "base/printable_text.h"
#include "profile/names.h"

namespace spanprof::cli {
namespace {

using profile::Group;
using profile::GroupBy;
using profile::Profile;

struct Word {
  std::string_view word;
  GroupBy by;
};
constexpr std::array kWords = {
    Word{"endpoint", GroupBy::kEndpoint},  Word{"function", GroupBy::kFunction},
    Word{"root-span", GroupBy::kRootSpan}, Word{"span", GroupBy::kSpan},
    Word{"thread", GroupBy::kThread},      Word{"trace", GroupBy::kTrace}};
constexpr std::string_view kTagPrefix = "tag:";
constexpr std::size_t kMaxLevels = 3;

tl::unexpected<Error> UnknownWord(std::string_view word) {
  std::vector<std::string_view> words;
  std::string all;
  for (const Word& known : kWords) {
    words.push_back(known.word);
    all += std::string(known.word) + ", ";
  }
  const std::string_view nearest = NearestName(word, words);
  return Fail(EINVAL, Quoted(word) + " is nothing to group by",
              (nearest.empty() ? std::string() : "did you mean " + std::string(nearest) + "? ") +
                  "there are " + all + "and tag:NAME");
}

Result<Grouping> ParseGrouping(std::string_view word) {
  if (word.starts_with(kTagPrefix)) {
    return Grouping{GroupBy::kTag, std::string(word.substr(kTagPrefix.size())), std::string(word)};
  }
  for (const Word& known : kWords) {
    if (known.word == word) return Grouping{known.by, {}, std::string(word)};
  }
  return UnknownWord(word);
}

bool HasEndpoints(const Profile& profile) {
  const auto& contexts = profile.contexts();
  return std::any_of(contexts.begin(), contexts.end(), [&](const profile::Context& context) {
    return profile.EndpointOf(context.root_span_id) != profile::kNone;
  });
}

bool IsId(GroupBy by) {
  return by == GroupBy::kTrace || by == GroupBy::kSpan || by == GroupBy::kRootSpan;
}

// The endpoint that a trace or span belongs to. A trace may pass through several: the first counts.
std::map<std::string, std::string> EndpointsById(const Profile& profile, GroupBy by) {
  std::map<std::string, std::string> endpoints;
  if (!IsId(by)) return endpoints;
  for (profile::ContextId id = 1; id < profile.contexts().size(); ++id) {
    const std::string_view endpoint =
        profile.Text(profile.EndpointOf(profile.contexts()[id].root_span_id));
    if (endpoint.empty()) continue;
    profile::Sample sample;
    sample.context = id;
    endpoints.try_emplace(GroupName(profile, sample, by), endpoint);
  }
  return endpoints;
}

void Sort(std::vector<Group>& groups, SortBy sort, GroupBy by) {
  if (sort == SortBy::kDefault) sort = by == GroupBy::kFunction ? SortBy::kSelf : SortBy::kTotal;
  const auto key = [sort](const Group& group) {
    switch (sort) {
      case SortBy::kTotal:
        return std::pair(group.total_value, group.self_value);
      case SortBy::kSamples:
        return std::pair(group.total_count, group.total_value);
      case SortBy::kName:
        return std::pair<std::uint64_t, std::uint64_t>(0, 0);
      default:
        return std::pair(group.self_value, group.total_value);
    }
  };
  std::sort(groups.begin(), groups.end(), [&](const Group& a, const Group& b) {
    const auto key_a = key(a);
    const auto key_b = key(b);
    return key_a != key_b ? key_a > key_b : a.name < b.name;
  });
}

std::vector<ReportRow> MakeRows(const Profile& profile, const ReportOptions& options,
                                std::size_t level, std::size_t& left_out) {
  const Grouping& by = options.by[level];
  std::vector<Group> groups = GroupSamples(profile, by.by, options.kind, by.tag);
  Sort(groups, options.sort, by.by);
  const std::size_t limit = level == 0 ? options.limit : options.inner_limit;
  left_out = limit == 0 || groups.size() <= limit ? 0 : groups.size() - limit;
  groups.resize(groups.size() - left_out);
  const std::map<std::string, std::string> endpoints = EndpointsById(profile, by.by);
  std::vector<ReportRow> rows;
  for (Group& group : groups) {
    ReportRow row;
    if (const auto found = endpoints.find(group.name); found != endpoints.end()) {
      row.endpoint = found->second;
    }
    if (level + 1 < options.by.size()) {
      row.rows = MakeRows(SelectGroup(profile, by.by, group.name, by.tag), options, level + 1,
                          row.rows_left_out);
    }
    row.group = std::move(group);
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace

std::vector<std::string> GroupingWords() {
  std::vector<std::string> words;
  for (const Word& known : kWords) words.emplace_back(known.word);
  return words;
}

Result<std::vector<Grouping>> ParseGroupings(std::string_view text) {
  std::vector<Grouping> groupings;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t comma = std::min(text.find(',', begin), text.size());
    Result<Grouping> grouping = ParseGrouping(text.substr(begin, comma - begin));
    if (!grouping) return tl::make_unexpected(grouping.error());
    groupings.push_back(std::move(*grouping));
    begin = comma + 1;
    if (comma < text.size() && groupings.back().by == GroupBy::kFunction) {
      return Fail(EINVAL, Quoted(text) + ": nothing can come behind function",
                  "a sample is in several functions, so put it last");
    }
    if (groupings.size() > kMaxLevels) {
      return Fail(EINVAL, Quoted(text) + " has more than 3 levels", "leave some out");
    }
  }
  return groupings;
}

Result<void> CheckTags(const std::vector<Grouping>& groupings, const Profile& profile) {
  const std::vector<std::string>& names = profile.attribute_names;
  for (const Grouping& grouping : groupings) {
    if (grouping.by != GroupBy::kTag) continue;
    if (std::find(names.begin(), names.end(), grouping.tag) != names.end()) continue;
    std::string there;
    for (const std::string& name : names) {
      there += (there.empty() ? "" : ", ") + std::string(kTagPrefix) + name;
    }
    return Fail(
        ENOENT, "the profile has no tag " + Quoted(grouping.tag),
        there.empty() ? "it was recorded without tags; attributes= names them" : "it has " + there);
  }
  return {};
}

std::vector<Grouping> DefaultGroupings(const Profile& profile) {
  std::vector<Grouping> groupings;
  if (HasEndpoints(profile)) groupings.push_back({GroupBy::kEndpoint, {}, "endpoint"});
  groupings.push_back({GroupBy::kFunction, {}, "function"});
  return groupings;
}

Report MakeReport(const Profile& profile, const ReportOptions& options) {
  Report report{.options = options, .rows = {}};
  for (const profile::Sample& sample : profile.samples()) {
    if (sample.kind != options.kind) continue;
    report.total_value += sample.value;
    report.total_count += sample.count;
  }
  if (!options.by.empty()) report.rows = MakeRows(profile, options, 0, report.rows_left_out);
  return report;
}

profile::SampleKind MainKind(const Profile& profile) {
  std::array<bool, profile::kSampleKindCount> there{};
  for (const profile::Sample& sample : profile.samples()) {
    there[static_cast<unsigned>(sample.kind)] = true;
  }
  const auto first = std::find(there.begin(), there.end(), true);
  return first == there.end()
             ? profile::SampleKind::kCpu
             : profile::SampleKind{static_cast<std::uint8_t>(first - there.begin())};
}

}  // namespace spanprof::cli
