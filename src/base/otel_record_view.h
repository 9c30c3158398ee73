#pragma once

// A record of OTEP 4947 in place: its ids, and its attributes one after the other. The bytes may be
// anybody's: nothing is read behind their end. Pure and signal-safe.
//
//   if (auto view = ViewOtelRecord(bytes)) {
//     bool whole = ForEachOtelAttribute(view->attributes, [](uint8_t key, std::string_view value)
//     {});
//   }

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>

#include <spanprof/internal/records.hpp>

namespace spanprof {

struct OtelRecordView {
  uint64_t trace_id_high = 0;
  uint64_t trace_id_low = 0;
  uint64_t span_id = 0;
  uint8_t trace_flags = 0;
  std::span<const std::byte> attributes;
  bool cut = false;  // more attributes were announced than there are bytes
};

// Nothing for a record that is not valid: being written, detached, or too short to be one.
inline std::optional<OtelRecordView> ViewOtelRecord(std::span<const std::byte> bytes) {
  if (bytes.size() < internal::kOtelAttributesOffset) return std::nullopt;
  if (bytes[internal::kOtelValidOffset] != std::byte{1}) return std::nullopt;
  const auto big_endian = [bytes](std::size_t offset) {
    uint64_t value = 0;
    std::memcpy(&value, bytes.data() + offset, sizeof(value));
    return __builtin_bswap64(value);
  };
  OtelRecordView view;
  view.trace_id_high = big_endian(internal::kOtelTraceIdOffset);
  view.trace_id_low = big_endian(internal::kOtelTraceIdOffset + 8);
  view.span_id = big_endian(internal::kOtelSpanIdOffset);
  view.trace_flags = std::to_integer<uint8_t>(bytes[internal::kOtelFlagsOffset]);
  uint16_t announced = 0;
  std::memcpy(&announced, bytes.data() + internal::kOtelAttributesSizeOffset, sizeof(announced));
  const auto room = bytes.first(std::min(bytes.size(), internal::kOtelRecordBytes))
                        .subspan(internal::kOtelAttributesOffset);
  view.cut = announced > room.size();
  view.attributes = room.first(std::min<std::size_t>(announced, room.size()));
  return view;
}

// False: the last one has no end.
template <class Take>
bool ForEachOtelAttribute(std::span<const std::byte> attributes, Take take) {
  while (!attributes.empty()) {
    if (attributes.size() < 2) return false;
    const auto length = std::to_integer<std::size_t>(attributes[1]);
    if (attributes.size() - 2 < length) return false;
    const auto* const text = reinterpret_cast<const char*>(attributes.data()) + 2;
    take(std::to_integer<uint8_t>(attributes[0]), std::string_view(text, length));
    attributes = attributes.subspan(2 + length);
  }
  return true;
}

}  // namespace spanprof
