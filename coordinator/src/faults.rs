//! Faults of storage, for tests: disks that are full, and processes that are killed between two steps.
//!
//! Storage calls [`step`] before and after each operation. Outside of tests it does nothing.

/// A moment before or after an operation on storage; an error means that the operation fails.
#[cfg(not(test))]
pub fn step() -> std::io::Result<()> {
    Ok(())
}

/// `work` for another thread, with the faults that this thread shares.
#[cfg(not(test))]
pub fn shared<T>(work: impl FnOnce() -> T + Send) -> impl FnOnce() -> T + Send {
    work
}

#[cfg(test)]
pub use self::injected::{inject, inject_shared, shared, step};

#[cfg(test)]
mod injected {
    use std::cell::RefCell;
    use std::io;
    use std::sync::Arc;

    /// What happens at a step.
    type Fault = Box<dyn FnMut() -> io::Result<()>>;
    /// The same at steps of several threads.
    type SharedFault = Arc<dyn Fn() -> io::Result<()> + Send + Sync>;

    thread_local! {
        static FAULT: RefCell<Option<Fault>> = const { RefCell::new(None) };
        static SHARED: RefCell<Option<SharedFault>> = const { RefCell::new(None) };
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

    /// Calls `fault` at each step that this thread, and threads that it has do [`shared`] work, take within `work`.
    pub fn inject_shared<T>(
        fault: impl Fn() -> io::Result<()> + Send + Sync + 'static,
        work: impl FnOnce() -> T,
    ) -> T {
        let fault: SharedFault = Arc::new(fault);
        SHARED.set(Some(fault.clone()));
        let done = inject(move || fault(), work);
        SHARED.set(None);
        done
    }

    /// `work` for another thread, with the faults that this thread shares.
    pub fn shared<T>(work: impl FnOnce() -> T + Send) -> impl FnOnce() -> T + Send {
        let fault = SHARED.with_borrow(Option::clone);
        move || match fault {
            Some(fault) => inject(move || fault(), work),
            None => work(),
        }
    }
}
