//! The writing end of a thread's ring of events. `models/event_ring.pml` is its protocol; a test
//! runs this file with loom's atomics in place of the processor's.
//!
//! One thread writes, a harvester in another process reads. Lock-free, and no system call.

use core::cell::Cell;

use super::atomic::{AtomicU64, Ordering};
use super::Record;

/// What lies in shared memory. `records` is a power of two of them.
#[derive(Clone, Copy)]
pub(crate) struct RingMemory<'a> {
    pub(crate) head: &'a AtomicU64,
    pub(crate) lost: &'a AtomicU64,
    pub(crate) tail: &'a AtomicU64,
    pub(crate) records: &'a [Record],
}

pub(crate) struct RingWriter<'a> {
    memory: Cell<Option<RingMemory<'a>>>,
    /// Records ever written: what the head in memory is, whatever others write there.
    position: Cell<u64>,
    /// The position at which to look for room. Without a ring both are 0.
    limit: Cell<u64>,
}

impl<'a> RingWriter<'a> {
    pub(crate) const fn without_ring() -> Self {
        Self {
            memory: Cell::new(None),
            position: Cell::new(0),
            limit: Cell::new(0),
        }
    }

    pub(crate) fn has_ring(&self) -> bool {
        self.memory.get().is_some()
    }

    pub(crate) fn attach(&self, memory: RingMemory<'a>) {
        let position = memory.head.load(Ordering::Relaxed);
        self.position.set(position);
        self.limit.set(position);
        self.memory.set(Some(memory));
    }

    pub(crate) fn detach(&self) {
        self.memory.set(None);
        self.position.set(0);
        self.limit.set(0);
    }

    /// Whether `look_for_room` has to be called before `write`.
    #[inline]
    pub(crate) fn seems_full(&self) -> bool {
        self.position.get() == self.limit.get()
    }

    /// False: the ring is full; the record that it was for is counted as lost.
    #[cold]
    pub(crate) fn look_for_room(&self) -> bool {
        let Some(memory) = self.memory.get() else {
            return false;
        };
        // Pairs with the harvester's release store: it has read what is to be overwritten.
        let tail = memory.tail.load(Ordering::Acquire);
        let limit = tail.wrapping_add(memory.records.len() as u64);
        if self.position.get() < limit {
            self.limit.set(limit);
            return true;
        }
        self.limit.set(self.position.get());
        // This thread is the only writer of the counter.
        let lost = memory.lost.load(Ordering::Relaxed);
        memory.lost.store(lost.wrapping_add(1), Ordering::Relaxed);
        false
    }

    #[inline]
    pub(crate) fn write(&self, stamp: u64, word: u64) {
        let Some(memory) = self.memory.get() else {
            return;
        };
        let position = self.position.get();
        let Some(record) = memory
            .records
            .get(position as usize & (memory.records.len() - 1))
        else {
            return;
        };
        record.stamp.store(stamp, Ordering::Relaxed);
        record.word.store(word, Ordering::Relaxed);
        self.position.set(position + 1);
        // Pairs with the harvester's load of head.
        memory.head.store(position + 1, Ordering::Release);
    }
}
