#include "export/file_name_pattern.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <system_error>
#include <utility>

#include "base/printable_text.h"

namespace spanprof::sending {
namespace {

constexpr std::size_t kMaxDigits = 19;  // fits 64 bits
constexpr std::string_view kTimeShape = "00000000T000000Z";

std::string TimeText(std::int64_t time_ns) {
  const auto seconds = static_cast<std::time_t>(time_ns / 1'000'000'000);
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  std::array<char, 80> text{};
  std::snprintf(text.data(), text.size(), "%04d%02d%02dT%02d%02d%02dZ", utc.tm_year + 1900,
                utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec);
  return text.data();
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

std::size_t LeadingDigits(std::string_view text) {
  const auto end = std::find_if_not(text.begin(), text.end(), IsDigit);
  return std::min(static_cast<std::size_t>(end - text.begin()), kMaxDigits);
}

bool ConsumeTime(std::string_view& text) {
  if (text.size() < kTimeShape.size()) return false;
  for (std::size_t i = 0; i < kTimeShape.size(); ++i) {
    if (kTimeShape[i] == '0' ? !IsDigit(text[i]) : text[i] != kTimeShape[i]) return false;
  }
  text.remove_prefix(kTimeShape.size());
  return true;
}

}  // namespace

Result<FileNamePattern> FileNamePattern::Parse(std::string_view name) {
  FileNamePattern pattern;
  std::string text;
  bool has_text = false;
  const auto end_text = [&] {
    if (!text.empty()) pattern.parts_.push_back({Kind::kText, std::exchange(text, {})});
  };
  for (std::size_t i = 0; i < name.size(); ++i) {
    const char next = i + 1 < name.size() ? name[i + 1] : '\0';
    if (name[i] != '%' || next == '%') {
      text += name[i];
      has_text = true;
      if (name[i] == '%') ++i;
      continue;
    }
    end_text();
    ++i;
    if (next == 't') {
      pattern.parts_.push_back({Kind::kTime, {}});
      pattern.has_time_ = true;
    } else if (next == 'p') {
      pattern.parts_.push_back({Kind::kPid, {}});
    } else if (next == 'n') {
      pattern.parts_.push_back({Kind::kCounter, {}});
      pattern.has_counter_ = true;
    } else {
      return Fail(EINVAL, "file=" + Quoted(name) + " has a % without t, p, n or % behind it",
                  "%t is the time, %p the process id, %n a counter, %% a percent sign");
    }
  }
  end_text();
  if (pattern.parts_.empty()) {
    return Fail(EINVAL, "file= has no file name", "such as file=profile-%t.pb.gz");
  }
  if (!has_text && !pattern.has_time_) {
    return Fail(EINVAL, "file=" + Quoted(name) + " has nothing but numbers in it",
                "such as file=profile-%n.pb.gz");
  }
  return pattern;
}

std::string FileNamePattern::Name(const Values& values) const {
  std::string name;
  for (const Part& part : parts_) {
    switch (part.kind) {
      case Kind::kText:
        name += part.text;
        break;
      case Kind::kTime:
        name += TimeText(values.time_ns);
        if (values.repeat > 1) name += "-" + std::to_string(values.repeat);
        break;
      case Kind::kPid:
        name += std::to_string(values.pid);
        break;
      case Kind::kCounter:
        name += std::to_string(values.counter);
        break;
    }
  }
  return name;
}

std::optional<FileNamePattern::Match> FileNamePattern::Matches(std::string_view name) const {
  Match match;
  if (!MatchesFrom(0, name, match)) return std::nullopt;
  return match;
}

bool FileNamePattern::MatchesFrom(std::size_t index, std::string_view rest, Match& match) const {
  if (index == parts_.size()) return rest.empty();
  const Part& part = parts_[index];
  if (part.kind == Kind::kText) {
    if (!rest.starts_with(part.text)) return false;
    return MatchesFrom(index + 1, rest.substr(part.text.size()), match);
  }
  if (part.kind == Kind::kTime) {
    if (!ConsumeTime(rest)) return false;
    if (MatchesFrom(index + 1, rest, match)) return true;
    if (!rest.starts_with('-')) return false;
    rest.remove_prefix(1);
  }
  for (std::size_t digits = LeadingDigits(rest); digits > 0; --digits) {
    if (!MatchesFrom(index + 1, rest.substr(digits), match)) continue;
    if (part.kind == Kind::kCounter) {
      std::from_chars(rest.data(), rest.data() + digits, match.counter);
    }
    return true;
  }
  return false;
}

}  // namespace spanprof::sending
