#pragma once

// The metadata of a chunk: which types there are, which fields they have in which order, and so how
// many bytes a value takes. It is written from this and read into it.
//
// A reader trusts nothing: Metadata::Read refuses types that contain themselves, drops fields that
// take no bytes, and bounds how deep structures nest. So Skip() ends, its recursion is bounded, and
// each field that it visits has used up at least one byte.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "format/jfr_encoding.h"

namespace spanprof::format::jfr {

inline constexpr std::string_view kEventSuperType = "jdk.jfr.Event";
inline constexpr std::string_view kAnnotationSuperType = "java.lang.annotation.Annotation";

// How the values of a type are stored.
enum class Storage : uint8_t { kStruct, kByte, kVarint, kFourBytes, kEightBytes, kString };

// What a number means, so that tools print it as such: an annotation.
enum class Unit : uint8_t { kNone, kTimestampTicks, kTimespanTicks, kTimespanNs, kBytes, kAddress };

// The texts are views of what outlives them: constants, the profile, or Metadata's strings.
struct Field {
  std::string_view name;
  std::string_view label = {};  // for people; empty: none
  uint64_t type_id = 0;
  bool pooled = false;  // holds a key of the type's constant pool
  bool array = false;
  Unit unit = Unit::kNone;
  uint32_t type = 0;  // when read: the position in Metadata::types
};

struct Type {
  std::string_view name;
  uint64_t id = 0;
  std::string_view super_type = {};
  bool simple = false;  // tools take it for its only field
  std::string_view label = {};
  std::string_view category = {};  // where tools list an event
  std::vector<Field> fields = {};
  Storage storage = Storage::kStruct;  // when read
  bool empty = false;                  // when read: its values take no bytes
};

// Writes the metadata event. `types` have to hold the annotation types (see jfr_schema.h). `id`
// tells one chunk's metadata from another's: the JDK takes equal ids for equal metadata.
void WriteMetadataEvent(const std::vector<Type>& types, uint64_t start_ticks, uint64_t id,
                        Output& out);

class Metadata {
 public:
  Metadata() = default;
  Metadata(Metadata&&) = default;  // the views stay: strings do not move with their vector
  Metadata& operator=(Metadata&&) = default;
  Metadata(const Metadata&) = delete;
  Metadata& operator=(const Metadata&) = delete;

  // The event whose fields are at [begin, end).
  static Result<Metadata> Read(std::string_view bytes, size_t begin, size_t end);

  const std::vector<Type>& types() const { return types_; }
  // The position of a type.
  std::optional<uint32_t> FindId(uint64_t id) const;
  std::optional<uint32_t> FindName(std::string_view name) const;

  // Moves behind a value of the type, or of the field.
  void Skip(uint32_t type, Input& input) const;
  void Skip(const Field& field, Input& input) const;

 private:
  friend class MetadataParser;

  Result<void> Resolve(size_t offset);

  std::vector<std::string> strings_;
  std::vector<Type> types_;
  std::vector<std::pair<uint64_t, uint32_t>> by_id_;  // sorted
};

// The position of a field in its type.
std::optional<uint32_t> FindField(const Type& type, std::string_view name);

}  // namespace spanprof::format::jfr
