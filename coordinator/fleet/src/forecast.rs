//! Forecast of rounds on an imaginary cluster: the real scheduler in virtual time.
//!
//! In: a [`Load`], the tasks of a round with their measured costs; a [`Cluster`] to imagine. Out: a
//! [`Forecast`] for each of its sizes, in which a round takes what the same round took when it was measured. It depends on these and a seed
//! alone: no clock is read here.
//!
//! Modelled, in `world`: the assignment of tasks, with backups and the forests that a member has already, is
//! decided by the [`Scheduler`](scheduler::Scheduler) of real runs; which blobs travel, by the
//! `BlobCache` of real runs. The coordinator has one network interface through which all
//! transfers go one after the other, both ways; cores that encode and decode; one thread that decides and one that adds
//! answers up, in task order. Members send heartbeats and compute as many tasks at a time as they have threads.
//!
//! Not modelled: members that fail, networks that lose, the switches between, memory.

use std::time::Duration;

use serde::Serialize;

use self::world::World;

mod servers;
mod world;

/// Cost of a blob: the time to encode it, and the bytes of its messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Message {
    /// Bytes of its head and pieces.
    pub bytes: u64,
    /// Time of the coordinator to encode it.
    pub encode: Duration,
}

/// Measured costs of a task.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct TaskLoad {
    /// Time to compute it on a member that has not seen its shard and has to build its forests.
    pub first: Duration,
    /// Times to compute it again, one or more, by measured round.
    pub again: Vec<Duration>,
    /// Time of a member to decode the lease and encode the answer.
    pub handling: Duration,
    /// Message with the shard.
    pub shard: Message,
    /// Message with the shard state, if there is one.
    pub shard_state: Option<Message>,
    /// Message with the lease and its weights; its time includes making the task.
    pub lease: Message,
    /// Bytes of the answer.
    pub answer_bytes: u64,
    /// Time of the coordinator to decode and check the answer.
    pub decode: Duration,
    /// Time to add the answer to the totals.
    pub add: Duration,
}

/// The tasks of a round, and what else the coordinator does in it.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Load {
    /// Tasks, at least one.
    pub tasks: Vec<TaskLoad>,
    /// Message that every member is sent once: grammar and strings.
    pub once: Message,
    /// Message that every member is sent once a round; without bytes if there is none.
    pub every_round: Message,
    /// Time from the last answer of a round to the first lease of the next round: the update and the new weights.
    pub between: Duration,
    /// Time of the scheduler for one event.
    pub decide: Duration,
    /// Time of the coordinator for one message in or out, besides its bytes.
    pub message: Duration,
}

/// A cluster to imagine.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Cluster {
    /// Number of members, at least one.
    pub workers: usize,
    /// Number of tasks that each member computes at a time, at least one.
    pub threads: u32,
    /// Bytes per second through the coordinator, both ways together; more than 0, may be infinite.
    pub bandwidth: f64,
    /// Latency from one side to the other, besides the time for the bytes.
    pub latency: Duration,
    /// Number of cores of the coordinator that encode and decode, at least one.
    pub cores: usize,
    /// Size of each member's blob cache, in bytes.
    pub cache: u64,
}

impl Cluster {
    /// Number of tasks that the cluster computes at a time.
    fn slots(&self) -> f64 {
        self.workers as f64 * f64::from(self.threads)
    }
}

/// Shares of the time of a round, in seconds; they add up to the round.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct TimeShares {
    /// Work, spread evenly over all threads.
    pub compute: f64,
    /// Time that a network of unlimited bandwidth would save.
    pub network: f64,
    /// Further time that a coordinator without costs would save.
    pub coordinator: f64,
    /// Further time that a network without latency would save.
    pub latency: f64,
    /// The rest: threads without a task, since there are too few or they are too long.
    pub waiting: f64,
}

impl TimeShares {
    /// Name of the largest share.
    pub fn bottleneck(&self) -> Bottleneck {
        let shares = [
            (self.compute, Bottleneck::Compute),
            (self.network, Bottleneck::Network),
            (self.coordinator, Bottleneck::Coordinator),
            (self.latency, Bottleneck::Latency),
            (self.waiting, Bottleneck::Stragglers),
        ];
        let larger =
            |best: (f64, Bottleneck), next: (f64, Bottleneck)| if next.0 > best.0 { next } else { best };
        shares.into_iter().reduce(larger).map_or(Bottleneck::Compute, |(_, bottleneck)| bottleneck)
    }
}

/// The largest share of a round.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bottleneck {
    /// Work: more workers help.
    Compute,
    /// The coordinator's network.
    Network,
    /// The coordinator's cores and its two threads.
    Coordinator,
    /// Latency there and back.
    Latency,
    /// The last tasks: too few shards, or too long ones.
    Stragglers,
}

impl Bottleneck {
    /// Name for messages.
    pub fn name(self) -> &'static str {
        match self {
            Bottleneck::Compute => "compute",
            Bottleneck::Network => "network",
            Bottleneck::Coordinator => "coordinator",
            Bottleneck::Latency => "latency",
            Bottleneck::Stragglers => "stragglers",
        }
    }
}

/// A simulated round, in virtual time.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Round {
    /// Time from its first lease to the first lease of the next round.
    pub seconds: f64,
    /// Computing time of the accepted answers.
    pub work_seconds: f64,
    /// Bytes of messages to members.
    pub bytes_down: u64,
    /// Bytes of messages from members.
    pub bytes_up: u64,
    /// Time of the coordinator for encoding, decoding and messages, over all its cores.
    pub codec_seconds: f64,
    /// Time of the coordinator for adding answers and for the update.
    pub reduce_seconds: f64,
    /// Time of the scheduler.
    pub decide_seconds: f64,
    /// Number of leases, with backups.
    pub leases: u64,
}

/// Forecast of a load on a cluster.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Forecast {
    /// Number of members.
    pub workers: usize,
    /// Number of tasks of a round.
    pub tasks: usize,
    /// The first round, in which shards travel and forests are built.
    pub first: Round,
    /// A later round: the mean of the measured ones, of at most [`MOST_AGAIN`].
    pub round: Round,
    /// Twice the standard error of its time, as a share of it: how much the measured rounds differ. `None` with one.
    pub error: Option<f64>,
    /// Efficiency of a later round: work ÷ (workers × threads × time).
    pub efficiency: f64,
    /// Shares of its time.
    pub share: TimeShares,
    /// The largest share.
    pub bottleneck: Bottleneck,
}

/// Maximum number of simulated rounds after the first.
pub const MOST_AGAIN: usize = 10;

/// Simulates rounds of `n_tasks` tasks, which repeat the tasks of `load`.
pub fn forecast(load: &Load, n_tasks: usize, cluster: &Cluster, seed: u64) -> Forecast {
    // One thing is made ideal after the other; what each saves is its share.
    let wide = Cluster { bandwidth: f64::INFINITY, ..*cluster };
    let near = Cluster { latency: Duration::ZERO, ..wide };
    let quick = load.with_an_idle_coordinator();
    let worlds = [(load, *cluster), (load, wide), (&quick, wide), (&quick, near)];
    let passed = std::thread::scope(|scope| {
        let threads =
            worlds.map(|(load, cluster)| scope.spawn(move || rounds(load, n_tasks, &cluster, seed)));
        threads.map(|thread| thread.join().expect("a world that panics is a bug"))
    });
    let [(first, later), wide, quick, near] = passed;
    let (round, [wide, quick, near]) = (mean(&later), [wide, quick, near].map(|(_, later)| mean(&later)));
    let compute = round.work_seconds / cluster.slots();
    // Less of one thing may, by chance of the order, take a little longer: no share is negative.
    let saved = |before: f64, after: f64| (before - after).max(0.0);
    let network = saved(round.seconds, wide.seconds);
    let coordinator = saved(round.seconds - network, quick.seconds);
    let latency = saved(round.seconds - network - coordinator, near.seconds);
    // Shards that move are computed as if never seen, so the work itself may differ a little.
    let rest = round.seconds - network - coordinator - latency;
    let waiting = saved(rest, compute);
    let share = TimeShares { compute: rest - waiting, network, coordinator, latency, waiting };
    Forecast {
        workers: cluster.workers,
        tasks: n_tasks,
        first,
        round,
        error: error(&later),
        efficiency: compute / round.seconds,
        share,
        bottleneck: share.bottleneck(),
    }
}

/// The first round, and those after it.
fn rounds(load: &Load, n_tasks: usize, cluster: &Cluster, seed: u64) -> (Round, Vec<Round>) {
    let mut world = World::new(load, n_tasks, cluster, seed);
    let first = world.round();
    let n_again = load.tasks.iter().map(|task| task.again.len()).max().unwrap_or(1);
    (first, (0..n_again.clamp(1, MOST_AGAIN)).map(|_| world.round()).collect())
}

/// Simulates a first round. Returns the number of events of the scheduler, so that the caller can measure the time of one.
pub fn n_events(load: &Load, n_tasks: usize, cluster: &Cluster, seed: u64) -> u64 {
    let mut world = World::new(load, n_tasks, cluster, seed);
    world.round();
    world.n_events()
}

/// [`Forecast::error`] of these rounds.
fn error(rounds: &[Round]) -> Option<f64> {
    let (n, mean) = (rounds.len() as f64, mean(rounds).seconds);
    let squares: f64 = rounds.iter().map(|round| (round.seconds - mean).powi(2)).sum();
    (rounds.len() > 1 && mean > 0.0).then(|| 2.0 * (squares / (n - 1.0) / n).sqrt() / mean)
}

fn mean(rounds: &[Round]) -> Round {
    let n = rounds.len() as f64;
    let seconds = |of: fn(&Round) -> f64| rounds.iter().map(of).sum::<f64>() / n;
    let count = |of: fn(&Round) -> u64| (rounds.iter().map(of).sum::<u64>() as f64 / n).round() as u64;
    Round {
        seconds: seconds(|round| round.seconds),
        work_seconds: seconds(|round| round.work_seconds),
        bytes_down: count(|round| round.bytes_down),
        bytes_up: count(|round| round.bytes_up),
        codec_seconds: seconds(|round| round.codec_seconds),
        reduce_seconds: seconds(|round| round.reduce_seconds),
        decide_seconds: seconds(|round| round.decide_seconds),
        leases: count(|round| round.leases),
    }
}

impl Load {
    /// Time to compute all its tasks once more.
    pub fn work(&self) -> Duration {
        self.tasks.iter().map(TaskLoad::mean).sum()
    }

    /// The same, if the coordinator took no time for anything.
    fn with_an_idle_coordinator(&self) -> Load {
        let idle = |message: Message| Message { encode: Duration::ZERO, ..message };
        let tasks = self.tasks.iter().map(|task| TaskLoad {
            shard: idle(task.shard),
            shard_state: task.shard_state.map(idle),
            lease: idle(task.lease),
            decode: Duration::ZERO,
            add: Duration::ZERO,
            ..task.clone()
        });
        Load {
            tasks: tasks.collect(),
            once: idle(self.once),
            every_round: idle(self.every_round),
            between: Duration::ZERO,
            decide: Duration::ZERO,
            message: Duration::ZERO,
        }
    }
}

impl TaskLoad {
    /// Time to compute it again in a round after the first, which is number 1.
    fn in_round(&self, round: u64) -> Duration {
        self.again[round as usize % self.again.len()]
    }

    /// Mean of the times to compute it again.
    fn mean(&self) -> Duration {
        self.again.iter().sum::<Duration>().checked_div(self.again.len() as u32).unwrap_or(self.first)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// A task of so long, of nothing else.
    fn task(time: Duration) -> TaskLoad {
        TaskLoad { first: time, again: vec![time], ..TaskLoad::default() }
    }

    /// Everything else takes something.
    fn loaded(times: &[u64]) -> Load {
        let message = |bytes| Message { bytes, encode: Duration::from_micros(bytes / 100) };
        let tasks = times.iter().map(|&time| TaskLoad {
            first: millis(2 * time),
            again: vec![millis(time), millis(time + time / 4)],
            handling: Duration::from_micros(150),
            shard: message(20_000),
            shard_state: None,
            lease: message(80_000),
            answer_bytes: 60_000,
            decode: Duration::from_micros(300),
            add: Duration::from_micros(40),
        });
        Load {
            tasks: tasks.collect(),
            once: message(500_000),
            every_round: Message::default(),
            between: millis(5),
            decide: Duration::from_micros(10),
            message: Duration::from_micros(80),
        }
    }

    fn cluster(workers: usize, threads: u32) -> Cluster {
        Cluster { workers, threads, bandwidth: 1.25e9, latency: millis(1) / 2, cores: 4, cache: 1 << 30 }
    }

    fn ideal(workers: usize, threads: u32) -> Cluster {
        Cluster { bandwidth: f64::INFINITY, latency: Duration::ZERO, ..cluster(workers, threads) }
    }

    fn first_and_mean(load: &Load, n_tasks: usize, workers: usize) -> (Round, Round) {
        let (first, later) = rounds(load, n_tasks, &cluster(workers, 1), 1);
        (first, mean(&later))
    }

    #[test]
    fn the_error_is_that_of_the_mean_of_the_measured_rounds() {
        let of = |again: &[u64]| {
            let again: Vec<Duration> = again.iter().copied().map(millis).collect();
            let task = TaskLoad { first: again[0], again, ..TaskLoad::default() };
            forecast(&Load { tasks: vec![task], ..Load::default() }, 2, &ideal(2, 1), 1).error
        };
        assert_eq!((of(&[20]), of(&[20, 20, 20])), (None, Some(0.0)));
        // A mean of 20 with a deviation of 10 ÷ √3.
        let found = of(&[10, 20, 30]).unwrap();
        assert!((found - 1.0 / 3.0_f64.sqrt()).abs() < 1e-9, "{found}");
    }

    #[test]
    fn equal_shards_alone_go_in_as_many_turns_as_it_takes() {
        for (n_tasks, workers, threads, turns) in
            [(1, 1, 1, 1.0), (7, 3, 1, 3.0), (12, 3, 2, 2.0), (13, 3, 2, 3.0), (40, 60, 2, 1.0)]
        {
            let load = Load { tasks: vec![task(millis(20))], ..Load::default() };
            let found = forecast(&load, n_tasks, &ideal(workers, threads), 1);
            assert!((found.round.seconds - 0.02 * turns).abs() < 1e-9, "{n_tasks} tasks: {found:?}");
            assert!((found.first.seconds - 0.02 * turns).abs() < 1e-9, "{n_tasks} tasks: {found:?}");
            assert_eq!((found.tasks, found.round.leases), (n_tasks, n_tasks as u64));
        }
    }

    #[test]
    fn one_thing_that_takes_long_is_the_bottleneck() {
        let load = Load { tasks: vec![task(millis(100))], ..Load::default() };
        let bottleneck = |load: &Load, n_tasks, cluster| forecast(load, n_tasks, &cluster, 1).bottleneck;
        assert_eq!(bottleneck(&load, 40, ideal(4, 1)), Bottleneck::Compute);
        assert_eq!(bottleneck(&load, 5, ideal(50, 1)), Bottleneck::Stragglers);
        let far = Cluster { latency: millis(900), ..ideal(4, 1) };
        assert_eq!(bottleneck(&load, 4, far), Bottleneck::Latency);
        let narrow = Cluster { bandwidth: 1e5, ..ideal(4, 1) };
        assert_eq!(bottleneck(&loaded(&[20]), 8, narrow), Bottleneck::Network);
        let slow = Load { between: Duration::from_secs(3), ..load };
        assert_eq!(bottleneck(&slow, 8, ideal(4, 1)), Bottleneck::Coordinator);
    }

    #[test]
    fn bytes_are_those_of_leases_and_answers_and_at_first_of_blobs() {
        let load = loaded(&[10, 20, 30]);
        let (first, round) = first_and_mean(&load, 3, 1);
        assert_eq!(round.bytes_down, 3 * 80_000);
        assert_eq!(first.bytes_down, 3 * (80_000 + 20_000) + 500_000);
        // A sign of life in a second, at most.
        assert!((3 * 60_000..3 * 60_000 + 10).contains(&round.bytes_up), "{round:?}");
    }

    #[test]
    fn a_shard_stays_with_the_member_that_has_its_state() {
        let mut load = loaded(&[10, 20, 30, 10, 20, 30]);
        let without = first_and_mean(&load, 6, 2);
        load.tasks
            .iter_mut()
            .for_each(|task| task.shard_state = Some(Message { bytes: 7, ..Message::default() }));
        let with = first_and_mean(&load, 6, 2);
        assert_eq!(with.0.bytes_down, without.0.bytes_down, "there is none yet");
        // It travels with its shard, if that has to go elsewhere; what it takes the place of is released.
        let more = with.1.bytes_down - without.1.bytes_down;
        assert!(more <= 6 * (7 + 36), "{with:?}, {without:?}");
    }

    #[test]
    fn members_are_worth_nearly_their_number_if_tasks_are_many() {
        let found = forecast(&loaded(&[1000, 1500]), 400, &cluster(40, 1), 3);
        assert!(found.efficiency > 0.8 && found.bottleneck == Bottleneck::Compute, "{found:?}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn no_forecast_is_better_than_the_work_allows(
            times in proptest::collection::vec(1u64..300, 1..20),
            n_tasks in 1usize..60,
            workers in 1usize..12,
            threads in 1u32..4,
            seed in 0u64..1000,
        ) {
            let (load, cluster) = (loaded(&times), cluster(workers, threads));
            let found = forecast(&load, n_tasks, &cluster, seed);
            prop_assert_eq!(found, forecast(&load, n_tasks, &cluster, seed), "the same seed");
            for round in [found.first, found.round] {
                prop_assert!(round.seconds >= round.work_seconds / cluster.slots(), "{found:?}");
                prop_assert!(round.seconds >= (round.bytes_down + round.bytes_up) as f64 / 1.25e9 * 0.99);
                prop_assert!(round.seconds >= round.codec_seconds / 4.0 * 0.99 && round.seconds >= round.reduce_seconds);
                prop_assert!(round.leases >= n_tasks as u64);
            }
            prop_assert!(found.efficiency > 0.0 && found.efficiency <= 1.0, "{found:?}");
            let TimeShares { compute, network, coordinator, latency, waiting } = found.share;
            let all = [compute, network, coordinator, latency, waiting];
            prop_assert!(all.iter().all(|share| *share >= 0.0), "{found:?}");
            prop_assert!((all.iter().sum::<f64>() - found.round.seconds).abs() < 1e-9, "{found:?}");
        }
    }
}
