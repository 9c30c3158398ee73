//! tokio tasks as people write them, and on request one of the mistakes that people make:
//! `planted_tokio healthy|lost_wakeup|hog|leak [SECONDS]`.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use spanprof::tokio::spawn_named;
use spanprof::{at, Outcome, Poller};
use tokio::time::sleep;

/// Wakes the one that waits. With `forgets`, a signal that comes before the wait is lost.
#[derive(Default)]
struct Signal {
    forgets: bool,
    state: Mutex<(bool, Option<Waker>)>,
}

impl Signal {
    fn set(&self) {
        let mut state = self.state.lock().unwrap();
        match state.1.take() {
            Some(waker) => {
                state.0 = true;
                waker.wake();
            }
            None => state.0 = !self.forgets,
        }
    }

    fn wait(self: &Arc<Self>) -> Wait {
        Wait {
            signal: Arc::clone(self),
        }
    }
}

struct Wait {
    signal: Arc<Signal>,
}

impl Future for Wait {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.signal.state.lock().unwrap();
        if state.0 {
            return Poll::Ready(());
        }
        state.1 = Some(context.waker().clone());
        Poll::Pending
    }
}

async fn tick(end: Instant) {
    while Instant::now() < end {
        at(sleep(Duration::from_millis(10))).await;
    }
}

async fn send(signal: Arc<Signal>) {
    at(sleep(Duration::from_millis(5))).await;
    signal.set();
}

async fn receive(signal: Arc<Signal>) {
    at(sleep(Duration::from_millis(30))).await; // the signal comes meanwhile
    at(signal.wait()).await;
}

async fn wait_for_receiver(signal: Arc<Signal>) {
    let _ = spawn_named("receiver", receive(signal)).await;
}

async fn crunch(time: Duration) {
    let end = Instant::now() + time;
    while Instant::now() < end {
        std::hint::spin_loop();
    }
}

async fn keep_what_has_ended() {
    let mut kept = Box::pin(spanprof::traced(crunch(Duration::from_millis(1))).named("kept"));
    kept.as_mut().await;
    std::future::pending::<()>().await;
}

fn main() {
    let mistake = std::env::args().nth(1).unwrap_or_else(|| "healthy".into());
    let seconds = std::env::args().nth(2);
    let seconds = seconds.map_or(1.9, |text| text.parse().expect("a number"));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let end = Instant::now() + Duration::from_secs_f64(seconds);
        let signal = Arc::new(Signal {
            forgets: mistake == "lost_wakeup",
            ..Signal::default()
        });
        let tickers: Vec<_> = (0..10).map(|_| spawn_named("ticker", tick(end))).collect();
        spawn_named("waiter", wait_for_receiver(Arc::clone(&signal)));
        spawn_named("sender", send(signal));
        let crunching = if mistake == "hog" { 1500 } else { 1 };
        spawn_named("cruncher", crunch(Duration::from_millis(crunching)));
        if mistake == "leak" {
            // Not traced itself: only what it keeps is.
            tokio::spawn(keep_what_has_ended());
        }
        // Told by hand, and moved about in a queue of two.
        let mut queue = [Poller::new("listener"), Poller::new("listener")];
        while Instant::now() < end {
            sleep(Duration::from_millis(10)).await;
            queue[0].begin_poll().end_poll(Outcome::Yielded);
            queue.swap(0, 1);
        }
        for ticker in tickers {
            ticker.await.expect("it does not panic");
        }
        // Not by the end of `main`, which would drop what has not come to its end.
        std::process::exit(0);
    });
}
