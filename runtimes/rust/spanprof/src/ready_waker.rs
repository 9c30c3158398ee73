//! A waker that tells when its future was made ready to run, and wakes it. The time from there to
//! the next poll is the scheduling latency that `spanprof coro report` shows.

use core::sync::atomic::{AtomicBool, Ordering};
use core::task::Waker;
use std::sync::Arc;
use std::task::Wake;

use crate::task::TaskIdentity;

/// What a traced future keeps for it.
#[derive(Default)]
pub(crate) struct Wakeups {
    wanted: bool,
    /// Made at the first poll that is traced, and anew when the executor's waker changes.
    present: Option<Present>,
}

struct Present {
    shared: Arc<ReadyWaker>,
    waker: Waker,
}

struct ReadyWaker {
    task: TaskIdentity,
    executors: Waker,
    /// It is told once from poll to poll, and not when the future is gone.
    silent: AtomicBool,
}

impl Wakeups {
    pub(crate) fn want(&mut self) {
        self.wanted = true;
    }

    /// The waker for the poll that begins now, in place of the executor's. None: the executor's.
    pub(crate) fn waker(
        &mut self,
        task: Option<TaskIdentity>,
        executors: &Waker,
    ) -> Option<&Waker> {
        let task = task.filter(|task| self.wanted && task.is_known())?;
        let fits = |present: &Present| {
            present.shared.task == task && present.shared.executors.will_wake(executors)
        };
        if !self.present.as_ref().is_some_and(fits) {
            let executors = executors.clone();
            let silent = AtomicBool::new(false);
            let shared = Arc::new(ReadyWaker {
                task,
                executors,
                silent,
            });
            self.present = Some(Present {
                waker: Waker::from(Arc::clone(&shared)),
                shared,
            });
        }
        let present = self.present.as_ref()?;
        present.shared.silent.store(false, Ordering::Relaxed);
        Some(&present.waker)
    }
}

impl Drop for Present {
    fn drop(&mut self) {
        self.shared.silent.store(true, Ordering::Relaxed);
    }
}

impl Wake for ReadyWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // Before it can run.
        if !self.silent.swap(true, Ordering::Relaxed) {
            self.task.ready();
        }
        self.executors.wake_by_ref();
    }
}
