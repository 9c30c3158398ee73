//! Numbers for places in the source: a look into a small table of the thread, and for a place that
//! is new to it a table of the process. Any thread, not for signal handlers.

use core::cell::Cell;
use core::panic::Location;
use core::sync::atomic::{AtomicU32, AtomicU8, AtomicUsize, Ordering};

use crate::layout::{GlobalHeader, MAX_PLACES};
use crate::process::PROCESS;

const CACHED: usize = 64;
const ENTRIES: usize = 2 * MAX_PLACES as usize;

/// What identifies a place: constants of the program, by their addresses.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Key {
    location: usize,
    function: usize,
}

impl Key {
    const NONE: Key = Key {
        location: 0,
        function: 0,
    };

    fn hash(self) -> usize {
        ((self.location >> 3) ^ (self.function >> 1)).wrapping_mul(0x9E37_79B1)
    }
}

#[derive(Clone, Copy)]
struct Cached {
    key: Key,
    header: usize,
    number: u32,
}

thread_local! {
    static CACHE: [Cell<Cached>; CACHED] = const {
        [const { Cell::new(Cached { key: Key::NONE, header: 0, number: 0 }) }; CACHED]
    };
}

/// Written under the process's lock. Those of another header, which a parent process had, count as
/// empty.
struct Entry {
    header: AtomicUsize,
    location: AtomicUsize,
    function: AtomicUsize,
    number: AtomicU32,
}

static TABLE: [Entry; ENTRIES] = [const {
    Entry {
        header: AtomicUsize::new(0),
        location: AtomicUsize::new(0),
        function: AtomicUsize::new(0),
        number: AtomicU32::new(0),
    }
}; ENTRIES];

/// The number of a place; 0 if there is no room for it.
pub(crate) fn number_of(
    header: &'static GlobalHeader,
    location: &'static Location<'static>,
    function: &'static str,
) -> u32 {
    let key = Key {
        location: core::ptr::from_ref(location) as usize,
        function: function.as_ptr() as usize,
    };
    let header_address = core::ptr::from_ref(header) as usize;
    let number = CACHE.try_with(|cache| {
        let slot = &cache[(key.hash() >> 8) % CACHED];
        let cached = slot.get();
        if cached.key == key && cached.header == header_address {
            return cached.number;
        }
        let number = keep(header, key, location, function);
        slot.set(Cached {
            key,
            header: header_address,
            number,
        });
        number
    });
    number.unwrap_or(0)
}

#[cold]
fn keep(
    header: &GlobalHeader,
    key: Key,
    location: &Location<'static>,
    function: &'static str,
) -> u32 {
    PROCESS.activate(header);
    let Some(places) = PROCESS.places.get() else {
        return 0;
    };
    let _guard = PROCESS.lock.lock();
    let header_address = core::ptr::from_ref(header) as usize;
    let mut at = key.hash() % ENTRIES;
    // Half of the entries stay empty: there are more of them than numbers.
    let entry = loop {
        let entry = &TABLE[at];
        if entry.header.load(Ordering::Relaxed) != header_address {
            break entry;
        }
        let known = Key {
            location: entry.location.load(Ordering::Relaxed),
            function: entry.function.load(Ordering::Relaxed),
        };
        if known == key {
            return entry.number.load(Ordering::Relaxed);
        }
        at = (at + 1) % ENTRIES;
    };
    let number = header.place_count.load(Ordering::Relaxed).saturating_add(1); // 0: none
    let Some(place) = places.get(number as usize) else {
        header.places_not_kept.fetch_add(1, Ordering::Relaxed);
        return 0;
    };
    place.line.store(location.line(), Ordering::Relaxed);
    place.column.store(location.column(), Ordering::Relaxed);
    let file = location.file().as_bytes();
    copy_text(
        &place.file,
        &file[file.len().saturating_sub(place.file.len() - 1)..],
    );
    copy_text(&place.function, function.as_bytes());
    entry.header.store(header_address, Ordering::Relaxed);
    entry.location.store(key.location, Ordering::Relaxed);
    entry.function.store(key.function, Ordering::Relaxed);
    entry.number.store(number, Ordering::Relaxed);
    header.place_count.store(number, Ordering::Release);
    number
}

/// As much as there is room for, with a zero behind it.
fn copy_text(to: &[AtomicU8], text: &[u8]) {
    let length = text.len().min(to.len() - 1);
    for (to, from) in to.iter().zip(&text[..length]) {
        to.store(*from, Ordering::Relaxed);
    }
    to[length].store(0, Ordering::Relaxed);
}

/// The names of futures are made by the compiler; this is what their author wrote.
pub(crate) fn readable_name(type_name: &'static str) -> &'static str {
    type_name.trim_end_matches("::{{closure}}")
}
