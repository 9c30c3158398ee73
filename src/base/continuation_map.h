#pragma once

// SIGNAL-SAFE. Finds the value of one key in the map that V8 carries along with a continuation:
// what Node.js keeps the stores of its AsyncLocalStorages in. Pure code over memory, without V8:
// the same walk serves our signal handler and a reader in another process.
//
//   continuation -> JSMap -> OrderedHashMap { elements, deleted, buckets,
//                                             bucket heads, (key, value, next) ... }
//
// The memory is taken for hostile. Every tag, size and index is checked before it is used, a chain
// is followed for no more steps than the table has entries, and what does not look right is no
// value.
//
// A reader of memory is anything with
//   bool Read64(uint64_t address, uint64_t* value) const;
//   bool Read16(uint64_t address, uint16_t* value) const;

#include <cstdint>

namespace spanprof::node {

// How V8 lays its objects out, as far as the walk goes. All words have 8 bytes: V8 with compressed
// pointers is another layout, and refused when the addon is compiled.
struct MapLayout {
  uint64_t instance_type_offset = 12;  // in a hidden class
  uint64_t table_offset = 24;          // in a JSMap
  uint16_t map_instance_type = 0;      // of a JSMap, by version; 0: not known, not compared
};

// A key that is an object: V8 finds it by its identity hash and compares addresses.
struct MapKey {
  uint64_t tagged_address = 0;
  int32_t identity_hash = 0;
};

enum class MapLookup : uint8_t {
  kFound,
  kAbsent,      // a map, and the key is not in it
  kNoMap,       // no object, or an object of another kind: there is no frame
  kUnreadable,  // the memory could not be read
  kMalformed,   // something is not what such a table has at that place
};

inline constexpr uint64_t kHeapObjectTag = 1;
inline constexpr uint64_t kHeapObjectTagMask = 3;
// Buckets are a power of two and each has two entries. V8's own limit is below this.
inline constexpr int64_t kMaxMapBuckets = int64_t{1} << 26;

constexpr bool IsHeapObject(uint64_t word) { return (word & kHeapObjectTagMask) == kHeapObjectTag; }
constexpr bool IsSmallInteger(uint64_t word) { return (word & 0xFFFFFFFFu) == 0; }
constexpr int64_t SmallIntegerOf(uint64_t word) { return static_cast<int64_t>(word) >> 32; }

// The numbers at the head of an OrderedHashMap.
struct MapTable {
  uint64_t elements_address = 0;  // of the first bucket's head
  int64_t entries = 0;            // in use and deleted
  int64_t buckets = 0;
};

template <class Memory>
MapLookup ReadMapTable(const Memory& memory, uint64_t tagged_table, MapTable* table) {
  if (!IsHeapObject(tagged_table)) return MapLookup::kMalformed;
  const uint64_t address = tagged_table - kHeapObjectTag;
  uint64_t words[4];  // length, elements, deleted, buckets
  for (unsigned i = 0; i < 4; ++i) {
    if (!memory.Read64(address + 8 + i * 8, &words[i])) return MapLookup::kUnreadable;
    if (!IsSmallInteger(words[i])) return MapLookup::kMalformed;
  }
  const int64_t length = SmallIntegerOf(words[0]);
  const int64_t elements = SmallIntegerOf(words[1]);
  const int64_t deleted = SmallIntegerOf(words[2]);
  const int64_t buckets = SmallIntegerOf(words[3]);
  if (buckets <= 0 || buckets > kMaxMapBuckets || (buckets & (buckets - 1)) != 0 || elements < 0 ||
      deleted < 0 || elements > 2 * buckets || deleted > 2 * buckets ||
      elements + deleted > 2 * buckets || length < 3 + buckets + 6 * buckets) {
    return MapLookup::kMalformed;
  }
  table->elements_address = address + 40;
  table->entries = elements + deleted;
  table->buckets = buckets;
  return MapLookup::kFound;
}

// `continuation` is the tagged word that V8 keeps; `value` is set to a tagged word if it is found.
template <class Memory>
MapLookup FindInContinuation(const Memory& memory, const MapLayout& layout, uint64_t continuation,
                             const MapKey& key, uint64_t* value) {
  if (!IsHeapObject(continuation)) return MapLookup::kNoMap;
  const uint64_t object = continuation - kHeapObjectTag;
  uint64_t hidden_class = 0;
  uint16_t instance_type = 0;
  if (!memory.Read64(object, &hidden_class)) return MapLookup::kUnreadable;
  if (!IsHeapObject(hidden_class)) return MapLookup::kMalformed;
  if (!memory.Read16(hidden_class - kHeapObjectTag + layout.instance_type_offset, &instance_type)) {
    return MapLookup::kUnreadable;
  }
  if (layout.map_instance_type != 0 && instance_type != layout.map_instance_type) {
    return MapLookup::kNoMap;
  }

  uint64_t tagged_table = 0;
  if (!memory.Read64(object + layout.table_offset, &tagged_table)) return MapLookup::kUnreadable;
  MapTable table;
  if (const MapLookup read = ReadMapTable(memory, tagged_table, &table); read != MapLookup::kFound)
    return read;

  const auto bucket =
      static_cast<uint64_t>(key.identity_hash) & (static_cast<uint64_t>(table.buckets) - 1);
  const uint64_t first_entry = table.elements_address + static_cast<uint64_t>(table.buckets) * 8;
  uint64_t next = 0;
  if (!memory.Read64(table.elements_address + bucket * 8, &next)) return MapLookup::kUnreadable;
  for (int64_t steps = table.entries; steps > 0; --steps) {
    if (!IsSmallInteger(next)) return MapLookup::kMalformed;
    const int64_t index = SmallIntegerOf(next);
    if (index == -1) return MapLookup::kAbsent;  // the chain's end
    if (index < 0 || index >= table.entries) return MapLookup::kMalformed;
    const uint64_t entry = first_entry + static_cast<uint64_t>(index) * 24;
    uint64_t entry_key = 0;
    if (!memory.Read64(entry, &entry_key)) return MapLookup::kUnreadable;
    if (entry_key == key.tagged_address) {
      return memory.Read64(entry + 8, value) ? MapLookup::kFound : MapLookup::kUnreadable;
    }
    if (!memory.Read64(entry + 16, &next)) return MapLookup::kUnreadable;
  }
  // All entries were in this chain, and it has to end here.
  return IsSmallInteger(next) && SmallIntegerOf(next) == -1 ? MapLookup::kAbsent
                                                            : MapLookup::kMalformed;
}

}  // namespace spanprof::node
