#include "collect/otel_record.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <utility>

#include <spanprof/internal/records.hpp>

namespace spanprof::collect {
namespace {

uint64_t LoadBigEndian64(std::span<const std::byte> bytes, std::size_t offset) {
  uint64_t value = 0;
  std::memcpy(&value, bytes.data() + offset, sizeof(value));
  return __builtin_bswap64(value);
}

unsigned ByteAt(std::span<const std::byte> bytes, std::size_t offset) {
  return std::to_integer<unsigned>(bytes[offset]);
}

void ParseAttributes(std::span<const std::byte> entries, OtelRecord& record) {
  std::array<std::optional<std::span<const std::byte>>, 256> last_of_key;
  while (!entries.empty()) {
    if (entries.size() < 2 || entries.size() - 2 < ByteAt(entries, 1)) {
      record.truncated = true;
      break;
    }
    const std::size_t length = ByteAt(entries, 1);
    last_of_key[ByteAt(entries, 0)] = entries.subspan(2, length);
    entries = entries.subspan(2 + length);
  }
  for (unsigned key = 0; key < last_of_key.size(); ++key) {
    if (!last_of_key[key]) continue;
    OtelAttribute attribute;
    attribute.key = static_cast<uint8_t>(key);
    attribute.value.assign(reinterpret_cast<const char*>(last_of_key[key]->data()),
                           last_of_key[key]->size());
    record.attributes.push_back(std::move(attribute));
  }
}

}  // namespace

std::optional<OtelRecord> ParseOtelRecord(std::span<const std::byte> bytes) {
  if (bytes.size() < internal::kOtelAttributesOffset) return std::nullopt;
  if (ByteAt(bytes, internal::kOtelValidOffset) != 1) return std::nullopt;
  OtelRecord record;
  record.trace_id_high = LoadBigEndian64(bytes, internal::kOtelTraceIdOffset);
  record.trace_id_low = LoadBigEndian64(bytes, internal::kOtelTraceIdOffset + 8);
  record.span_id = LoadBigEndian64(bytes, internal::kOtelSpanIdOffset);
  record.trace_flags = static_cast<uint8_t>(ByteAt(bytes, internal::kOtelFlagsOffset));
  uint16_t announced = 0;
  std::memcpy(&announced, bytes.data() + internal::kOtelAttributesSizeOffset, sizeof(announced));
  auto entries = bytes.first(std::min(bytes.size(), internal::kOtelRecordBytes))
                     .subspan(internal::kOtelAttributesOffset);
  if (announced > entries.size()) record.truncated = true;
  ParseAttributes(entries.first(std::min<std::size_t>(announced, entries.size())), record);
  return record;
}

std::optional<uint8_t> LocalRootKey(std::span<const std::string> key_map) {
  if (key_map.empty()) return internal::kLocalRootKeyIndex;
  const auto found = std::find(key_map.begin(), key_map.end(), internal::kLocalRootKey);
  if (found == key_map.end() || found - key_map.begin() > UINT8_MAX) return std::nullopt;
  return static_cast<uint8_t>(found - key_map.begin());
}

LocalRootValue LocalRoot(const OtelRecord& record, std::span<const std::string> key_map) {
  LocalRootValue root;
  const auto key = LocalRootKey(key_map);
  if (!key) return root;
  for (const OtelAttribute& attribute : record.attributes) {
    if (attribute.key != *key) continue;
    const char* const end = attribute.value.data() + attribute.value.size();
    const auto parsed = std::from_chars(attribute.value.data(), end, root.span_id, 16);
    if (attribute.value.size() != 16 || parsed.ec != std::errc() || parsed.ptr != end) {
      root.span_id = 0;
      root.malformed = true;
    }
  }
  return root;
}

std::string AttributeName(uint8_t key, std::span<const std::string> key_map) {
  if (key < key_map.size()) return key_map[key];
  return "key:" + std::to_string(key);
}

}  // namespace spanprof::collect
