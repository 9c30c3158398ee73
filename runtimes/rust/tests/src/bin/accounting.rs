//! `accounting TASKS POLLS THREADS [forever]`: tasks that go to sleep and are woken at full speed, and how many
//! events that must be, counted by what they do.

use std::future::Future;
use std::io::Write;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

static POLLS: AtomicU64 = AtomicU64::new(0);

struct Yielding {
    left: u64,
    polled: u64,
}

impl Future for Yielding {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.polled += 1;
        if self.left > 0 {
            self.left -= 1;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        POLLS.fetch_add(self.polled, Ordering::Relaxed);
        Poll::Ready(())
    }
}

fn argument(position: usize) -> u64 {
    let text = std::env::args().nth(position).expect("TASKS POLLS THREADS");
    text.parse().expect("a number")
}

fn main() {
    let (tasks, polls, threads) = (argument(1), argument(2), argument(3));
    let forever = std::env::args().nth(4).is_some();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads as usize)
        .build()
        .expect("a runtime");
    let mut rounds = 0;
    runtime.block_on(async {
        loop {
            let started: Vec<_> = (0..tasks)
                .map(|_| {
                    spanprof::tokio::spawn(Yielding {
                        left: polls,
                        polled: 0,
                    })
                })
                .collect();
            for task in started {
                task.await.expect("it does not panic");
            }
            rounds += 1;
            if !forever {
                break;
            }
            // With no reader of its output it has been left behind by its test.
            let _ = writeln!(std::io::stdout(), "{rounds}").map_err(|_| std::process::exit(0));
        }
    });
    // All tasks have been dropped then.
    drop(runtime);
    // A poll is a resume and a suspension or an end, and was asked for; a task is a birth and a death.
    println!("{}", 3 * POLLS.load(Ordering::Relaxed) + 2 * tasks * rounds);
}
