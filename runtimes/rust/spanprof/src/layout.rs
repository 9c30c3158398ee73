//! The shared memory that probes write and harvesters read: cTP 1.0 and what spanprof keeps in the
//! bytes that cTP reserves. Only layout, no behaviour. `docs/coroutines.md` describes every byte;
//! `include/spanprof/internal/coroutine_layout.hpp` is the same for C++, and a test has a C++
//! compiler check that the two agree.
//!
//! Every byte is an atomic: the other side is another process, which may be hostile.

use core::mem::{offset_of, size_of};
use core::sync::atomic::{AtomicU32, AtomicU64, AtomicU8};

/// Declares structs with the offset of each field, which the compiler checks, and lists them in
/// `FIELDS` and `SIZES` for the comparison with C++.
macro_rules! shared_layout {
    ($(
        $(#[$attribute:meta])*
        struct $name:ident: $size:literal {
            $($(#[$field_attribute:meta])* $offset:literal $field:ident: $kind:ty,)*
        }
    )*) => {
        $(
            $(#[$attribute])*
            pub(crate) struct $name {
                $($(#[$field_attribute])* pub(crate) $field: $kind,)*
            }
            const _: () = {
                assert!(size_of::<$name>() == $size);
                $(assert!(offset_of!($name, $field) == $offset);)*
            };
        )*
        #[cfg(test)]
        pub(crate) const SIZES: &[(&str, usize, usize)] =
            &[$((stringify!($name), $size, core::mem::align_of::<$name>()),)*];
        #[cfg(test)]
        pub(crate) const FIELDS: &[(&str, &str, usize)] =
            &[$($((stringify!($name), stringify!($field), $offset),)*)*];
    };
}

shared_layout! {
    /// An event slot of a station.
    #[repr(C, align(64))]
    struct Epoch: 64 {
        /// CLOCK_MONOTONIC, nanoseconds.
        0x00 timestamp: AtomicU64,
        0x08 tid: AtomicU64,
        0x10 addr: AtomicU64,
        0x18 seq: AtomicU64,
        /// 31 bytes of payload, and `is_active` in the highest byte.
        0x20 tail: [AtomicU64; 4],
    }

    #[repr(C, align(1024))]
    struct GlobalHeader: 1024 {
        0x00 magic_number: AtomicU64,
        0x08 version: AtomicU32,
        /// Ours grows; a foreign file's does not.
        0x0C max_stations: AtomicU32,
        0x10 allocated_count: AtomicU32,
        0x14 tracer_sleeping: AtomicU32,
        0x18 mode: AtomicU32,
        /// From `extension_magic` on.
        0x1C extension_bytes: AtomicU32,
        0x20 _unused_1: [u64; 4],
        0x40 extension_magic: AtomicU64,
        0x48 extension_version: AtomicU32,
        0x4C numbering: AtomicU32,
        0x50 pid: AtomicU32,
        0x54 clock_kind: AtomicU32,
        /// Field 22 of /proc/PID/stat: tells a process from its successor.
        0x58 start_ticks: AtomicU64,
        /// The ring clock and CLOCK_MONOTONIC, read at the same time.
        0x60 clock_counter: AtomicU64,
        0x68 clock_nanoseconds: AtomicU64,
        0x70 _unused_2: u64,
        0x78 harvester_pid: AtomicU32,
        /// Odd while pid and socket path are being changed.
        0x7C harvester_version: AtomicU32,
        0x80 harvester_socket: [AtomicU8; 120],
        0xF8 ring_count: AtomicU32,
        /// Of each ring, a power of two.
        0xFC ring_records: AtomicU32,
        0x100 rings_offset: AtomicU64,
        0x108 ring_stride: AtomicU64,
        0x110 places_offset: AtomicU64,
        0x118 place_count: AtomicU32,
        0x11C place_capacity: AtomicU32,
        0x120 _unused_3: [u64; 3],
        /// Stations that may be used again: index + 1 in the lower half, a counter in the upper.
        0x138 free_stations: AtomicU64,
        0x140 _unused_4: [u64; 7],
        0x178 untraced_no_station: AtomicU64,
        0x180 lost_no_ring: AtomicU64,
        0x188 places_not_kept: AtomicU64,
        /// Born while tracing was off, seen at a later resume.
        0x190 adopted_coroutines: AtomicU64,
        0x198 births: AtomicU64,
        0x1A0 _unused_5: [u64; 76],
    }

    #[repr(C, align(1024))]
    struct StationData: 1024 {
        0x000 probe_id: AtomicU64,
        0x008 birth_ts: AtomicU64,
        /// Byte 0; the other seven bytes are padding.
        0x010 is_dead: AtomicU64,
        0x018 _padding: [u64; 5],
        0x040 slots: [Epoch; SLOT_COUNT],
        0x240 state: AtomicU32,
        /// Counts the coroutines that had this station.
        0x244 generation: AtomicU32,
        0x248 frame: AtomicU64,
        0x250 resume_function: AtomicU64,
        /// Where the target keeps its last record of this one.
        0x258 present: AtomicU64,
        /// Of slot events; goes on when the station is recycled.
        0x260 event_count: AtomicU64,
        /// Who waits for it: bits 4 to 39 of that one's records.
        0x268 awaited_by: AtomicU64,
        /// Index + 1.
        0x270 next_free: AtomicU32,
        /// 1: born before tracing began.
        0x274 adopted: AtomicU32,
        0x278 name_length: AtomicU32,
        0x27C name: [AtomicU8; NAME_BYTES],
        0x2F4 payload: [AtomicU8; PAYLOAD_BYTES],
        0x313 _unused_1: [u8; 13],
        /// The last record of a coroutine that can still be moved: `present` points here.
        0x320 movable_present: Record,
        0x330 _unused_2: [u64; 26],
    }

    /// 16 bytes. The word: bits 0 to 3 kind, 4 to 15 generation, 16 to 39 station, 40 to 63 place.
    #[repr(C)]
    #[derive(Default)]
    struct Record: 16 {
        0x00 stamp: AtomicU64,
        0x08 word: AtomicU64,
    }

    #[repr(C, align(64))]
    struct RingControl: 128 {
        /// Records ever written; by the owner.
        0x00 head: AtomicU64,
        /// Records that found the ring full; by the owner.
        0x08 lost: AtomicU64,
        0x10 tid: AtomicU32,
        0x14 state: AtomicU32,
        0x18 _unused_1: [u64; 5],
        /// Records taken; by the harvester.
        0x40 tail: AtomicU64,
        0x48 _unused_2: [u64; 7],
    }

    #[repr(C)]
    struct Place: 256 {
        0x00 line: AtomicU32,
        0x04 column: AtomicU32,
        /// The end of it, if it is longer; zero-terminated.
        0x08 file: [AtomicU8; 120],
        /// The beginning of it; zero-terminated.
        0x80 function: [AtomicU8; 128],
    }
}

/// Declares numbers, and lists them with their names in C++.
macro_rules! shared_constants {
    ($($(#[$attribute:meta])* $name:ident: $kind:ty = $value:expr, $cpp:literal;)*) => {
        $($(#[$attribute])* pub(crate) const $name: $kind = $value;)*
        #[cfg(test)]
        pub(crate) const CONSTANTS: &[(&str, u64)] = &[$(($cpp, $name as u64),)*];
    };
}

shared_constants! {
    /// "COROTRCR".
    MAGIC: u64 = 0x434F_524F_5452_4352, "kMagic";
    VERSION: u32 = 1, "kVersion";
    SLOT_COUNT: usize = 8, "kSlotCount";
    PAYLOAD_BYTES: usize = 31, "kPayloadBytes";
    NAME_BYTES: usize = 120, "kNameBytes";
    /// `is_active` is byte 0x3F: the highest one of `tail[3]`.
    ACTIVE_SHIFT: u32 = 56, "kActiveShift";
    /// In memory: "SPNCORO1".
    EXTENSION_MAGIC: u64 = 0x314F_524F_434E_5053, "kExtensionMagic";
    EXTENSION_VERSION: u32 = 1, "kExtensionVersion";
    /// Event k of a station is in slot (k-1) % 8 with sequence 2k, and 0 while it is being written.
    NUMBERING_EVENTS: u32 = 1, "kNumberingEvents";

    /// A harvester of ours wants events in rings.
    MODE_RINGS: u32 = 1 << 0, "kModeRings";
    /// A foreign one wants them in station slots.
    MODE_STATIONS: u32 = 1 << 1, "kModeStations";
    /// No membarrier: the probe needs its fence.
    MODE_FENCE: u32 = 1 << 2, "kModeFence";
    /// No usable cycle counter: CLOCK_MONOTONIC.
    MODE_CLOCK: u32 = 1 << 3, "kModeClock";
    /// libspanprof is linked: contexts are carried.
    MODE_CONTEXTS: u32 = 1 << 4, "kModeContexts";
    /// In a process before its first coroutine.
    MODE_NOT_STARTED: u32 = 1 << 5, "kModeNotStarted";

    CLOCK_MONOTONIC_KIND: u32 = 1, "kClockMonotonic";
    CLOCK_CYCLES: u32 = 2, "kClockCycles";

    STATION_LIVE: u32 = 1, "kStationLive";
    STATION_DEAD: u32 = 2, "kStationDead";

    RING_FREE: u32 = 0, "kRingFree";
    RING_OWNED: u32 = 1, "kRingOwned";
    RING_ABANDONED: u32 = 2, "kRingAbandoned";
    RING_CONTROL_BYTES: u64 = 4096, "kRingControlBytes";

    GENERATION_MASK: u32 = 0xFFF, "kGenerationMask";
    MAX_STATIONS: u32 = 1 << 24, "kMaxStations";
    MAX_PLACES: u32 = 1 << 14, "kMaxPlaces";
    STATIONS_OFFSET: u64 = 0x400, "kStationsOffset";
    PLACES_OFFSET: u64 = 17 << 30, "kPlacesOffset";
    RINGS_OFFSET: u64 = 18 << 30, "kRingsOffset";
    MAX_RINGS: u32 = 4096, "kMaxRings";
    DEFAULT_RING_RECORDS: u32 = 1 << 21, "kDefaultRingRecords";
    FEWEST_DEFAULT_RECORDS: u32 = 1 << 17, "kFewestDefaultRecords";
    RING_BYTES_OF_ALL: u64 = 256 << 20, "kRingBytesOfAll";
    STATIONS_PER_CHUNK: u32 = 4096, "kStationsPerChunk";
}

/// The kinds of records, by the numbers that they have in C++.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub(crate) enum Kind {
    Birth = 1,
    Adopted = 2,
    Resume = 3,
    Suspend = 4,
    Yield = 5,
    Done = 6,
    Death = 7,
    Awaits = 8,
    Ready = 9,
}

pub(crate) const AREA_NAME: &core::ffi::CStr = c"SPANPROF_CORO";

pub(crate) const fn identity_of(station: u32, generation: u32) -> u64 {
    (((generation & GENERATION_MASK) as u64) << 4) | ((station as u64) << 16)
}

pub(crate) const fn word_of(identity: u64, kind: Kind, place: u32) -> u64 {
    identity | kind as u64 | ((place as u64) << 40)
}

pub(crate) const fn station_of(word: u64) -> u32 {
    (word >> 16) as u32 & 0xFF_FFFF
}

pub(crate) const fn ring_stride(records: u32) -> u64 {
    RING_CONTROL_BYTES + records as u64 * size_of::<Record>() as u64
}

#[cfg(test)]
#[path = "layout_test.rs"]
mod layout_test;
