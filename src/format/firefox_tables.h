#pragma once

// The tables that all threads of a Firefox profile share: strings, libraries, functions, frames and
// stacks, in columns. A frame's index is its FrameId less 1, a stack's its StackId less 1.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "profile/profile.h"

namespace spanprof::format {

// A JSON array or object as it grows: puts in the commas.
class JsonList {
 public:
  void AddRaw(std::string_view json) {
    if (!text_.empty()) text_ += ',';
    text_ += json;
  }
  void AddNumber(uint64_t number) { AddRaw(std::to_string(number)); }
  void AddNumberOrNull(uint64_t number) { AddRaw(number == 0 ? "null" : std::to_string(number)); }
  void AddText(std::string_view text);
  void AddKey(std::string_view key, std::string_view json);  // of an object
  std::string AsArray() const { return "[" + text_ + "]"; }
  std::string AsObject() const { return "{" + text_ + "}"; }

 private:
  std::string text_;
};

// "12.345678": nanoseconds as milliseconds, without loss.
std::string MillisecondsText(uint64_t nanoseconds);

class FirefoxTables {
 public:
  explicit FirefoxTables(const profile::Profile& profile);

  uint32_t Text(std::string_view text);  // its index in stringArray

  std::string Libraries() const { return libraries_.AsArray(); }
  std::string Write() const;  // the object `shared`

  // One for each FrameKind, in its order; category 0 is "Other".
  static std::string Categories();
  static uint32_t CategoryOf(profile::FrameKind kind) { return static_cast<uint32_t>(kind) + 1; }

 private:
  int64_t ResourceOf(profile::MappingId mapping);  // -1: none
  uint32_t FunctionOf(const profile::Frame& frame, profile::FrameId id);
  void AddFrames();

  const profile::Profile& profile_;
  std::unordered_map<std::string, uint32_t> string_numbers_;
  std::vector<const std::string*> strings_;
  std::map<std::pair<profile::StringId, profile::StringId>, uint32_t> resource_numbers_;
  JsonList libraries_, resource_names_, resource_libraries_, resource_hosts_, resource_types_;
  using FunctionKey = std::tuple<uint32_t, int64_t, profile::StringId, bool, uint32_t>;
  std::map<FunctionKey, uint32_t> function_numbers_;
  std::map<profile::StringId, uint32_t> source_numbers_;
  JsonList source_files_, source_nulls_, source_ones_;
  JsonList function_names_, function_is_js_, function_relevant_, function_resources_;
  JsonList function_sources_, function_lines_, function_nulls_;
  JsonList frame_addresses_, frame_categories_, frame_functions_, frame_depths_, frame_lines_;
  JsonList frame_columns_, frame_zeros_, frame_nulls_;
};

}  // namespace spanprof::format
