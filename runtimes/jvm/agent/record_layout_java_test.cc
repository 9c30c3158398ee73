#include "agent/record_layout_java.h"

#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

namespace spanprof::jvm {
namespace {

TEST(RecordLayoutJava, TheFileInTheTreeIsWhatTheHeadersGive) {
  const std::ifstream file(SPANPROF_RECORD_LAYOUT_JAVA);
  ASSERT_TRUE(file.is_open()) << SPANPROF_RECORD_LAYOUT_JAVA;
  std::ostringstream text;
  text << file.rdbuf();
  EXPECT_EQ(text.str(), RecordLayoutJava()) << "the record has changed: build record_layout";
}

}  // namespace
}  // namespace spanprof::jvm
