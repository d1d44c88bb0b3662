//! Faults of storage, for tests: full disks, and processes killed between two steps.
//!
//! Storage calls [`step`] before and after each operation, which does nothing outside of [`inject`].

use std::cell::RefCell;
use std::io;
use std::sync::Arc;

/// Function called at each step.
type Fault = Arc<dyn Fn() -> io::Result<()> + Send + Sync>;

thread_local! {
    static FAULT: RefCell<Option<Fault>> = const { RefCell::new(None) };
}

/// Marks the start or end of a storage operation; an error makes the operation fail.
///
/// # Errors
/// That of the fault of [`inject`], if there is one.
pub fn step() -> io::Result<()> {
    FAULT.with_borrow(Option::clone).map_or(Ok(()), |fault| fault())
}

/// Runs `work`, and calls `fault` at each step of this thread, and of threads that work for it with its [`Shared`] faults.
pub fn inject<T>(fault: impl Fn() -> io::Result<()> + Send + Sync + 'static, work: impl FnOnce() -> T) -> T {
    Shared(Some(Arc::new(fault))).within(work)
}

/// The faults of a thread, for threads that work for it.
pub struct Shared(Option<Fault>);

impl Shared {
    /// Takes the faults of this thread.
    pub fn here() -> Shared {
        Shared(FAULT.with_borrow(Option::clone))
    }

    /// Runs `work` with these faults.
    pub fn within<T>(&self, work: impl FnOnce() -> T) -> T {
        let before = FAULT.replace(self.0.clone());
        let done = work();
        FAULT.set(before);
        done
    }
}
