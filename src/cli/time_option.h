#pragma once

// A point in time as people write it on a command line: `2026-11-15T12:00:00Z`, `1794744000.5`
// (Unix seconds), or `+10s` (since the profile's start).
//
//   Result<TimeOption> from = ParseTime("+10s");
//   const std::uint64_t unix_ns = from->UnixNanoseconds(profile.start_time_ns);
//
// Any thread may call these.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace spanprof::cli {

struct TimeOption {
  bool is_relative = false;
  std::uint64_t nanoseconds = 0;  // Unix time, or since the profile's start

  // A sum that does not fit is the largest time there is.
  [[nodiscard]] std::uint64_t UnixNanoseconds(std::uint64_t start_ns) const;
};

[[nodiscard]] Result<TimeOption> ParseTime(std::string_view text);

// `2026-11-15T12:00:00.25Z`: as many digits behind the point as it takes, in UTC.
[[nodiscard]] std::string TimeText(std::uint64_t unix_ns);

}  // namespace spanprof::cli
