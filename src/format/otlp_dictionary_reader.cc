#include "format/otlp_dictionary_reader.h"

#include <algorithm>
#include <limits>

#include "format/otlp_fields.h"
#include "profile/names.h"

namespace spanprof::format::otlp {
namespace {

using protozero::pbf_reader;
using protozero::pbf_wire_type;

// See pprof_tables.cc: keeps a small file from standing for an enormous one.
constexpr size_t kMaxLines = 1024;

uint32_t ToUint32(int64_t value) {
  const bool fits = value >= 0 && value <= std::numeric_limits<uint32_t>::max();
  return fits ? static_cast<uint32_t>(value) : 0;
}

uint64_t ReadBigEndian(std::string_view bytes) {
  uint64_t value = 0;
  for (const char c : bytes) value = value << 8 | static_cast<unsigned char>(c);
  return value;
}

std::string_view ViewOf(pbf_reader& message) {
  const protozero::data_view view = message.get_view();
  return {view.data(), view.size()};
}

}  // namespace

template <class T>
T DictionaryReader::At(const std::vector<T>& table, int64_t index) {
  if (index >= 0 && static_cast<uint64_t>(index) < table.size()) {
    return table[static_cast<size_t>(index)];
  }
  if (index != 0) CountBadReference();
  return T{};
}

std::string_view DictionaryReader::Text(int64_t index) { return At(strings_, index); }
Link DictionaryReader::LinkAt(int64_t index) { return At(links_, index); }
profile::StackId DictionaryReader::StackAt(int64_t index) { return At(stacks_, index); }

template <class Handle>
bool DictionaryReader::ForEach(std::string_view bytes, protozero::pbf_tag_type table,
                               Handle handle) {
  pbf_reader dictionary(bytes.data(), bytes.size());
  while (dictionary.next()) {
    if (dictionary.tag() != table || dictionary.wire_type() != pbf_wire_type::length_delimited) {
      dictionary.skip();
    } else if (!handle(dictionary)) {
      return false;
    }
  }
  return !IsOverfull(profile_);
}

bool DictionaryReader::Read(std::string_view bytes) {
  const auto read_string = [&](pbf_reader& field) {
    if (!budget_.Take(2 * sizeof(std::string_view))) return false;
    strings_.push_back(ViewOf(field));
    return true;
  };
  const auto calling = [&](auto method) {
    return [this, method](pbf_reader& field) { return (this->*method)(field.get_message()); };
  };
  // Each needs those before it.
  return ForEach(bytes, DictionaryField::kStringTable, read_string) &&
         ForEach(bytes, DictionaryField::kAttributeTable,
                 calling(&DictionaryReader::ReadAttribute)) &&
         ForEach(bytes, DictionaryField::kLinkTable, calling(&DictionaryReader::ReadLink)) &&
         ForEach(bytes, DictionaryField::kFunctionTable,
                 calling(&DictionaryReader::ReadFunction)) &&
         ForEach(bytes, DictionaryField::kMappingTable, calling(&DictionaryReader::ReadMapping)) &&
         ForEach(bytes, DictionaryField::kLocationTable,
                 calling(&DictionaryReader::ReadLocation)) &&
         ForEach(bytes, DictionaryField::kStackTable, calling(&DictionaryReader::ReadStack));
}

Value DictionaryReader::ReadValue(pbf_reader message) {
  Value value;
  while (message.next()) {
    switch (message.tag_and_type()) {
      case protozero::tag_and_type(AnyValueField::kString, pbf_wire_type::length_delimited):
        value = {.type = Value::Type::kText, .text = ViewOf(message), .number = 0};
        break;
      case protozero::tag_and_type(AnyValueField::kStringStrindex, pbf_wire_type::varint):
        value = {.type = Value::Type::kText, .text = Text(message.get_int32()), .number = 0};
        break;
      case protozero::tag_and_type(AnyValueField::kBool, pbf_wire_type::varint):
      case protozero::tag_and_type(AnyValueField::kInt, pbf_wire_type::varint):
        value = {.type = Value::Type::kNumber, .text = {}, .number = message.get_int64()};
        break;
      default:
        value.type = Value::Type::kOther;
        message.skip();
    }
  }
  return value;
}

bool DictionaryReader::ReadAttribute(pbf_reader message) {
  if (!budget_.Take(2 * sizeof(Attribute))) return false;
  Attribute attribute;
  while (message.next()) {
    switch (message.tag_and_type()) {
      case protozero::tag_and_type(KeyValueAndUnitField::kKeyStrindex, pbf_wire_type::varint):
        attribute.key = Text(message.get_int32());
        break;
      case protozero::tag_and_type(KeyValueAndUnitField::kValue, pbf_wire_type::length_delimited):
        attribute.value = ReadValue(message.get_message());
        break;
      default:
        message.skip();
    }
  }
  attributes_.push_back(attribute);
  return true;
}

bool DictionaryReader::ReadLink(pbf_reader message) {
  if (!budget_.Take(2 * sizeof(Link))) return false;
  Link link;
  while (message.next()) {
    if (message.wire_type() != pbf_wire_type::length_delimited) {
      message.skip();
      continue;
    }
    const protozero::pbf_tag_type field = message.tag();
    const std::string_view id = ViewOf(message);
    if (field == LinkField::kTraceId && id.size() == 16) {
      link.trace_id_high = ReadBigEndian(id.substr(0, 8));
      link.trace_id_low = ReadBigEndian(id.substr(8));
    } else if (field == LinkField::kSpanId && id.size() == 8) {
      link.span_id = ReadBigEndian(id);
    } else if (!id.empty()) {
      profile_.AddToCounter("otlp.bad_link", 1);
    }
  }
  links_.push_back(link);
  return true;
}

bool DictionaryReader::ReadFunction(pbf_reader message) {
  if (!budget_.Take(2 * sizeof(profile::FunctionId))) return false;
  profile::Function function;
  while (message.next()) {
    if (message.wire_type() != pbf_wire_type::varint) {
      message.skip();
      continue;
    }
    const protozero::pbf_tag_type field = message.tag();
    const int64_t number = message.get_int64();
    if (field == FunctionField::kNameStrindex) function.name = profile_.Intern(Text(number));
    if (field == FunctionField::kSystemNameStrindex) {
      function.system_name = profile_.Intern(Text(number));
    }
    if (field == FunctionField::kFilenameStrindex) function.file = profile_.Intern(Text(number));
    if (field == FunctionField::kStartLine) function.start_line = ToUint32(number);
  }
  if (function.system_name == function.name) function.system_name = profile::kNone;
  functions_.push_back(profile_.AddFunction(function));
  return true;
}

bool DictionaryReader::ReadMapping(pbf_reader message) {
  if (!budget_.Take(2 * sizeof(profile::MappingId))) return false;
  profile::Mapping mapping;
  while (message.next()) {
    if (message.tag() == MappingField::kAttributeIndices) {
      ForEachNumber(message, [&](int64_t index) {
        const Attribute attribute = At(attributes_, index);
        if (attribute.key == kBuildIdAttribute)
          mapping.build_id = profile_.Intern(attribute.value.text);
      });
    } else if (message.wire_type() != pbf_wire_type::varint) {
      message.skip();
    } else {
      const protozero::pbf_tag_type field = message.tag();
      const uint64_t number = message.get_uint64();
      if (field == MappingField::kMemoryStart) mapping.start = number;
      if (field == MappingField::kMemoryLimit) mapping.end = number;
      if (field == MappingField::kFileOffset) mapping.file_offset = number;
      if (field == MappingField::kFilenameStrindex) {
        mapping.path = profile_.Intern(Text(static_cast<int64_t>(number)));
      }
    }
  }
  mappings_.push_back(profile_.AddMapping(mapping));
  return true;
}

profile::Frame DictionaryReader::ReadLine(pbf_reader message) {
  profile::Frame frame;
  while (message.next()) {
    if (message.wire_type() != pbf_wire_type::varint) {
      message.skip();
      continue;
    }
    const protozero::pbf_tag_type field = message.tag();
    const int64_t number = message.get_int64();
    if (field == LineField::kFunctionIndex) frame.function = At(functions_, number);
    if (field == LineField::kLine) frame.line = ToUint32(number);
    if (field == LineField::kColumn) frame.column = ToUint32(number);
  }
  return frame;
}

bool DictionaryReader::ReadLocation(pbf_reader message) {
  profile::Frame shared;
  lines_.clear();
  while (message.next()) {
    if (message.tag() == LocationField::kAttributeIndices) {
      ForEachNumber(message, [&](int64_t index) {
        const Attribute attribute = At(attributes_, index);
        if (attribute.key != kFrameTypeAttribute) return;
        shared.kind = profile::FrameKindOf(attribute.value.text).value_or(shared.kind);
      });
      continue;
    }
    switch (message.tag_and_type()) {
      case protozero::tag_and_type(LocationField::kMappingIndex, pbf_wire_type::varint):
        shared.mapping = At(mappings_, message.get_int32());
        break;
      case protozero::tag_and_type(LocationField::kAddress, pbf_wire_type::varint):
        shared.address = message.get_uint64();
        break;
      case protozero::tag_and_type(LocationField::kLines, pbf_wire_type::length_delimited): {
        const profile::Frame line = ReadLine(message.get_message());
        if (lines_.size() < kMaxLines) {
          lines_.push_back(line);
        } else {
          profile_.AddToCounter("otlp.dropped_line", 1);
        }
        break;
      }
      default:
        message.skip();
    }
  }
  if (lines_.empty()) lines_.emplace_back();
  if (!budget_.Take(2 * sizeof(FrameRange) + 2 * sizeof(profile::FrameId) * lines_.size())) {
    return false;
  }
  const auto first = static_cast<uint32_t>(location_frames_.size());
  for (size_t i = 0; i < lines_.size(); ++i) {
    profile::Frame frame = lines_[i];
    frame.kind = shared.kind;
    frame.mapping = shared.mapping;
    frame.address = shared.address;
    frame.inlined = i + 1 < lines_.size();
    location_frames_.push_back(profile_.AddFrame(frame));
  }
  locations_.push_back({first, static_cast<uint32_t>(lines_.size())});
  return true;
}

bool DictionaryReader::ReadStack(pbf_reader message) {
  if (!budget_.Take(2 * sizeof(profile::StackId))) return false;
  frames_.clear();
  while (message.next()) {
    if (message.tag() != StackField::kLocationIndices) {
      message.skip();
      continue;
    }
    ForEachNumber(message, [&](int64_t index) {
      const FrameRange range = At(locations_, index);
      const auto begin = location_frames_.begin() + range.first;
      if (frames_.size() + range.count > budget_.limit() / sizeof(profile::FrameId)) {
        static_cast<void>(budget_.Take(budget_.limit() + 1));
        return;
      }
      frames_.insert(frames_.end(), begin, begin + range.count);
    });
  }
  std::reverse(frames_.begin(), frames_.end());
  stacks_.push_back(profile_.AddStack(frames_));
  return !budget_.exceeded() && !IsOverfull(profile_);
}

}  // namespace spanprof::format::otlp
