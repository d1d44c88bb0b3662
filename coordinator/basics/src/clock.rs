//! The clock by which services wait for each other. Tests put a simulated one in its place.

use std::time::{Duration, Instant};

/// Longer than any job; times add up without overflow.
pub const FOREVER: Duration = Duration::from_secs(366 * 24 * 60 * 60);

#[cfg(not(any(test, feature = "simulated")))]
pub use self::real::{now, sleep};
#[cfg(any(test, feature = "simulated"))]
pub use self::simulated::{now, sleep};

/// The present moment of this machine, in a simulation too: for the time that work takes or may take.
#[expect(clippy::disallowed_methods, reason = "no result depends on it")]
pub fn instant() -> Instant {
    Instant::now()
}

/// [`now`] in nanoseconds: a number of its own for each moment.
pub fn nanoseconds() -> u64 {
    now().as_nanos() as u64
}

mod real {
    use std::time::Duration;

    /// The time since some moment. On Linux it goes on while the machine is suspended, unlike `std::time::Instant`.
    #[cfg(target_os = "linux")]
    pub fn now() -> Duration {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec as u32)
    }

    /// The time since the first call.
    #[cfg(not(target_os = "linux"))]
    #[expect(clippy::disallowed_methods, reason = "a lease is a matter of time; results do not depend on it")]
    pub fn now() -> Duration {
        static FIRST: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
        FIRST.get_or_init(std::time::Instant::now).elapsed()
    }

    /// Waits for that time.
    pub fn sleep(time: Duration) {
        std::thread::sleep(time);
    }
}

/// The shortest time that [`now`] tells apart from another one in a simulation.
#[cfg(any(test, feature = "simulated"))]
pub const TICK: std::time::Duration = std::time::Duration::from_nanos(1);

/// Threads that take turns in simulated time: one of them runs until it waits, and then the one whose wait ends first. So a simulation takes no
/// real time, and is the same every time. Each thread has a clock that may run fast or slow.
#[cfg(any(test, feature = "simulated"))]
pub mod simulated {
    use std::cell::RefCell;
    use std::collections::BTreeSet;
    use std::sync::Arc;
    use std::time::Duration;

    use parking_lot::{Condvar, Mutex, MutexGuard};

    use super::{TICK, real};

    thread_local! {
        static HERE: RefCell<Option<Thread>> = const { RefCell::new(None) };
    }

    #[derive(Clone)]
    struct Thread {
        time: Arc<Time>,
        number: usize,
        /// Seconds of its clock in a second.
        rate: f64,
    }

    #[derive(Default)]
    struct Time {
        state: Mutex<State>,
        turned: Condvar,
    }

    #[derive(Default)]
    struct State {
        now: Duration,
        /// Ends of the waits of the other threads.
        waits: BTreeSet<(Duration, usize)>,
        /// The thread that runs.
        turn: Option<usize>,
    }

    /// The time by the clock of this thread.
    pub fn now() -> Duration {
        match HERE.with_borrow(Clone::clone) {
            Some(thread) => thread.time.state().now.mul_f64(thread.rate),
            None => real::now(),
        }
    }

    /// Waits for a time by the clock of this thread.
    pub fn sleep(time: Duration) {
        match HERE.with_borrow(Clone::clone) {
            Some(thread) => thread.wait(time.div_f64(thread.rate)),
            None => real::sleep(time),
        }
    }

    /// The time of the simulation that this thread is in, which all its threads agree on.
    pub fn true_time() -> Option<Duration> {
        HERE.with_borrow(|thread| thread.as_ref().map(|thread| thread.time.state().now))
    }

    /// Runs `body` in a thread for each of `rates`, until all have ended.
    pub fn run(rates: &[f64], body: impl Fn(usize) + Sync) {
        let time = Arc::new(Time::default());
        time.state().waits = (0..rates.len()).map(|number| (Duration::ZERO, number)).collect();
        time.state().pass();
        std::thread::scope(|scope| {
            for (number, &rate) in rates.iter().enumerate() {
                let (thread, body) = (Thread { time: time.clone(), number, rate }, &body);
                scope.spawn(move || {
                    let _ends = Ends(thread.clone());
                    thread.await_turn(thread.time.state());
                    HERE.set(Some(thread));
                    body(number);
                });
            }
        });
    }

    impl Time {
        fn state(&self) -> MutexGuard<'_, State> {
            self.state.lock()
        }
    }

    impl State {
        /// Has the thread run whose wait ends first.
        fn pass(&mut self) {
            let next = self.waits.pop_first();
            self.now = next.map_or(self.now, |(end, _)| end);
            self.turn = next.map(|(_, number)| number);
        }
    }

    impl Thread {
        fn wait(&self, time: Duration) {
            let mut state = self.time.state();
            // Another thread may run, however short the wait is.
            let end = state.now + time.max(TICK);
            state.waits.insert((end, self.number));
            state.pass();
            self.time.turned.notify_all();
            self.await_turn(state);
        }

        fn await_turn(&self, mut state: MutexGuard<'_, State>) {
            self.time.turned.wait_while(&mut state, |state| state.turn != Some(self.number));
        }
    }

    /// Passes the turn on when a thread ends, also by a panic.
    struct Ends(Thread);

    impl Drop for Ends {
        fn drop(&mut self) {
            self.0.time.state().pass();
            self.0.time.turned.notify_all();
        }
    }

    #[test]
    fn threads_run_in_the_order_in_which_their_waits_end() {
        let order = Mutex::new(Vec::new());
        run(&[1.0, 2.0, 0.5], |number| {
            for _ in 0..2 {
                sleep(Duration::from_secs(6));
                order.lock().push((number, true_time().unwrap().as_secs(), now().as_secs()));
            }
        });
        assert_eq!(*order.lock(), [(1, 3, 6), (0, 6, 6), (1, 6, 12), (0, 12, 12), (2, 12, 6), (2, 24, 12)]);
    }
}
