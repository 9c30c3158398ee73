#include "format/jfr_record.h"

namespace spanprof::format::jfr {
namespace {

// A character takes at most three bytes in every encoding of strings. Many constants may refer to
// one long string, so what is too long is not even looked at.
bool IsLonger(const PoolEntry& entry, size_t max_size) {
  constexpr size_t kOverhead = 16;
  return max_size != SIZE_MAX && entry.end - entry.offset > 3 * max_size + kOverhead;
}

std::string TextWithin(const EncodedString& string, size_t max_size) {
  std::string text = TextOf(string);
  return text.size() > max_size ? std::string() : text;
}

}  // namespace

const FieldValue* Record::Find(std::string_view name) const {
  for (const FieldValue& value : values) {
    if (value.field->name == name) return &value;
  }
  return nullptr;
}

uint64_t Record::Number(std::string_view name, uint64_t otherwise) const {
  const FieldValue* value = Find(name);
  return value == nullptr ? otherwise : value->number;
}

bool ChunkContents::Read(uint32_t type, size_t begin, size_t end, Record& record) const {
  Input input(bytes_, begin, end);
  return Read(type, input, end, record);
}

bool ChunkContents::Read(uint32_t type, Input& input, size_t end, Record& record) const {
  record.type = &metadata_.types()[type];
  record.values.clear();
  for (const Field& field : record.type->fields) {
    FieldValue value{.field = &field, .offset = input.position(), .end = end};
    const Storage storage = metadata_.types()[field.type].storage;
    if (!field.array && (field.pooled || storage == Storage::kVarint)) {
      value.number = input.Varint();
    } else if (!field.array && storage == Storage::kByte) {
      value.number = input.Byte();
    } else {
      metadata_.Skip(field, input);
    }
    if (input.failed()) return false;
    record.values.push_back(value);
  }
  return true;
}

bool ChunkContents::ReadConstant(size_t position, Record& record) const {
  const PoolEntry& entry = pools_[position];
  return Read(entry.type, entry.offset, entry.end, record);
}

std::optional<size_t> ChunkContents::FindConstant(const FieldValue& value) const {
  if (!value.field->pooled || value.field->array) return std::nullopt;
  return pools_.Find(value.field->type, value.number);
}

std::optional<size_t> ChunkContents::TextConstant(const FieldValue& value) const {
  if (value.field->array) return std::nullopt;
  if (value.field->pooled) return FindConstant(value);
  if (metadata_.types()[value.field->type].storage != Storage::kString) return std::nullopt;
  Input input(bytes_, value.offset, value.end);
  const EncodedString string = input.String();
  if (input.failed() || string.encoding != StringEncoding::kPooled) return std::nullopt;
  return pools_.Find(value.field->type, string.key);
}

std::string ChunkContents::TextOfConstant(size_t position, size_t max_size) const {
  const PoolEntry* entry = &pools_[position];
  const Type* type = &metadata_.types()[entry->type];
  if (type->storage == Storage::kStruct) {
    // A name for a string, which may be in the pool of strings in turn.
    if (type->fields.size() != 1) return {};
    const Field& only = type->fields.front();
    if (only.pooled || only.array) return {};
    type = &metadata_.types()[only.type];
    if (type->storage != Storage::kString) return {};
    if (IsLonger(*entry, max_size)) return {};
    Input input(bytes_, entry->offset, entry->end);
    const EncodedString string = input.String();
    if (string.encoding != StringEncoding::kPooled) return TextWithin(string, max_size);
    const std::optional<size_t> target = pools_.Find(only.type, string.key);
    if (!target) return {};
    entry = &pools_[*target];
  }
  if (type->storage != Storage::kString || IsLonger(*entry, max_size)) return {};
  Input input(bytes_, entry->offset, entry->end);
  return TextWithin(input.String(), max_size);
}

std::string ChunkContents::Text(const FieldValue& value, size_t max_size) const {
  if (const std::optional<size_t> constant = TextConstant(value)) {
    return TextOfConstant(*constant, max_size);
  }
  if (value.field->array || value.field->pooled ||
      metadata_.types()[value.field->type].storage != Storage::kString) {
    return {};
  }
  Input input(bytes_, value.offset, value.end);
  return TextWithin(input.String(), max_size);
}

}  // namespace spanprof::format::jfr
