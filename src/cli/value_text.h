#pragma once

// Times, sizes and shares as a table shows them: one unit a column, chosen by the largest value, so
// that the numbers can be compared by eye.
//
//   const ValueUnit unit = UnitFor(profile::SampleKind::kCpu, total);
//   unit.name;               // "s"
//   ValueText(value, unit);  // "12.345"

#include <cstdint>
#include <string>
#include <string_view>

#include "profile/profile.h"

namespace spanprof::cli {

struct ValueUnit {
  std::string_view name;
  double size = 1;  // in ns or bytes
  int decimals = 0;
};

[[nodiscard]] ValueUnit UnitFor(profile::SampleKind kind, std::uint64_t largest);
[[nodiscard]] std::string ValueText(std::uint64_t value, const ValueUnit& unit);
// With the unit that suits it: "12.345 s", "64 KiB".
[[nodiscard]] std::string ValueWithUnit(profile::SampleKind kind, std::uint64_t value);

// "12.3"; "0.0" of nothing.
[[nodiscard]] std::string PercentText(std::uint64_t part, std::uint64_t whole);

}  // namespace spanprof::cli
