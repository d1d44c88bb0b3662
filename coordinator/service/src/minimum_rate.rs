//! The minimum rate at which a file has to be uploaded.
//!
//! Invariant: an upload ends within two intervals of the moment at which its sender falls below the rate, whatever size it announced.

use std::time::Duration;

use basics::human;
use tokio::time::{Instant, timeout_at};
use tonic::Status;

/// Interval in which a sender has to send its part.
const INTERVAL: Duration = Duration::from_secs(60);
/// Minimum rate in each interval, in bytes a second.
const MIN_RATE: u64 = 64 << 10;

/// Minimum transfer rate of an upload.
pub struct MinimumRate {
    /// End of the interval.
    end: Instant,
    /// Bytes that have not come yet, once it is known how many come.
    left: Option<u64>,
    /// Bytes that have to come in the interval.
    due: u64,
}

impl MinimumRate {
    /// Starts with the first message.
    pub fn begin() -> MinimumRate {
        MinimumRate { end: Instant::now() + INTERVAL, left: None, due: 1 }
    }

    /// So many bytes are to come.
    pub fn expect(&mut self, bytes: u64) {
        self.left = Some(bytes);
        self.start_interval();
    }

    /// So many bytes have come.
    pub fn received(&mut self, bytes: usize) {
        self.left = self.left.map(|left| left.saturating_sub(bytes as u64));
        self.due = self.due.saturating_sub(bytes as u64);
    }

    /// The receiver was busy for so long, which does not count.
    pub fn extend(&mut self, busy: Duration) {
        self.end += busy;
    }

    fn start_interval(&mut self) {
        self.end = Instant::now() + INTERVAL;
        let least = MIN_RATE * INTERVAL.as_secs();
        self.due = self.left.map_or(1, |left| least.min(left)).max(1);
    }

    /// Waits for the next message; an error if too little has come in an interval.
    pub async fn next<T>(&mut self, next: impl Future<Output = Result<T, Status>>) -> Result<T, Status> {
        tokio::pin!(next);
        loop {
            match timeout_at(self.end, &mut next).await {
                Ok(message) => return message,
                Err(_) if self.due == 0 => self.start_interval(),
                Err(_) => {
                    return Err(Status::deadline_exceeded(format!(
                        "the upload was slower than {} a second for {:?}; try again over a faster connection",
                        human::bytes(MIN_RATE),
                        INTERVAL
                    )));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tokio::sync::mpsc;
    use tokio::time::sleep;

    use super::*;

    /// Uploads `size` bytes in pieces, each after a delay; returns whether all arrived, and the seconds that it took. Time is simulated.
    fn upload(size: u64, pieces: Vec<(Duration, u64)>) -> (bool, u64) {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async move {
            let begun = Instant::now();
            let (sender, mut received) = mpsc::unbounded_channel();
            tokio::spawn(async move {
                for (delay, bytes) in pieces {
                    sleep(delay).await;
                    let _ = sender.send(bytes);
                }
                sleep(Duration::from_secs(1 << 30)).await;
                drop(sender);
            });
            let mut rate = MinimumRate::begin();
            rate.expect(size);
            let mut left = size;
            while left > 0 {
                match rate.next(async { Ok(received.recv().await) }).await {
                    Ok(Some(bytes)) => {
                        rate.received(bytes as usize);
                        left = left.saturating_sub(bytes);
                    }
                    Ok(None) | Err(_) => break,
                }
            }
            (left == 0, begun.elapsed().as_secs())
        })
    }

    proptest! {
        /// A sender who sends `n` seconds' worth of the rate after at most that many seconds is not refused.
        #[test]
        fn senders_above_the_rate_are_served(seconds in prop::collection::vec(0_u64..30, 1..60)) {
            let piece = |&n: &u64| (Duration::from_secs(n), MIN_RATE * (2 * n + 1));
            let pieces: Vec<_> = seconds.iter().map(piece).collect();
            let size = pieces.iter().map(|piece| piece.1).sum();
            prop_assert!(upload(size, pieces).0);
        }

        /// However a sender began and whatever size it announced: once it sends a byte in 20 s, it is refused within two intervals.
        #[test]
        fn senders_who_fall_below_the_rate_are_refused(fast in 0_u64..300, size in 1_u64 << 30..1 << 40) {
            let mut pieces = vec![(Duration::from_secs(1), MIN_RATE); fast as usize];
            pieces.extend(vec![(Duration::from_secs(20), 1); 1000]);
            let (is_whole, seconds) = upload(size, pieces);
            prop_assert!(!is_whole && seconds <= fast + 2 * INTERVAL.as_secs(), "{seconds} s");
        }
    }
}
