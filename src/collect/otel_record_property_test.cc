#include <cstdio>
#include <cstring>
#include <map>
#include <rapidcheck.h>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "collect/otel_record.h"
#include <spanprof/internal/records.hpp>

namespace spanprof::collect {
namespace {

TEST(OtelRecordProperty, ReadsBackWhatFitsAndSaysWhatDoesNot) {
  EXPECT_TRUE(rc::check([](const std::vector<std::pair<uint8_t, std::string>>& entries) {
    std::vector<std::byte> bytes(internal::kOtelAttributesOffset);
    bytes[internal::kOtelValidOffset] = std::byte{1};
    std::map<uint8_t, std::string> expected;
    for (const auto& [key, text] : entries) {
      const std::string value = text.substr(0, internal::kOtelMaxValueBytes);
      bytes.push_back(std::byte{key});
      bytes.push_back(std::byte(value.size()));
      for (const char letter : value) bytes.push_back(std::byte(letter));
      if (bytes.size() <= internal::kOtelRecordBytes) expected[key] = value;
    }
    const auto size = static_cast<uint16_t>(bytes.size() - internal::kOtelAttributesOffset);
    std::memcpy(&bytes[internal::kOtelAttributesSizeOffset], &size, sizeof(size));
    const auto record = ParseOtelRecord(bytes);
    RC_ASSERT(record.has_value());
    std::map<uint8_t, std::string> actual;
    for (const OtelAttribute& attribute : record->attributes) {
      actual[attribute.key] = attribute.value;
    }
    RC_CLASSIFY(bytes.size() > internal::kOtelRecordBytes, "too long");
    RC_ASSERT(actual == expected);
    RC_ASSERT(record->truncated == (bytes.size() > internal::kOtelRecordBytes));
  }));
}

TEST(OtelRecordProperty, ReadsAnyRootBack) {
  EXPECT_TRUE(rc::check([](uint64_t root) {
    char text[17];
    std::snprintf(text, sizeof(text), "%016lx", root);
    OtelRecord record;
    record.attributes.push_back({internal::kLocalRootKeyIndex, text});
    RC_ASSERT(LocalRoot(record, {}).span_id == root);
    RC_ASSERT(!LocalRoot(record, {}).malformed);
  }));
}

}  // namespace
}  // namespace spanprof::collect
