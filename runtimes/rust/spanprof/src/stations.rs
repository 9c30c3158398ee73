//! Stations for futures, out of the process's area, and the event slots in them, which only a
//! foreign harvester wants. Any thread, not for signal handlers.

use core::sync::atomic::{fence, AtomicU8, Ordering};

use crate::clock::monotonic_nanoseconds;
use crate::layout::{
    identity_of, station_of, GlobalHeader, StationData, ACTIVE_SHIFT, MAX_STATIONS, SLOT_COUNT,
    STATIONS_OFFSET, STATIONS_PER_CHUNK, STATION_LIVE,
};
use crate::process::{PAGE_BYTES, PROCESS};

/// A station that nobody has, with its index. None: there are no more; the caller counts that.
pub(crate) fn take(header: &GlobalHeader) -> Option<(u32, &'static StationData)> {
    if PROCESS.is_foreign() {
        // As the specification has it: the cursor goes on past the end.
        let index = header.allocated_count.fetch_add(1, Ordering::Relaxed);
        return Some((index, station_at(index)?));
    }
    take_free(header).or_else(|| take_new(header))
}

fn station_at(index: u32) -> Option<&'static StationData> {
    let chunk = PROCESS
        .chunks
        .get((index / STATIONS_PER_CHUNK) as usize)?
        .get()?;
    chunk.get((index % STATIONS_PER_CHUNK) as usize)
}

/// Takes a station that the harvester gave back. The counter in the upper half makes sure that the
/// one taken still has the successor that was read from it.
fn take_free(header: &GlobalHeader) -> Option<(u32, &'static StationData)> {
    let mut top = header.free_stations.load(Ordering::Acquire);
    loop {
        let entry = top as u32;
        if entry == 0 || entry > header.allocated_count.load(Ordering::Relaxed) {
            return None;
        }
        let station = station_at(entry - 1)?;
        let next = u64::from(station.next_free.load(Ordering::Relaxed));
        let wanted = ((top >> 32).wrapping_add(1) << 32) | next;
        // Acquire: what the harvester did with the station is done.
        match header.free_stations.compare_exchange_weak(
            top,
            wanted,
            Ordering::Acquire,
            Ordering::Acquire,
        ) {
            Ok(_) => return Some((entry - 1, station)),
            Err(present) => top = present,
        }
    }
}

fn take_new(header: &GlobalHeader) -> Option<(u32, &'static StationData)> {
    let mut next = header.allocated_count.load(Ordering::Relaxed);
    loop {
        if next >= MAX_STATIONS {
            return None;
        }
        if next >= header.max_stations.load(Ordering::Acquire) {
            grow(header, next)?;
        }
        match header.allocated_count.compare_exchange_weak(
            next,
            next + 1,
            Ordering::Relaxed,
            Ordering::Relaxed,
        ) {
            Ok(_) => return Some((next, station_at(next)?)),
            Err(present) => next = present,
        }
    }
}

#[cold]
fn grow(header: &GlobalHeader, wanted: u32) -> Option<()> {
    const CHUNK_BYTES: u64 = STATIONS_PER_CHUNK as u64 * size_of::<StationData>() as u64;
    let _guard = PROCESS.lock.lock();
    let capacity = header.max_stations.load(Ordering::Relaxed);
    if wanted < capacity {
        return Some(()); // another thread was faster
    }
    let chunk = u64::from(capacity / STATIONS_PER_CHUNK);
    // Stations begin in the middle of a page, so a chunk needs one page more than it is long.
    let memory = PROCESS.map_area(chunk * CHUNK_BYTES, CHUNK_BYTES + PAGE_BYTES as u64)?;
    let stations = memory.slice(STATIONS_OFFSET as usize, STATIONS_PER_CHUNK as usize)?;
    PROCESS.chunks.get(chunk as usize)?.set(stations);
    header
        .max_stations
        .store(capacity + STATIONS_PER_CHUNK, Ordering::Release);
    Some(())
}

/// Makes a station that of a new future, which can still be moved. Returns the identity that its
/// records have.
pub(crate) fn begin_life(station: &StationData, index: u32, adopted: bool, name: &str) -> u64 {
    let generation = station.generation.load(Ordering::Relaxed).wrapping_add(1);
    station.generation.store(generation, Ordering::Relaxed);
    let probe_id = (u64::from(generation) << 24) | u64::from(index);
    station.probe_id.store(probe_id, Ordering::Relaxed);
    station
        .birth_ts
        .store(monotonic_nanoseconds(), Ordering::Relaxed);
    station.is_dead.store(0, Ordering::Relaxed);
    station.awaited_by.store(0, Ordering::Relaxed);
    station.adopted.store(u32::from(adopted), Ordering::Relaxed);
    station.frame.store(0, Ordering::Relaxed);
    station.resume_function.store(0, Ordering::Relaxed);
    let present = core::ptr::from_ref(&station.movable_present) as u64;
    station.present.store(present, Ordering::Relaxed);
    write_name(station, name);
    // Pairs with the loads of who looks from outside.
    station.state.store(STATION_LIVE, Ordering::Release);
    identity_of(index, generation)
}

pub(crate) struct SlotEvent {
    pub(crate) timestamp: u64,
    pub(crate) tid: u64,
    pub(crate) addr: u64,
    pub(crate) active: bool,
}

/// Publishes the next event of a station: sequence 0 while it is being written, then 2k for event
/// k. One thread at a time. The numbering is one that every kind of reader can follow; see
/// `docs/coroutines.md`.
pub(crate) fn write_slot(station: &StationData, event: &SlotEvent) {
    let number = station.event_count.load(Ordering::Relaxed).wrapping_add(1);
    station.event_count.store(number, Ordering::Relaxed);
    let slot = &station.slots[number.wrapping_sub(1) as usize % SLOT_COUNT];
    slot.seq.store(0, Ordering::Relaxed);
    // With the reader's acquire fence: who has seen one of the values below finds 0 or a later
    // sequence when looking again.
    fence(Ordering::Release);
    slot.timestamp.store(event.timestamp, Ordering::Relaxed);
    slot.tid.store(event.tid, Ordering::Relaxed);
    slot.addr.store(event.addr, Ordering::Relaxed);
    let mut tail = [0u64; 4];
    for (i, byte) in station.payload.iter().enumerate() {
        tail[i / 8] |= u64::from(byte.load(Ordering::Relaxed)) << (i % 8 * 8);
    }
    tail[3] |= u64::from(event.active) << ACTIVE_SHIFT;
    for (to, from) in slot.tail.iter().zip(tail) {
        to.store(from, Ordering::Relaxed);
    }
    // Pairs with the reader's first load of seq.
    slot.seq.store(number.wrapping_mul(2), Ordering::Release);
}

/// A name for who looks from outside.
pub(crate) fn write_name(station: &StationData, name: &str) {
    station.name_length.store(0, Ordering::Relaxed);
    fence(Ordering::Release);
    let length = copy_bytes(&station.name, name.as_bytes());
    // Pairs with the harvester's load of the length.
    station.name_length.store(length as u32, Ordering::Release);
}

/// Copies as much as there is room for, and says how much that was.
pub(crate) fn copy_bytes(to: &[AtomicU8], from: &[u8]) -> usize {
    for (to, from) in to.iter().zip(from) {
        to.store(*from, Ordering::Relaxed);
    }
    to.len().min(from.len())
}

/// Says in the station of `awaited` that `awaiter` waits for it, if it is still that one's.
pub(crate) fn note_awaiter(awaited: u64, awaiter: u64) {
    let index = station_of(awaited);
    let Some(station) = station_at(index) else {
        return;
    };
    let generation = station.generation.load(Ordering::Relaxed);
    let unchanged = station.awaited_by.load(Ordering::Relaxed) == awaiter;
    if !unchanged && identity_of(index, generation) == awaited {
        station.awaited_by.store(awaiter, Ordering::Relaxed);
    }
}
