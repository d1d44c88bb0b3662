//! A value that the first task that needs it builds, while the others wait.
//!
//! A task that is stopped ([`crate::stop`]) while it builds leaves nothing behind, and another one builds; a task that waits can be
//! stopped, too.

use std::sync::OnceLock;
use std::time::Duration;

use parking_lot::Mutex;

use crate::stop;

/// A value, built once.
pub struct Once<T> {
    value: OnceLock<T>,
    /// Held by the task that builds.
    building: Mutex<()>,
}

impl<T> Default for Once<T> {
    fn default() -> Once<T> {
        Once { value: OnceLock::new(), building: Mutex::default() }
    }
}

/// Time between two looks of a task that waits.
const WAIT: Duration = Duration::from_millis(2);

impl<T> Once<T> {
    /// The value, if it is built.
    pub fn get(&self) -> Option<&T> {
        self.value.get()
    }

    /// The value, made by `build` unless it is there or another task builds it.
    pub fn get_or_build(&self, build: impl FnOnce() -> T) -> &T {
        loop {
            if let Some(value) = self.get() {
                return value;
            }
            let Some(_building) = self.building.try_lock_for(WAIT) else {
                stop::check();
                continue;
            };
            return self.value.get_or_init(build);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::*;
    use crate::stop::{Stop, Stopped, until};

    /// Law: a stopped builder leaves nothing, a stopped waiter goes while another task builds, and the value is built once.
    #[test]
    fn builders_and_waiters_can_be_stopped() {
        let once = Once::default();
        assert_eq!(
            until(&Stop::at_check(1), || *once.get_or_build(|| {
                stop::check();
                1
            })),
            Err(Stopped)
        );
        assert_eq!(once.get(), None);
        let (begun, has_begun) = mpsc::channel();
        let (finish, may_finish) = mpsc::channel();
        thread::scope(|scope| {
            let once = &once;
            let builder = scope.spawn(move || {
                *once.get_or_build(|| {
                    begun.send(()).unwrap();
                    may_finish.recv().unwrap();
                    2
                })
            });
            has_begun.recv().unwrap();
            let waiter =
                until(&Stop::at_check(3), || *once.get_or_build(|| unreachable!("another one builds")));
            assert_eq!(waiter, Err(Stopped));
            finish.send(()).unwrap();
            assert_eq!(builder.join().unwrap(), 2);
        });
        assert_eq!(*once.get_or_build(|| unreachable!("it is built")), 2);
    }
}
