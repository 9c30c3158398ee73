//! One future of each fate, one after the other on one thread, so that the order of their events is
//! known.

use std::future::{pending, ready, Future};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use spanprof::{at, traced, Outcome, Poller};

fn poll_once<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

async fn two_waits() {
    at(once_pending()).await;
    at(once_pending()).await;
}

/// Not yet the first time.
fn once_pending() -> impl Future<Output = ()> {
    let mut polled = false;
    std::future::poll_fn(move |_| {
        if std::mem::replace(&mut polled, true) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
}

async fn outer() {
    traced(inner()).named("inner").await;
}

async fn inner() {
    at(once_pending()).await;
}

fn main() {
    {
        let mut finished = pin!(traced(two_waits())
            .named("finished")
            .with_payload(b"order 7"));
        assert!(poll_once(finished.as_mut()).is_pending());
        assert!(poll_once(finished.as_mut()).is_pending());
        assert!(poll_once(finished.as_mut()).is_ready());
    }
    {
        let mut cancelled = pin!(traced(pending::<()>()).named("cancelled"));
        assert!(poll_once(cancelled.as_mut()).is_pending());
    }
    drop(traced(ready(())).named("never polled"));
    {
        let mut waiting = pin!(traced(outer()));
        assert!(poll_once(waiting.as_mut()).is_pending());
        assert!(poll_once(waiting.as_mut()).is_ready());
    }
    {
        let panicking = pin!(traced(async { panic!("planted") }).named("panicking"));
        std::panic::set_hook(Box::new(|_| {}));
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _: Poll<()> = poll_once(panicking);
        }));
        assert!(result.is_err());
    }
    let mut poller = Poller::new("by hand");
    poller.mark_ready();
    poller.begin_poll().end_poll(Outcome::Yielded);
    poller.begin_poll().end_poll(Outcome::Pending);
    poller.begin_poll().end_poll(Outcome::Finished);
}
