//! What polling a traced future costs, beside the same future untraced and the cycle counter alone:
//! medians of rounds that alternate. Run it by itself for "off", and under `spanprof coro record`.

use std::future::Future;
use std::hint::black_box;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

type Boxed = Pin<Box<dyn Future<Output = ()>>>;

const POLLS: usize = 200_000;
const ROUNDS: usize = 15;

struct Forever;

impl Future for Forever {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<()> {
        black_box(Poll::Pending)
    }
}

fn thread_nanoseconds() -> f64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: writes to `now` only.
    #[allow(unsafe_code)]
    unsafe {
        libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut now)
    };
    now.tv_sec as f64 * 1e9 + now.tv_nsec as f64
}

fn per_call(mut call: impl FnMut()) -> f64 {
    let begin = thread_nanoseconds();
    for _ in 0..POLLS {
        call();
    }
    (thread_nanoseconds() - begin) / POLLS as f64
}

fn poll_cost(futures: &mut [Boxed]) -> f64 {
    let mut context = Context::from_waker(Waker::noop());
    let mut next = 0;
    per_call(|| {
        assert!(futures[next].as_mut().poll(&mut context).is_pending());
        next += 1;
        if next == futures.len() {
            next = 0;
        }
    })
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    #[cfg(target_arch = "x86_64")]
    {
        #[allow(unsafe_code)]
        let counter = || {
            // SAFETY: every x86-64 processor has the instruction.
            black_box(unsafe { core::arch::x86_64::_rdtsc() });
        };
        let rounds = (0..ROUNDS).map(|_| per_call(counter)).collect();
        println!("| rdtsc | {:.2} |", median(rounds));
    }
    for count in [1, 100, 10_000] {
        let mut bare: Vec<Boxed> = (0..count).map(|_| Box::pin(Forever) as Boxed).collect();
        let mut traced: Vec<Boxed> = (0..count)
            .map(|_| Box::pin(spanprof::traced(Forever)) as Boxed)
            .collect();
        let (mut bare_rounds, mut traced_rounds) = (vec![], vec![]);
        for _ in 0..ROUNDS {
            bare_rounds.push(poll_cost(&mut bare));
            traced_rounds.push(poll_cost(&mut traced));
            // For a harvester to take what is there.
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        let (bare, traced) = (median(bare_rounds), median(traced_rounds));
        println!("| a poll, {count} futures | {bare:.2} |");
        println!("| the same traced | {traced:.2} |");
        println!(
            "| that is, for each of its two events | {:.2} |",
            (traced - bare) / 2.0
        );
    }
}
