#pragma once

// A report as a table for people and as JSON for programs. Names in a profile are anybody's: the
// table is safe for a terminal, and JSON is UTF-8 whatever the bytes were.

#include <cstddef>
#include <cstdint>
#include <string>

#include "cli/report_rows.h"
#include "profile/profile.h"

namespace spanprof::cli {

// What the report is of, beside the profile that it was made from.
struct ReportSource {
  std::size_t files = 1;
  bool is_filtered = false;
  std::uint64_t unfiltered_count = 0;  // samples of all types, before the filter
};

// `width` is the terminal's, to which names are cut; 0: they stay whole.
[[nodiscard]] std::string ReportTable(const Report& report, const profile::Profile& profile,
                                      const ReportSource& source, std::size_t width);
[[nodiscard]] std::string ReportJson(const Report& report, const profile::Profile& profile,
                                     const ReportSource& source);

}  // namespace spanprof::cli
