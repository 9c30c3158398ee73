#include "collect/node_thread_context.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "base/continuation_map.h"

namespace spanprof::collect {
namespace {

constexpr int64_t kWord = 8;
// V8 without compressed pointers, which the schema asks for: a map's table is its first field, and
// a table's header its class and its length.
constexpr NodeLayout kSchemaLayout = {.record_offset = -1,
                                      .tagged_size = kWord,
                                      .map_table_offset = 3 * kWord,
                                      .table_header_size = 2 * kWord};

bool IsOffset(int64_t offset) {
  constexpr int64_t kLargestOffset = 4096;
  return offset > 0 && offset < kLargestOffset && offset % kWord == 0;
}

// What the walk over V8's map reads through.
class MapMemory {
 public:
  explicit MapMemory(MemoryReader& memory) : memory_(memory) {}

  bool Read64(uint64_t address, uint64_t* value) const { return Read(address, value); }
  bool Read16(uint64_t address, uint16_t* value) const { return Read(address, value); }
  template <class T>
  bool Read(uint64_t address, T* value) const {
    return memory_.Read(address, std::as_writable_bytes(std::span(value, 1))) == ReadStatus::kOk;
  }

 private:
  MemoryReader& memory_;
};

NodeOutcome ReadRecord(MemoryReader& memory, uint64_t address, NodeReading& reading) {
  const auto bytes = std::span(reading.bytes);
  // It may end where its attributes do, at the end of what is mapped.
  const auto head = bytes.first(internal::kOtelAttributesOffset);
  if (memory.Read(address, head) != ReadStatus::kOk) return NodeOutcome::kUnreadable;
  uint16_t announced = 0;
  std::memcpy(&announced, bytes.data() + internal::kOtelAttributesSizeOffset, sizeof(announced));
  const auto attributes = bytes.subspan(
      head.size(), std::min<std::size_t>(announced, internal::kOtelMaxAttributesBytes));
  if (!attributes.empty() && memory.Read(address + head.size(), attributes) != ReadStatus::kOk) {
    return NodeOutcome::kUnreadable;
  }
  reading.size = head.size() + attributes.size();
  return NodeOutcome::kRecord;
}

NodeOutcome Walk(MemoryReader& memory, const NodeLayout& layout, uint64_t variable_address,
                 NodeReading& reading) {
  const MapMemory map_memory(memory);
  internal::NodeThreadVariable variable{};
  if (!map_memory.Read(variable_address, &variable)) return NodeOutcome::kUnreadable;
  if (variable.continuation_slot == 0) return NodeOutcome::kNothingPublished;
  uint64_t continuation = 0;
  node::MapKey key = {0, variable.storage_identity_hash};
  if (!map_memory.Read64(variable.continuation_slot, &continuation) ||
      !map_memory.Read64(variable.storage_handle, &key.tagged_address)) {
    return NodeOutcome::kUnreadable;
  }
  if (continuation == variable.undefined) return NodeOutcome::kNoContext;
  const int64_t record_offset =
      variable.record_offset != 0 ? int64_t{variable.record_offset} : layout.record_offset;
  if (!IsOffset(record_offset)) return NodeOutcome::kMalformed;

  const node::MapLayout map_layout = {
      .table_offset = static_cast<uint64_t>(layout.map_table_offset),
  };
  uint64_t value = 0;
  switch (node::FindInContinuation(map_memory, map_layout, continuation, key, &value)) {
    case node::MapLookup::kFound:
      break;
    case node::MapLookup::kAbsent:
    case node::MapLookup::kNoMap:
      return NodeOutcome::kNoContext;
    case node::MapLookup::kUnreadable:
      return NodeOutcome::kUnreadable;
    case node::MapLookup::kMalformed:
      return NodeOutcome::kMalformed;
  }
  if (value == variable.undefined) return NodeOutcome::kNoContext;
  if (!node::IsHeapObject(value)) return NodeOutcome::kMalformed;
  uint64_t record = 0;
  const uint64_t object = value - node::kHeapObjectTag;
  if (!map_memory.Read64(object + static_cast<uint64_t>(record_offset), &record)) {
    return NodeOutcome::kUnreadable;
  }
  if (record == 0) return NodeOutcome::kNoContext;  // its thread is ending
  return ReadRecord(memory, record, reading);
}

}  // namespace

bool IsNodeSchema(std::string_view schema_version) {
  return schema_version == internal::kNodeSchemaVersion || schema_version == "nodejs_v1";
}

Result<NodeLayout> CompleteNodeLayout(NodeLayout told) {
  const NodeLayout layout = {
      .record_offset = told.record_offset,
      .tagged_size = told.tagged_size < 0 ? kSchemaLayout.tagged_size : told.tagged_size,
      .map_table_offset =
          told.map_table_offset < 0 ? kSchemaLayout.map_table_offset : told.map_table_offset,
      .table_header_size =
          told.table_header_size < 0 ? kSchemaLayout.table_header_size : told.table_header_size,
  };
  if (layout.tagged_size == kWord && layout.table_header_size == kSchemaLayout.table_header_size &&
      (layout.record_offset < 0 || IsOffset(layout.record_offset)) &&
      IsOffset(layout.map_table_offset)) {
    return layout;
  }
  const auto number = [](int64_t value) {
    return value < 0 ? std::string("not told") : std::to_string(value);
  };
  return Fail(ENOTSUP,
              "its V8 lays objects out in a way that this command does not know: tagged_size " +
                  number(layout.tagged_size) + ", js_object_record_offset " +
                  number(layout.record_offset) + ", js_map_table_offset " +
                  number(layout.map_table_offset) + ", ordered_hash_map_header_size " +
                  number(layout.table_header_size),
              "use a newer spanprof command");
}

NodeReading ReadNodeContext(MemoryReader& memory, const NodeLayout& layout, uint64_t variable) {
  NodeReading reading;
  reading.outcome = Walk(memory, layout, variable, reading);
  return reading;
}

}  // namespace spanprof::collect
