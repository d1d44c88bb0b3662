//! Ends a computation on request.
//!
//! In: a [`Stop`], which any thread may request. [`until`] runs a computation on the calling thread; [`check`], called by every loop
//! whose length the input decides, ends that computation once the request was made. It unwinds to `until` as a panic does, but without
//! a message, so that the mathematics needs no error for it. Without `until` around it `check` does nothing.
//!
//! Law: a computation ends within a second of the request, so at most some hundred milliseconds lie between two checks.
//!
//! Salsa ends the queries of rust-analyzer in the same way (`Cancelled::throw`).

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A request to end a computation; clones are the same request.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Ends the computation at its next [`check`].
    pub fn request(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the computation was asked to end.
    pub fn is_requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A computation was ended by its [`Stop`], and has no result.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the computation was stopped")]
pub struct Stopped;

thread_local! {
    /// The request that computations on this thread heed.
    static CURRENT: RefCell<Option<Stop>> = const { RefCell::new(None) };
}

/// Puts the previous request back, also when unwinding.
struct Restore(Option<Stop>);

impl Drop for Restore {
    fn drop(&mut self) {
        CURRENT.with_borrow_mut(|current| *current = self.0.take());
    }
}

/// Runs `compute` until it returns or `stop` is requested. Panics of `compute` pass through.
///
/// ```
/// use shared::stop::{self, Stop, Stopped};
///
/// let stop = Stop::default();
/// assert_eq!(stop::until(&stop, || 1 + 1), Ok(2));
/// stop.request();
/// let endless = || loop {
///     stop::check();
/// };
/// assert_eq!(stop::until(&stop, endless), Err::<(), _>(Stopped));
/// ```
pub fn until<T>(stop: &Stop, compute: impl FnOnce() -> T) -> Result<T, Stopped> {
    let _restore = Restore(CURRENT.replace(Some(stop.clone())));
    // What a stopped computation leaves behind is the same as after a panic.
    catch_unwind(AssertUnwindSafe(compute)).map_err(|panic| match panic.downcast::<Stopped>() {
        Ok(stopped) => *stopped,
        Err(panic) => resume_unwind(panic),
    })
}

/// Ends the computation of the innermost [`until`] around it if its [`Stop`] was requested.
pub fn check() {
    if CURRENT.with_borrow(|current| current.as_ref().is_some_and(Stop::is_requested)) {
        resume_unwind(Box::new(Stopped));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_ends_the_computation_around_it_and_no_other() {
        let (outer, inner) = (Stop::default(), Stop::default());
        let ended = until(&outer, || {
            inner.request();
            let ended = until(&inner, || {
                check();
                unreachable!("it was requested")
            });
            check();
            ended
        });
        assert_eq!(ended, Ok(Err::<(), _>(Stopped)));
        inner.request();
        check();
    }

    #[test]
    fn panics_pass_through() {
        let caught = catch_unwind(|| until(&Stop::default(), || panic!("defect")));
        assert_eq!(caught.unwrap_err().downcast_ref(), Some(&"defect"));
        check();
    }
}
