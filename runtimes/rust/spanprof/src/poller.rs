//! For executors and state machines of one's own: polls told by hand.

use core::panic::Location;
use std::borrow::Cow;

use crate::task::{Kind, PollScope, TaskTrace};

/// How a poll ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Not yet: it waits for something.
    Pending,
    /// It gave one value of several, and goes on when it is asked again.
    Yielded,
    /// It has come to its end. What is dropped without that was cancelled.
    Finished,
}

/// Something that is polled, and is not a [`Future`](core::future::Future).
///
/// ```
/// use spanprof::{Outcome, Poller};
/// let mut poller = Poller::new("connection");
/// let polling = poller.begin_poll();
/// // ... what it does ...
/// polling.end_poll(Outcome::Pending);
/// ```
pub struct Poller {
    trace: TaskTrace,
}

impl Poller {
    /// It is born here; its drop is its death.
    #[track_caller]
    pub fn new(name: impl Into<Cow<'static, str>>) -> Self {
        let mut trace = TaskTrace::new("spanprof::Poller", Location::caller());
        trace.set_name(name.into());
        Self { trace }
    }

    /// It runs from now on, on this thread, until the poll is ended.
    pub fn begin_poll(&mut self) -> Polling<'_> {
        let scope = self.trace.resume(None);
        Polling {
            trace: &mut self.trace,
            scope,
        }
    }

    /// It has been put into a queue. The time to its next poll is its scheduling latency.
    pub fn mark_ready(&self) {
        self.trace.ready();
    }

    /// At most 31 bytes that go with each event to a foreign cTP harvester.
    pub fn set_payload(&self, bytes: &[u8]) {
        self.trace.set_payload(bytes);
    }
}

/// A poll that goes on. Dropped without an end, as when it panics, it neither waits nor has come to
/// its end.
#[must_use = "a poll lasts until `end_poll`"]
pub struct Polling<'a> {
    pub(crate) trace: &'a mut TaskTrace,
    pub(crate) scope: Option<PollScope>,
}

impl Polling<'_> {
    /// The poll has returned.
    pub fn end_poll(mut self, outcome: Outcome) {
        let Some(scope) = self.scope.take() else {
            return;
        };
        match outcome {
            Outcome::Pending => self.trace.suspend(scope, Kind::Suspend),
            Outcome::Yielded => self.trace.suspend(scope, Kind::Yield),
            Outcome::Finished => self.trace.done(scope),
        }
    }
}

impl Drop for Polling<'_> {
    fn drop(&mut self) {
        if let Some(scope) = self.scope.take() {
            self.trace.abandon(scope);
        }
    }
}
