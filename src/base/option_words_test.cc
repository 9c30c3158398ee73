#include "base/option_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace spanprof {
namespace {

using ::testing::ElementsAre;

TEST(OptionWords, SplitsAndTrims) {
  EXPECT_THAT(SplitEscaped("", ','), ElementsAre(""));
  EXPECT_THAT(SplitEscaped(" start , cpu=1ms,\tjfr\n", ','),
              ElementsAre("start", "cpu=1ms", "jfr"));
  EXPECT_THAT(SplitEscaped(",a,,b,", ','), ElementsAre("", "a", "", "b", ""));
}

TEST(OptionWords, DoesNotSplitAtEscapedSeparators) {
  EXPECT_THAT(SplitEscaped(R"(a\,b,c)", ','), ElementsAre(R"(a\,b)", "c"));
  EXPECT_THAT(SplitEscaped(R"(a\\,b)", ','), ElementsAre(R"(a\\)", "b"));
  EXPECT_THAT(SplitEscaped(R"(a\\\,b)", ','), ElementsAre(R"(a\\\,b)"));
  EXPECT_THAT(SplitEscaped(R"(a\)", ','), ElementsAre(R"(a\)"));
}

TEST(OptionWords, TrimsOnlyUnescapedSpaces) {
  EXPECT_THAT(SplitEscaped(R"(a\ , \ b )", ','), ElementsAre(R"(a\ )", R"(\ b)"));
  EXPECT_THAT(SplitEscaped(R"(a\\ ,b)", ','), ElementsAre(R"(a\\)", "b"));
}

TEST(OptionWords, SplitsAtTheFirstSeparatorOnly) {
  const KeyAndValue pair = SplitAtFirst("resource = a=b", '=');
  EXPECT_EQ(pair.key, "resource");
  EXPECT_EQ(pair.value, "a=b");
  EXPECT_EQ(SplitAtFirst("jfr", '=').key, "jfr");
  EXPECT_EQ(SplitAtFirst("jfr", '=').value, std::nullopt);
  EXPECT_EQ(SplitAtFirst("file=", '=').value, "");
}

TEST(OptionWords, Unescapes) {
  EXPECT_EQ(UnescapeOption(R"(a\,b\;c\\d\ )"), R"(a,b;c\d )");
  EXPECT_EQ(UnescapeOption(""), "");
  EXPECT_EQ(UnescapeOption(R"(a\n)"), std::nullopt);
  EXPECT_EQ(UnescapeOption(R"(a\)"), std::nullopt);
}

TEST(OptionWords, EscapesOnlyWhatNeedsIt) {
  EXPECT_EQ(EscapeOption("a b;c", OptionPosition::kWholeValue), "a b;c");
  EXPECT_EQ(EscapeOption("a b;c", OptionPosition::kListItem), R"(a b\;c)");
  EXPECT_EQ(EscapeOption(R"(a,b\)", OptionPosition::kWholeValue), R"(a\,b\\)");
  EXPECT_EQ(EscapeOption("  ", OptionPosition::kWholeValue), R"(\ \ )");
  EXPECT_EQ(EscapeOption(" ", OptionPosition::kWholeValue), R"(\ )");
}

}  // namespace
}  // namespace spanprof
