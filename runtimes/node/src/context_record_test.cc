#include "context_record.h"

#include <array>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace spanprof::node {
namespace {

struct Encoded {
  std::array<uint8_t, kMaxContextBytes> bytes{};
  size_t size = 0;
  ContextCuts cuts;

  explicit Encoded(const ContextFields& fields) { size = EncodeContext(fields, bytes, &cuts); }
  std::span<const uint8_t> used() const { return {bytes.data(), size}; }
};

TEST(ContextRecord, HasTheBytesThatOtepReadersExpect) {
  ContextFields fields;
  fields.trace_id_high = 0x4bf92f3577b34da6;
  fields.trace_id_low = 0xa3ce929d0e0e4736;
  fields.span_id = 0x00f067aa0ba902b7;
  fields.root_span_id = 0x1234;
  fields.tags[2] = "eu";
  const Encoded encoded(fields);
  const uint8_t expected[] = {0x4b, 0xf9, 0x2f, 0x35, 0x77, 0xb3, 0x4d, 0xa6, 0xa3, 0xce,
                              0x92, 0x9d, 0x0e, 0x0e, 0x47, 0x36, 0x00, 0xf0, 0x67, 0xaa,
                              0x0b, 0xa9, 0x02, 0xb7, 1,    0,    22,   0,    0,    16};
  EXPECT_EQ(std::vector<uint8_t>(encoded.bytes.begin(), encoded.bytes.begin() + 30),
            std::vector<uint8_t>(std::begin(expected), std::end(expected)));
  const std::string text(encoded.bytes.begin() + 30, encoded.bytes.begin() + encoded.size);
  EXPECT_EQ(text, std::string("0000000000001234\x03\x02") + "eu" + std::string(1, '\0'));
}

TEST(ContextRecord, IsReadBackAsItWasWritten) {
  ContextFields fields;
  fields.trace_id_low = 1;
  fields.span_id = UINT64_MAX;
  fields.root_span_id = 0xfedcba9876543210;
  fields.endpoint = "GET /cart";
  fields.tags[0] = "first";
  fields.tags[9] = "last";
  const Encoded encoded(fields);
  const std::optional<ContextFields> read = DecodeContext(encoded.used());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->trace_id_low, 1u);
  EXPECT_EQ(read->span_id, UINT64_MAX);
  EXPECT_EQ(read->root_span_id, 0xfedcba9876543210u);
  EXPECT_EQ(read->endpoint, "GET /cart");
  EXPECT_EQ(read->tags[0], "first");
  EXPECT_EQ(read->tags[1], "");
  EXPECT_EQ(read->tags[9], "last");
}

TEST(ContextRecord, WhatFindsNoRoomIsCutBetweenCharactersAndCounted) {
  const std::string umlauts = [] {
    std::string text;
    for (int i = 0; i < 200; ++i) text += "\xC3\xA4";
    return text;
  }();
  ContextFields fields;
  for (auto& tag : fields.tags) tag = umlauts;
  fields.endpoint = umlauts;
  const Encoded encoded(fields);
  EXPECT_LE(encoded.size, kMaxContextBytes);
  EXPECT_EQ(encoded.cuts.tags, 10u);
  EXPECT_EQ(encoded.cuts.endpoints, 1u);
  const std::optional<ContextFields> read = DecodeContext(encoded.used());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->tags[0].size(), 254u);
  EXPECT_EQ(read->endpoint.size(), 254u);
}

TEST(ContextRecord, IdsAreHexadecimalDigitsAndNothingElse) {
  uint64_t id = 7;
  ASSERT_TRUE(ParseSpanId("00f067aa0ba902B7", &id));
  EXPECT_EQ(id, 0x00f067aa0ba902b7u);
  ASSERT_TRUE(ParseSpanId("89abcdefABCDEF01", &id));
  EXPECT_EQ(id, 0x89abcdefabcdef01u);
  ASSERT_TRUE(ParseSpanId("", &id));
  EXPECT_EQ(id, 0u);
  EXPECT_FALSE(ParseSpanId("00000000000000001", &id));
  const std::string digits = "0123456789abcdefABCDEF";
  for (int c = 0; c < 256; ++c) {
    const bool is_digit = c != 0 && digits.find(static_cast<char>(c)) != std::string::npos;
    EXPECT_EQ(ParseSpanId("12" + std::string(1, static_cast<char>(c)) + "3", &id), is_digit) << c;
  }
  uint64_t high = 7;
  uint64_t low = 7;
  ASSERT_TRUE(ParseTraceId("10000000000000002", &high, &low));
  EXPECT_EQ(high, 1u);
  EXPECT_EQ(low, 2u);
  EXPECT_FALSE(ParseTraceId("100000000000000000000000000000002", &high, &low));
  EXPECT_FALSE(ParseTraceId("0x10", &high, &low));
}

TEST(ContextRecord, AnyBytesAreReadWithinTheirBounds) {
  std::mt19937 random(11);
  ContextFields fields;
  fields.tags[1] = "value";
  fields.endpoint = "somewhere";
  const Encoded good(fields);
  for (int round = 0; round < 20000; ++round) {
    std::vector<uint8_t> bytes(good.bytes.begin(), good.bytes.begin() + random() % good.size);
    for (int change = 0; change < 3 && !bytes.empty(); ++change) {
      bytes[random() % bytes.size()] = static_cast<uint8_t>(random());
    }
    const std::optional<ContextFields> read = DecodeContext(bytes);
    if (!read) continue;
    const auto* end = reinterpret_cast<const char*>(bytes.data() + bytes.size());
    for (const std::string_view tag : read->tags) {
      if (tag.empty()) continue;
      ASSERT_LE(tag.data() + tag.size(), end);
    }
    ASSERT_LE(read->endpoint.data() + read->endpoint.size(), end);
  }
}

}  // namespace
}  // namespace spanprof::node
