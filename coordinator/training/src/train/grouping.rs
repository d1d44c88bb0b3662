//! How many shards a task of a round is on, so that it is worth its message and no thread waits long for another.
//!
//! Groups of shards are nodes of the tree by which results are added ([`grammaton::num::tree_sum`]), so a fleet may have any: the bits are
//! the same.

use std::f64::consts::SQRT_2;
use std::time::Duration;

use fleet::MapReport;
use grammaton::num::tree_sum::MAX_LEVEL;

/// Groups of a thread in a round, about: threads wait for half a group in the end.
const OF_A_THREAD: f64 = 8.0;

/// No group takes longer in a round, unless a single shard does: as much is lost with a worker.
const LONGEST: Duration = Duration::from_millis(300);

/// What the rounds of a job so far say of its shards and of the fleet.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pace {
    /// Threads of the fleet; 0 before the first round.
    slots: usize,
    /// Time of a shard in the round with the longest ones. Rounds get shorter, and groups that stay find their forests where they were.
    of_shard: Duration,
}

impl Pace {
    /// The pace after a round that was on so many shards.
    pub fn after(self, report: &MapReport, n_shards: usize) -> Pace {
        let of_shard = report.busy / u32::try_from(n_shards).unwrap_or(u32::MAX).max(1);
        Pace { slots: report.slots, of_shard: self.of_shard.max(of_shard) }
    }

    /// The level of the groups of a round on so many shards.
    pub fn level(self, n_shards: usize) -> u32 {
        if self.slots == 0 {
            return 0;
        }
        let of_threads = n_shards as f64 / (OF_A_THREAD * self.slots as f64);
        let of_time = LONGEST.as_secs_f64() / self.of_shard.as_secs_f64().max(1e-9);
        // The power of two that is nearest, unless it takes too long.
        let fits = |level: &u32| {
            let n = f64::from(1u32 << level);
            n <= of_threads * SQRT_2 && n <= of_time
        };
        (1..=MAX_LEVEL).rev().find(fits).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace(slots: usize, micros: u64) -> Pace {
        Pace { slots, of_shard: Duration::from_micros(micros) }
    }

    #[test]
    fn groups_are_few_for_each_thread_and_not_long() {
        assert_eq!(Pace::default().level(1000), 0);
        // Twenty-four shards of half a millisecond.
        assert_eq!([1, 2, 4, 20].map(|slots| pace(slots, 500).level(24)), [2, 1, 0, 0]);
        assert_eq!([4, 100, 1000].map(|slots| pace(slots, 10_000).level(100_000)), [4, 4, 4]);
        assert_eq!([4, 100, 1000].map(|slots| pace(slots, 500).level(100_000)), [6, 6, 4]);
        // Shards that are longer by themselves.
        assert_eq!(pace(2, 400_000).level(100_000), 0);
        assert_eq!(pace(1, 0).level(0), 0);
    }

    #[test]
    fn the_longest_round_decides() {
        let report =
            |millis| MapReport { busy: Duration::from_millis(millis), slots: 3, ..MapReport::default() };
        let pace = Pace::default().after(&report(80), 8).after(&report(8), 8);
        assert_eq!((pace.slots, pace.of_shard), (3, Duration::from_millis(10)));
        assert_eq!(Pace::default().after(&report(8), 0).of_shard, Duration::from_millis(8));
    }
}
