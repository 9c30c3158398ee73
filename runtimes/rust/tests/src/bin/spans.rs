//! `spans carried|layer STORAGE FILE`: tasks that work under spans of their own and go from thread
//! to thread, with the sampler on. Task n works in `work_n` only, under span n: set once at its
//! start and carried by the traced future, or entered by a `tracing` span at each poll. Tasks that
//! have no span work in `work_5` meanwhile, on the same threads.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use spanprof::context::{self, Context};
use spanprof::{traced, SpanLayer};
use tracing::Instrument;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

static STOP: AtomicBool = AtomicBool::new(false);

macro_rules! work {
    ($($name:ident)*) => {
        $(
            #[inline(never)]
            fn $name() {
                for i in 0..2000 {
                    // Each function has code of its own, so that no two are made one.
                    std::hint::black_box((i, stringify!($name)));
                }
            }
        )*
    };
}
work!(work_1 work_2 work_3 work_4 work_5);
const WORK: [fn(); 5] = [work_1, work_2, work_3, work_4, work_5];

async fn keep_working(number: usize) {
    while !STOP.load(Ordering::Relaxed) {
        WORK[number - 1]();
        tokio::task::yield_now().await;
    }
}

async fn work_under_span(number: usize) {
    Context::of_span(number as u64, number as u64).set();
    keep_working(number).await;
}

fn main() {
    let arguments: Vec<_> = std::env::args().collect();
    let [_, way, storage, file] = &arguments[..] else {
        panic!("spans carried|layer STORAGE FILE");
    };
    context::init(&format!("ctxstorage={storage}")).expect("libspanprof");
    tracing_subscriber::registry().with(SpanLayer::new()).init();
    context::start(&format!("cpu=1ms,file={file}")).expect("a recording");
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .build()
        .unwrap();
    let tasks: Vec<_> = (0..25)
        .map(|i| {
            let number = i % 5 + 1;
            let span = number as u64;
            match way.as_str() {
                _ if number == 5 => runtime.spawn(traced(keep_working(5))),
                "carried" => runtime.spawn(traced(work_under_span(number))),
                "layer" => {
                    let span = tracing::info_span!("job", spanprof.span_id = span);
                    runtime.spawn(keep_working(number).instrument(span))
                }
                _ => panic!("{way} is neither carried nor layer"),
            }
        })
        .collect();
    let seconds = std::env::var("SPANPROF_STRESS_SECONDS").ok();
    let seconds = seconds.and_then(|text| text.parse().ok()).unwrap_or(1.5);
    std::thread::sleep(Duration::from_secs_f64(seconds));
    STOP.store(true, Ordering::Relaxed);
    for task in tasks {
        runtime.block_on(task).expect("it does not panic");
    }
    context::stop().expect("a profile");
}
