#pragma once

// The shared memory that coroutine probes write and harvesters read: cTP 1.0 as specified, and what
// spanprof keeps in the bytes that cTP reserves. Only layout, no behaviour. docs/coroutines.md
// describes every byte for people who write their own probes and harvesters. C++20.

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace spanprof::internal::coroutine {

// ---- cTP 1.0 ----------------------------------------------------------------------------------

inline constexpr uint64_t kMagic = 0x434F524F54524352;  // "COROTRCR"
inline constexpr uint32_t kVersion = 1;
inline constexpr unsigned kSlotCount = 8;
inline constexpr size_t kPayloadBytes = 31;

struct alignas(64) Epoch {
  std::atomic<uint64_t> timestamp;  // CLOCK_MONOTONIC, nanoseconds
  std::atomic<uint64_t> tid;
  std::atomic<uint64_t> addr;
  std::atomic<uint64_t> seq;
  // reserved[31] and is_active, as four words: every byte is written and read by atomic words.
  std::atomic<uint64_t> tail[4];
};
static_assert(sizeof(Epoch) == 64 && alignof(Epoch) == 64);
static_assert(offsetof(Epoch, timestamp) == 0x00);
static_assert(offsetof(Epoch, tid) == 0x08);
static_assert(offsetof(Epoch, addr) == 0x10);
static_assert(offsetof(Epoch, seq) == 0x18);
static_assert(offsetof(Epoch, tail) == 0x20);
// is_active is byte 0x3F: the highest one of tail[3].
inline constexpr unsigned kActiveShift = 56;

// ---- What spanprof keeps in the header's reserved bytes ----------------------------------------

inline constexpr uint64_t kExtensionMagic = 0x314F524F434E5053;  // in memory: "SPNCORO1"
inline constexpr uint32_t kExtensionVersion = 1;

// How a writer numbers the events of a station.
enum Numbering : uint32_t {
  kNumberingUnknown = 0,
  kNumberingEvents = 1,   // event k: slot (k-1) % 8, sequence 2k, and 0 while it is being written
  kNumberingPerSlot = 2,  // each slot counts for itself: 2, 4, 6, and odd while being written
  kNumberingText = 3,     // the specification's text: event k in slot k % 8 with sequence k
};

// Bits of GlobalHeader::mode, which a probe looks at on every event.
inline constexpr uint32_t kModeRings = 1u << 0;       // a harvester of ours wants events in rings
inline constexpr uint32_t kModeStations = 1u << 1;    // a foreign one wants them in station slots
inline constexpr uint32_t kModeFence = 1u << 2;       // no membarrier: the probe needs its fence
inline constexpr uint32_t kModeClock = 1u << 3;       // no usable cycle counter: CLOCK_MONOTONIC
inline constexpr uint32_t kModeContexts = 1u << 4;    // libspanprof is linked: contexts are carried
inline constexpr uint32_t kModeNotStarted = 1u << 5;  // in a process before its first coroutine

enum ClockKind : uint32_t { kClockMonotonic = 1, kClockCycles = 2 };

struct alignas(1024) GlobalHeader {
  std::atomic<uint64_t> magic_number;
  uint32_t version;
  std::atomic<uint32_t> max_stations;  // ours grows; a foreign file's does not
  std::atomic<uint32_t> allocated_count;
  std::atomic<uint32_t> tracer_sleeping;
  // ---- reserved by cTP from here on ----
  std::atomic<uint32_t> mode;
  uint32_t extension_bytes;  // from extension_magic on
  uint64_t unused_1[4];

  std::atomic<uint64_t> extension_magic;
  uint32_t extension_version;
  uint32_t numbering;
  uint32_t pid;
  uint32_t clock_kind;
  uint64_t start_ticks;    // field 22 of /proc/PID/stat: tells a process from its successor
  uint64_t clock_counter;  // the ring clock and CLOCK_MONOTONIC, read at the same time
  uint64_t clock_nanoseconds;
  uint64_t unused_2;

  std::atomic<uint32_t> harvester_pid;
  std::atomic<uint32_t> harvester_version;  // odd while pid and socket path are being changed
  char harvester_socket[120];

  std::atomic<uint32_t> ring_count;
  uint32_t ring_records;  // of each ring, a power of two
  uint64_t rings_offset;
  uint64_t ring_stride;
  uint64_t places_offset;
  std::atomic<uint32_t> place_count;
  uint32_t place_capacity;
  uint64_t unused_3[3];

  // Stations that may be used again: index + 1 in the lower half, a counter in the upper one.
  std::atomic<uint64_t> free_stations;
  uint64_t unused_4[7];

  // What was dropped, with its reason.
  std::atomic<uint64_t> untraced_no_station;
  std::atomic<uint64_t> lost_no_ring;
  std::atomic<uint64_t> places_not_kept;
  std::atomic<uint64_t> adopted_coroutines;  // born while tracing was off, seen at a later resume
  std::atomic<uint64_t> births;
  char unused_5[1024 - 0x1A0];
};
static_assert(sizeof(GlobalHeader) == 1024 && alignof(GlobalHeader) == 1024);
static_assert(offsetof(GlobalHeader, magic_number) == 0x00);
static_assert(offsetof(GlobalHeader, version) == 0x08);
static_assert(offsetof(GlobalHeader, max_stations) == 0x0C);
static_assert(offsetof(GlobalHeader, allocated_count) == 0x10);
static_assert(offsetof(GlobalHeader, tracer_sleeping) == 0x14);
static_assert(offsetof(GlobalHeader, mode) == 0x18);
static_assert(offsetof(GlobalHeader, extension_magic) == 0x40);
static_assert(offsetof(GlobalHeader, extension_version) == 0x48);
static_assert(offsetof(GlobalHeader, numbering) == 0x4C);
static_assert(offsetof(GlobalHeader, pid) == 0x50);
static_assert(offsetof(GlobalHeader, clock_kind) == 0x54);
static_assert(offsetof(GlobalHeader, start_ticks) == 0x58);
static_assert(offsetof(GlobalHeader, clock_counter) == 0x60);
static_assert(offsetof(GlobalHeader, clock_nanoseconds) == 0x68);
static_assert(offsetof(GlobalHeader, harvester_pid) == 0x78);
static_assert(offsetof(GlobalHeader, harvester_version) == 0x7C);
static_assert(offsetof(GlobalHeader, harvester_socket) == 0x80);
static_assert(offsetof(GlobalHeader, ring_count) == 0xF8);
static_assert(offsetof(GlobalHeader, ring_records) == 0xFC);
static_assert(offsetof(GlobalHeader, rings_offset) == 0x100);
static_assert(offsetof(GlobalHeader, ring_stride) == 0x108);
static_assert(offsetof(GlobalHeader, places_offset) == 0x110);
static_assert(offsetof(GlobalHeader, place_count) == 0x118);
static_assert(offsetof(GlobalHeader, place_capacity) == 0x11C);
static_assert(offsetof(GlobalHeader, free_stations) == 0x138);
static_assert(offsetof(GlobalHeader, untraced_no_station) == 0x178);
static_assert(offsetof(GlobalHeader, births) == 0x198);

// ---- The station -------------------------------------------------------------------------------

inline constexpr size_t kNameBytes = 120;

enum StationState : uint32_t {
  kStationUnused = 0,
  kStationLive = 1,
  kStationDead = 2,
  kStationFree = 3
};

struct alignas(1024) StationData {
  std::atomic<uint64_t> probe_id;
  std::atomic<uint64_t> birth_ts;
  std::atomic<uint64_t> is_dead;  // byte 0; the other seven bytes are padding
  uint64_t padding[5];
  Epoch slots[kSlotCount];
  // ---- cTP's flexible area, ours from here on ----
  std::atomic<uint32_t> state;
  std::atomic<uint32_t> generation;       // counts the coroutines that had this station
  std::atomic<uint64_t> frame;            // the coroutine's frame, an address in the target
  std::atomic<uint64_t> resume_function;  // first word of the frame: which coroutine it is
  std::atomic<uint64_t> present;          // where the target keeps its last Record of this one
  std::atomic<uint64_t> event_count;      // of slot events; goes on when the station is recycled
  std::atomic<uint64_t> awaited_by;       // who waits for it: bits 4-39 of that one's records
  std::atomic<uint32_t> next_free;        // index + 1
  std::atomic<uint32_t> adopted;          // 1: born before tracing began
  std::atomic<uint32_t> name_length;
  char name[kNameBytes];
  char payload[kPayloadBytes];
  char unused_1[0x320 - 0x2F4 - kPayloadBytes];
  // The last Record of one that can still be moved in memory; `present` points here then.
  std::atomic<uint64_t> movable_present[2];
  char unused_2[1024 - 0x330];
};
static_assert(sizeof(StationData) == 1024 && alignof(StationData) == 1024);
static_assert(offsetof(StationData, probe_id) == 0x000);
static_assert(offsetof(StationData, birth_ts) == 0x008);
static_assert(offsetof(StationData, is_dead) == 0x010);
static_assert(offsetof(StationData, slots) == 0x040);
static_assert(offsetof(StationData, state) == 0x240);
static_assert(offsetof(StationData, generation) == 0x244);
static_assert(offsetof(StationData, frame) == 0x248);
static_assert(offsetof(StationData, resume_function) == 0x250);
static_assert(offsetof(StationData, present) == 0x258);
static_assert(offsetof(StationData, event_count) == 0x260);
static_assert(offsetof(StationData, awaited_by) == 0x268);
static_assert(offsetof(StationData, next_free) == 0x270);
static_assert(offsetof(StationData, adopted) == 0x274);
static_assert(offsetof(StationData, name_length) == 0x278);
static_assert(offsetof(StationData, name) == 0x27C);
static_assert(offsetof(StationData, payload) == 0x2F4);
static_assert(offsetof(StationData, movable_present) == 0x320);

// ---- Rings: one for each thread, written by it alone -------------------------------------------

enum Kind : uint32_t {
  kKindNone = 0,
  kKindBirth = 1,
  kKindAdopted = 2,  // the first event of one that was born before tracing began
  kKindResume = 3,
  kKindSuspend = 4,
  kKindYield = 5,
  kKindDone = 6,    // final suspend
  kKindDeath = 7,   // the frame is destroyed
  kKindAwaits = 8,  // the place is not a place but the station of the coroutine it waits for
  kKindReady = 9,   // somebody has put it into a scheduler's queue
};
inline constexpr uint32_t kKindCount = 10;

// 16 bytes. The word: bits 0-3 kind, 4-15 generation, 16-39 station, 40-63 place.
struct Record {
  std::atomic<uint64_t> stamp;
  std::atomic<uint64_t> word;
};
static_assert(sizeof(Record) == 16);

inline constexpr uint32_t kGenerationMask = 0xFFF;
inline constexpr uint32_t kMaxStations = 1u << 24;
inline constexpr uint32_t kMaxPlaces = 1u << 14;

inline constexpr uint64_t IdentityOf(uint32_t station, uint32_t generation) {
  return (uint64_t{generation & kGenerationMask} << 4) | (uint64_t{station} << 16);
}
inline constexpr uint64_t WordOf(uint64_t identity, Kind kind, uint32_t place) {
  return identity | kind | (uint64_t{place} << 40);
}
inline constexpr uint32_t KindOf(uint64_t word) { return word & 0xF; }
inline constexpr uint32_t GenerationOf(uint64_t word) { return (word >> 4) & kGenerationMask; }
inline constexpr uint32_t StationOf(uint64_t word) { return (word >> 16) & 0xFFFFFF; }
inline constexpr uint32_t PlaceOf(uint64_t word) { return static_cast<uint32_t>(word >> 40); }

enum RingState : uint32_t {
  kRingFree = 0,      // drained, nobody's
  kRingOwned = 1,     // its thread writes
  kRingAbandoned = 2  // its thread has ended; free once it is drained
};

inline constexpr size_t kRingControlBytes = 4096;

struct alignas(64) RingControl {
  std::atomic<uint64_t> head;  // records ever written; by the owner
  std::atomic<uint64_t> lost;  // records that found the ring full; by the owner
  std::atomic<uint32_t> tid;
  std::atomic<uint32_t> state;
  uint64_t unused_1[5];
  std::atomic<uint64_t> tail;  // records taken; by the harvester
  uint64_t unused_2[7];
};
static_assert(sizeof(RingControl) == 128);
static_assert(offsetof(RingControl, lost) == 0x08);
static_assert(offsetof(RingControl, tid) == 0x10);
static_assert(offsetof(RingControl, state) == 0x14);
static_assert(offsetof(RingControl, tail) == 0x40);

// ---- Places: where coroutines suspend ----------------------------------------------------------

struct Place {
  uint32_t line;
  uint32_t column;
  char file[120];      // the end of it, if it is longer; zero-terminated
  char function[128];  // the beginning of it; zero-terminated
};
static_assert(sizeof(Place) == 256);

// ---- Where things are in an area of ours; it is sparse, and grows ------------------------------

inline constexpr char kAreaName[] = "SPANPROF_CORO";
inline constexpr uint64_t kStationsOffset = 0x400;
inline constexpr uint64_t kPlacesOffset = uint64_t{17} << 30;
inline constexpr uint64_t kRingsOffset = uint64_t{18} << 30;
inline constexpr uint32_t kMaxRings = 4096;
// A ring has room for a tenth of a second at 20 million events a second (32 MiB), and less where as
// many threads as there are processors would take more than kRingBytesOfAll.
inline constexpr uint32_t kDefaultRingRecords = 1u << 21;
inline constexpr uint32_t kFewestDefaultRecords = 1u << 17;  // 2 MiB
inline constexpr uint64_t kRingBytesOfAll = 256u << 20;
inline constexpr uint32_t kStationsPerChunk = 4096;
static_assert(kStationsOffset + uint64_t{kMaxStations} * sizeof(StationData) <= kPlacesOffset);
static_assert(kPlacesOffset + kMaxPlaces * sizeof(Place) <= kRingsOffset);

inline constexpr uint64_t RingStride(uint32_t records) {
  return kRingControlBytes + uint64_t{records} * sizeof(Record);
}

static_assert(std::atomic<uint64_t>::is_always_lock_free);

}  // namespace spanprof::internal::coroutine
