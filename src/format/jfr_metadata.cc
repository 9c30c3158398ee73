#include "format/jfr_metadata.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/printable_text.h"

namespace spanprof::format::jfr {
namespace {

// The JDK nests three deep (an event, its stack trace, a frame).
constexpr unsigned kMaxNesting = 16;

Storage StorageOf(std::string_view name) {
  struct Primitive {
    std::string_view name;
    Storage storage;
  };
  static constexpr std::array kPrimitives = {Primitive{"boolean", Storage::kByte},
                                             Primitive{"byte", Storage::kByte},
                                             Primitive{"char", Storage::kVarint},
                                             Primitive{"short", Storage::kVarint},
                                             Primitive{"int", Storage::kVarint},
                                             Primitive{"long", Storage::kVarint},
                                             Primitive{"float", Storage::kFourBytes},
                                             Primitive{"double", Storage::kEightBytes},
                                             Primitive{"java.lang.String", Storage::kString}};
  for (const Primitive& primitive : kPrimitives) {
    if (primitive.name == name) return primitive.storage;
  }
  return Storage::kStruct;
}

}  // namespace

std::optional<uint32_t> FindField(const Type& type, std::string_view name) {
  for (uint32_t i = 0; i < type.fields.size(); ++i) {
    if (type.fields[i].name == name) return i;
  }
  return std::nullopt;
}

std::optional<uint32_t> Metadata::FindId(uint64_t id) const {
  const auto found = std::lower_bound(by_id_.begin(), by_id_.end(), std::pair{id, uint32_t{0}});
  if (found == by_id_.end() || found->first != id) return std::nullopt;
  return found->second;
}

std::optional<uint32_t> Metadata::FindName(std::string_view name) const {
  for (uint32_t i = 0; i < types_.size(); ++i) {
    if (types_[i].name == name) return i;
  }
  return std::nullopt;
}

// Finds the type of each field, and makes Skip() safe to call.
Result<void> Metadata::Resolve(size_t offset) {
  const auto fail = [offset](const std::string& what, std::string_view name) {
    return Fail(EBADMSG, "JFR metadata at byte " + std::to_string(offset) + ": " + what + " " +
                             Quoted(name));
  };
  for (uint32_t i = 0; i < types_.size(); ++i) by_id_.emplace_back(types_[i].id, i);
  std::sort(by_id_.begin(), by_id_.end());
  for (size_t i = 1; i < by_id_.size(); ++i) {
    if (by_id_[i - 1].first == by_id_[i].first) {
      return fail("a second type has the id of", types_[by_id_[i].second].name);
    }
  }
  for (Type& type : types_) {
    type.storage = StorageOf(type.name);
    if (type.storage != Storage::kStruct) type.fields.clear();
    for (Field& field : type.fields) {
      const std::optional<uint32_t> found = FindId(field.type_id);
      if (!found) return fail("no type for the field", field.name);
      field.type = *found;
    }
  }

  // What a field holds in place, rather than by a key or behind a count.
  const auto is_inline_struct = [this](const Field& field) {
    return !field.pooled && types_[field.type].storage == Storage::kStruct;
  };
  std::vector<unsigned> nesting(types_.size(), 1);
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t i = 0; i < types_.size(); ++i) {
      unsigned deepest = 0;
      for (const Field& field : types_[i].fields) {
        if (is_inline_struct(field)) deepest = std::max(deepest, nesting[field.type]);
      }
      if (deepest + 1 > kMaxNesting) return fail("too deep, or it holds itself:", types_[i].name);
      changed = changed || nesting[i] != deepest + 1;
      nesting[i] = deepest + 1;
    }
  }

  // From the inside out: a structure without fields takes no bytes, and so a field of it does not.
  for (unsigned level = 1; level <= kMaxNesting; ++level) {
    for (size_t i = 0; i < types_.size(); ++i) {
      if (nesting[i] != level) continue;
      std::erase_if(types_[i].fields, [&](const Field& field) {
        return !field.array && is_inline_struct(field) && types_[field.type].empty;
      });
      types_[i].empty = types_[i].storage == Storage::kStruct && types_[i].fields.empty();
    }
  }
  return {};
}

void Metadata::Skip(uint32_t type, Input& input) const {
  switch (types_[type].storage) {
    case Storage::kByte:
      input.Byte();
      break;
    case Storage::kVarint:
      input.Varint();
      break;
    case Storage::kFourBytes:
      input.Bytes(4);
      break;
    case Storage::kEightBytes:
      input.Bytes(8);
      break;
    case Storage::kString:
      input.String();
      break;
    case Storage::kStruct:
      for (const Field& field : types_[type].fields) {
        Skip(field, input);
        if (input.failed()) return;
      }
      break;
  }
}

void Metadata::Skip(const Field& field, Input& input) const {
  uint64_t count = 1;
  if (field.array) {
    count = input.Varint();
    if (!field.pooled && types_[field.type].empty) return;
  }
  for (uint64_t i = 0; i < count && !input.failed(); ++i) {
    if (field.pooled) {
      input.Varint();
    } else {
      Skip(field.type, input);
    }
  }
}

}  // namespace spanprof::format::jfr
