//! Fault injection for storage in tests: full disks, and processes killed between two steps.
//!
//! Storage calls [`step`] before and after each operation; outside of tests it does nothing.

/// Marks the start or end of a storage operation; an error makes the operation fail.
#[cfg(not(test))]
pub fn step() -> std::io::Result<()> {
    Ok(())
}

/// Wraps `work` for another thread, with the faults that this thread shares.
#[cfg(not(test))]
pub struct Shared;

#[cfg(not(test))]
impl Shared {
    /// Takes them from this thread.
    pub fn here() -> Shared {
        Shared
    }

    /// Does `work`, on any thread, with these faults.
    pub fn within<T>(&self, work: impl FnOnce() -> T) -> T {
        work()
    }
}

#[cfg(test)]
pub use self::injected::{Shared, inject, step};

#[cfg(test)]
mod injected {
    use std::cell::RefCell;
    use std::io;
    use std::sync::Arc;

    /// Function called at each step of several threads.
    type Fault = Arc<dyn Fn() -> io::Result<()> + Send + Sync>;

    thread_local! {
        static FAULT: RefCell<Option<Fault>> = const { RefCell::new(None) };
    }

    /// Calls the fault of [`inject`], if there is one.
    pub fn step() -> io::Result<()> {
        FAULT.with_borrow(Option::clone).map_or(Ok(()), |fault| fault())
    }

    /// Runs `work`, and calls `fault` at each step of this thread, and of threads that run its [`shared`] work.
    pub fn inject<T>(
        fault: impl Fn() -> io::Result<()> + Send + Sync + 'static,
        work: impl FnOnce() -> T,
    ) -> T {
        Shared(Some(Arc::new(fault))).within(work)
    }

    /// Wraps `work` for another thread, with the faults that this thread shares.
    pub struct Shared(Option<Fault>);

    impl Shared {
        pub fn here() -> Shared {
            Shared(FAULT.with_borrow(Option::clone))
        }

        pub fn within<T>(&self, work: impl FnOnce() -> T) -> T {
            let before = FAULT.replace(self.0.clone());
            let done = work();
            FAULT.set(before);
            done
        }
    }
}
