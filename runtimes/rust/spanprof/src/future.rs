//! Futures that tell when they are polled.

use core::future::{Future, IntoFuture};
use core::marker::PhantomPinned;
use core::panic::Location;
use core::pin::Pin;
use core::task::{Context, Poll};
use std::borrow::Cow;

use pin_project_lite::pin_project;

use crate::poller::{Outcome, Polling};
use crate::ready_waker::Wakeups;
use crate::task::{enter_poll, leave_poll, tracing_is_off, Frame, TaskIdentity, TaskTrace};

pin_project! {
    /// A future whose life can be followed from outside. Made by [`traced`].
    ///
    /// It is born when it is made. A poll that returns `Pending` is a suspension; its place is that
    /// of the [`at`] or the inner [`traced`] that was waited for, or else where this one was made.
    /// One that is dropped before it came to its end was cancelled, which its events tell.
    #[must_use = "futures do nothing unless you `.await` or poll them"]
    pub struct Traced<F> {
        // First, so that what is inside it dies before it does.
        #[pin]
        inner: F,
        wakeups: Wakeups,
        trace: TaskTrace,
        // Never Unpin: who looks from outside is told where it is when it is polled first.
        #[pin]
        pinned: PhantomPinned,
    }
}

/// Traces a future. Its name is its type's, which for an `async fn` is the function's path;
/// [`Traced::named`] gives it another.
#[track_caller]
pub fn traced<F: IntoFuture>(future: F) -> Traced<F::IntoFuture> {
    traced_from(future.into_future(), Location::caller())
}

pub(crate) fn traced_from<F>(inner: F, location: &'static Location<'static>) -> Traced<F> {
    Traced {
        inner,
        wakeups: Wakeups::default(),
        trace: TaskTrace::new(core::any::type_name::<F>(), location),
        pinned: PhantomPinned,
    }
}

impl<F> Traced<F> {
    /// Names it in what `spanprof coro` shows.
    pub fn named(mut self, name: impl Into<Cow<'static, str>>) -> Self {
        self.trace.set_name(name.into());
        self
    }

    /// At most 31 bytes that go with each event to a foreign cTP harvester.
    pub fn with_payload(self, bytes: &[u8]) -> Self {
        self.trace.set_payload(bytes);
        self
    }

    /// Tells when it is woken as well. From there to its next poll is its scheduling latency. Its
    /// waker is wrapped for that while it is being recorded, which is an allocation for each future.
    pub fn with_wakeups(mut self) -> Self {
        self.wakeups.want();
        self
    }

    #[cfg_attr(not(feature = "tokio"), expect(dead_code))]
    pub(crate) fn identity(&self) -> TaskIdentity {
        self.trace.identity()
    }
}

impl<F: Future> Future for Traced<F> {
    type Output = F::Output;

    #[inline]
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        if tracing_is_off() {
            return self.project().inner.poll(context);
        }
        self.poll_traced(context)
    }
}

impl<F: Future> Traced<F> {
    #[inline(never)]
    fn poll_traced(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let frame = Frame {
            address: core::ptr::from_ref(this.trace) as usize,
            poll_function: <F as Future>::poll as fn(_, &mut Context<'_>) -> _ as usize,
        };
        let scope = this.trace.resume(Some(frame));
        let task = scope.as_ref().map(|_| this.trace.identity());
        let polling = Polling {
            trace: this.trace,
            scope,
        };
        let result = match this.wakeups.waker(task, context.waker()) {
            Some(waker) => this.inner.poll(&mut Context::from_waker(waker)),
            None => this.inner.poll(context),
        };
        polling.end_poll(match result {
            Poll::Pending => Outcome::Pending,
            Poll::Ready(_) => Outcome::Finished,
        });
        result
    }
}

pin_project! {
    /// A future that knows where it is awaited. Made by [`at`].
    #[must_use = "futures do nothing unless you `.await` or poll them"]
    pub struct At<F> {
        #[pin]
        inner: F,
        location: &'static Location<'static>,
    }
}

/// Says where a traced future waits: `at(receiver.recv()).await`. It costs two thread-local words,
/// and has no events of its own.
#[track_caller]
pub fn at<F: IntoFuture>(future: F) -> At<F::IntoFuture> {
    At {
        inner: future.into_future(),
        location: Location::caller(),
    }
}

impl<F: Future> Future for At<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        if tracing_is_off() {
            return this.inner.poll(context);
        }
        let before = enter_poll();
        let result = this.inner.poll(context);
        let waited_for = leave_poll(before);
        if result.is_pending() {
            leave_poll(waited_for.seen_from(this.location));
        }
        result
    }
}

/// The same as methods: `receiver.recv().traced_at().await`.
pub trait TraceFuture: IntoFuture + Sized {
    /// [`traced`].
    #[track_caller]
    fn traced(self) -> Traced<Self::IntoFuture> {
        traced(self)
    }

    /// [`at`].
    #[track_caller]
    fn traced_at(self) -> At<Self::IntoFuture> {
        at(self)
    }
}

impl<F: IntoFuture> TraceFuture for F {}
