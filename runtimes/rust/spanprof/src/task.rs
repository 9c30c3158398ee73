//! What one future keeps for tracing, and what it does at each of its events. Off, an event is two
//! loads and one branch. With a harvester of ours it is a cycle counter and a few stores, into the
//! thread's ring and into this object: no fence, no system call.
//!
//! A `TaskTrace` is used by one thread at a time, as its future is. Not for signal handlers.

use core::cell::Cell;
use core::panic::Location;
use core::sync::atomic::{fence, Ordering};
use std::borrow::Cow;

use crate::area_file::thread_id;
use crate::clock::monotonic_nanoseconds;
#[cfg(feature = "context")]
use crate::context::Context;
pub(crate) use crate::layout::Kind;
use crate::layout::{
    station_of, word_of, GlobalHeader, Record, StationData, MODE_CONTEXTS, MODE_NOT_STARTED,
    MODE_RINGS, MODE_STATIONS, PAYLOAD_BYTES, STATION_DEAD,
};
use crate::places;
use crate::process::{address_of, current_mode, start_process, PROCESS};
use crate::rings::emit;
use crate::stations::{self, SlotEvent};
pub(crate) use crate::waiting::{enter_poll, leave_poll, Pending, TaskIdentity};

const TRACING_MODES: u32 = !MODE_CONTEXTS;

thread_local! {
    static THREAD_ID: Cell<u32> = const { Cell::new(0) };
}

/// Neither events nor contexts are wanted.
#[inline]
pub(crate) fn tracing_is_off() -> bool {
    current_mode() == 0
}

/// Where a pinned future is and what polls it; for the station.
#[derive(Clone, Copy)]
pub(crate) struct Frame {
    pub(crate) address: usize,
    pub(crate) poll_function: usize,
}

/// From the beginning of a poll to its end.
pub(crate) struct PollScope {
    before: Pending,
    #[cfg(feature = "context")]
    thread_context: Option<Context>,
}

pub(crate) struct TaskTrace {
    /// The last record, for who looks from outside, once the future is pinned.
    present: Record,
    identity: u64,
    station: Option<&'static StationData>,
    /// Addresses of headers: the one that the station is of, and one that had none.
    area: usize,
    refused_by: usize,
    /// `present` is where the station says; the future does not move any more.
    settled: bool,
    name: Option<Cow<'static, str>>,
    function: &'static str,
    location: &'static Location<'static>,
    #[cfg(feature = "context")]
    own_context: Context,
}

impl TaskTrace {
    pub(crate) fn new(function: &'static str, location: &'static Location<'static>) -> Self {
        let mut task = Self {
            present: Record::default(),
            identity: 0,
            station: None,
            area: 0,
            refused_by: 0,
            settled: false,
            name: None,
            function,
            location,
            #[cfg(feature = "context")]
            own_context: Context::NONE,
        };
        let mode = current_mode();
        if mode != 0 {
            task.begin(mode);
        }
        task
    }

    #[cold]
    fn begin(&mut self, mut mode: u32) {
        if mode & MODE_NOT_STARTED != 0 {
            start_process();
            mode = current_mode();
        }
        #[cfg(feature = "context")]
        {
            self.own_context = Context::current();
        }
        if mode & (MODE_RINGS | MODE_STATIONS) != 0 {
            if let Some(header) = PROCESS.header() {
                self.register(header, mode, Kind::Birth);
            }
        }
    }

    pub(crate) fn set_name(&mut self, name: Cow<'static, str>) {
        self.name = Some(name);
        if let Some(station) = self.registered() {
            stations::write_name(station, self.display_name());
        }
    }

    pub(crate) fn set_payload(&self, bytes: &[u8]) {
        if let Some(station) = self.registered() {
            let mut padded = [0; PAYLOAD_BYTES];
            let length = bytes.len().min(PAYLOAD_BYTES);
            padded[..length].copy_from_slice(&bytes[..length]);
            stations::copy_bytes(&station.payload, &padded);
        }
    }

    pub(crate) fn identity(&self) -> TaskIdentity {
        self.registered()
            .map_or(TaskIdentity::NONE, |_| self.own_identity())
    }

    fn own_identity(&self) -> TaskIdentity {
        TaskIdentity {
            identity: self.identity,
            area: self.area,
        }
    }

    /// The future is about to be polled. `frame`: it is pinned, and here. None: tracing is off.
    #[inline]
    pub(crate) fn resume(&mut self, frame: Option<Frame>) -> Option<PollScope> {
        let mode = current_mode();
        if mode == 0 {
            return None;
        }
        let scope = PollScope {
            before: enter_poll(),
            #[cfg(feature = "context")]
            thread_context: Some(self.own_context.exchange()),
        };
        if mode & TRACING_MODES != 0 {
            if let (false, Some(frame)) = (self.settled, frame) {
                self.settle(mode, frame);
            }
            self.trace(PROCESS.header(), mode, Kind::Resume, 0);
        }
        Some(scope)
    }

    /// It said "not yet", or gave one of several values.
    pub(crate) fn suspend(&mut self, mut scope: PollScope, kind: Kind) {
        self.leave_context(&mut scope);
        let waits_for = leave_poll(scope.before);
        let mode = current_mode();
        if mode & TRACING_MODES == 0 {
            return;
        }
        let header = PROCESS.header();
        let place = match header {
            Some(header) if !PROCESS.is_foreign() => places::number_of(
                header,
                waits_for.location.unwrap_or(self.location),
                self.function,
            ),
            _ => 0,
        };
        self.trace(header, mode, kind, place);
        if waits_for.task.is_known() {
            self.note_awaited(mode, waits_for.task);
        }
        if kind == Kind::Suspend {
            leave_poll(self.own_identity().pending(Some(self.location)));
        }
    }

    pub(crate) fn done(&mut self, mut scope: PollScope) {
        self.leave_context(&mut scope);
        leave_poll(scope.before);
        let mode = current_mode();
        if mode & TRACING_MODES != 0 {
            self.trace(PROCESS.header(), mode, Kind::Done, 0);
        }
    }

    /// Somebody has put it into a queue, before it can run.
    pub(crate) fn ready(&self) {
        self.identity().ready();
    }

    /// A poll that neither suspended nor ended: it panicked.
    pub(crate) fn abandon(&mut self, mut scope: PollScope) {
        self.leave_context(&mut scope);
        leave_poll(scope.before);
    }

    #[cfg(feature = "context")]
    fn leave_context(&mut self, scope: &mut PollScope) {
        if let Some(thread_context) = scope.thread_context.take() {
            self.own_context = thread_context.exchange();
        }
    }
    #[cfg(not(feature = "context"))]
    #[expect(clippy::unused_self, clippy::needless_pass_by_ref_mut)]
    fn leave_context(&mut self, _scope: &mut PollScope) {}

    /// The station, if it is one of this process's area.
    #[inline]
    fn registered(&self) -> Option<&'static StationData> {
        let header = PROCESS.header().map_or(0, address_of);
        self.station.filter(|_| self.area == header)
    }

    #[inline]
    fn trace(&mut self, header: Option<&'static GlobalHeader>, mode: u32, kind: Kind, place: u32) {
        if let (true, Some(header)) = (mode & MODE_RINGS != 0, header) {
            if self.area == address_of(header) && self.station.is_some() {
                self.record(header, mode, kind, place);
                return;
            }
        }
        self.trace_slowly(mode, kind, place);
    }

    #[inline]
    fn record(&self, header: &GlobalHeader, mode: u32, kind: Kind, place: u32) {
        let word = word_of(self.identity, kind, place);
        self.keep(emit(header, mode, word), word);
    }

    /// The present state, for who looks from outside.
    #[inline]
    fn keep(&self, stamp: u64, word: u64) {
        let present = match self.station {
            Some(station) if !self.settled => &station.movable_present,
            _ => &self.present,
        };
        present.stamp.store(stamp, Ordering::Relaxed);
        present.word.store(word, Ordering::Release);
    }

    #[cold]
    fn trace_slowly(&mut self, mut mode: u32, kind: Kind, place: u32) {
        if mode & MODE_NOT_STARTED != 0 {
            start_process(); // in a forked child
            mode = current_mode();
        }
        let Some((header, station)) = self.registered_or_adopted(mode) else {
            return;
        };
        if mode & MODE_STATIONS != 0 {
            self.write_station_event(header, station, kind);
        } else {
            self.record(header, mode, kind, place);
        }
    }

    fn write_station_event(&self, header: &GlobalHeader, station: &StationData, kind: Kind) {
        if !matches!(
            kind,
            Kind::Resume | Kind::Suspend | Kind::Yield | Kind::Done
        ) {
            return;
        }
        if THREAD_ID.get() == 0 {
            THREAD_ID.set(thread_id());
        }
        let event = SlotEvent {
            timestamp: monotonic_nanoseconds(),
            tid: u64::from(THREAD_ID.get()),
            addr: station.frame.load(Ordering::Relaxed),
            active: kind == Kind::Resume,
        };
        stations::write_slot(station, &event);
        self.keep(event.timestamp, word_of(self.identity, kind, 0));
        // A foreign harvester uses no membarrier: the event must be visible before we look at it.
        fence(Ordering::SeqCst);
        if header.tracer_sleeping.load(Ordering::Relaxed) != 0 {
            PROCESS.wake_harvester(header);
        }
    }

    /// None: no events are wanted, or there is no station for it.
    fn registered_or_adopted(
        &mut self,
        mode: u32,
    ) -> Option<(&'static GlobalHeader, &'static StationData)> {
        let header = PROCESS.header()?;
        if mode & (MODE_RINGS | MODE_STATIONS) == 0 {
            return None;
        }
        let station = self
            .registered()
            .or_else(|| self.register(header, mode, Kind::Adopted))?;
        Some((header, station))
    }

    #[cold]
    fn register(
        &mut self,
        header: &'static GlobalHeader,
        mode: u32,
        kind: Kind,
    ) -> Option<&'static StationData> {
        if self.refused_by == address_of(header) {
            return None;
        }
        PROCESS.activate(header);
        let Some((index, station)) = stations::take(header) else {
            header.untraced_no_station.fetch_add(1, Ordering::Relaxed);
            self.refused_by = address_of(header);
            return None;
        };
        let adopted = kind == Kind::Adopted;
        self.identity = stations::begin_life(station, index, adopted, self.display_name());
        self.station = Some(station);
        self.area = address_of(header);
        self.settled = false;
        header.births.fetch_add(1, Ordering::Relaxed);
        if adopted {
            header.adopted_coroutines.fetch_add(1, Ordering::Relaxed);
        }
        if mode & MODE_RINGS != 0 {
            self.record(header, mode, kind, 0);
        }
        Some(station)
    }

    /// The future has been pinned: its own memory has its state from now on, in a cache line that
    /// polling it touches anyway.
    #[cold]
    fn settle(&mut self, mode: u32, frame: Frame) {
        let Some((_, station)) = self.registered_or_adopted(mode) else {
            return;
        };
        let last = &station.movable_present;
        self.present
            .stamp
            .store(last.stamp.load(Ordering::Relaxed), Ordering::Relaxed);
        self.present
            .word
            .store(last.word.load(Ordering::Relaxed), Ordering::Relaxed);
        station.frame.store(frame.address as u64, Ordering::Relaxed);
        station
            .resume_function
            .store(frame.poll_function as u64, Ordering::Relaxed);
        let present = core::ptr::from_ref(&self.present) as u64;
        station.present.store(present, Ordering::Release);
        self.settled = true;
    }

    fn note_awaited(&self, mode: u32, awaited: TaskIdentity) {
        let Some(header) = PROCESS.header() else {
            return;
        };
        if mode & MODE_RINGS == 0 || awaited.area != self.area || self.registered().is_none() {
            return;
        }
        emit(
            header,
            mode,
            word_of(self.identity, Kind::Awaits, station_of(awaited.identity)),
        );
        stations::note_awaiter(awaited.identity, self.identity);
    }

    fn display_name(&self) -> &str {
        match &self.name {
            Some(name) => name,
            None => places::readable_name(self.function),
        }
    }
}

impl Drop for TaskTrace {
    fn drop(&mut self) {
        let Some(station) = self.registered() else {
            return;
        };
        // The harvester may give the station to another one as soon as it has seen the death.
        station.is_dead.store(1, Ordering::Relaxed);
        station.state.store(STATION_DEAD, Ordering::Release);
        let mode = current_mode();
        if let (true, Some(header)) = (mode & MODE_RINGS != 0, PROCESS.header()) {
            emit(header, mode, word_of(self.identity, Kind::Death, 0));
        }
    }
}
