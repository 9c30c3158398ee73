//! Mapped shared memory as references. Mappings are never taken away again, so a reference into one
//! is valid for the rest of the process; and everything in them is atomic, so that it does not
//! matter who else writes it.
#![allow(unsafe_code)] // Turning addresses of mappings into references is what this module is for.

use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use crate::layout::{GlobalHeader, Place, Record, RingControl, StationData};

/// What may lie in memory that another process writes.
///
/// # Safety
/// Every pattern of bytes is a value of the type, and it is read and written through atomics only
/// (or not at all).
pub(crate) unsafe trait Shared: Sync {}
// SAFETY: atomics of integers, arrays of them, and integers that nobody touches.
unsafe impl Shared for GlobalHeader {}
// SAFETY: as above.
unsafe impl Shared for StationData {}
// SAFETY: as above.
unsafe impl Shared for RingControl {}
// SAFETY: as above.
unsafe impl Shared for Record {}
// SAFETY: as above.
unsafe impl Shared for Place {}

/// A range of a file in memory, for good.
#[derive(Clone, Copy)]
pub(crate) struct Mapping {
    start: *mut u8,
    bytes: usize,
}

impl Mapping {
    /// The file must be at least this long, and stay so.
    pub(crate) fn new(file: i32, offset: u64, bytes: usize) -> Option<Mapping> {
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory of ours.
        let start = unsafe {
            libc::mmap(
                null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_NORESERVE,
                file,
                libc::off_t::try_from(offset).ok()?,
            )
        };
        (start != libc::MAP_FAILED).then_some(Mapping {
            start: start.cast(),
            bytes,
        })
    }

    /// For a mapping of which no reference was made.
    pub(crate) fn unmap_unused(self) {
        // SAFETY: by contract nothing refers to it.
        unsafe { libc::munmap(self.start.cast(), self.bytes) };
    }

    /// `count` values from `offset` on; None if they are not all inside.
    pub(crate) fn slice<T: Shared>(&self, offset: usize, count: usize) -> Option<&'static [T]> {
        let end = count.checked_mul(size_of::<T>())?.checked_add(offset)?;
        let aligned = (self.start as usize + offset) % align_of::<T>() == 0;
        if end > self.bytes || !aligned {
            return None;
        }
        // SAFETY: inside of the mapping and aligned, both checked; T takes any bytes and is atomic
        // by its trait's contract; the mapping stays for good.
        Some(unsafe { core::slice::from_raw_parts(self.start.add(offset).cast(), count) })
    }

    pub(crate) fn get<T: Shared>(&self, offset: usize) -> Option<&'static T> {
        self.slice(offset, 1)?.first()
    }
}

/// A slice that one thread sets and any thread may read. Set once; taken back only in a forked
/// child, which has one thread then.
pub(crate) struct PublishedSlice<T: 'static> {
    start: AtomicPtr<T>,
    length: AtomicUsize,
}

impl<T: Sync> PublishedSlice<T> {
    pub(crate) const fn new() -> Self {
        Self {
            start: AtomicPtr::new(null_mut()),
            length: AtomicUsize::new(0),
        }
    }

    pub(crate) fn set(&self, slice: &'static [T]) {
        self.length.store(slice.len(), Ordering::Relaxed);
        // Pairs with the load in `get`: who sees the start sees the length.
        self.start
            .store(slice.as_ptr().cast_mut(), Ordering::Release);
    }

    pub(crate) fn get(&self) -> Option<&'static [T]> {
        let start = self.start.load(Ordering::Acquire);
        if start.is_null() {
            return None;
        }
        // SAFETY: start and length are those of one slice for good: `set` is not called again
        // without `forget`, which nobody runs beside.
        Some(unsafe { core::slice::from_raw_parts(start, self.length.load(Ordering::Relaxed)) })
    }

    pub(crate) fn forget(&self) {
        self.start.store(null_mut(), Ordering::Relaxed);
    }
}

/// A value that is always there and may be replaced by another.
pub(crate) struct Current<T: 'static> {
    value: AtomicPtr<T>,
}

impl<T: Sync> Current<T> {
    pub(crate) const fn of(value: &'static T) -> Self {
        Self {
            value: AtomicPtr::new(core::ptr::from_ref(value).cast_mut()),
        }
    }

    pub(crate) fn set(&self, value: &'static T) {
        // Pairs with the load in `get`: who sees the reference sees what it refers to.
        self.value
            .store(core::ptr::from_ref(value).cast_mut(), Ordering::Release);
    }

    #[inline]
    pub(crate) fn get(&self) -> &'static T {
        // SAFETY: made of a reference that is valid for good.
        unsafe { &*self.value.load(Ordering::Acquire) }
    }
}

/// A value that is not there at first, and may be taken back.
pub(crate) struct Published<T: 'static> {
    value: AtomicPtr<T>,
}

impl<T: Sync> Published<T> {
    pub(crate) const fn new() -> Self {
        Self {
            value: AtomicPtr::new(null_mut()),
        }
    }

    pub(crate) fn set(&self, value: &'static T) {
        // Pairs with the load in `get`: who sees the reference sees what it refers to.
        self.value
            .store(core::ptr::from_ref(value).cast_mut(), Ordering::Release);
    }

    #[inline]
    pub(crate) fn get(&self) -> Option<&'static T> {
        // SAFETY: null, or made of a reference that is valid for good.
        unsafe { self.value.load(Ordering::Acquire).as_ref() }
    }

    pub(crate) fn forget(&self) {
        self.value.store(null_mut(), Ordering::Relaxed);
    }
}
