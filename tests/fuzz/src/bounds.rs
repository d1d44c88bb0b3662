//! Bounds of memory and time for readers of files: linear in the bytes that are read.

use std::time::Duration;

use peak_alloc::PeakAlloc;
use rustix::time::{ClockId, clock_gettime};

#[global_allocator]
static ALLOCATED: PeakAlloc = PeakAlloc;

/// What a reader may take for an input of any size, and for each of its bytes.
pub struct Bounds {
    /// Bytes of memory at the same time.
    pub memory: (usize, usize),
    /// CPU time of the thread, with the address sanitizer.
    pub time: (Duration, Duration),
}

impl Bounds {
    /// Runs `read` on an input of `size` bytes, and panics if it takes more.
    pub fn check<T>(&self, size: usize, read: impl FnOnce() -> T) -> T {
        let (begun, before) = (cpu_time(), ALLOCATED.current_usage());
        ALLOCATED.reset_peak_usage();
        let done = read();
        let memory = ALLOCATED.peak_usage().saturating_sub(before);
        let time = cpu_time().saturating_sub(begun);
        let most = (self.memory.0 + size * self.memory.1, self.time.0 + self.time.1 * size as u32);
        assert!(memory <= most.0, "{size} bytes take {memory} bytes of memory, more than {}", most.0);
        assert!(time <= most.1, "{size} bytes take {time:?}, more than {:?}", most.1);
        done
    }
}

fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exceeding_a_bound_is_a_finding() {
        let bounds = Bounds { memory: (1 << 20, 100), time: (Duration::from_secs(1), Duration::ZERO) };
        let takes = |bytes: usize| bounds.check(10, || std::hint::black_box(vec![1_u8; bytes]).len());
        assert_eq!(takes(1 << 20), 1 << 20);
        assert!(std::panic::catch_unwind(|| takes(2 << 20)).is_err());
    }
}
