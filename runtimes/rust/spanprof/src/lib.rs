//! Makes futures visible from outside: each birth, poll, suspension with its place in the source,
//! end and drop becomes an event that `spanprof coro` collects. Off, an event costs one predictable
//! branch.
//!
//! ```
//! async fn serve() {
//!     // Says where in `serve` the future waits.
//!     spanprof::at(std::future::ready(())).await;
//! }
//! let future = spanprof::traced(serve()).named("serve");
//! # drop(future);
//! ```
//!
//! Then `spanprof coro record -- program`, or `spanprof coro ps PID` while it runs. Nothing has to
//! be linked for that. `docs/rust.md` in spanprof's tree is the guide.
//!
//! | feature | what it adds |
//! |---|---|
//! | `tokio` | [`tokio`]: spawning traced tasks, and who waits for which |
//! | `context` | [`context`]: a future carries its trace context across threads; links libspanprof |
//! | `tracing` | [`SpanLayer`], which publishes the span that the crate `tracing` has entered |
//! | `opentelemetry` | `SpanLayer` takes the ids of the crate `tracing-opentelemetry` |
//!
//! Linux; elsewhere everything compiles and does nothing.

#[cfg(target_os = "linux")]
mod area_file;
#[cfg(target_os = "linux")]
mod clock;
#[cfg(target_os = "linux")]
mod layout;
#[cfg(target_os = "linux")]
mod mapping;
#[cfg(target_os = "linux")]
mod places;
#[cfg(target_os = "linux")]
mod process;
#[cfg(target_os = "linux")]
mod rings;
#[cfg(target_os = "linux")]
mod slow_path_lock;
#[cfg(target_os = "linux")]
mod stations;
#[cfg(target_os = "linux")]
mod task;
#[cfg(not(target_os = "linux"))]
#[path = "task_without_probe.rs"]
mod task;
#[cfg(target_os = "linux")]
mod waiting;
#[cfg(target_os = "linux")]
mod wake_socket;

#[cfg(feature = "context")]
pub mod context;
mod future;
mod poller;
mod ready_waker;
#[cfg(feature = "tracing")]
mod span_layer;
#[cfg(feature = "tokio")]
pub mod tokio;

pub use future::{at, traced, At, TraceFuture, Traced};
pub use poller::{Outcome, Poller, Polling};
#[cfg(feature = "tracing")]
pub use span_layer::SpanLayer;
