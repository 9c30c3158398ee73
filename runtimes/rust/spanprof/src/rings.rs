//! The rings of this process's threads: each takes one at its first event and gives it back when it
//! ends. Any thread, not for signal handlers.

use core::cell::Cell;
use core::sync::atomic::{self, fence, Ordering};

use crate::area_file::thread_id;
use crate::clock::{cycle_counter, monotonic_nanoseconds};
use crate::layout::{
    ring_stride, GlobalHeader, Record, RingControl, MAX_RINGS, MODE_CLOCK, MODE_FENCE,
    RINGS_OFFSET, RING_ABANDONED, RING_CONTROL_BYTES, RING_FREE, RING_OWNED,
};
use crate::mapping::{Mapping, Published};
use crate::process::PROCESS;

#[path = "event_ring.rs"]
mod event_ring;
use event_ring::{RingMemory, RingWriter};

static CONTROLS: [Published<RingControl>; MAX_RINGS as usize] =
    [const { Published::new() }; MAX_RINGS as usize];
static RECORDS: [crate::mapping::PublishedSlice<Record>; MAX_RINGS as usize] =
    [const { crate::mapping::PublishedSlice::new() }; MAX_RINGS as usize];

thread_local! {
    // Without a destructor, so that it costs no check and is there until the thread's very end.
    static WRITER: RingWriter<'static> = const { RingWriter::without_ring() };
    static OWNER: RingOwner = const { RingOwner { control: Cell::new(None) } };
}

/// Gives the thread's ring back when the thread ends.
struct RingOwner {
    control: Cell<Option<&'static RingControl>>,
}

impl Drop for RingOwner {
    fn drop(&mut self) {
        if let Some(control) = self.control.take() {
            WRITER.with(RingWriter::detach);
            control.state.store(RING_ABANDONED, Ordering::Release);
        }
    }
}

/// Puts a record into the thread's ring. Returns its stamp.
#[inline]
pub(crate) fn emit(header: &GlobalHeader, mode: u32, word: u64) -> u64 {
    let stamp = if mode & MODE_CLOCK != 0 {
        monotonic_nanoseconds()
    } else {
        cycle_counter()
    };
    WRITER.with(|writer| {
        if writer.seems_full() && !make_room(header, writer) {
            return;
        }
        writer.write(stamp, word);
        if mode & MODE_FENCE != 0 {
            fence(Ordering::SeqCst);
        }
        // The store of the ring's head and this load may change places. A harvester that goes to
        // sleep sets the flag, has every core of ours pass a barrier, and looks at the head again:
        // one of the two sees the other.
        if header.tracer_sleeping.load(Ordering::Relaxed) != 0 {
            PROCESS.wake_harvester(header);
        }
    });
    stamp
}

/// False: there is no room, which was counted.
#[cold]
fn make_room(header: &GlobalHeader, writer: &RingWriter<'static>) -> bool {
    if !writer.has_ring() && take_ring(header, writer).is_none() {
        header.lost_no_ring.fetch_add(1, Ordering::Relaxed);
        return false;
    }
    writer.look_for_room()
}

fn take_ring(header: &GlobalHeader, writer: &RingWriter<'static>) -> Option<()> {
    // A thread whose destructors have run could not give it back.
    OWNER.try_with(|_| ()).ok()?;
    let _guard = PROCESS.lock.lock();
    let count = header.ring_count.load(Ordering::Relaxed).min(MAX_RINGS);
    // Acquire: the harvester freed it when it had read everything.
    let is_free = |index: &u32| {
        CONTROLS[*index as usize]
            .get()
            .is_some_and(|control| control.state.load(Ordering::Acquire) == RING_FREE)
    };
    let index = match (0..count).find(is_free) {
        Some(index) => index,
        None if count < MAX_RINGS => {
            let stride = ring_stride(PROCESS.ring_records());
            let memory = PROCESS.map_area(RINGS_OFFSET + u64::from(count) * stride, stride)?;
            publish(count as usize, &memory)?;
            count
        }
        None => return None,
    };
    let control = CONTROLS[index as usize].get()?;
    let records = RECORDS[index as usize].get()?;
    control.tid.store(thread_id(), Ordering::Relaxed);
    control.state.store(RING_OWNED, Ordering::Release);
    if index == count {
        header.ring_count.store(count + 1, Ordering::Release);
    }
    writer.attach(RingMemory {
        head: &control.head,
        lost: &control.lost,
        tail: &control.tail,
        records,
    });
    OWNER
        .try_with(|owner| owner.control.set(Some(control)))
        .ok()
}

fn publish(index: usize, memory: &Mapping) -> Option<()> {
    let records = PROCESS.ring_records() as usize;
    CONTROLS[index].set(memory.get::<RingControl>(0)?);
    RECORDS[index].set(memory.slice::<Record>(RING_CONTROL_BYTES as usize, records)?);
    Some(())
}

pub(crate) fn forget_after_fork() {
    for (control, records) in CONTROLS.iter().zip(&RECORDS) {
        if control.get().is_none() {
            break;
        }
        control.forget();
        records.forget();
    }
    WRITER.with(RingWriter::detach);
    let _ = OWNER.try_with(|owner| owner.control.set(None));
}
