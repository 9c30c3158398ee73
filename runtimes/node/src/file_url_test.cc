#include "file_url.h"

#include <gtest/gtest.h>

namespace spanprof::node {
namespace {

TEST(FileUrl, IsThePathThatItNames) {
  EXPECT_EQ(PathOfUrl("file:///srv/a%20b/%C3%A4.mjs"), "/srv/a b/\xC3\xA4.mjs");
}

TEST(FileUrl, AnythingElseStaysAsItIs) {
  EXPECT_EQ(PathOfUrl("/srv/app%20.js"), "/srv/app%20.js");
  EXPECT_EQ(PathOfUrl("node:internal/timers"), "node:internal/timers");
  EXPECT_EQ(PathOfUrl(""), "");
}

TEST(FileUrl, APercentSignThatEncodesNothingStays) {
  EXPECT_EQ(PathOfUrl("file:///100%"), "/100%");
  EXPECT_EQ(PathOfUrl("file:///a%4"), "/a%4");
  EXPECT_EQ(PathOfUrl("file:///a%zz"), "/a%zz");
  EXPECT_EQ(PathOfUrl("file:///a%41"), "/aA");
}

}  // namespace
}  // namespace spanprof::node
