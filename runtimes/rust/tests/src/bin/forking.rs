//! `forking once`: forks in the middle of a traced future's life; parent and child go on with it.
//! `forking often`: forks again and again while other threads make and drop traced futures; each
//! child has one of its own.

use std::future::Future;
use std::pin::{pin, Pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use spanprof::traced;

static STOP: AtomicBool = AtomicBool::new(false);

fn poll_once<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// 0 in the child.
fn fork() -> libc::pid_t {
    // SAFETY: the child calls only what libc and the allocator prepare for a fork.
    #[allow(unsafe_code)]
    let process = unsafe { libc::fork() };
    assert!(process >= 0);
    process
}

fn wait_for(process: libc::pid_t) {
    let mut status = -1;
    // SAFETY: waits for a child of ours.
    #[allow(unsafe_code)]
    let waited = unsafe { libc::waitpid(process, &mut status, 0) };
    assert_eq!((waited, status), (process, 0));
}

fn once() {
    let mut polls = 0;
    let mut future = pin!(traced(std::future::poll_fn(|_| {
        polls += 1;
        if polls == 150 {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }))
    .named("forked"));
    for _ in 0..50 {
        assert!(poll_once(future.as_mut()).is_pending());
    }
    let child = fork();
    while poll_once(future.as_mut()).is_pending() {}
    if child > 0 {
        wait_for(child);
    }
}

fn often() {
    let others: Vec<_> = (0..2)
        .map(|_| {
            std::thread::spawn(|| {
                while !STOP.load(Ordering::Relaxed) {
                    let many: Vec<_> = (0..100)
                        .map(|_| Box::pin(traced(std::future::pending::<()>()).named("other")))
                        .collect();
                    for mut future in many {
                        assert!(poll_once(future.as_mut()).is_pending());
                    }
                    std::thread::sleep(Duration::from_micros(100));
                }
            })
        })
        .collect();
    for _ in 0..40 {
        let child = fork();
        if child > 0 {
            wait_for(child);
            continue;
        }
        {
            let future = pin!(traced(std::future::ready(())).named("of a child"));
            assert!(poll_once(future).is_ready());
        }
        // SAFETY: ends the child, and runs nothing of its parent's.
        #[allow(unsafe_code)]
        unsafe {
            libc::_exit(0)
        }
    }
    STOP.store(true, Ordering::Relaxed);
    for thread in others {
        thread.join().unwrap();
    }
}

fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("once") => once(),
        Some("often") => often(),
        other => panic!("{other:?} is neither once nor often"),
    }
}
