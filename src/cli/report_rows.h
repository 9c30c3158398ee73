#pragma once

// What `spanprof report` counts: the samples of one type grouped by one thing, and within that by
// another.
//
//   Result<std::vector<Grouping>> by = ParseGroupings("endpoint,function");
//   Report report = MakeReport(profile, {.by = *by, .kind = profile::SampleKind::kCpu});

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "profile/profile.h"
#include "profile/profile_query.h"

namespace spanprof::cli {

struct Grouping {
  profile::GroupBy by = profile::GroupBy::kFunction;
  std::string tag;   // for kTag
  std::string word;  // as it is written: "endpoint", "tag:tenant"
};

// The words of --by, without the tags.
[[nodiscard]] std::vector<std::string> GroupingWords();

// Reads `endpoint,function`, outermost first. A function has to come last: a sample is in several.
[[nodiscard]] Result<std::vector<Grouping>> ParseGroupings(std::string_view text);
// Fails with ENOENT for a tag that the profile does not have.
[[nodiscard]] Result<void> CheckTags(const std::vector<Grouping>& groupings,
                                     const profile::Profile& profile);
// What a user wants to see first: the functions, within the endpoints if the profile has any.
[[nodiscard]] std::vector<Grouping> DefaultGroupings(const profile::Profile& profile);

enum class SortBy { kDefault, kSelf, kTotal, kSamples, kName };

struct ReportOptions {
  std::vector<Grouping> by;
  profile::SampleKind kind = profile::SampleKind::kCpu;
  SortBy sort = SortBy::kDefault;  // functions by self, everything else by total
  std::size_t limit = 20;          // rows of the first level; 0: all
  std::size_t inner_limit = 5;     // rows within each of them
};

struct ReportRow {
  profile::Group group;
  std::string endpoint;  // of a trace or span, if there is one
  std::vector<ReportRow> rows;
  std::size_t rows_left_out = 0;  // of `rows`, by the limit
};

struct Report {
  ReportOptions options;
  std::uint64_t total_value = 0;
  std::uint64_t total_count = 0;
  std::vector<ReportRow> rows;
  std::size_t rows_left_out = 0;
};

[[nodiscard]] Report MakeReport(const profile::Profile& profile, const ReportOptions& options);

// cpu if there is any, else the first that is there; cpu for a profile without samples.
[[nodiscard]] profile::SampleKind MainKind(const profile::Profile& profile);

}  // namespace spanprof::cli
