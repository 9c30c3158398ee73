//! Threads that come and go, each with a traced future of its own, and one that is dropped only when
//! the thread's local variables are. Prints how many events that must be.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use spanprof::traced;

const THREADS: u64 = 300;

type Boxed = Pin<Box<dyn Future<Output = ()>>>;

thread_local! {
    static LEFT_BEHIND: RefCell<Option<Boxed>> = const { RefCell::new(None) };
}

fn poll(future: &mut Boxed) -> Poll<()> {
    future
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()))
}

fn live_and_die() {
    let mut polls = 0;
    let counted = std::future::poll_fn(move |_| {
        polls += 1;
        if polls < 3 {
            Poll::Pending
        } else {
            Poll::Ready(())
        }
    });
    let mut future: Boxed = Box::pin(traced(counted));
    while poll(&mut future).is_pending() {}
    let mut pending: Boxed = Box::pin(traced(std::future::pending()));
    assert!(poll(&mut pending).is_pending());
    LEFT_BEHIND.set(Some(pending));
}

fn main() {
    for _ in 0..THREADS {
        std::thread::spawn(live_and_die).join().unwrap();
    }
    // Birth, three polls of two events, death; birth, one poll, death.
    println!("{}", THREADS * (8 + 4));
}
