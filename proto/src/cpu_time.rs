//! CPU time of threads, by which the work of a task is measured: on a busy machine, too, it is what the task would take on an idle one.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// The CPU time that the calling thread has taken so far.
pub fn of_thread() -> Duration {
    let taken = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(taken.tv_sec.unsigned_abs(), taken.tv_nsec as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_takes_no_cpu_time_and_computing_does() {
        let begun = of_thread();
        // Another thread computes until its own clock has moved by 50 milliseconds.
        let computed = std::thread::spawn(|| {
            let begun = of_thread();
            while of_thread() - begun < Duration::from_millis(50) {
                std::hint::black_box(0);
            }
            of_thread() - begun
        });
        let computed = computed.join().unwrap();
        assert!(of_thread() - begun < computed);
    }
}
