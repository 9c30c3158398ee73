#include "format/jfr_encoding.h"

#include <cstdint>
#include <string>

#include <gtest/gtest.h>

namespace spanprof::format::jfr {
namespace {

TEST(JfrVarintTest, IsAtMostNineBytes) {
  struct Case {
    uint64_t value;
    size_t size;
  };
  for (const Case& c :
       {Case{0, 1}, Case{127, 1}, Case{128, 2}, Case{16383, 2}, Case{16384, 3},
        Case{(uint64_t{1} << 56) - 1, 8}, Case{uint64_t{1} << 56, 9}, Case{UINT64_MAX, 9}}) {
    Output out;
    out.Varint(c.value);
    EXPECT_EQ(out.size(), c.size) << c.value;
    Input input(out.bytes(), 0, out.size());
    EXPECT_EQ(input.Varint(), c.value);
    EXPECT_TRUE(input.at_end());
    EXPECT_FALSE(input.failed());
  }
}

TEST(JfrInputTest, FailsAtItsEndAndStaysThere) {
  Input input("\x80\x80", 0, 2);
  EXPECT_EQ(input.Varint(), 0u);
  EXPECT_TRUE(input.failed());
  EXPECT_EQ(input.Bytes(0), "");
  EXPECT_EQ(input.Byte(), 0);
  EXPECT_TRUE(Input("ab", 3, 2).failed());
}

std::string Decoded(std::string_view bytes) {
  Input input(bytes, 0, bytes.size());
  const std::string text = TextOf(input.String());
  return input.failed() ? "failed" : text;
}

TEST(JfrStringTest, HasSixEncodings) {
  using namespace std::string_literals;  // NOLINT(google-build-using-namespace)
  EXPECT_EQ(Decoded("\0"s), "");
  EXPECT_EQ(Decoded("\1"s), "");
  EXPECT_EQ(Decoded("\3\3abc"s), "abc");
  EXPECT_EQ(Decoded("\5\2\xe4x"s), "äx");
  // U+00E4, U+1D11E as two surrogates, a lone surrogate at the end.
  Output out;
  out.Byte(4);
  out.Varint(4);
  for (const uint64_t unit : {0xe4, 0xd834, 0xdd1e, 0xd834}) out.Varint(unit);
  EXPECT_EQ(Decoded(out.bytes()), "ä𝄞\xef\xbf\xbd");
  EXPECT_EQ(Decoded("\3\4abc"s), "failed");
  EXPECT_EQ(Decoded("\6"s), "failed");
}

TEST(JfrEventTest, ItsSizeCountsItself) {
  for (const size_t body : {1, 126, 127, 128, 16381, 16382, 16383}) {
    Output out;
    out.Event(std::string(body, 'x'));
    Input input(out.bytes(), 0, out.size());
    EXPECT_EQ(input.Varint(), out.size());
    EXPECT_EQ(input.remaining(), body);
  }
}

}  // namespace
}  // namespace spanprof::format::jfr
