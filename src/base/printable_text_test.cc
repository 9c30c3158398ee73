#include "base/printable_text.h"

#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace spanprof {
namespace {

using std::string_view_literals::operator""sv;

TEST(PrintableText, AcceptsWellFormedUtf8) {
  for (std::string_view text : {""sv, "plain"sv, "\0"sv, "\xC3\xA4"sv, "\xE2\x82\xAC"sv,
                                "\xED\x9F\xBF"sv, "\xF0\x90\x80\x80"sv, "\xF4\x8F\xBF\xBF"sv}) {
    EXPECT_TRUE(IsUtf8(text)) << Quoted(text);
  }
}

TEST(PrintableText, RefusesIllFormedUtf8) {
  for (std::string_view text :
       {"\x80"sv, "\xC3"sv, "\xC0\x80"sv, "\xC1\xBF"sv, "\xC3\x28"sv, "\xE2\x82"sv,
        "\xE0\x80\x80"sv, "\xED\xA0\x80"sv, "\xF0\x80\x80\x80"sv, "\xF0\x9F\x98"sv,
        "\xF4\x90\x80\x80"sv, "\xF5\x80\x80\x80"sv, "\xFF"sv}) {
    EXPECT_FALSE(IsUtf8(text)) << Quoted(text);
  }
}

TEST(PrintableText, FindsControlCharacters) {
  for (std::string_view text : {"a\nb"sv, "\0"sv, "\x1B[2J"sv, "\x7F"sv,
                                "\xC2\x9B"sv
                                "2J"sv,
                                "\xFF\n"sv}) {
    EXPECT_TRUE(HasControlCharacter(text)) << Quoted(text);
  }
  // The last is not UTF-8, so its C2 80 is two characters of some other encoding.
  for (std::string_view text : {""sv, "a b~"sv, "\xC3\xA4"sv, "\xC2\xA0"sv, "\xC2\x80\xFF"sv}) {
    EXPECT_FALSE(HasControlCharacter(text)) << Quoted(text);
  }
}

TEST(PrintableText, QuotesWhatIsPrintableAsItIs) {
  EXPECT_EQ(Quoted(""), "''");
  EXPECT_EQ(Quoted("http.route"), "'http.route'");
  EXPECT_EQ(Quoted("K\xC3\xA4se"), "'K\xC3\xA4se'");
}

TEST(PrintableText, QuotesWhatIsNotPrintableAsEscapes) {
  EXPECT_EQ(Quoted("a\nb\tc\r"), "'a\\nb\\tc\\x0d'");
  EXPECT_EQ(Quoted("\x1B[31m"), "'\\x1b[31m'");
  EXPECT_EQ(Quoted("\0"sv), "'\\x00'");
  EXPECT_EQ(Quoted("\\x00"), "'\\\\x00'");
  EXPECT_EQ(Quoted("\xC2\x9B"), "'\\xc2\\x9b'");
  EXPECT_EQ(Quoted("\xFF\xC3"), "'\\xff\\xc3'");
}

TEST(PrintableText, QuotesLongTextInPart) {
  EXPECT_EQ(Quoted(std::string(64, 'x')), "'" + std::string(64, 'x') + "'");
  EXPECT_EQ(Quoted(std::string(65, 'x')), "'" + std::string(64, 'x') + "...'");
  EXPECT_LE(Quoted(std::string(100000, '\1')).size(), 80u);
  // The cut never falls inside a character.
  std::string umlauts;
  for (int i = 0; i < 100; ++i) umlauts += "\xE2\x82\xAC";
  for (std::size_t skip = 0; skip < 3; ++skip) {
    EXPECT_TRUE(IsUtf8(Quoted(std::string(skip, 'x') + umlauts)));
  }
}

}  // namespace
}  // namespace spanprof
