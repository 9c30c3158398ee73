//! The probe's side of the shared memory, once for each process: made at the first traced future
//! (one page, a memfd named SPANPROF_CORO), grown when a harvester asks for events. Everything here
//! is the slow path.
//!
//! Any thread, not for signal handlers. After a fork the child starts anew, with memory of its own;
//! a child made without fork handlers (`_Fork`, `clone`) must not poll traced futures.

use core::sync::atomic::{fence, AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use crate::area_file;
use crate::clock::{cycle_counter, cycle_counter_is_usable, monotonic_nanoseconds};
use crate::layout::*;
use crate::mapping::{Current, Mapping, Published, PublishedSlice};
use crate::slow_path_lock::SlowPathLock;
use crate::wake_socket::WakeSocket;

pub(crate) const PAGE_BYTES: usize = 4096;
const CHUNKS: usize = (MAX_STATIONS / STATIONS_PER_CHUNK) as usize;

/// The mode before the process's first traced future.
static UNSTARTED_MODE: AtomicU32 = AtomicU32::new(MODE_NOT_STARTED);
/// The mode where no header has one.
static PRIVATE_MODE: AtomicU32 = AtomicU32::new(0);
/// Where the mode is: in the header once there is one.
static MODE_WORD: Current<AtomicU32> = Current::of(&UNSTARTED_MODE);

pub(crate) struct Process {
    pub(crate) lock: SlowPathLock,
    header: Published<GlobalHeader>,
    pub(crate) places: PublishedSlice<Place>,
    pub(crate) chunks: [PublishedSlice<StationData>; CHUNKS],
    area: AtomicI32,
    area_bytes: AtomicU64,
    ring_records: AtomicU32,
    /// The area is a file that a foreign harvester made.
    foreign: AtomicBool,
    /// Places are mapped, membarrier was tried.
    active: AtomicBool,
    forks_watched: AtomicBool,
    socket: WakeSocket,
}

pub(crate) static PROCESS: Process = Process {
    lock: SlowPathLock::new(),
    header: Published::new(),
    places: PublishedSlice::new(),
    chunks: [const { PublishedSlice::new() }; CHUNKS],
    area: AtomicI32::new(-1),
    area_bytes: AtomicU64::new(0),
    ring_records: AtomicU32::new(FEWEST_DEFAULT_RECORDS),
    foreign: AtomicBool::new(false),
    active: AtomicBool::new(false),
    forks_watched: AtomicBool::new(false),
    socket: WakeSocket::new(),
};

const fn context_mode() -> u32 {
    if cfg!(feature = "context") {
        MODE_CONTEXTS
    } else {
        0
    }
}

/// What is wanted now. 0: nothing.
#[inline]
pub(crate) fn current_mode() -> u32 {
    MODE_WORD.get().load(Ordering::Relaxed)
}

/// What tells one area of the process from another.
pub(crate) fn address_of(header: &GlobalHeader) -> usize {
    core::ptr::from_ref(header) as usize
}

/// Once for each process: at its first traced future.
#[cold]
pub(crate) fn start_process() {
    let _guard = PROCESS.lock.lock();
    if current_mode() & MODE_NOT_STARTED != 0 {
        PROCESS.start();
    }
}

enum Announced {
    Nothing,
    ForeignFile,
    Ours,
}

impl Process {
    #[inline]
    pub(crate) fn header(&self) -> Option<&'static GlobalHeader> {
        self.header.get()
    }

    pub(crate) fn is_foreign(&self) -> bool {
        self.foreign.load(Ordering::Relaxed)
    }

    pub(crate) fn ring_records(&self) -> u32 {
        self.ring_records.load(Ordering::Relaxed)
    }

    // ---- Making and growing the area, with the lock held ----

    fn start(&self) {
        if !self.forks_watched.load(Ordering::Relaxed) {
            let watched = area_file::watch_forks(before_fork, after_fork, forget_after_fork);
            self.forks_watched.store(watched, Ordering::Relaxed);
        }
        let records = wanted_ring_records().unwrap_or_else(default_ring_records);
        self.ring_records.store(records, Ordering::Relaxed);
        let announced = self.open_announced_file();
        let socket_path = std::env::var_os("CTP_SOCK_PATH");
        match announced {
            Announced::ForeignFile => {
                if let Some(path) = socket_path {
                    self.socket.connect(path.as_bytes(), None);
                }
            }
            Announced::Ours if self.make_own_area(MODE_RINGS) => {
                if let Some(path) = socket_path {
                    self.socket
                        .connect(path.as_bytes(), Some(self.area.load(Ordering::Relaxed)));
                }
            }
            Announced::Nothing if self.make_own_area(0) => {}
            _ => {
                PRIVATE_MODE.store(context_mode(), Ordering::Relaxed);
                MODE_WORD.set(&PRIVATE_MODE);
            }
        }
    }

    /// Maps a part of the area, which grows to have it.
    pub(crate) fn map_area(&self, offset: u64, bytes: u64) -> Option<Mapping> {
        let area = self.area.load(Ordering::Relaxed);
        let end = offset + bytes;
        if !self.is_foreign() && end > self.area_bytes.load(Ordering::Relaxed) {
            if !area_file::grow(area, end) {
                return None;
            }
            self.area_bytes.store(end, Ordering::Relaxed);
        }
        Mapping::new(area, offset, usize::try_from(bytes).ok()?)
    }

    fn make_own_area(&self, wanted_mode: u32) -> bool {
        let Some(area) = area_file::create() else {
            return false;
        };
        self.area.store(area, Ordering::Relaxed);
        let page = self.map_area(0, PAGE_BYTES as u64);
        let Some(header) = page.and_then(|page| page.get::<GlobalHeader>(0)) else {
            self.close_area();
            return false;
        };
        let records = self.ring_records();
        header.version.store(VERSION, Ordering::Relaxed);
        header.rings_offset.store(RINGS_OFFSET, Ordering::Relaxed);
        header.ring_records.store(records, Ordering::Relaxed);
        header
            .ring_stride
            .store(ring_stride(records), Ordering::Relaxed);
        header.places_offset.store(PLACES_OFFSET, Ordering::Relaxed);
        header.place_capacity.store(MAX_PLACES, Ordering::Relaxed);
        describe_writer(header);
        let cycles = header.clock_kind.load(Ordering::Relaxed) == CLOCK_CYCLES;
        let clock = if cycles { 0 } else { MODE_CLOCK };
        header
            .mode
            .store(wanted_mode | clock | context_mode(), Ordering::Relaxed);
        header.magic_number.store(MAGIC, Ordering::Release);
        self.header.set(header);
        MODE_WORD.set(&header.mode);
        true
    }

    fn close_area(&self) {
        area_file::close(self.area.swap(-1, Ordering::Relaxed));
        self.area_bytes.store(0, Ordering::Relaxed);
    }

    /// Looks at the file of CTP_SHM_PATH. A foreign harvester's is mapped and used as it is.
    fn open_announced_file(&self) -> Announced {
        let Some((file, bytes)) = announced_path().and_then(|path| area_file::open(&path)) else {
            return Announced::Nothing;
        };
        let mapping = usize::try_from(bytes)
            .ok()
            .and_then(|bytes| Mapping::new(file, 0, bytes));
        let Some(mapping) = mapping else {
            area_file::close(file);
            return Announced::Nothing;
        };
        let (is_area, ours) = mapping
            .get::<GlobalHeader>(0)
            .map_or((false, false), |header| {
                let is_area = header.magic_number.load(Ordering::Acquire) == MAGIC;
                let extended = header.extension_magic.load(Ordering::Acquire) == EXTENSION_MAGIC;
                (
                    is_area,
                    extended && header.mode.load(Ordering::Relaxed) & MODE_RINGS != 0,
                )
            });
        if !is_area || ours {
            mapping.unmap_unused();
            area_file::close(file);
            return if is_area {
                Announced::Ours
            } else {
                Announced::Nothing
            };
        }
        self.area.store(file, Ordering::Relaxed);
        self.area_bytes.store(bytes, Ordering::Relaxed);
        self.foreign.store(true, Ordering::Relaxed);
        self.use_foreign_area(&mapping, bytes);
        Announced::ForeignFile
    }

    fn use_foreign_area(&self, mapping: &Mapping, bytes: u64) {
        let Some(header) = mapping.get::<GlobalHeader>(0) else {
            return;
        };
        let room = bytes / size_of::<StationData>() as u64 - 1; // open() checked the length
        let stations = u64::from(header.max_stations.load(Ordering::Relaxed)).min(room);
        let stations = stations.min(u64::from(MAX_STATIONS)) as usize;
        let all = mapping.slice::<StationData>(STATIONS_OFFSET as usize, stations);
        let chunks = all.unwrap_or(&[]).chunks(STATIONS_PER_CHUNK as usize);
        for (published, chunk) in self.chunks.iter().zip(chunks) {
            published.set(chunk);
        }
        describe_writer(header);
        PRIVATE_MODE.store(MODE_STATIONS | context_mode(), Ordering::Relaxed);
        self.header.set(header);
        MODE_WORD.set(&PRIVATE_MODE);
    }

    /// The first time that a harvester wants events. Takes the lock.
    pub(crate) fn activate(&self, header: &GlobalHeader) {
        if self.active.load(Ordering::Acquire) {
            return;
        }
        let _guard = self.lock.lock();
        if self.active.load(Ordering::Relaxed) {
            return;
        }
        if !self.is_foreign() {
            let bytes = u64::from(MAX_PLACES) * size_of::<Place>() as u64;
            let places = self.map_area(PLACES_OFFSET, bytes);
            if let Some(places) = places.and_then(|at| at.slice(0, MAX_PLACES as usize)) {
                self.places.set(places);
            }
            // From now on a harvester's membarrier reaches this process, and no event needs a fence.
            if !area_file::register_for_barriers() {
                header.mode.fetch_or(MODE_FENCE, Ordering::Relaxed);
            }
        }
        self.active.store(true, Ordering::Release);
    }

    // ---- The sleeping harvester ----

    /// Called when `tracer_sleeping` was seen. Never blocks, never raises a signal.
    #[cold]
    pub(crate) fn wake_harvester(&self, header: &GlobalHeader) {
        let woken =
            header
                .tracer_sleeping
                .compare_exchange(1, 0, Ordering::AcqRel, Ordering::Relaxed);
        if woken.is_err() || self.socket.send_byte() {
            return;
        }
        let Some(_guard) = self.lock.try_lock() else {
            return;
        };
        let version = header.harvester_version.load(Ordering::Acquire);
        let path: Vec<u8> = header
            .harvester_socket
            .iter()
            .map(|byte| byte.load(Ordering::Relaxed))
            .take_while(|byte| *byte != 0)
            .collect();
        // Pairs with the harvester's release fence behind the odd version.
        fence(Ordering::Acquire);
        let whole = version & 1 == 0 && header.harvester_version.load(Ordering::Relaxed) == version;
        if whole && path.first() == Some(&b'/') && self.socket.connect(&path, None) {
            self.socket.send_byte();
        }
    }
}

fn describe_writer(header: &GlobalHeader) {
    header
        .extension_version
        .store(EXTENSION_VERSION, Ordering::Relaxed);
    header
        .extension_bytes
        .store(0x1A0 - 0x40, Ordering::Relaxed);
    header.numbering.store(NUMBERING_EVENTS, Ordering::Relaxed);
    header.pid.store(std::process::id(), Ordering::Relaxed);
    header
        .start_ticks
        .store(own_start_ticks().unwrap_or(0), Ordering::Relaxed);
    let cycles = cycle_counter_is_usable();
    let kind = if cycles {
        CLOCK_CYCLES
    } else {
        CLOCK_MONOTONIC_KIND
    };
    header.clock_kind.store(kind, Ordering::Relaxed);
    let nanoseconds = monotonic_nanoseconds();
    header
        .clock_nanoseconds
        .store(nanoseconds, Ordering::Relaxed);
    let counter = if cycles { cycle_counter() } else { nanoseconds };
    header.clock_counter.store(counter, Ordering::Relaxed);
    // Who sees the magic sees all of the above.
    header
        .extension_magic
        .store(EXTENSION_MAGIC, Ordering::Release);
}

fn own_start_ticks() -> Option<u64> {
    let text = std::fs::read("/proc/self/stat").ok()?;
    // The name in parentheses may have spaces of its own; starttime is the 20th field behind it.
    let name_end = text.iter().rposition(|byte| *byte == b')')?;
    let field = text[name_end..].split(|byte| *byte == b' ').nth(20)?;
    core::str::from_utf8(field).ok()?.parse().ok()
}

fn announced_path() -> Option<OsString> {
    std::env::var_os("CTP_SHM_PATH").filter(|path| !path.is_empty())
}

/// Less than the usual where as many threads as there are processors would take too much memory.
fn default_ring_records() -> u32 {
    let processors = std::thread::available_parallelism().map_or(1, |count| count.get() as u64);
    let share = RING_BYTES_OF_ALL / size_of::<Record>() as u64 / processors;
    let share = share.min(u64::from(DEFAULT_RING_RECORDS)) as u32;
    1 << share.max(FEWEST_DEFAULT_RECORDS).ilog2()
}

fn wanted_ring_records() -> Option<u32> {
    let text = std::env::var("SPANPROF_CORO_RING_RECORDS").ok()?;
    let wanted: u32 = text.parse().ok()?;
    (256..=1 << 24)
        .contains(&wanted)
        .then(|| wanted.next_power_of_two())
}

// ---- Forks ----

// So that the child does not find it held by a thread that it does not have.
extern "C" fn before_fork() {
    core::mem::forget(PROCESS.lock.lock());
}

extern "C" fn after_fork() {
    PROCESS.lock.release();
}

// In the child, which has one thread. What the parent mapped stays mapped, because futures refer to
// it; they compare it with the header before they use it.
extern "C" fn forget_after_fork() {
    UNSTARTED_MODE.store(MODE_NOT_STARTED | context_mode(), Ordering::Relaxed);
    MODE_WORD.set(&UNSTARTED_MODE);
    PROCESS.header.forget();
    PROCESS.close_area();
    PROCESS.places.forget();
    PROCESS.foreign.store(false, Ordering::Relaxed);
    PROCESS.active.store(false, Ordering::Relaxed);
    PROCESS.socket.close_in_child();
    for chunk in PROCESS
        .chunks
        .iter()
        .take_while(|chunk| chunk.get().is_some())
    {
        chunk.forget();
    }
    crate::rings::forget_after_fork();
    PROCESS.lock.release();
}
