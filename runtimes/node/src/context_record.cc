#include "context_record.h"

#include <algorithm>
#include <cstring>

#include "base/otel_record_view.h"

namespace spanprof::node {
namespace {

constexpr size_t kHexDigits = 16;

// W3C byte order: the first byte is the highest.
void StoreBigEndian(uint8_t* to, uint64_t value) {
  const uint64_t swapped = __builtin_bswap64(value);
  memcpy(to, &swapped, sizeof swapped);
}

void StoreHex(uint8_t* to, uint64_t value) {
  for (size_t i = 0; i < kHexDigits; ++i) {
    to[i] = static_cast<uint8_t>("0123456789abcdef"[(value >> (60 - 4 * i)) & 0xF]);
  }
}

constexpr uint8_t kNoDigit = 0xFF;

constexpr std::array<uint8_t, 256> DigitValues() {
  std::array<uint8_t, 256> values{};
  values.fill(kNoDigit);
  for (uint8_t i = 0; i < 10; ++i) values[size_t{'0'} + i] = i;
  for (uint8_t i = 0; i < 6; ++i) {
    values[size_t{'a'} + i] = static_cast<uint8_t>(10 + i);
    values[size_t{'A'} + i] = static_cast<uint8_t>(10 + i);
  }
  return values;
}
constexpr std::array<uint8_t, 256> kDigitValues = DigitValues();

// Ids are read whenever a context is set: without a branch for each digit.
bool ParseHex(std::string_view text, uint64_t* value) {
  if (text.size() > kHexDigits) return false;
  uint64_t result = 0;
  uint8_t seen = 0;
  for (const char c : text) {
    const uint8_t digit = kDigitValues[static_cast<uint8_t>(c)];
    seen |= digit;
    result = result << 4 | digit;
  }
  *value = result;
  return seen < 16;
}

// The length at which a text may be cut without cutting a character of UTF-8.
size_t CutLength(std::string_view text, size_t limit) {
  if (text.size() <= limit) return text.size();
  while (limit > 0 && (static_cast<unsigned char>(text[limit]) & 0xC0) == 0x80) --limit;
  return limit;
}

}  // namespace

bool ContextFields::empty() const {
  return trace_id_high == 0 && trace_id_low == 0 && span_id == 0 && root_span_id == 0 &&
         endpoint.empty() &&
         std::all_of(tags.begin(), tags.end(), [](std::string_view tag) { return tag.empty(); });
}

bool ParseSpanId(std::string_view text, uint64_t* id) { return ParseHex(text, id); }

bool ParseTraceId(std::string_view text, uint64_t* high, uint64_t* low) {
  const size_t lower = std::min(text.size(), kHexDigits);
  return ParseHex(text.substr(text.size() - lower), low) &&
         ParseHex(text.substr(0, text.size() - lower), high);
}

size_t EncodeContext(const ContextFields& fields, std::span<uint8_t, kMaxContextBytes> to,
                     ContextCuts* cuts) {
  uint8_t* const record = to.data();
  StoreBigEndian(record + internal::kOtelTraceIdOffset, fields.trace_id_high);
  StoreBigEndian(record + internal::kOtelTraceIdOffset + 8, fields.trace_id_low);
  StoreBigEndian(record + internal::kOtelSpanIdOffset, fields.span_id);
  uint8_t* const attributes = record + internal::kOtelAttributesOffset;
  attributes[0] = internal::kLocalRootKeyIndex;
  attributes[1] = kHexDigits;
  StoreHex(attributes + 2, fields.root_span_id);
  size_t used = internal::kLocalRootEntryBytes;
  for (unsigned slot = 0; slot < internal::kTagCount; ++slot) {
    const std::string_view value = fields.tags[slot];
    if (value.empty()) continue;
    const size_t room = internal::kOtelMaxAttributesBytes - used;
    const size_t limit = room < 2 ? 0 : std::min(room - 2, internal::kOtelMaxValueBytes);
    const size_t length = CutLength(value, limit);
    if (length < value.size()) ++cuts->tags;
    if (length == 0) continue;
    attributes[used] = static_cast<uint8_t>(internal::kFirstTagKeyIndex + slot);
    attributes[used + 1] = static_cast<uint8_t>(length);
    memcpy(attributes + used + 2, value.data(), length);
    used += 2 + length;
  }
  const uint32_t state = internal::OtelRecordState(1, 0, static_cast<uint32_t>(used));
  memcpy(record + internal::kOtelValidOffset, &state, sizeof state);

  uint8_t* const behind = attributes + used;
  const size_t endpoint_length = CutLength(fields.endpoint, kMaxEndpointBytes);
  if (endpoint_length < fields.endpoint.size()) ++cuts->endpoints;
  behind[0] = static_cast<uint8_t>(endpoint_length);
  if (endpoint_length > 0) memcpy(behind + 1, fields.endpoint.data(), endpoint_length);
  return static_cast<size_t>(behind + 1 + endpoint_length - record);
}

std::optional<ContextFields> DecodeContext(std::span<const uint8_t> bytes) {
  const auto view = ViewOtelRecord(std::as_bytes(bytes));
  if (!view || view->cut) return std::nullopt;
  const size_t record_size = internal::kOtelAttributesOffset + view->attributes.size();
  if (bytes.size() == record_size) return std::nullopt;
  ContextFields fields;
  fields.trace_id_high = view->trace_id_high;
  fields.trace_id_low = view->trace_id_low;
  fields.span_id = view->span_id;
  const bool whole =
      ForEachOtelAttribute(view->attributes, [&](uint8_t key, std::string_view value) {
        if (key == internal::kLocalRootKeyIndex) {
          if (!ParseHex(value, &fields.root_span_id)) fields.root_span_id = 0;
        } else if (key - internal::kFirstTagKeyIndex < int{internal::kTagCount}) {
          fields.tags[key - internal::kFirstTagKeyIndex] = value;
        }
      });
  const std::span<const uint8_t> behind = bytes.subspan(record_size);
  if (!whole || behind.size() - 1 < behind[0]) return std::nullopt;
  fields.endpoint = std::string_view(reinterpret_cast<const char*>(behind.data()) + 1, behind[0]);
  return fields;
}

}  // namespace spanprof::node
