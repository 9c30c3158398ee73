#pragma once

// Fills the dictionary of an OTLP request. Entry 0 of every table is the zero value, so what is
// added is counted from 1, and 0 says "none".

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tsl/robin_map.h>

#include "format/format_locations.h"
#include "profile/profile.h"
#include "profile/string_table.h"

namespace spanprof::format::otlp {

class DictionaryWriter {
 public:
  explicit DictionaryWriter(const profile::Profile& profile);

  int32_t Text(std::string_view text);
  // Attributes: the same key and value are stored once.
  int32_t TextAttribute(std::string_view key, std::string_view value);
  int32_t IntAttribute(std::string_view key, int64_t value);
  int32_t BoolAttribute(std::string_view key, bool value);
  int32_t Link(const profile::Context& context);
  int32_t Stack(profile::StackId stack);

  // The whole table. To be called once, at the end.
  std::string Write();

 private:
  int32_t AddAttribute(std::string_view key, std::string value);
  void WriteMappings(std::string& out);
  void WriteLocations(std::string& out);
  void WriteFunctions(std::string& out);
  int32_t Function(profile::FunctionId id);
  int32_t Mapping(profile::MappingId id);

  const profile::Profile& profile_;
  LocationTable locations_;
  profile::StringTable strings_;
  std::map<std::pair<int32_t, std::string>, int32_t> attribute_index_;  // key, encoded AnyValue
  std::vector<std::pair<int32_t, std::string>> attributes_;
  std::map<std::array<uint64_t, 3>, int32_t> link_index_;
  std::vector<std::array<uint64_t, 3>> links_;  // trace id high, low; span id
  tsl::robin_map<profile::StackId, int32_t> stack_index_;
  std::vector<std::vector<uint32_t>> stacks_;
  std::vector<int32_t> function_index_;  // by FunctionId; 0: not used
  std::vector<profile::FunctionId> functions_;
  std::vector<int32_t> mapping_index_;  // by MappingId; 0: not used
  std::vector<profile::MappingId> mappings_;
};

// Appends the number as OTLP has ids: big-endian.
void AppendBigEndian(std::string& out, uint64_t value);

}  // namespace spanprof::format::otlp
