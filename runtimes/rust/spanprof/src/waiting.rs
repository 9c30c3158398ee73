//! Who waits for whom: which future said "not yet" last in the poll that goes on.

use core::cell::Cell;
use core::panic::Location;

use crate::layout::{word_of, Kind, MODE_RINGS};
use crate::process::{address_of, current_mode, PROCESS};
use crate::rings::emit;

/// Which traced future it is, for who waits for it or wakes it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct TaskIdentity {
    pub(crate) identity: u64,
    /// The address of the header that the identity is of; 0: it is not traced.
    pub(crate) area: usize,
}

impl TaskIdentity {
    pub(crate) const NONE: TaskIdentity = TaskIdentity {
        identity: 0,
        area: 0,
    };

    pub(crate) fn is_known(self) -> bool {
        self.area != 0
    }

    /// It has been put into a queue. Any thread may tell.
    pub(crate) fn ready(self) {
        let mode = current_mode();
        if let (true, Some(header)) = (mode & MODE_RINGS != 0, PROCESS.header()) {
            if self.area == address_of(header) {
                emit(header, mode, word_of(self.identity, Kind::Ready, 0));
            }
        }
    }

    pub(crate) fn pending(self, location: Option<&'static Location<'static>>) -> Pending {
        Pending {
            task: self,
            location,
        }
    }
}

/// What in the poll that goes on now was the last to say "not yet": what the polled one waits for.
#[derive(Clone, Copy)]
pub(crate) struct Pending {
    pub(crate) task: TaskIdentity,
    pub(crate) location: Option<&'static Location<'static>>,
}

impl Pending {
    const NOTHING: Pending = Pending {
        task: TaskIdentity::NONE,
        location: None,
    };

    /// The same, waited for at this place.
    pub(crate) fn seen_from(self, location: &'static Location<'static>) -> Pending {
        Pending {
            location: Some(location),
            ..self
        }
    }
}

thread_local! {
    static PENDING: Cell<Pending> = const { Cell::new(Pending::NOTHING) };
}

/// Begins a poll inside of which nothing has said "not yet"; gives back what was before.
#[inline]
pub(crate) fn enter_poll() -> Pending {
    PENDING.replace(Pending::NOTHING)
}

/// Ends it: what was before counts again, or the one that has said "not yet" now.
#[inline]
pub(crate) fn leave_poll(pending: Pending) -> Pending {
    PENDING.replace(pending)
}
