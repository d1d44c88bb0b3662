//! Faults of storage, for tests: disks that are full, and processes that are killed between two steps.
//!
//! Storage calls [`step`] before and after each operation. Outside of tests it does nothing.

/// A moment before or after an operation on storage; an error means that the operation fails.
#[cfg(not(test))]
pub fn step() -> std::io::Result<()> {
    Ok(())
}

#[cfg(test)]
pub use self::injected::{inject, step};

#[cfg(test)]
mod injected {
    use std::cell::RefCell;
    use std::io;

    /// What happens at a step.
    type Fault = Box<dyn FnMut() -> io::Result<()>>;

    thread_local! {
        static FAULT: RefCell<Option<Fault>> = const { RefCell::new(None) };
    }

    /// As without tests, or as [`inject`] says.
    pub fn step() -> io::Result<()> {
        FAULT.with_borrow_mut(|fault| fault.as_mut().map_or(Ok(()), |fault| fault()))
    }

    /// Calls `fault` at each step that this thread takes within `work`.
    pub fn inject<T>(fault: impl FnMut() -> io::Result<()> + 'static, work: impl FnOnce() -> T) -> T {
        FAULT.set(Some(Box::new(fault)));
        let done = work();
        FAULT.set(None);
        done
    }
}
