#include "collect/otel_record.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

#include "base/otel_record_view.h"
#include <spanprof/internal/records.hpp>

namespace spanprof::collect {

std::optional<OtelRecord> ParseOtelRecord(std::span<const std::byte> bytes) {
  const auto view = ViewOtelRecord(bytes);
  if (!view) return std::nullopt;
  OtelRecord record;
  record.trace_id_high = view->trace_id_high;
  record.trace_id_low = view->trace_id_low;
  record.span_id = view->span_id;
  record.trace_flags = view->trace_flags;
  std::array<std::optional<std::string_view>, 256> last_of_key;
  const bool whole = ForEachOtelAttribute(
      view->attributes, [&](uint8_t key, std::string_view value) { last_of_key[key] = value; });
  record.truncated = view->cut || !whole;
  for (unsigned key = 0; key < last_of_key.size(); ++key) {
    if (!last_of_key[key]) continue;
    record.attributes.push_back({static_cast<uint8_t>(key), std::string(*last_of_key[key])});
  }
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
