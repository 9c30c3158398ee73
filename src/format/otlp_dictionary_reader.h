#pragma once

// Reads the dictionary of an OTLP request into a profile. The file is hostile: numbers are checked
// when they are used, and what is not there counts as entry 0.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <protozero/pbf_reader.hpp>

#include "format/format_budget.h"
#include "profile/profile.h"

namespace spanprof::format::otlp {

// An attribute's value. Lists and maps are not kept.
struct Value {
  enum class Type : uint8_t { kNone, kText, kNumber, kOther };
  Type type = Type::kNone;
  std::string_view text;  // in the file; kText
  int64_t number = 0;     // kNumber: an int or a bool
};

struct Attribute {
  std::string_view key;
  Value value;
};

struct Link {
  uint64_t trace_id_high = 0;
  uint64_t trace_id_low = 0;
  uint64_t span_id = 0;
};

class DictionaryReader {
 public:
  // Both have to outlive this.
  DictionaryReader(ReadBudget& budget, profile::Profile& profile)
      : budget_(budget), profile_(profile) {}

  // False if it would need too much memory. Throws protozero::exception where the file is broken.
  bool Read(std::string_view bytes);

  std::string_view Text(int64_t index);
  const std::vector<Attribute>& attributes() const { return attributes_; }
  Link LinkAt(int64_t index);
  profile::StackId StackAt(int64_t index);
  Value ReadValue(protozero::pbf_reader message);
  void CountBadReference() { profile_.AddToCounter("otlp.bad_reference", 1); }

 private:
  template <class T>
  T At(const std::vector<T>& table, int64_t index);
  template <class Handle>
  bool ForEach(std::string_view bytes, protozero::pbf_tag_type table, Handle handle);
  bool ReadAttribute(protozero::pbf_reader message);
  bool ReadLink(protozero::pbf_reader message);
  bool ReadFunction(protozero::pbf_reader message);
  bool ReadMapping(protozero::pbf_reader message);
  bool ReadLocation(protozero::pbf_reader message);
  bool ReadStack(protozero::pbf_reader message);
  profile::Frame ReadLine(protozero::pbf_reader message);

  struct FrameRange {
    uint32_t first = 0;
    uint32_t count = 0;
  };

  ReadBudget& budget_;
  profile::Profile& profile_;
  // By the file's own numbers.
  std::vector<std::string_view> strings_;
  std::vector<Attribute> attributes_;
  std::vector<Link> links_;
  std::vector<profile::FunctionId> functions_;
  std::vector<profile::MappingId> mappings_;
  std::vector<FrameRange> locations_;
  std::vector<profile::StackId> stacks_;
  std::vector<profile::FrameId> location_frames_;
  std::vector<profile::Frame> lines_;     // of the location that is being read
  std::vector<profile::FrameId> frames_;  // of the stack that is being read
};

// The numbers of a repeated field, packed or not.
template <class Handle>
void ForEachNumber(protozero::pbf_reader& message, Handle handle) {
  if (message.wire_type() == protozero::pbf_wire_type::length_delimited) {
    for (const int64_t number : message.get_packed_int64()) handle(number);
  } else if (message.wire_type() == protozero::pbf_wire_type::varint) {
    handle(message.get_int64());
  } else {
    message.skip();
  }
}

}  // namespace spanprof::format::otlp
