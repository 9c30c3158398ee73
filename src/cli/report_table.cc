#include <algorithm>
#include <array>
#include <chrono>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/quantity.h"
#include "cli/report_notes.h"
#include "cli/report_output.h"
#include "cli/terminal_text.h"
#include "cli/time_option.h"
#include "cli/value_text.h"
#include "profile/names.h"

namespace spanprof::cli {
namespace {

using profile::GroupBy;
using profile::Profile;
using profile::SampleKind;

std::string_view ResourceValue(const Profile& profile, std::string_view key) {
  for (const profile::Attribute& attribute : profile.resource) {
    if (attribute.key == key) return attribute.value;
  }
  return {};
}

// "shop 1.2 (production), process 8134 (shopd), on host-1"
std::string WhatItIs(const Profile& profile, const ReportSource& source) {
  std::vector<std::string> parts;
  const std::string service(ResourceValue(profile, "service.name"));
  const std::string version(ResourceValue(profile, "service.version"));
  std::string environment(ResourceValue(profile, "deployment.environment.name"));
  if (environment.empty()) environment = ResourceValue(profile, "deployment.environment");
  std::string name = service;
  if (!service.empty() && !version.empty()) name += " " + version;
  if (!service.empty() && !environment.empty()) name += " (" + environment + ")";
  if (!name.empty()) parts.push_back(name);
  const std::string pid(ResourceValue(profile, "process.pid"));
  const std::string executable(ResourceValue(profile, "process.executable.name"));
  if (!pid.empty()) {
    parts.push_back("process " + pid + (executable.empty() ? "" : " (" + executable + ")"));
  }
  if (const std::string host(ResourceValue(profile, "host.name")); !host.empty()) {
    parts.push_back("on " + host);
  }
  if (source.files > 1) parts.push_back(std::to_string(source.files) + " files merged");
  std::string line;
  for (const std::string& part : parts) line += (line.empty() ? "" : ", ") + part;
  return line;
}

std::string WhenItWas(const Profile& profile) {
  if (profile.start_time_ns == 0) return {};
  // To the millisecond: nobody reads nine digits.
  const std::uint64_t start = profile.start_time_ns / 1'000'000 * 1'000'000;
  std::string line = TimeText(start);
  if (profile.duration_ns != 0) {
    line += ", for " + ValueWithUnit(SampleKind::kCpu, profile.duration_ns);
  }
  return line;
}

std::string Interval(std::uint64_t nanoseconds) {
  return ValueWithUnit(SampleKind::kCpu, nanoseconds);
}

std::string PeriodText(const profile::Period& period) {
  const std::uint64_t actual = period.actual_ns != 0 ? period.actual_ns : period.requested_ns;
  if (actual == 0) return {};
  std::string text = ", one every " + Interval(actual);
  const std::uint64_t difference =
      std::max(actual, period.requested_ns) - std::min(actual, period.requested_ns);
  // A twentieth is what a timer may be off without a reason.
  if (period.requested_ns != 0 && difference > period.requested_ns / 20) {
    text += " where " + Interval(period.requested_ns) + " was asked for (why: spanprof doctor)";
  }
  return text;
}

struct Sum {
  std::uint64_t count = 0;
  std::uint64_t value = 0;
};

// A line for each type of samples; the one that the table shows is marked by being first.
std::vector<std::string> KindLines(const Profile& profile, SampleKind shown) {
  std::array<Sum, profile::kSampleKindCount> sums{};
  for (const profile::Sample& sample : profile.samples()) {
    Sum& sum = sums[static_cast<unsigned>(sample.kind)];
    sum.count += sample.count;
    sum.value += sample.value;
  }
  std::vector<std::string> lines;
  for (unsigned i = 0; i < sums.size(); ++i) {
    const SampleKind kind{static_cast<std::uint8_t>(i)};
    if (sums[i].count == 0 && kind != shown) continue;
    std::string line =
        fmt::format("{}: {} samples, {}{}", NameOf(kind), sums[i].count,
                    ValueWithUnit(kind, sums[i].value), PeriodText(profile.periods[i]));
    if (kind == shown) {
      lines.insert(lines.begin(), line);
    } else {
      lines.push_back(line + fmt::format(" (--type {})", NameOf(kind)));
    }
  }
  return lines;
}

std::string UpperCase(std::string text) {
  for (char& c : text) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return text;
}

// How wide a text is on a terminal: characters, as far as can be said without a table of Unicode.
std::size_t Width(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

std::string CutTo(const std::string& text, std::size_t width) {
  if (width == 0 || Width(text) <= width) return text;
  std::size_t characters = 0;
  std::size_t end = 0;
  for (; end < text.size(); ++end) {
    const bool starts = (static_cast<unsigned char>(text[end]) & 0xC0) != 0x80;
    if (starts && ++characters == width) break;
  }
  return text.substr(0, end) + "…";
}

struct Line {
  std::vector<std::string> numbers;
  std::string name;
};

class TableText {
 public:
  TableText(const Report& report, std::size_t width)
      : report_(report),
        unit_(UnitFor(report.options.kind, report.total_value)),
        has_self_(report.options.by.back().by == GroupBy::kFunction),
        width_(width) {}

  std::string Text() {
    AddHead();
    AddRows(report_.rows, report_.rows_left_out, 0);
    std::vector<std::size_t> widths;
    for (const Line& line : lines_) {
      widths.resize(std::max(widths.size(), line.numbers.size()));
      for (std::size_t i = 0; i < line.numbers.size(); ++i) {
        widths[i] = std::max(widths[i], line.numbers[i].size());
      }
    }
    std::size_t used = 0;
    for (const std::size_t width : widths) used += width + 2;
    // Where no room is left for names, a long line is better than none.
    constexpr std::size_t kLeastForNames = 12;
    const std::size_t room = width_ > used + kLeastForNames ? width_ - used : 0;
    std::string text;
    for (const Line& line : lines_) {
      for (std::size_t i = 0; i < widths.size(); ++i) {
        text += fmt::format("{:>{}}  ", i < line.numbers.size() ? line.numbers[i] : "", widths[i]);
      }
      text += CutTo(line.name, room) + '\n';
    }
    return text;
  }

 private:
  void AddHead() {
    Line head;
    const std::string unit(unit_.name);
    if (has_self_) head.numbers = {"SELF(" + unit + ")", "SELF%"};
    head.numbers.insert(head.numbers.end(), {"TOTAL(" + unit + ")", "TOTAL%", "SAMPLES"});
    for (const Grouping& by : report_.options.by) {
      head.name += (head.name.empty() ? "" : " / ") + UpperCase(TerminalText(by.word));
    }
    lines_.push_back(std::move(head));
  }

  void AddRows(const std::vector<ReportRow>& rows, std::size_t left_out, std::size_t level) {
    if (level == report_.options.by.size()) return;  // the innermost rows have none within them
    const bool is_function = report_.options.by[level].by == GroupBy::kFunction;
    const std::string indent(2 * level, ' ');
    for (const ReportRow& row : rows) {
      Line line;
      const profile::Group& group = row.group;
      // Only functions have a self that differs from the total.
      if (has_self_ && is_function) {
        line.numbers = {ValueText(group.self_value, unit_),
                        PercentText(group.self_value, report_.total_value)};
      } else if (has_self_) {
        line.numbers = {"", ""};
      }
      line.numbers.push_back(ValueText(group.total_value, unit_));
      line.numbers.push_back(PercentText(group.total_value, report_.total_value));
      line.numbers.push_back(std::to_string(is_function ? group.self_count : group.total_count));
      line.name = indent + TerminalText(group.name);
      if (!row.endpoint.empty()) line.name += "  " + TerminalText(row.endpoint);
      lines_.push_back(std::move(line));
      AddRows(row.rows, row.rows_left_out, level + 1);
    }
    if (left_out != 0) {
      lines_.push_back({{}, fmt::format("{}… {} more (--limit 0 shows all)", indent, left_out)});
    }
  }

  const Report& report_;
  ValueUnit unit_;
  bool has_self_;
  std::size_t width_;
  std::vector<Line> lines_;
};

}  // namespace

std::string ReportTable(const Report& report, const Profile& profile, const ReportSource& source,
                        std::size_t width) {
  std::vector<std::string> head = {WhatItIs(profile, source), WhenItWas(profile)};
  for (std::string& line : KindLines(profile, report.options.kind)) head.push_back(std::move(line));
  if (source.is_filtered) {
    std::uint64_t left = 0;
    for (const profile::Sample& sample : profile.samples()) left += sample.count;
    head.push_back(fmt::format("filtered: {} of {} samples", left, source.unfiltered_count));
  }
  std::string text;
  for (const std::string& line : head) {
    if (!line.empty()) text += TerminalText(line) + '\n';
  }
  text += '\n';
  text += report.rows.empty() ? std::string("no samples\n") : TableText(report, width).Text();
  const std::vector<std::string> notes = CounterNotes(profile);
  if (!notes.empty()) text += '\n';
  for (const std::string& note : notes) text += TerminalText(note) + '\n';
  return text;
}

}  // namespace spanprof::cli
