//! Ends a computation on request.
//!
//! In: a [`Stop`], which any thread may request. [`until`] runs a computation on the calling thread; [`check`], called by every loop
//! whose length the input decides, ends that computation once the request was made. It unwinds to `until` as a panic does, but without
//! a message, so that the mathematics needs no error for it. Without `until` around it `check` does nothing.
//!
//! Law: a computation ends within a second of the request, so at most some hundred milliseconds lie between two checks. Short steps of
//! long loops are counted by a [`Meter`], which checks once in some ten thousand of them.
//!
//! Salsa ends the queries of rust-analyzer in the same way (`Cancelled::throw`).

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A request to end a computation; clones are the same request.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<Request>);

#[derive(Debug, Default)]
struct Request {
    is_made: AtomicBool,
    /// Checks so far.
    n_checks: AtomicU64,
    /// The check that makes the request, counted from 1; 0 for none.
    made_at: u64,
}

impl Stop {
    /// A request that is made by the given check, counted from 1: at the same place of a computation every time.
    pub fn at_check(number: u64) -> Stop {
        Stop(Arc::new(Request { made_at: number, ..Request::default() }))
    }

    /// Ends the computation at its next [`check`].
    pub fn request(&self) {
        self.0.is_made.store(true, Ordering::Relaxed);
    }

    /// Whether the computation was asked to end.
    pub fn is_requested(&self) -> bool {
        self.0.is_made.load(Ordering::Relaxed)
    }

    /// Number of checks so far.
    pub fn n_checks(&self) -> u64 {
        self.0.n_checks.load(Ordering::Relaxed)
    }

    /// Counts a check; whether the computation is to end.
    fn check(&self) -> bool {
        let n_checks = self.n_checks() + 1;
        self.0.n_checks.store(n_checks, Ordering::Relaxed);
        if n_checks == self.0.made_at {
            self.request();
        }
        self.is_requested()
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
/// use grammaton::stop::{self, Stop, Stopped};
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
    if CURRENT.with_borrow(|current| current.as_ref().is_some_and(Stop::check)) {
        resume_unwind(Box::new(Stopped));
    }
}

/// Steps between two checks of a [`Meter`]: a step takes nanoseconds, with wide numbers some hundred of them.
pub const STEPS: usize = 1 << 16;

/// Counts the steps of a loop, and checks once in [`STEPS`] of them.
#[derive(Clone, Debug, Default)]
pub struct Meter(usize);

impl Meter {
    /// Counts so many more steps.
    #[inline(always)]
    pub fn add(&mut self, steps: usize) {
        self.0 += steps;
        if self.0 >= STEPS {
            self.0 = 0;
            check();
        }
    }
}

/// Returns `items`, each counted by a [`Meter`] as a step.
pub fn checked<I: IntoIterator>(items: I) -> impl Iterator<Item = I::Item> {
    let mut meter = Meter::default();
    items.into_iter().inspect(move |_| meter.add(1))
}

/// Values that are sorted without a check, in some ten milliseconds.
const SORTED_AT_ONCE: usize = 1 << 19;

/// Sorts values, of which equal ones are the same.
pub fn sort<T: Ord>(values: &mut [T]) {
    if values.len() <= SORTED_AT_ONCE {
        return values.sort_unstable();
    }
    let mut meter = Meter::default();
    values.sort_unstable_by(|a, b| {
        meter.add(1);
        a.cmp(b)
    });
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

    /// Law: the same check ends a computation every time, and a meter checks once in so many steps.
    #[test]
    fn a_request_can_be_made_by_a_check() {
        let count = |stop: &Stop, steps: usize| until(stop, || checked(0..steps).count());
        let stop = Stop::default();
        assert_eq!(count(&stop, 10 * STEPS), Ok(10 * STEPS));
        assert_eq!(stop.n_checks(), 10);
        for number in 1..=11 {
            let stop = Stop::at_check(number);
            let ended = count(&stop, 10 * STEPS);
            assert_eq!(ended.is_err(), number <= 10, "{number}");
            assert_eq!(stop.n_checks(), number.min(10));
        }
    }

    #[test]
    fn long_lists_are_sorted_with_checks() {
        let mut values: Vec<u64> =
            (0..2 * SORTED_AT_ONCE as u64).map(|at| at.wrapping_mul(0x9e37_79b9) % 1_000_003).collect();
        let mut expected = values.clone();
        expected.sort_unstable();
        let stop = Stop::default();
        until(&stop, || sort(&mut values)).unwrap();
        assert_eq!(values, expected);
        assert!(stop.n_checks() > 100);
    }

    #[test]
    fn panics_pass_through() {
        let caught = catch_unwind(|| until(&Stop::default(), || panic!("defect")));
        assert_eq!(caught.unwrap_err().downcast_ref(), Some(&"defect"));
        check();
    }
}
