#pragma once

// The OTEP 4947 thread context record, parsed from bytes that another process wrote.
//
//   if (auto record = ParseOtelRecord(bytes)) {
//     auto root = LocalRoot(*record, key_map);
//     for (const OtelAttribute& attribute : record->attributes) ...
//   }

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace spanprof::collect {

struct OtelAttribute {
  uint8_t key = 0;    // index into the process's key map
  std::string value;  // any bytes
};

struct OtelRecord {
  uint64_t trace_id_high = 0;
  uint64_t trace_id_low = 0;
  uint64_t span_id = 0;
  uint8_t trace_flags = 0;
  // One a key, ascending. An empty value is a value.
  std::vector<OtelAttribute> attributes;
  // An entry, or all of them, ended behind the announced size or the record; the rest was left out.
  bool truncated = false;
};

// Returns nothing for a record that is not valid: being written, detached, or too short to be one.
// At most kOtelRecordBytes of `bytes` are looked at.
[[nodiscard]] std::optional<OtelRecord> ParseOtelRecord(std::span<const std::byte> bytes);

struct LocalRootValue {
  uint64_t span_id = 0;    // 0: none
  bool malformed = false;  // there is one, but it is not sixteen hex digits
};

// The key index of the local root; nothing if the key map has none. Without a key map it is the
// first key, because a record that our table leads to is one of our publisher's.
[[nodiscard]] std::optional<uint8_t> LocalRootKey(std::span<const std::string> key_map);
[[nodiscard]] LocalRootValue LocalRoot(const OtelRecord& record,
                                       std::span<const std::string> key_map);

// The name of a key, or `key:N` if the map does not have it.
[[nodiscard]] std::string AttributeName(uint8_t key, std::span<const std::string> key_map);

}  // namespace spanprof::collect
