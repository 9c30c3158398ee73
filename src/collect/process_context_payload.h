#pragma once

// The payload of an OTEP 4719 process context: a protobuf message
//
//   ProcessContext { Resource resource = 1 { repeated KeyValue attributes = 1 }
//                    repeated KeyValue attributes = 2 }
//   KeyValue { string key = 1; AnyValue value = 2 }
//
// written by another process, and so hostile: nothing that it holds makes the parser throw, recurse
// deeply or use more memory than a small multiple of its size.

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"

namespace spanprof::collect {

inline constexpr std::size_t kMaxProcessContextBytes = std::size_t{1} << 20;
inline constexpr std::size_t kMaxKeyMapEntries = 256;
inline constexpr std::size_t kMaxResourceAttributes = 1024;

// A list's elements, and what is neither a list nor a scalar (a key-value list, bytes), are text.
using AttributeValue = std::variant<std::string, bool, int64_t, double, std::vector<std::string>>;

// How V8's objects are laid out in the process, as the first versions of the draft for Node.js have
// it told.
struct NodeLayout {
  int64_t record_offset = -1;  // in an object that leads to a record
  int64_t tagged_size = -1;
  int64_t map_table_offset = -1;
  int64_t table_header_size = -1;
};

struct ProcessContext {
  std::map<std::string, AttributeValue> resource;  // the last value of a key wins
  std::vector<std::string> key_map;                // threadlocal.attribute_key_map
  std::string schema_version;                      // threadlocal.schema_version
  NodeLayout node;                                 // -1: not told
  uint64_t dropped_attributes = 0;                 // beyond a limit, or without a usable value
};

// Fails with EBADMSG if the payload is not such a message, with EFBIG if it is too large.
[[nodiscard]] Result<ProcessContext> ParseProcessContext(std::string_view payload);

// For people.
[[nodiscard]] std::string AttributeText(const AttributeValue& value);

}  // namespace spanprof::collect
