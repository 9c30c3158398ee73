//! The lock of everything that is not done on each event: making and growing the shared memory.
//!
//! It can be released after a fork by the child, whatever held it, which the standard library's
//! cannot. It is held for a few system calls at most, and hardly ever wanted by two threads at once.

use core::sync::atomic::{AtomicBool, Ordering};

pub(crate) struct SlowPathLock {
    held: AtomicBool,
}

pub(crate) struct SlowPathGuard<'a> {
    lock: &'a SlowPathLock,
}

impl SlowPathLock {
    pub(crate) const fn new() -> Self {
        Self {
            held: AtomicBool::new(false),
        }
    }

    pub(crate) fn lock(&self) -> SlowPathGuard<'_> {
        loop {
            if let Some(guard) = self.try_lock() {
                return guard;
            }
            std::thread::yield_now();
        }
    }

    pub(crate) fn try_lock(&self) -> Option<SlowPathGuard<'_>> {
        // Pairs with the release store of whoever had it before.
        let taken = self
            .held
            .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed);
        // Not then_some: a guard that is made in vain would release what another thread holds.
        taken.is_ok().then(|| SlowPathGuard { lock: self })
    }

    /// For the fork handlers, which lock in one function and unlock in another.
    pub(crate) fn release(&self) {
        self.held.store(false, Ordering::Release);
    }
}

impl Drop for SlowPathGuard<'_> {
    fn drop(&mut self) {
        self.lock.release();
    }
}

#[cfg(test)]
mod tests {
    use super::SlowPathLock;

    #[test]
    fn a_held_lock_stays_held_when_others_try_it() {
        let lock = SlowPathLock::new();
        let guard = lock.lock();
        assert!(lock.try_lock().is_none());
        assert!(lock.try_lock().is_none());
        drop(guard);
        assert!(lock.try_lock().is_some());
        assert!(lock.try_lock().is_some());
    }
}
