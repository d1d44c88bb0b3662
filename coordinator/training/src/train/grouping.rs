//! How many shards a task of a round is on, so that it is worth its message and no thread waits long for another.
//!
//! Groups of shards are nodes of the tree by which results are added ([`grammaton::num::tree_sum`]), so a fleet may have any: the bits are
//! the same.

use std::ops::Range;
use std::time::Duration;

use fleet::MapReport;
use grammaton::num::tree_sum::MAX_LEVEL;

/// Time of a task besides its shards: messages, encoding and decoding, on both sides (`docs/SCALING.md`).
const OF_A_TASK: Duration = Duration::from_micros(200);

/// Time of the coordinator's threads that schedule and add up, for a task.
const OF_COORDINATOR: Duration = Duration::from_micros(50);

/// Bytes that pass the coordinator's network in a second: 10 Gbit/s.
const BANDWIDTH: f64 = 1.25e9;

/// No group takes longer in a round, unless a single shard does: as much is lost with a worker.
const LONGEST: Duration = Duration::from_millis(300);

/// Groups change only if a round gets shorter by more than this share: where a shard is next, its forests have to be built once more.
const GAIN: f64 = 0.02;

/// What the rounds of a job so far say of its shards and of the fleet.
#[derive(Clone, Debug, Default)]
pub struct Pace {
    /// Threads of the fleet; 0 before the first round.
    slots: usize,
    /// Members in other processes; 0 before the first round.
    n_remote: usize,
    /// Time of a shard in the last round whose groups were those of the round before.
    of_shard: Option<Duration>,
    /// The level of the groups of the last round.
    level: u32,
    /// Whether the groups of the last round were new, so that forests may have been built.
    is_new: bool,
    /// Bytes of a task of the last round, there and back. Of larger groups it is as much or more, up to twice as much.
    bytes: f64,
    /// The tasks of the last round, sorted.
    took: Vec<(Key, Took)>,
}

/// A task: its run, its first shard, and the one after its last.
type Key = (usize, usize, usize);

/// How long a task took in the rounds before, as long as every round had it.
#[derive(Clone, Copy, Debug)]
struct Took {
    least: Duration,
    /// Whether it was in several rounds: in the first one its forests are built.
    again: bool,
}

impl Pace {
    /// Learns from a round whose tasks were on these shards of these runs, ascending.
    pub fn learn(&mut self, report: &MapReport, tasks: impl Iterator<Item = (usize, Range<usize>)>) {
        let key = |(run, shards): (usize, Range<usize>)| (run, shards.start, shards.end);
        // Times are claims of workers: none computed for longer than the round.
        let busy = report.busy_by_task.iter().map(|busy| *busy.min(&report.wall));
        let (mut all, mut n_shards) = (Duration::ZERO, 0);
        let took = |(key, busy): (Key, Duration)| {
            (all, n_shards) = (all + busy, n_shards + key.2 - key.1);
            match self.took(&key) {
                Some(before) => (key, Took { least: before.least.min(busy), again: true }),
                None => (key, Took { least: busy, again: false }),
            }
        };
        let took = tasks.map(key).zip(busy).map(took).collect();
        self.took = took;
        let of_shard = all / u32::try_from(n_shards).unwrap_or(u32::MAX).max(1);
        if self.of_shard.is_none() || !self.is_new {
            self.of_shard = Some(of_shard);
        }
        (self.slots, self.n_remote) = (report.slots, report.n_remote);
        self.bytes = (report.bytes_sent + report.bytes_received) as f64 / report.attempts.max(1) as f64;
    }

    /// Members in other processes, as of the last round.
    pub fn n_remote(&self) -> usize {
        self.n_remote
    }

    /// The time that a task takes without building forests, zero if that is not known.
    pub fn takes(&self, run: usize, shards: &Range<usize>) -> Duration {
        let took = self.took(&(run, shards.start, shards.end));
        took.filter(|took| took.again).map_or(Duration::ZERO, |took| took.least)
    }

    fn took(&self, key: &Key) -> Option<Took> {
        let found = self.took.binary_search_by_key(key, |(key, _)| *key);
        found.ok().map(|at| self.took[at].1)
    }

    /// The level of the groups of the next round, on so many shards: the one with which it would end first, if threads compute as many groups
    /// each and wait half a group for the last one, and if the coordinator can follow.
    pub fn next_level(&mut self, n_shards: usize) -> u32 {
        let (Some(of_shard), true) = (self.of_shard, self.slots > 0) else { return 0 };
        let of_group = |level: u32| of_shard * (1 << level);
        let round = |level: u32| {
            let n_groups = n_shards.div_ceil(1 << level);
            let turns = n_groups.div_ceil(self.slots) as f64;
            let group = of_group(level).as_secs_f64();
            let threads = turns * (group + OF_A_TASK.as_secs_f64()) + 0.5 * group;
            let task = OF_COORDINATOR.as_secs_f64() + self.bytes / BANDWIDTH;
            threads.max(n_groups as f64 * task)
        };
        let is_short = |level: &u32| of_group(*level) <= LONGEST;
        let best =
            (1..=MAX_LEVEL).take_while(is_short).fold(0, |a, b| if round(b) < round(a) { b } else { a });
        let stays = self.level == 0 || is_short(&self.level);
        self.is_new = best != self.level && (!stays || round(best) < (1.0 - GAIN) * round(self.level));
        if self.is_new {
            self.level = best;
        }
        self.level
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace(slots: usize, micros: u64) -> Pace {
        Pace { slots, of_shard: Some(Duration::from_micros(micros)), ..Pace::default() }
    }

    #[test]
    fn groups_are_few_where_a_round_is_short_and_short_where_it_is_long() {
        let level = |slots, micros, n_shards| pace(slots, micros).next_level(n_shards);
        assert_eq!(Pace::default().next_level(1000), 0);
        // Twenty-four shards of a tenth of a millisecond: three groups for each of two threads.
        assert_eq!([1, 2, 4, 20].map(|slots| level(slots, 100, 24)), [3, 2, 1, 1]);
        // Forty-five shards of 11 ms.
        assert_eq!([1, 2, 4, 20].map(|slots| level(slots, 11_000, 45)), [0; 4]);
        assert_eq!([4, 100, 1000].map(|slots| level(slots, 10_000, 100_000)), [0, 0, 3]);
        assert_eq!([4, 100, 1000].map(|slots| level(slots, 500, 100_000)), [6, 4, 6]);
        // Shards that are longer by themselves.
        assert_eq!(level(2, 400_000, 100_000), 0);
        assert_eq!(level(1, 0, 100), MAX_LEVEL);
        assert_eq!(level(1, 0, 0), 0);
    }

    #[test]
    fn groups_are_larger_where_their_bytes_take_longer_than_their_work() {
        let level = |bytes| Pace { bytes, ..pace(20, 570) }.next_level(1579);
        assert_eq!([0.0, 3e5, 3e6].map(level), [3, 4, 6]);
    }

    #[test]
    fn groups_change_only_if_it_pays() {
        let mut pace = pace(2, 100);
        assert_eq!(pace.next_level(24), 2);
        pace.of_shard = Some(Duration::from_micros(80)); // three groups would be as good, nearly
        assert_eq!(pace.next_level(24), 2);
        pace.of_shard = Some(Duration::from_millis(200));
        assert_eq!(pace.next_level(24), 0);
    }

    #[test]
    fn the_last_round_decides_unless_its_groups_are_new() {
        let report = |millis| {
            let wall = Duration::from_millis(millis);
            MapReport { wall, busy_by_task: vec![10 * wall], slots: 3, ..MapReport::default() }
        };
        let mut pace = Pace::default();
        let mut learn = |millis| pace.learn(&report(millis), [(0, 0..8)].into_iter());
        [80, 8, 16].into_iter().for_each(&mut learn);
        assert_eq!((pace.slots, pace.of_shard), (3, Some(Duration::from_millis(2))));
        assert_eq!(pace.next_level(1000), 3);
        pace.learn(&report(80), [(0, 0..8)].into_iter());
        assert_eq!((pace.of_shard, pace.next_level(1000)), (Some(Duration::from_millis(2)), 3));
        pace.learn(&report(80), [(0, 0..8)].into_iter());
        assert_eq!(pace.of_shard, Some(Duration::from_millis(10)));
        assert_eq!([0..8, 0..7].map(|shards| pace.takes(0, &shards).as_millis()), [8, 0]);
    }
}
