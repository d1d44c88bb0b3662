//! Simulation of the scheduler in virtual time, in thousands of random worlds that lose, delay, repeat and reorder messages.
//!
//! [`world`] is the simulated environment, [`invariants`] the checks. Most worlds have a handful of members, some more than a
//! thousand. A failure prints its seed and the last events; run one seed with
//! `SEED=… cargo test -p grammaton-scheduler simulation`. `WORLDS=100000` sets the number of worlds.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use self::world::{Size, Tally, World};

mod fair_share;
mod invariants;
mod world;

const SEEDS: u64 = 5_000;

/// Size of the world of a seed.
fn size(seed: u64) -> Size {
    match seed {
        _ if seed % 2500 == 1249 => Size { members: 1050, tasks: 4000, jobs: 2, batches: 1 },
        _ if seed % 2500 == 624 => Size { members: 300, tasks: 2000, jobs: 3, batches: 1 },
        _ if seed % 1000 == 312 => Size { members: 100, tasks: 1000, jobs: 8, batches: 2 },
        _ => Size { members: 7, tasks: 40, jobs: 4, batches: 2 },
    }
}

fn simulate(seed: u64) -> Tally {
    let mut world = World::new(seed, size(seed));
    match world.run() {
        Ok(()) => world.tally(),
        Err(error) => panic!("SEED={seed}: {error}\n{}", world.log()),
    }
}

#[test]
#[ignore = "slow"]
fn every_batch_ends_and_every_task_counts_once() {
    let number = |name| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    let seeds = match number("SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("WORLDS").unwrap_or(SEEDS),
    };
    let begun = clock();
    let (next, tally) = (AtomicU64::new(seeds.start), Mutex::new(Tally::default()));
    let work = || {
        let mut own = Tally::default();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if !seeds.contains(&seed) {
                break;
            }
            own.add(&simulate(seed));
        }
        tally.lock().unwrap().add(&own);
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    let tally = tally.into_inner().unwrap();
    println!("{} worlds in {:?}: {tally:#?}", seeds.end - seeds.start, begun.elapsed());
    if seeds.end - seeds.start >= SEEDS {
        tally.check();
    }
}

#[expect(clippy::disallowed_methods, reason = "the test reports its duration")]
fn clock() -> Instant {
    Instant::now()
}
