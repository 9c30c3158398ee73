#pragma once

// The filters that `export` and `report` share: --endpoint, --trace-id, --tag and so on.
//
//   FilterOptions options;
//   AddFilterOptions(*command, options);
//   ...
//   Result<Selection> selection = ApplyFilter(std::move(profile), options);

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/result.h"
#include "cli/time_option.h"
#include "profile/profile.h"
#include "profile/profile_query.h"

namespace spanprof::cli {

struct FilterOptions {
  profile::Filter filter;  // without the times, which may be relative to a profile's start
  std::optional<TimeOption> from;
  std::optional<TimeOption> to;
};

// `options` has to outlive the parsing of `command`.
void AddFilterOptions(CLI::App& command, FilterOptions& options);

// "the samples of a type": the word that --type takes.
[[nodiscard]] std::vector<std::string> SampleTypeNames();

struct Selection {
  profile::Profile profile;
  bool is_filtered = false;
  std::vector<std::string> notes = {};
};

// Fails with ENOENT if nothing passes, and says which values there are.
[[nodiscard]] Result<Selection> ApplyFilter(profile::Profile profile, const FilterOptions& options);

}  // namespace spanprof::cli
