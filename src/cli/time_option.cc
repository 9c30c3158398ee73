#include "cli/time_option.h"

#include <cerrno>
#include <charconv>
#include <chrono>
#include <limits>
#include <optional>

#include <fmt/format.h>

#include "base/printable_text.h"
#include "base/quantity.h"

namespace spanprof::cli {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kLatest = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t kMaxSeconds = kLatest / kSecond - 1;

// Takes `digits` digits off the front, as a number.
std::optional<unsigned> TakeDigits(std::string_view& text, std::size_t digits) {
  if (text.size() < digits) return std::nullopt;
  unsigned number = 0;
  const char* const end = text.data() + digits;
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || rest != end) return std::nullopt;
  text.remove_prefix(digits);
  return number;
}

bool Take(std::string_view& text, std::string_view any_of) {
  if (text.empty() || any_of.find(text.front()) == std::string_view::npos) return false;
  text.remove_prefix(1);
  return true;
}

// `.25` as nanoseconds; what is finer than that is left out. 0 if there is no point.
std::optional<std::uint64_t> TakeFraction(std::string_view& text) {
  if (!Take(text, ".")) return 0;
  std::uint64_t nanoseconds = 0;
  std::uint64_t place = kSecond;
  bool any = false;
  while (!text.empty() && text.front() >= '0' && text.front() <= '9') {
    place /= 10;
    nanoseconds += place * static_cast<std::uint64_t>(text.front() - '0');
    text.remove_prefix(1);
    any = true;
  }
  if (!any) return std::nullopt;
  return nanoseconds;
}

// The offset from UTC in seconds: `Z`, `+01:00`.
std::optional<std::int64_t> TakeOffset(std::string_view& text) {
  if (Take(text, "Zz")) return 0;
  const bool negative = text.starts_with('-');
  if (!Take(text, "+-")) return std::nullopt;
  const auto hours = TakeDigits(text, 2);
  if (!hours || !Take(text, ":")) return std::nullopt;
  const auto minutes = TakeDigits(text, 2);
  if (!minutes || *hours > 23 || *minutes > 59) return std::nullopt;
  const std::int64_t seconds = std::int64_t{*hours} * 3600 + std::int64_t{*minutes} * 60;
  return negative ? -seconds : seconds;
}

std::optional<std::uint64_t> ParseRfc3339(std::string_view text) {
  const auto year = TakeDigits(text, 4);
  if (!year || !Take(text, "-")) return std::nullopt;
  const auto month = TakeDigits(text, 2);
  if (!month || !Take(text, "-")) return std::nullopt;
  const auto day = TakeDigits(text, 2);
  if (!day || !Take(text, "Tt ")) return std::nullopt;
  const auto hour = TakeDigits(text, 2);
  if (!hour || !Take(text, ":")) return std::nullopt;
  const auto minute = TakeDigits(text, 2);
  if (!minute || !Take(text, ":")) return std::nullopt;
  const auto second = TakeDigits(text, 2);
  if (!second) return std::nullopt;
  const auto fraction = TakeFraction(text);
  if (!fraction) return std::nullopt;
  const auto offset = TakeOffset(text);
  if (!offset || !text.empty()) return std::nullopt;

  const std::chrono::year_month_day date{std::chrono::year(static_cast<int>(*year)),
                                         std::chrono::month(*month), std::chrono::day(*day)};
  // RFC 3339 has second 60 for leap seconds, which Unix time counts as the next second.
  if (!date.ok() || *hour > 23 || *minute > 59 || *second > 60) return std::nullopt;
  const std::int64_t days = std::chrono::sys_days(date).time_since_epoch().count();
  const std::int64_t seconds =
      days * 86400 + std::int64_t{*hour} * 3600 + std::int64_t{*minute} * 60 + *second - *offset;
  if (seconds < 0 || static_cast<std::uint64_t>(seconds) > kMaxSeconds) return std::nullopt;
  return static_cast<std::uint64_t>(seconds) * kSecond + *fraction;
}

std::optional<std::uint64_t> ParseUnixSeconds(std::string_view text) {
  std::uint64_t seconds = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc() || seconds > kMaxSeconds) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(rest - text.data()));
  const auto fraction = TakeFraction(text);
  if (!fraction || !text.empty()) return std::nullopt;
  return seconds * kSecond + *fraction;
}

// `10s`, `500ms`; a number without a unit is in seconds, as for `-d`.
std::optional<std::uint64_t> ParseSinceStart(std::string_view text) {
  if (const auto seconds = ParseUnixSeconds(text)) return seconds;
  const auto duration = ParseDuration(text);
  if (!duration) return std::nullopt;
  return static_cast<std::uint64_t>(duration->count());
}

}  // namespace

std::uint64_t TimeOption::UnixNanoseconds(std::uint64_t start_ns) const {
  if (!is_relative) return nanoseconds;
  return nanoseconds > kLatest - start_ns ? kLatest : start_ns + nanoseconds;
}

Result<TimeOption> ParseTime(std::string_view text) {
  if (text.starts_with('+')) {
    if (const auto since = ParseSinceStart(text.substr(1))) return TimeOption{true, *since};
  } else if (const auto seconds = ParseUnixSeconds(text)) {
    return TimeOption{false, *seconds};
  } else if (const auto time = ParseRfc3339(text)) {
    return TimeOption{false, *time};
  }
  return Fail(EINVAL, Quoted(text) + " is not a time",
              "write 2026-11-15T12:00:00Z, Unix seconds, or +10s since the profile's start");
}

std::string TimeText(std::uint64_t unix_ns) {
  const std::uint64_t seconds = unix_ns / kSecond;
  const std::chrono::sys_days day{
      std::chrono::days(static_cast<std::chrono::days::rep>(seconds / 86400))};
  const std::chrono::year_month_day date(day);
  std::string text =
      fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}", static_cast<int>(date.year()),
                  static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                  seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
  if (const std::uint64_t fraction = unix_ns % kSecond; fraction != 0) {
    text += fmt::format(".{:09}", fraction);
    text.erase(text.find_last_not_of('0') + 1);
  }
  return text + 'Z';
}

}  // namespace spanprof::cli
