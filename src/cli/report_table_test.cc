#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/report_output.h"
#include "cli/report_rows.h"

namespace spanprof::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

std::size_t Characters(const std::string& text) {
  std::size_t count = 0;
  for (const char c : text) count += (static_cast<unsigned char>(c) & 0xC0) != 0x80 ? 1 : 0;
  return count;
}

std::string TableOf(const std::string& function, std::size_t width) {
  profile::Profile profile;
  const auto id = profile.AddFunction({.name = profile.Intern(function)});
  profile.AddSample({.time_ns = 1,
                     .stack = profile.AddStack(profile::kNone, profile.AddFrame({.function = id})),
                     .value = 1'000'000});
  ReportOptions options;
  options.by = DefaultGroupings(profile);
  return ReportTable(MakeReport(profile, options), profile, {}, width);
}

TEST(ReportTable, NamesAreCutToTheTerminalBetweenCharacters) {
  const std::string table = TableOf("größe" + std::string(200, 'x') + "end", 80);
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(Characters(line), 80u) << line;
  EXPECT_THAT(table, HasSubstr("größexx"));
  EXPECT_THAT(table, HasSubstr("x…\n"));
  const std::string umlauts = TableOf(
      [] {
        std::string text;
        for (int i = 0; i < 100; ++i) text += "ö";
        return text;
      }(),
      80);
  EXPECT_THAT(umlauts, HasSubstr("öö…\n"));
}

TEST(ReportTable, NamesStayWholeInAPipe) {
  EXPECT_THAT(TableOf(std::string(500, 'x') + "end", 0), HasSubstr("xxend\n"));
}

TEST(ReportTable, ATerminalTooNarrowForTheNumbersStillShowsNames) {
  EXPECT_THAT(TableOf("function_name", 20), HasSubstr("function_name\n"));
}

TEST(ReportTable, ANameCannotBreakTheLine) {
  EXPECT_THAT(TableOf("a\nb\r\033[1mc", 0),
              Not(testing::AnyOf(HasSubstr("\033"), HasSubstr("\r"))));
}

}  // namespace
}  // namespace spanprof::cli
