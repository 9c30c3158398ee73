//! `task` for systems that the probe does not know: everything compiles and does nothing.

use core::panic::Location;
use std::borrow::Cow;

#[derive(Clone, Copy)]
pub(crate) enum Kind {
    Suspend,
    Yield,
}

#[derive(Clone, Copy)]
pub(crate) struct Pending;

impl Pending {
    pub(crate) fn seen_from(self, _location: &'static Location<'static>) -> Pending {
        self
    }
}

#[inline]
pub(crate) fn tracing_is_off() -> bool {
    true
}

#[inline]
pub(crate) fn enter_poll() -> Pending {
    Pending
}

#[inline]
pub(crate) fn leave_poll(_pending: Pending) -> Pending {
    Pending
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct TaskIdentity;

impl TaskIdentity {
    pub(crate) fn is_known(self) -> bool {
        false
    }
    pub(crate) fn ready(self) {}
    #[cfg(feature = "tokio")]
    pub(crate) fn pending(self, _location: Option<&'static Location<'static>>) -> Pending {
        Pending
    }
}

#[expect(dead_code)]
pub(crate) struct Frame {
    pub(crate) address: usize,
    pub(crate) poll_function: usize,
}

pub(crate) struct PollScope;

pub(crate) struct TaskTrace;

impl TaskTrace {
    pub(crate) fn new(_function: &'static str, _location: &'static Location<'static>) -> Self {
        Self
    }
    pub(crate) fn set_name(&mut self, _name: Cow<'static, str>) {}
    pub(crate) fn set_payload(&self, _bytes: &[u8]) {}
    pub(crate) fn identity(&self) -> TaskIdentity {
        TaskIdentity
    }
    pub(crate) fn ready(&self) {}
    pub(crate) fn resume(&mut self, _frame: Option<Frame>) -> Option<PollScope> {
        None
    }
    pub(crate) fn suspend(&mut self, _scope: PollScope, _kind: Kind) {}
    pub(crate) fn done(&mut self, _scope: PollScope) {}
    pub(crate) fn abandon(&mut self, _scope: PollScope) {}
}
