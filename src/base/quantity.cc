#include "base/quantity.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <system_error>

namespace spanprof {
namespace {

struct Unit {
  std::string_view name;
  std::uint64_t factor;
};

// Largest first: the order in which the formatters try them.
constexpr std::array<Unit, 6> kDurationUnits = {{{"h", 3'600'000'000'000},
                                                 {"m", 60'000'000'000},
                                                 {"s", 1'000'000'000},
                                                 {"ms", 1'000'000},
                                                 {"us", 1'000},
                                                 {"ns", 1}}};
constexpr std::array<Unit, 4> kSizeUnits = {{{"t", std::uint64_t{1} << 40},
                                             {"g", std::uint64_t{1} << 30},
                                             {"m", std::uint64_t{1} << 20},
                                             {"k", std::uint64_t{1} << 10}}};

constexpr std::uint64_t kMaxUint64 = std::numeric_limits<std::uint64_t>::max();

struct NumberAndUnit {
  std::uint64_t number;
  std::string_view unit;
};

// Splits leading digits from what follows them; there must be a digit.
std::optional<NumberAndUnit> SplitNumber(std::string_view text) {
  NumberAndUnit split{};
  const char* const begin = text.data();
  const auto [rest, error] = std::from_chars(begin, begin + text.size(), split.number);
  if (error == std::errc::invalid_argument) return std::nullopt;
  if (error == std::errc::result_out_of_range) split.number = kMaxUint64;
  split.unit = text.substr(static_cast<std::size_t>(rest - begin));
  return split;
}

std::uint64_t SaturatingMultiply(std::uint64_t a, std::uint64_t b) {
  return b != 0 && a > kMaxUint64 / b ? kMaxUint64 : a * b;
}

template <std::size_t kCount>
std::string FormatWithUnit(std::uint64_t value, const std::array<Unit, kCount>& units,
                           std::string_view base_unit) {
  if (value != 0) {
    for (const Unit& unit : units) {
      if (value % unit.factor == 0) {
        return std::to_string(value / unit.factor).append(unit.name);
      }
    }
  }
  return std::to_string(value).append(base_unit);
}

}  // namespace

std::optional<std::chrono::nanoseconds> ParseDuration(std::string_view text) {
  const std::optional<NumberAndUnit> split = SplitNumber(text);
  if (!split) return std::nullopt;
  const std::string_view unit_name = split->unit.empty() ? "ns" : split->unit;
  for (const Unit& unit : kDurationUnits) {
    if (unit.name == unit_name) {
      constexpr std::uint64_t kLongest = std::chrono::nanoseconds::max().count();
      const std::uint64_t count = SaturatingMultiply(split->number, unit.factor);
      return std::chrono::nanoseconds(static_cast<std::int64_t>(std::min(count, kLongest)));
    }
  }
  return std::nullopt;
}

std::optional<std::uint64_t> ParseSize(std::string_view text) {
  const std::optional<NumberAndUnit> split = SplitNumber(text);
  if (!split) return std::nullopt;
  std::string unit_name(split->unit);
  for (char& c : unit_name) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  if (unit_name.empty() || unit_name == "b") return split->number;
  const std::string_view suffix = std::string_view(unit_name).substr(1);
  if (!suffix.empty() && suffix != "b" && suffix != "ib") return std::nullopt;
  for (const Unit& unit : kSizeUnits) {
    if (unit.name.front() == unit_name.front()) {
      return SaturatingMultiply(split->number, unit.factor);
    }
  }
  return std::nullopt;
}

std::string FormatDuration(std::chrono::nanoseconds duration) {
  const std::int64_t count = std::max<std::int64_t>(duration.count(), 0);
  return FormatWithUnit(static_cast<std::uint64_t>(count), kDurationUnits, "ns");
}

std::string FormatSize(std::uint64_t bytes) { return FormatWithUnit(bytes, kSizeUnits, ""); }

}  // namespace spanprof
