#include "collect/otel_record.h"

#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <spanprof/internal/records.hpp>

namespace spanprof::collect {
namespace {

// A valid record with these entries.
std::vector<std::byte> Record(const std::string& entries, unsigned valid = 1) {
  std::vector<std::byte> bytes(internal::kOtelRecordBytes);
  for (unsigned i = 0; i < 24; ++i) bytes[i] = std::byte(i + 1);
  const uint32_t state = internal::OtelRecordState(valid, 3, static_cast<uint32_t>(entries.size()));
  std::memcpy(&bytes[internal::kOtelValidOffset], &state, sizeof(state));
  std::memcpy(&bytes[internal::kOtelAttributesOffset], entries.data(),
              std::min(entries.size(), internal::kOtelMaxAttributesBytes));
  return bytes;
}

std::string Entry(unsigned key, const std::string& value) {
  return std::string{static_cast<char>(key), static_cast<char>(value.size())} + value;
}

TEST(OtelRecord, ReadsIdsInW3cByteOrder) {
  const auto record = ParseOtelRecord(Record(""));
  ASSERT_TRUE(record);
  EXPECT_EQ(record->trace_id_high, 0x0102030405060708u);
  EXPECT_EQ(record->trace_id_low, 0x090A0B0C0D0E0F10u);
  EXPECT_EQ(record->span_id, 0x1112131415161718u);
  EXPECT_EQ(record->trace_flags, 3);
  EXPECT_TRUE(record->attributes.empty());
  EXPECT_FALSE(record->truncated);
}

TEST(OtelRecord, RefusesWhatIsNotValid) {
  EXPECT_FALSE(ParseOtelRecord(Record("", 0)));
  EXPECT_FALSE(ParseOtelRecord(Record("", 2)));
  EXPECT_FALSE(ParseOtelRecord(Record("", 255)));
  EXPECT_FALSE(ParseOtelRecord({}));
  const auto bytes = Record("");
  EXPECT_FALSE(ParseOtelRecord(std::span(bytes).first(27)));
  EXPECT_TRUE(ParseOtelRecord(std::span(bytes).first(28)));
}

TEST(OtelRecord, TakesTheLastEntryOfAKey) {
  const auto record =
      ParseOtelRecord(Record(Entry(9, "old") + Entry(2, "") + Entry(9, "new") + Entry(255, "x")));
  ASSERT_TRUE(record);
  ASSERT_EQ(record->attributes.size(), 3u);
  EXPECT_EQ(record->attributes[0].key, 2);
  EXPECT_EQ(record->attributes[0].value, "");
  EXPECT_EQ(record->attributes[1].value, "new");
  EXPECT_EQ(record->attributes[2].key, 255);
  EXPECT_FALSE(record->truncated);
}

TEST(OtelRecord, StopsAtATruncatedEntry) {
  for (const std::string& rest : {std::string("\x05", 1), std::string("\x05\x04 abc", 4)}) {
    const auto record = ParseOtelRecord(Record(Entry(1, "kept") + rest));
    ASSERT_TRUE(record);
    ASSERT_EQ(record->attributes.size(), 1u);
    EXPECT_EQ(record->attributes[0].value, "kept");
    EXPECT_TRUE(record->truncated);
  }
}

TEST(OtelRecord, BoundsTheSizeByTheRecord) {
  auto bytes = Record(Entry(1, "kept"));
  const uint16_t size = 65535;
  std::memcpy(&bytes[internal::kOtelAttributesSizeOffset], &size, sizeof(size));
  // Behind the entry come zero bytes: empty entries of key 0, up to the record's end.
  const auto record = ParseOtelRecord(bytes);
  ASSERT_TRUE(record);
  EXPECT_TRUE(record->truncated);
  EXPECT_EQ(record->attributes.size(), 2u);
  bytes.resize(internal::kOtelRecordBytes * 2, std::byte{7});
  EXPECT_EQ(ParseOtelRecord(bytes)->attributes.size(), 2u);
}

TEST(OtelRecord, FindsTheLocalRoot) {
  const std::vector<std::string> keys = {"tenant", internal::kLocalRootKey};
  const auto root = [](const std::string& value, const std::vector<std::string>& key_map,
                       unsigned key) {
    return LocalRoot(*ParseOtelRecord(Record(Entry(key, value))), key_map);
  };
  EXPECT_EQ(root("00000000000000ff", keys, 1).span_id, 0xFFu);
  EXPECT_EQ(root("FEDCBA9876543210", keys, 1).span_id, 0xFEDCBA9876543210u);
  EXPECT_EQ(root("0000000000000000", keys, 1).span_id, 0u);
  EXPECT_FALSE(root("0000000000000000", keys, 1).malformed);
  EXPECT_EQ(root("00000000000000ff", keys, 0).span_id, 0u);
  EXPECT_EQ(root("00000000000000ff", {"tenant"}, 0).span_id, 0u);
  // Without a key map it is our own publisher's first key.
  EXPECT_EQ(root("00000000000000ff", {}, 0).span_id, 0xFFu);
  for (const char* value : {"", "ff", "00000000000000fg", "0x000000000000ff", "-0000000000000ff",
                            "00000000000000ff0", " 0000000000000ff"}) {
    EXPECT_TRUE(root(value, keys, 1).malformed) << value;
    EXPECT_EQ(root(value, keys, 1).span_id, 0u) << value;
  }
}

TEST(OtelRecord, NamesUnknownKeysByTheirNumber) {
  const std::vector<std::string> keys = {"a", "b"};
  EXPECT_EQ(AttributeName(1, keys), "b");
  EXPECT_EQ(AttributeName(2, keys), "key:2");
  EXPECT_EQ(AttributeName(255, {}), "key:255");
}

}  // namespace
}  // namespace spanprof::collect
