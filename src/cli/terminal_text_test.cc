#include "cli/terminal_text.h"

#include <gtest/gtest.h>

namespace spanprof::cli {
namespace {

TEST(TerminalText, KeepsWhatIsHarmless) {
  EXPECT_EQ(TerminalText("GET /cart?id=1 \xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80"),
            "GET /cart?id=1 \xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80");
  EXPECT_EQ(TerminalText(""), "");
}

TEST(TerminalText, EscapesWhatATerminalWouldObey) {
  EXPECT_EQ(TerminalText("\033[2J"), "\\x1b[2J");
  EXPECT_EQ(TerminalText("a\nb\r\t\x7F"), "a\\x0ab\\x0d\\x09\\x7f");
  EXPECT_EQ(TerminalText(std::string_view("\0", 1)), "\\x00");
  EXPECT_EQ(TerminalText("\xC2\x9B"), "\\xc2\\x9b");           // CSI as one character
  EXPECT_EQ(TerminalText("\xE2\x80\xAE"), "\\xe2\\x80\\xae");  // right-to-left override
  EXPECT_EQ(TerminalText("\xE2\x80\xA8"), "\\xe2\\x80\\xa8");  // line separator
  EXPECT_EQ(TerminalText("\\x1b"), "\\\\x1b");
}

TEST(TerminalText, EscapesBytesThatAreNotUtf8) {
  EXPECT_EQ(TerminalText("a\xFF\xC3(\xE2\x82"), "a\\xff\\xc3(\\xe2\\x82");
}

TEST(TerminalText, EscapesSeparatorsOnRequest) {
  EXPECT_EQ(TerminalText("a b=c", Separators::kEscape), "a\\x20b\\x3dc");
}

}  // namespace
}  // namespace spanprof::cli
