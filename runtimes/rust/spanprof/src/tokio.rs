//! Spawning traced tasks on tokio. Each function does what tokio's of the same name does, and gives
//! a handle that also tells a traced future which waits for it whom it waits for.
//!
//! tokio's own hooks (`on_task_spawn` and others) exist only with `--cfg tokio_unstable`, so tasks
//! are traced where they are spawned. Their wakeups are traced too: see [`Traced::with_wakeups`].

use core::future::Future;
use core::ops::{Deref, DerefMut};
use core::panic::Location;
use core::pin::Pin;
use core::task::{Context, Poll};
use std::borrow::Cow;

use crate::future::{traced_from, Traced};
use crate::task::{enter_poll, leave_poll, tracing_is_off, TaskIdentity};

/// A tokio `JoinHandle` (to which it dereferences) of a traced task.
pub struct JoinHandle<T> {
    inner: ::tokio::task::JoinHandle<T>,
    task: TaskIdentity,
}

impl<T> JoinHandle<T> {
    /// tokio's own handle.
    pub fn into_inner(self) -> ::tokio::task::JoinHandle<T> {
        self.inner
    }
}

impl<T> Deref for JoinHandle<T> {
    type Target = ::tokio::task::JoinHandle<T>;
    fn deref(&self) -> &Self::Target {
        &self.inner
    }
}

impl<T> DerefMut for JoinHandle<T> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.inner
    }
}

impl<T> Future for JoinHandle<T> {
    type Output = Result<T, ::tokio::task::JoinError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if tracing_is_off() {
            return Pin::new(&mut self.inner).poll(context);
        }
        let before = enter_poll();
        let result = Pin::new(&mut self.inner).poll(context);
        leave_poll(if result.is_pending() {
            self.task.pending(None)
        } else {
            before
        });
        result
    }
}

/// `tokio::spawn(traced(future))`.
#[track_caller]
pub fn spawn<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    spawn_traced(traced_from(future, Location::caller()))
}

/// The same with a name.
#[track_caller]
pub fn spawn_named<F>(name: impl Into<Cow<'static, str>>, future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    spawn_traced(traced_from(future, Location::caller()).named(name))
}

/// For a task of a `LocalSet`.
#[track_caller]
pub fn spawn_local<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future + 'static,
    F::Output: 'static,
{
    let future = traced_from(future, Location::caller()).with_wakeups();
    let task = queued(&future);
    JoinHandle {
        inner: ::tokio::task::spawn_local(future),
        task,
    }
}

#[track_caller]
fn spawn_traced<F>(future: Traced<F>) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let future = future.with_wakeups();
    let task = queued(&future);
    JoinHandle {
        inner: ::tokio::spawn(future),
        task,
    }
}

/// Spawning puts a task into the queue.
fn queued<F>(future: &Traced<F>) -> TaskIdentity {
    let task = future.identity();
    task.ready();
    task
}
