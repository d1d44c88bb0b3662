//! Faults of storage, for tests: disks that are full, and processes that are killed between two steps.
//!
//! Storage calls [`step`] before and after each operation. Outside of tests it does nothing.

/// A moment before or after an operation on storage; an error means that the operation fails.
#[cfg(not(test))]
pub fn step() -> std::io::Result<()> {
    Ok(())
}

/// The faults that this thread shares with threads that work for it.
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

    /// What happens at a step.
    type Fault = Arc<dyn Fn() -> io::Result<()> + Send + Sync>;

    thread_local! {
        static FAULT: RefCell<Option<Fault>> = const { RefCell::new(None) };
    }

    /// As without tests, or as [`inject`] says.
    pub fn step() -> io::Result<()> {
        FAULT.with_borrow(Option::clone).map_or(Ok(()), |fault| fault())
    }

    /// Calls `fault` at each step that this thread, and threads that work for it with [`Shared`] faults, take within `work`.
    pub fn inject<T>(
        fault: impl Fn() -> io::Result<()> + Send + Sync + 'static,
        work: impl FnOnce() -> T,
    ) -> T {
        Shared(Some(Arc::new(fault))).within(work)
    }

    /// As without tests.
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
