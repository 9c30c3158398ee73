#include "format/gzip.h"

#include <cerrno>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace spanprof::format {
namespace {

using ::testing::HasSubstr;

TEST(Gzip, WhatWasCompressedComesBack) {
  for (const size_t size : {0, 1, 1000, 1'000'000}) {
    std::string text;
    for (size_t i = 0; i < size; ++i) text += static_cast<char>(i * i >> 3);
    const auto compressed = Compress(text);
    ASSERT_TRUE(compressed);
    EXPECT_TRUE(IsGzip(*compressed));
    EXPECT_EQ(Decompress(*compressed, size).value(), text);
    EXPECT_EQ(DecompressPrefix(*compressed, 100), text.substr(0, 100));
  }
}

TEST(Gzip, SeveralMembersAreOneFile) {
  const std::string both = *Compress("one ") + *Compress("two");
  EXPECT_EQ(Decompress(both, 100).value(), "one two");
}

TEST(Gzip, ABombIsRefused) {
  const std::string bomb = *Compress(std::string(100'000'000, '\0'));
  ASSERT_LT(bomb.size(), 200'000u);
  const auto result = Decompress(bomb, 1'000'000);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, EFBIG);
  EXPECT_THAT(result.error().message, HasSubstr("more than 1000000 bytes"));
  EXPECT_FALSE(result.error().hint.empty());
  // Exactly at the limit is not beyond it.
  EXPECT_FALSE(Decompress(*Compress("12345"), 4));
  EXPECT_TRUE(Decompress(*Compress("12345"), 5));
}

TEST(Gzip, EveryTruncationIsAnError) {
  const std::string whole = *Compress("a text that is long enough to be compressed, compressed");
  for (size_t size = 0; size < whole.size(); ++size) {
    const auto result = Decompress(whole.substr(0, size), 1000);
    ASSERT_FALSE(result) << size;
    EXPECT_EQ(result.error().code, EINVAL);
  }
  EXPECT_THAT(Decompress(whole.substr(0, 30), 1000).error().message,
              HasSubstr("cut off at byte 30"));
}

TEST(Gzip, BrokenDataIsAnErrorWithItsPlace) {
  std::string broken = *Compress(std::string(1000, 'x') + "y");
  broken[12] = static_cast<char>(broken[12] ^ 0x55);
  const auto result = Decompress(broken, 10'000);
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().message, HasSubstr("at byte "));
  EXPECT_THAT(Decompress(*Compress("a") + "rest", 100).error().message,
              HasSubstr("ends at byte 21, but is 25"));
}

}  // namespace
}  // namespace spanprof::format
