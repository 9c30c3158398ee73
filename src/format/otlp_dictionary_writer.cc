#include "format/otlp_dictionary_writer.h"

#include <protozero/pbf_writer.hpp>

#include "format/format_text.h"
#include "format/otlp_fields.h"
#include "profile/names.h"

namespace spanprof::format::otlp {
namespace {

void WriteNumber(protozero::pbf_writer& out, protozero::pbf_tag_type field, uint64_t number) {
  if (number != 0) out.add_uint64(field, number);
}
void WriteIndex(protozero::pbf_writer& out, protozero::pbf_tag_type field, int32_t index) {
  if (index != 0) out.add_int32(field, index);
}

// Entry 0.
void WriteZero(std::string& out, protozero::pbf_tag_type table) {
  protozero::pbf_writer(out).add_message(table, std::string());
}

}  // namespace

void AppendBigEndian(std::string& out, uint64_t value) {
  for (int shift = 56; shift >= 0; shift -= 8) out += static_cast<char>(value >> shift & 0xFF);
}

DictionaryWriter::DictionaryWriter(const profile::Profile& profile)
    : profile_(profile),
      locations_(profile),
      function_index_(profile.functions().size()),
      mapping_index_(profile.mappings().size()) {}

int32_t DictionaryWriter::Text(std::string_view text) {
  const auto found = strings_.Find(text);
  return static_cast<int32_t>(found ? *found : strings_.Add(text));
}

int32_t DictionaryWriter::AddAttribute(std::string_view key, std::string value) {
  const std::pair entry(Text(key), std::move(value));
  const auto [found, is_new] =
      attribute_index_.emplace(entry, static_cast<int32_t>(attributes_.size() + 1));
  if (is_new) attributes_.push_back(entry);
  return found->second;
}

int32_t DictionaryWriter::TextAttribute(std::string_view key, std::string_view value) {
  std::string any_value;
  protozero::pbf_writer(any_value).add_string(AnyValueField::kString, ToUtf8(value));
  return AddAttribute(key, std::move(any_value));
}

int32_t DictionaryWriter::IntAttribute(std::string_view key, int64_t value) {
  std::string any_value;
  protozero::pbf_writer(any_value).add_int64(AnyValueField::kInt, value);
  return AddAttribute(key, std::move(any_value));
}

int32_t DictionaryWriter::BoolAttribute(std::string_view key, bool value) {
  std::string any_value;
  protozero::pbf_writer(any_value).add_bool(AnyValueField::kBool, value);
  return AddAttribute(key, std::move(any_value));
}

int32_t DictionaryWriter::Link(const profile::Context& context) {
  const std::array<uint64_t, 3> ids = {context.trace_id_high, context.trace_id_low,
                                       context.span_id};
  if (ids == std::array<uint64_t, 3>{}) return 0;
  const auto [found, is_new] = link_index_.emplace(ids, static_cast<int32_t>(links_.size() + 1));
  if (is_new) links_.push_back(ids);
  return found->second;
}

int32_t DictionaryWriter::Stack(profile::StackId stack) {
  if (stack == profile::kNone) return 0;
  const auto [found, is_new] =
      stack_index_.insert({stack, static_cast<int32_t>(stacks_.size() + 1)});
  if (is_new) stacks_.push_back(locations_.LocationsOf(stack));
  return found->second;
}

int32_t DictionaryWriter::Function(profile::FunctionId id) {
  if (id == profile::kNone) return 0;
  if (function_index_[id] == 0) {
    functions_.push_back(id);
    function_index_[id] = static_cast<int32_t>(functions_.size());
  }
  return function_index_[id];
}

int32_t DictionaryWriter::Mapping(profile::MappingId id) {
  if (id == profile::kNone) return 0;
  if (mapping_index_[id] == 0) {
    mappings_.push_back(id);
    mapping_index_[id] = static_cast<int32_t>(mappings_.size());
  }
  return mapping_index_[id];
}

void DictionaryWriter::WriteLocations(std::string& out) {
  WriteZero(out, DictionaryField::kLocationTable);
  protozero::pbf_writer dictionary(out);
  for (const auto& frames : locations_.locations()) {
    const profile::Frame& outer = profile_.frames()[frames.back()];
    protozero::pbf_writer location(dictionary, DictionaryField::kLocationTable);
    WriteIndex(location, LocationField::kMappingIndex, Mapping(outer.mapping));
    WriteNumber(location, LocationField::kAddress, outer.address);
    for (const profile::FrameId id : frames) {
      const profile::Frame& frame = profile_.frames()[id];
      if (frame.function == profile::kNone && frame.line == 0) continue;
      protozero::pbf_writer line(location, LocationField::kLines);
      WriteIndex(line, LineField::kFunctionIndex, Function(frame.function));
      WriteNumber(line, LineField::kLine, frame.line);
      WriteNumber(line, LineField::kColumn, frame.column);
    }
    const int32_t kind = TextAttribute(kFrameTypeAttribute, NameOf(outer.kind));
    location.add_packed_int32(LocationField::kAttributeIndices, &kind, &kind + 1);
  }
}

void DictionaryWriter::WriteMappings(std::string& out) {
  WriteZero(out, DictionaryField::kMappingTable);
  protozero::pbf_writer dictionary(out);
  for (const profile::MappingId id : mappings_) {
    const profile::Mapping& mapping = profile_.mappings()[id];
    protozero::pbf_writer message(dictionary, DictionaryField::kMappingTable);
    WriteNumber(message, MappingField::kMemoryStart, mapping.start);
    WriteNumber(message, MappingField::kMemoryLimit, mapping.end);
    WriteNumber(message, MappingField::kFileOffset, mapping.file_offset);
    WriteIndex(message, MappingField::kFilenameStrindex, Text(profile_.Text(mapping.path)));
    if (mapping.build_id != profile::kNone) {
      const int32_t build_id = TextAttribute(kBuildIdAttribute, profile_.Text(mapping.build_id));
      message.add_packed_int32(MappingField::kAttributeIndices, &build_id, &build_id + 1);
    }
  }
}

void DictionaryWriter::WriteFunctions(std::string& out) {
  WriteZero(out, DictionaryField::kFunctionTable);
  protozero::pbf_writer dictionary(out);
  for (const profile::FunctionId id : functions_) {
    const profile::Function& function = profile_.functions()[id];
    protozero::pbf_writer message(dictionary, DictionaryField::kFunctionTable);
    WriteIndex(message, FunctionField::kNameStrindex, Text(profile_.Text(function.name)));
    WriteIndex(message, FunctionField::kSystemNameStrindex,
               Text(profile_.Text(function.system_name)));
    WriteIndex(message, FunctionField::kFilenameStrindex, Text(profile_.Text(function.file)));
    WriteNumber(message, FunctionField::kStartLine, function.start_line);
  }
}

std::string DictionaryWriter::Write() {
  std::string out;
  // In this order: each may add to what comes after it.
  WriteLocations(out);
  WriteMappings(out);
  WriteFunctions(out);

  protozero::pbf_writer dictionary(out);
  WriteZero(out, DictionaryField::kLinkTable);
  for (const auto& [trace_id_high, trace_id_low, span_id] : links_) {
    protozero::pbf_writer link(dictionary, DictionaryField::kLinkTable);
    std::string id;
    AppendBigEndian(id, trace_id_high);
    AppendBigEndian(id, trace_id_low);
    link.add_bytes(LinkField::kTraceId, id);
    id.clear();
    AppendBigEndian(id, span_id);
    link.add_bytes(LinkField::kSpanId, id);
  }
  WriteZero(out, DictionaryField::kStackTable);
  for (const auto& locations : stacks_) {
    protozero::pbf_writer stack(dictionary, DictionaryField::kStackTable);
    stack.add_packed_int32(StackField::kLocationIndices, locations.begin(), locations.end());
  }
  WriteZero(out, DictionaryField::kAttributeTable);
  for (const auto& [key, value] : attributes_) {
    protozero::pbf_writer attribute(dictionary, DictionaryField::kAttributeTable);
    attribute.add_int32(KeyValueAndUnitField::kKeyStrindex, key);
    attribute.add_message(KeyValueAndUnitField::kValue, value);
  }
  for (uint32_t i = 0; i < strings_.size(); ++i) {
    dictionary.add_string(DictionaryField::kStringTable, ToUtf8(strings_.Text(i)));
  }
  return out;
}

}  // namespace spanprof::format::otlp
