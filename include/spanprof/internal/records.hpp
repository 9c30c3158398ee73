#pragma once

// The memory layouts that spanprof publishes, and nothing else: no behaviour, no allocation.
// docs/protocols.md specifies them for people who write their own readers. C++17, usable from a
// signal handler.

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace spanprof::internal {

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "The slot word puts in_use in its lowest byte: only little-endian machines are supported."
#endif

// ---- The thread record: 64 bytes, read by a signal handler on its own thread -----------------

inline constexpr unsigned kTagCount = 10;

struct ThreadRecord {
  std::atomic<uint64_t> span_id{0};
  std::atomic<uint64_t> root_span_id{0};
  // 0 while the record is being written, or when it belongs to no thread.
  std::atomic<uint64_t> checksum{0};
  // tags[10], u32 each: ids from the tag dictionary; 0 is "no value". Kept as pairs, so that all of
  // them are copied by five loads; tag 2n is the lower half of pair n.
  std::atomic<uint64_t> tag_pairs[kTagCount / 2] = {};
};
static_assert(sizeof(ThreadRecord) == 64);
static_assert(offsetof(ThreadRecord, root_span_id) == 0x08);
static_assert(offsetof(ThreadRecord, checksum) == 0x10);
static_assert(offsetof(ThreadRecord, tag_pairs) == 0x18);

// Never 0. The same for every pair with root == swap32(span), so it is a second line of defence
// behind the order of the stores, not the first.
inline constexpr uint64_t RecordChecksum(uint64_t span_id, uint64_t root_span_id) {
  constexpr uint64_t kKnuth = 0x9E3779B97F4A7C15u;
  const uint64_t swapped_root = (root_span_id << 32) | (root_span_id >> 32);
  const uint64_t hash = (span_id * kKnuth) ^ (swapped_root * kKnuth);
  return hash - (hash == 0 ? 1 : 0);  // 0 becomes all ones
}

// ---- The slot table: read by other threads and other processes ------------------------------

inline constexpr uint32_t kSlotTableMagic = 0x4F54454C;  // in memory: 4C 45 54 4F
inline constexpr uint32_t kSlotTableVersion = 1;
inline constexpr char kSlotTableName[] = "DD_OTEL_CTX";
inline constexpr uint32_t kDefaultSlotCapacity = 65536;
inline constexpr uint32_t kMaxSlotCapacity = 1u << 22;  // PID_MAX_LIMIT: here no two tids collide

// Bits of SlotTableHeader::features.
inline constexpr uint32_t kFeatureSequencedWord = 1u << 0;   // slots carry owner and sequence
inline constexpr uint32_t kFeatureRecordPointers = 1u << 1;  // record_pointers_offset is set

struct SlotTableHeader {
  std::atomic<uint32_t> magic;
  uint32_t version;
  uint32_t capacity;
  uint32_t slot_size;
  // The seed's sixteen reserved bytes. A reader that does not know them ignores them.
  uint32_t features;
  uint32_t publisher_pid;           // in the publisher's own pid namespace
  uint32_t record_pointers_offset;  // from the table's start; one u64 a slot
  uint32_t published_at_seconds;    // CLOCK_BOOTTIME, tells a table from its successor
};
static_assert(sizeof(SlotTableHeader) == 32);

struct alignas(32) Slot {
  std::atomic<uint64_t> trace_id_high{0};
  std::atomic<uint64_t> trace_id_low{0};
  std::atomic<uint64_t> span_id{0};
  // Byte 0: in_use. Bytes 1-3: the owner's tid. Bytes 4-7: sequence, odd while in_use is 1.
  std::atomic<uint64_t> word{0};
};
static_assert(sizeof(Slot) == 32);
static_assert(offsetof(Slot, word) == 0x18);

inline constexpr uint64_t kSlotInUse = 0xFF;
inline constexpr uint64_t kSlotBeginWrite = (uint64_t{1} << 32) | 1;  // added to an idle word
inline constexpr uint64_t kSlotFinishWrite = uint64_t{2} << 32;       // added to an idle word
inline constexpr uint32_t kMaxOwner = 0xFFFFFF;

inline constexpr bool SlotIsBusy(uint64_t word) { return (word & kSlotInUse) != 0; }
inline constexpr uint32_t SlotOwner(uint64_t word) {
  return static_cast<uint32_t>(word >> 8) & kMaxOwner;
}
inline constexpr uint64_t SlotWordWithOwner(uint64_t word, uint32_t owner) {
  return (word & ~(uint64_t{kMaxOwner} << 8)) | (uint64_t{owner} << 8);
}

inline constexpr size_t SlotTableSlotsOffset() { return sizeof(SlotTableHeader); }
inline constexpr size_t SlotTableRecordPointersOffset(uint32_t capacity) {
  return sizeof(SlotTableHeader) + size_t{capacity} * sizeof(Slot);
}
inline constexpr size_t SlotTableBytes(uint32_t capacity) {
  return SlotTableRecordPointersOffset(capacity) + size_t{capacity} * sizeof(uint64_t);
}

// ---- OTEP 4947: the thread context record ----------------------------------------------------

inline constexpr size_t kOtelRecordBytes = 640;
inline constexpr size_t kOtelTraceIdOffset = 0;          // 16 bytes, W3C byte order
inline constexpr size_t kOtelSpanIdOffset = 16;          // 8 bytes, W3C byte order
inline constexpr size_t kOtelValidOffset = 24;           // 1: read me; anything else: do not
inline constexpr size_t kOtelFlagsOffset = 25;           // W3C trace flags
inline constexpr size_t kOtelAttributesSizeOffset = 26;  // u16
inline constexpr size_t kOtelAttributesOffset = 28;      // entries of {u8 key, u8 length, bytes}
inline constexpr size_t kOtelMaxAttributesBytes = kOtelRecordBytes - kOtelAttributesOffset;
inline constexpr size_t kOtelMaxValueBytes = 255;

// valid, flags and attributes_size are four aligned bytes: they are written by one store.
inline constexpr uint32_t OtelRecordState(uint32_t valid, uint32_t flags, uint32_t size) {
  return valid | (flags << 8) | (size << 16);
}

// The first key of every key map of ours, as other publishers have it: sixteen lower-case hex
// digits, all zero for "none".
inline constexpr char kLocalRootKey[] = "datadog.local_root_span_id";
inline constexpr uint8_t kLocalRootKeyIndex = 0;
inline constexpr size_t kLocalRootEntryBytes = 2 + 16;
inline constexpr uint8_t kFirstTagKeyIndex = 1;  // tag slot n has key index n + 1

inline constexpr char kSchemaVersionKey[] = "threadlocal.schema_version";
inline constexpr char kSchemaVersion[] = "tlsdesc_v1_dev";
inline constexpr char kKeyMapKey[] = "threadlocal.attribute_key_map";

// The draft for Node.js: a thread's record is the store of an AsyncLocalStorage, found in V8's
// memory by a thread-local `otel_thread_ctx_nodejs_v1`. Its first versions had these numbers told,
// the newest fixes all but the first, which each thread tells.
inline constexpr char kNodeSchemaVersion[] = "nodejs_v1_dev";
inline constexpr char kNodeRecordOffsetKey[] = "threadlocal.js_object_record_offset";
inline constexpr char kNodeTaggedSizeKey[] = "threadlocal.tagged_size";
inline constexpr char kNodeMapTableOffsetKey[] = "threadlocal.js_map_table_offset";
inline constexpr char kNodeTableHeaderSizeKey[] = "threadlocal.ordered_hash_map_header_size";

struct NodeThreadVariable {
  // The address of the isolate's word for the present continuation. 0: nothing may be read now.
  uint64_t continuation_slot;
  uint64_t storage_handle;  // an address: there is the storage's tagged address
  int32_t storage_identity_hash;
  uint32_t record_offset;  // in a store; 0: the process context has it (the first versions)
  uint64_t undefined;      // tagged
};
static_assert(sizeof(NodeThreadVariable) == 32);
static_assert(offsetof(NodeThreadVariable, record_offset) == 20);
static_assert(offsetof(NodeThreadVariable, undefined) == 24);

// ---- OTEP 4719: the process context ----------------------------------------------------------

inline constexpr char kProcessContextName[] = "OTEL_CTX";
inline constexpr char kProcessContextSignature[8] = {'O', 'T', 'E', 'L', '_', 'C', 'T', 'X'};
inline constexpr uint32_t kProcessContextVersion = 2;

struct ProcessContextHeader {
  char signature[8];
  uint32_t version;
  std::atomic<uint32_t> payload_size;
  std::atomic<uint64_t> published_at_ns;  // CLOCK_BOOTTIME; 0 while the rest is being changed
  std::atomic<uint64_t> payload;          // an address in the publisher
};
static_assert(sizeof(ProcessContextHeader) == 32);
static_assert(offsetof(ProcessContextHeader, published_at_ns) == 16);

}  // namespace spanprof::internal
