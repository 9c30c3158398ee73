#include "context/otel_attributes.h"

#include <cstring>

#include "context/counters.h"

namespace spanprof::context {

using internal::ThreadContext;

namespace {

uint64_t LoadBytes(const char* from) {
  uint64_t value;
  memcpy(&value, from, sizeof value);
  return value;
}

// Eight bytes at a time as far as that goes.
void StoreBytes(unsigned char* to, const char* from, size_t bytes) {
  for (size_t i = 0; i + 8 <= bytes; i += 8) internal::StoreRecord64(to + i, LoadBytes(from + i));
  for (size_t i = bytes & ~size_t{7}; i < bytes; ++i) {
    *const_cast<volatile unsigned char*>(to + i) = static_cast<unsigned char>(from[i]);
  }
}

// The length at which a value may be cut without cutting a UTF-8 character.
size_t CutLength(std::string_view value, size_t limit) {
  if (value.size() <= limit) return value.size();
  while (limit > 0 && (static_cast<unsigned char>(value[limit]) & 0xC0) == 0x80) --limit;
  return limit;
}

}  // namespace

void InitialiseOtelRecord(ThreadContext& context) {
  memset(context.hex_constants.low_nibble, 0x0F, sizeof context.hex_constants.low_nibble);
  memset(context.hex_constants.nine, 9, sizeof context.hex_constants.nine);
  memset(context.hex_constants.letter_offset, 'a' - '0' - 10,
         sizeof context.hex_constants.letter_offset);
  memset(context.hex_constants.zero_digit, '0', sizeof context.hex_constants.zero_digit);
  unsigned char* record = context.otel_record;
  internal::StoreRecord64(record + internal::kOtelTraceIdOffset, 0);
  internal::StoreRecord64(record + internal::kOtelTraceIdOffset + 8, 0);
  internal::StoreRecord64(record + internal::kOtelSpanIdOffset, 0);
  internal::StoreRecord32(record + internal::kOtelValidOffset, 0);
  unsigned char* entry = record + internal::kOtelAttributesOffset;
  *const_cast<volatile unsigned char*>(entry) = internal::kLocalRootKeyIndex;
  *const_cast<volatile unsigned char*>(entry + 1) = 16;
  internal::StoreHex64(entry + 2, 0, context.hex_constants);
  context.otel_attributes_size.store(internal::kLocalRootEntryBytes, std::memory_order_relaxed);
}

void WriteTagAttributes(ThreadContext& context, const TagDictionary& dictionary) {
  unsigned char* const entries = context.otel_record + internal::kOtelAttributesOffset;
  size_t used = internal::kLocalRootEntryBytes;
  for (unsigned slot = 0; slot < internal::kTagCount; ++slot) {
    const std::string_view value = dictionary.Find(internal::LoadTag(context.record, slot));
    if (value.empty()) continue;
    const size_t room = internal::kOtelMaxAttributesBytes - used;
    if (room <= 2) {
      Count(Counter::kAttributeCut);
      continue;
    }
    const size_t limit =
        room - 2 < internal::kOtelMaxValueBytes ? room - 2 : internal::kOtelMaxValueBytes;
    const size_t length = CutLength(value, limit);
    if (length < value.size()) Count(Counter::kAttributeCut);
    if (length == 0) continue;
    *const_cast<volatile unsigned char*>(entries + used) =
        static_cast<unsigned char>(internal::kFirstTagKeyIndex + slot);
    *const_cast<volatile unsigned char*>(entries + used + 1) = static_cast<unsigned char>(length);
    StoreBytes(entries + used + 2, value.data(), length);
    used += 2 + length;
  }
  context.otel_attributes_size.store(static_cast<uint32_t>(used), std::memory_order_relaxed);
}

}  // namespace spanprof::context
