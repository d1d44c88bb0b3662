//! First-in-first-out servers: cores, a thread, a network interface.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

/// Servers with one queue.
#[derive(Debug)]
pub(super) struct Servers {
    /// Time at which each server becomes free.
    free_at: BinaryHeap<Reverse<Duration>>,
    /// Time spent serving.
    pub busy: Duration,
}

impl Servers {
    /// That many free servers.
    pub fn new(n: usize) -> Servers {
        Servers { free_at: (0..n.max(1)).map(|_| Reverse(Duration::ZERO)).collect(), busy: Duration::ZERO }
    }

    /// Serves a request that arrives at `now`, not before any earlier request, and takes `time`. Returns when it is done.
    pub fn serve(&mut self, now: Duration, time: Duration) -> Duration {
        let Reverse(free_at) = self.free_at.pop().unwrap_or(Reverse(now));
        let served = free_at.max(now) + time;
        self.free_at.push(Reverse(served));
        self.busy += time;
        served
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_wait_for_the_first_free_server() {
        let seconds = Duration::from_secs;
        let mut servers = Servers::new(2);
        assert_eq!(servers.serve(seconds(0), seconds(5)), seconds(5));
        assert_eq!(servers.serve(seconds(1), seconds(1)), seconds(2));
        assert_eq!(servers.serve(seconds(1), seconds(1)), seconds(3));
        assert_eq!(servers.serve(seconds(9), seconds(1)), seconds(10));
        assert_eq!(servers.busy, seconds(8));
    }
}
