//! Large forests and charts are filled one at a time in a process, however many threads it has: together they take the memory that one may.

use std::cell::Cell;
use std::marker::PhantomData;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::stop;

/// Bytes beyond which a forest or chart is large.
pub const LARGE: usize = 64 << 20;

/// Whether a thread of this process has a turn. A stopped thread leaves a value that is right: it changes in one step.
static IS_TAKEN: Mutex<bool> = Mutex::new(false);
static RETURNED: Condvar = Condvar::new();

thread_local! {
    /// Turns that this thread holds: two builders of one thread never wait for each other.
    static HELD: Cell<usize> = const { Cell::new(0) };
}

/// The right to fill a large forest or chart; it ends when dropped, on the thread that took it.
pub struct Turn(PhantomData<*const ()>);

impl Turn {
    /// Waits until no other thread has a turn. The wait can be [stopped](stop::check).
    pub fn take() -> Turn {
        /// Time between two checks of a thread that waits.
        const WAIT: Duration = Duration::from_millis(50);
        if HELD.get() == 0 {
            let mut is_taken = IS_TAKEN.lock();
            while *is_taken {
                RETURNED.wait_for(&mut is_taken, WAIT);
                stop::check();
            }
            *is_taken = true;
        }
        HELD.set(HELD.get() + 1);
        Turn(PhantomData)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        HELD.set(HELD.get() - 1);
        if HELD.get() == 0 {
            *IS_TAKEN.lock() = false;
            RETURNED.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    use super::*;
    use crate::stop::{Stop, Stopped, until};

    /// Law: one thread at a time has turns, any number of them, and a thread that waits can be stopped.
    #[test]
    fn one_thread_at_a_time_has_turns() {
        let (working, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        let first = Turn::take();
                        let second = Turn::take();
                        most.fetch_max(working.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
                        drop(first);
                        thread::yield_now();
                        working.fetch_sub(1, Ordering::Relaxed);
                        drop(second);
                    }
                });
            }
        });
        assert_eq!(most.into_inner(), 1);

        let held = Turn::take();
        let stop = Stop::default();
        thread::scope(|scope| {
            let waiting = scope.spawn(|| until(&stop, || drop(Turn::take())));
            stop.request();
            assert_eq!(waiting.join().unwrap(), Err(Stopped));
        });
        drop(held);
        drop(Turn::take());
    }
}
