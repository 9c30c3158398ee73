#include "cli/value_text.h"

#include <array>
#include <cstddef>

#include <fmt/format.h>

namespace spanprof::cli {
namespace {

constexpr std::array kTimes = {ValueUnit{"s", 1e9, 3}, ValueUnit{"ms", 1e6, 3},
                               ValueUnit{"us", 1e3, 3}, ValueUnit{"ns", 1, 0}};
constexpr std::array kSizes = {ValueUnit{"GiB", 1024.0 * 1024 * 1024, 3},
                               ValueUnit{"MiB", 1024.0 * 1024, 3}, ValueUnit{"KiB", 1024, 1},
                               ValueUnit{"B", 1, 0}};

template <std::size_t kCount>
ValueUnit Largest(const std::array<ValueUnit, kCount>& units, std::uint64_t value) {
  for (const ValueUnit& unit : units) {
    if (static_cast<double>(value) >= unit.size) return unit;
  }
  return units.back();
}

}  // namespace

ValueUnit UnitFor(profile::SampleKind kind, std::uint64_t largest) {
  return kind == profile::SampleKind::kAllocation ? Largest(kSizes, largest)
                                                  : Largest(kTimes, largest);
}

std::string ValueText(std::uint64_t value, const ValueUnit& unit) {
  return fmt::format("{:.{}f}", static_cast<double>(value) / unit.size, unit.decimals);
}

std::string ValueWithUnit(profile::SampleKind kind, std::uint64_t value) {
  const ValueUnit unit = UnitFor(kind, value);
  std::string text = ValueText(value, unit);
  if (text.find('.') != std::string::npos) {
    text.erase(text.find_last_not_of('0') + 1);
    if (text.ends_with('.')) text.pop_back();
  }
  return text + " " + std::string(unit.name);
}

std::string PercentText(std::uint64_t part, std::uint64_t whole) {
  if (whole == 0) return "0.0";
  return fmt::format("{:.1f}", 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

}  // namespace spanprof::cli
