#pragma once

// Values of structured types, read as the chunk's metadata describes them: events and constants.
//
//   Record record;
//   if (!contents.Read(type, begin, end, record)) ...
//   uint64_t ticks = record.Number("startTime", 0);
//   if (const FieldValue* name = record.Find("name")) text = contents.Text(*name);

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/jfr_metadata.h"
#include "format/jfr_pool_index.h"

namespace spanprof::format::jfr {

struct FieldValue {
  const Field* field = nullptr;
  size_t offset = 0;    // of the value in the file
  size_t end = 0;       // of the record
  uint64_t number = 0;  // if it is one: an integer, a boolean, or a key of a pool
};

struct Record {
  const Type* type = nullptr;
  std::vector<FieldValue> values;  // by field

  const FieldValue* Find(std::string_view name) const;
  uint64_t Number(std::string_view name, uint64_t otherwise) const;
};

// One chunk with what is needed to read its records.
class ChunkContents {
 public:
  ChunkContents(std::string_view bytes, Metadata metadata, PoolIndex pools)
      : bytes_(bytes), metadata_(std::move(metadata)), pools_(std::move(pools)) {}

  const Metadata& metadata() const { return metadata_; }
  const PoolIndex& pools() const { return pools_; }
  std::string_view bytes() const { return bytes_; }

  // False if the fields do not fit in [begin, end).
  bool Read(uint32_t type, size_t begin, size_t end, Record& record) const;
  // Reads where `input` stands and moves behind it.
  bool Read(uint32_t type, Input& input, size_t end, Record& record) const;
  // The constant at a position of the index.
  bool ReadConstant(size_t position, Record& record) const;

  // The constant that a pooled field refers to.
  std::optional<size_t> FindConstant(const FieldValue& value) const;
  // The text of a string, a pooled string, or a pooled type that is a name for one (Symbol,
  // ThreadState, FrameType). Empty if it is none of these or longer than `max_size`.
  std::string Text(const FieldValue& value, size_t max_size = SIZE_MAX) const;
  // The constant which Text() would take the text from, if it is one.
  std::optional<size_t> TextConstant(const FieldValue& value) const;
  std::string TextOfConstant(size_t position, size_t max_size = SIZE_MAX) const;

 private:
  std::string_view bytes_;
  Metadata metadata_;
  PoolIndex pools_;
};

}  // namespace spanprof::format::jfr
