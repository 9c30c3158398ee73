#include "collect/process_context_payload.h"

#include <cerrno>
#include <cstdio>
#include <optional>
#include <utility>

#include <protozero/pbf_reader.hpp>

#include <spanprof/internal/records.hpp>

namespace spanprof::collect {
namespace {

using protozero::pbf_reader;
using protozero::pbf_wire_type;
using protozero::tag_and_type;

constexpr unsigned kMaxDepth = 8;

constexpr auto Bytes(protozero::pbf_tag_type tag) {
  return tag_and_type(tag, pbf_wire_type::length_delimited);
}

std::string Take(pbf_reader& reader) { return reader.get_string(); }

std::string HexText(protozero::data_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  text.reserve(bytes.size() * 2);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const auto byte = static_cast<unsigned char>(bytes.data()[i]);
    text += kDigits[byte >> 4];
    text += kDigits[byte & 0xF];
  }
  return text;
}

std::optional<AttributeValue> ParseValue(pbf_reader reader, unsigned depth);

// ArrayValue { repeated AnyValue values = 1 }
std::vector<std::string> ParseList(pbf_reader reader, unsigned depth) {
  std::vector<std::string> list;
  while (reader.next()) {
    if (reader.tag_and_type() != Bytes(1)) {
      reader.skip();
      continue;
    }
    // An element that cannot be used keeps its place: positions mean something in a key map.
    const auto value = ParseValue(reader.get_message(), depth + 1);
    list.push_back(value ? AttributeText(*value) : std::string());
  }
  return list;
}

std::string ParseKeyValueList(pbf_reader reader, unsigned depth) {
  std::string text = "{";
  while (reader.next()) {
    if (reader.tag_and_type() != Bytes(1)) {
      reader.skip();
      continue;
    }
    pbf_reader entry = reader.get_message();
    std::string key;
    std::optional<AttributeValue> value;
    while (entry.next()) {
      switch (entry.tag_and_type()) {
        case Bytes(1):
          key = Take(entry);
          break;
        case Bytes(2):
          value = ParseValue(entry.get_message(), depth + 1);
          break;
        default:
          entry.skip();
      }
    }
    if (text.size() > 1) text += ", ";
    text += key + "=" + (value ? AttributeText(*value) : std::string());
  }
  return text + "}";
}

std::optional<AttributeValue> ParseValue(pbf_reader reader, unsigned depth) {
  if (depth > kMaxDepth) return std::nullopt;
  std::optional<AttributeValue> value;
  while (reader.next()) {
    switch (reader.tag_and_type()) {
      case Bytes(1):
        value = Take(reader);
        break;
      case tag_and_type(2, pbf_wire_type::varint):
        value = reader.get_uint64() != 0;  // get_bool() reads before it looks for the end
        break;
      case tag_and_type(3, pbf_wire_type::varint):
        value = reader.get_int64();
        break;
      case tag_and_type(4, pbf_wire_type::fixed64):
        value = reader.get_double();
        break;
      case Bytes(5):
        value = ParseList(reader.get_message(), depth);
        break;
      case Bytes(6):
        value = ParseKeyValueList(reader.get_message(), depth);
        break;
      case Bytes(7):
        value = HexText(reader.get_view());
        break;
      default:
        reader.skip();
    }
  }
  return value;
}

// Calls `take(key, value)` for a KeyValue with both; returns whether it had both.
template <class Taker>
bool ParseKeyValue(pbf_reader reader, Taker take) {
  std::string key;
  std::optional<AttributeValue> value;
  while (reader.next()) {
    switch (reader.tag_and_type()) {
      case Bytes(1):
        key = Take(reader);
        break;
      case Bytes(2):
        value = ParseValue(reader.get_message(), 0);
        break;
      default:
        reader.skip();
    }
  }
  if (key.empty() || !value) return false;
  return take(std::move(key), std::move(*value));
}

void ParseResource(pbf_reader reader, ProcessContext& context) {
  while (reader.next()) {
    if (reader.tag_and_type() != Bytes(1)) {
      reader.skip();
      continue;
    }
    const bool kept =
        ParseKeyValue(reader.get_message(), [&](std::string key, AttributeValue value) {
          const bool full = context.resource.size() >= kMaxResourceAttributes;
          if (full && !context.resource.contains(key)) return false;
          context.resource[std::move(key)] = std::move(value);
          return true;
        });
    if (!kept) ++context.dropped_attributes;
  }
}

int64_t* NodeLayoutNumber(const std::string& key, NodeLayout& layout) {
  if (key == internal::kNodeRecordOffsetKey) return &layout.record_offset;
  if (key == internal::kNodeTaggedSizeKey) return &layout.tagged_size;
  if (key == internal::kNodeMapTableOffsetKey) return &layout.map_table_offset;
  if (key == internal::kNodeTableHeaderSizeKey) return &layout.table_header_size;
  return nullptr;
}

bool TakeProcessAttribute(const std::string& key, AttributeValue value, ProcessContext& context) {
  if (key == internal::kSchemaVersionKey) {
    auto* text = std::get_if<std::string>(&value);
    if (text == nullptr) return false;
    context.schema_version = std::move(*text);
  } else if (key == internal::kKeyMapKey) {
    auto* names = std::get_if<std::vector<std::string>>(&value);
    if (names == nullptr) return false;
    context.key_map = std::move(*names);
    if (context.key_map.size() > kMaxKeyMapEntries) {
      context.dropped_attributes += context.key_map.size() - kMaxKeyMapEntries;
      context.key_map.resize(kMaxKeyMapEntries);
    }
  } else if (int64_t* const number = NodeLayoutNumber(key, context.node)) {
    const auto* told = std::get_if<int64_t>(&value);
    if (told == nullptr) return false;
    *number = *told;
  }
  return true;  // others are not ours to understand
}

void ParseMessage(pbf_reader reader, ProcessContext& context) {
  while (reader.next()) {
    switch (reader.tag_and_type()) {
      case Bytes(1):
        ParseResource(reader.get_message(), context);
        break;
      case Bytes(2): {
        const bool kept =
            ParseKeyValue(reader.get_message(), [&](const std::string& key, AttributeValue value) {
              return TakeProcessAttribute(key, std::move(value), context);
            });
        if (!kept) ++context.dropped_attributes;
        break;
      }
      default:
        reader.skip();
    }
  }
}

}  // namespace

Result<ProcessContext> ParseProcessContext(std::string_view payload) {
  if (payload.size() > kMaxProcessContextBytes) {
    return Fail(EFBIG, "the process context has " + std::to_string(payload.size()) +
                           " bytes, more than " + std::to_string(kMaxProcessContextBytes));
  }
  ProcessContext context;
  try {
    ParseMessage(pbf_reader(payload.data(), payload.size()), context);
  } catch (const protozero::exception& problem) {
    return Fail(EBADMSG,
                std::string("the process context is not a protobuf message: ") + problem.what());
  }
  return context;
}

std::string AttributeText(const AttributeValue& value) {
  struct Visitor {
    std::string operator()(const std::string& text) const { return text; }
    std::string operator()(bool flag) const { return flag ? "true" : "false"; }
    std::string operator()(int64_t number) const { return std::to_string(number); }
    std::string operator()(double number) const {
      char text[32];
      std::snprintf(text, sizeof(text), "%.17g", number);
      return text;
    }
    std::string operator()(const std::vector<std::string>& list) const {
      std::string text = "[";
      for (const std::string& element : list) {
        if (text.size() > 1) text += ", ";
        text += element;
      }
      return text + "]";
    }
  };
  return std::visit(Visitor{}, value);
}

}  // namespace spanprof::collect
