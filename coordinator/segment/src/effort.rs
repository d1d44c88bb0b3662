//! The effort of a run: chains, sweeps and kept samples, and those that fit in a time, measured on a short run of its job, whose rounds are one
//! sweep each, on a part of the text if it is large.
//!
//! Law: with the measured costs, a run of more than two sweeps takes no more than its time.

use std::time::Duration;

use anyhow::Result;
use basics::clock;
use fleet::Fleet;
use training::events::{Observer, RunEvent};
use training::job::Job;
use training::metrics::Timings;
use training::train::checkpoint::Checkpoints;
use training::train::group::Inputs;
use training::train::train;

/// Number and length of chains.
#[derive(Clone, Copy)]
pub struct Effort {
    /// Chains of the first grammar.
    pub chains: u16,
    /// Chains of each further grammar; `None` for as many.
    pub voter_chains: Option<u16>,
    /// Sweeps of each chain.
    pub sweeps: u32,
}

impl Effort {
    /// Sweeps from one kept sample to the next, with so many further grammars: two, and more if all chains together would keep more than
    /// some 400, since what is known of kept samples is in memory.
    pub fn keep_every(self, n_voters: usize) -> u32 {
        let of_voters = n_voters * usize::from(self.voter_chains.unwrap_or(self.chains));
        let n_chains = usize::from(self.chains) + of_voters;
        // The second half of a chain is kept.
        let n_kept = u64::from(self.sweeps) * n_chains as u64 / 2;
        n_kept.div_ceil(SAMPLES).clamp(2, u64::from(self.sweeps)) as u32
    }
}

/// Number of samples that all chains keep together, at most, but for the last one of each.
const SAMPLES: u64 = 400;

/// Sweeps that are run for the measurement. The first one, which builds the charts, is the slowest, so the last one counts.
pub const PROBE_SWEEPS: u32 = 3;

/// Places of charts ([`places`](grammaton::forest::build::places)) in the part of a text that is measured, for each second of the time that is given: a tenth of that second or so.
pub const PROBE_WORK: f64 = 200_000.0;
/// The same for grammars of many symbols, in which every span can be a word, so that charts have more edges.
pub const PROBE_WORK_OF_MANY_SYMBOLS: f64 = PROBE_WORK / 4.0;

/// Seconds that the parts of a job take.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    /// Reading and preparing.
    preparation: f64,
    /// What the first sweep takes beyond another one, for the charts.
    charts: f64,
    /// A sweep of every chain.
    sweep: f64,
    /// The segmentation by the models of all chains.
    decoding: f64,
}

impl Cost {
    /// The cost of `job`, which is run for [`PROBE_SWEEPS`] sweeps. Nothing is written.
    pub fn measure(job: &Job, fleet: &Fleet) -> Result<Cost> {
        let begun = clock::now();
        let inputs = Inputs::load(job)?;
        let mut sweeps = Sweeps::default();
        let outcome = train(job, &inputs, fleet, &mut Checkpoints::none(), &mut sweeps)?;
        let Timings { rounds, decode, .. } = outcome.timings;
        let whole = clock::now().saturating_sub(begun).as_secs_f64();
        let preparation = (whole - rounds - decode).max(0.0);
        let charts = (rounds - f64::from(PROBE_SWEEPS) * sweeps.last).max(0.0);
        Ok(Cost { preparation, charts, sweep: sweeps.last, decoding: decode })
    }

    /// The cost of a text with so many times the work.
    pub fn of_work(self, times: f64) -> Cost {
        let [preparation, charts, sweep, decoding] =
            [self.preparation, self.charts, self.sweep, self.decoding].map(|seconds| seconds * times);
        Cost { preparation, charts, sweep, decoding }
    }

    /// Whether two sweeps and the rest fit in `time`.
    pub fn fits(self, time: Duration) -> bool {
        self.fit(time) >= 2.0
    }

    /// The number of sweeps for `time`, at least two.
    pub fn sweeps(self, time: Duration) -> u32 {
        (self.fit(time) as u32).clamp(2, MAX_SWEEPS)
    }

    /// The number of sweeps that fit in `time`, negative if not even the rest does.
    fn fit(self, time: Duration) -> f64 {
        (time.as_secs_f64() - self.preparation - self.charts - self.decoding)
            / self.sweep.max(f64::MIN_POSITIVE)
    }

    /// The cost with so many times as many chains, of which `in_turn` times as many sweeps are computed one after the other.
    fn times(self, chains: f64, in_turn: f64) -> Cost {
        Cost { sweep: self.sweep * in_turn, decoding: self.decoding * chains, ..self }
    }
}

/// Largest number of sweeps, for tiny texts whose sweeps take no time that could be measured.
const MAX_SWEEPS: u32 = 10_000;

/// The effort that takes `time`, with the chains of `effort`, of which all grammars have `n_chains`, or more of them: threads without a chain get one, and
/// time for more than 400 sweeps is for up to eight times as many chains, each grammar's in the same proportion.
pub fn spread(effort: Effort, cost: Cost, time: Duration, n_chains: usize, n_threads: usize) -> Effort {
    // Sweeps that are computed one after the other in a round.
    let in_turn = |times: u16| (usize::from(times) * n_chains).div_ceil(n_threads.max(1)) as f64;
    let of_times = |times: u16| cost.times(times.into(), in_turn(times) / in_turn(1));
    let enough = of_times(1).fit(time).min(ENOUGH_SWEEPS);
    let times = (2..=MOST_TIMES).rev().find(|&times| of_times(times).fit(time) >= enough).unwrap_or(1);
    Effort {
        chains: effort.chains * times,
        voter_chains: effort.voter_chains.map(|n| n * times),
        sweeps: of_times(times).sweeps(time),
    }
}

/// Sweeps of a chain beyond which further chains are worth more than longer ones (docs/results/segment.md).
const ENOUGH_SWEEPS: f64 = 400.0;

/// Largest factor of the number of chains.
const MOST_TIMES: u16 = 8;

/// Seconds of the last sweep of all chains.
#[derive(Default)]
struct Sweeps {
    last: f64,
}

impl Observer for Sweeps {
    fn on(&mut self, event: &RunEvent) -> Result<()> {
        if let RunEvent::RoundFinished(round) = event
            && round.round == PROBE_SWEEPS as usize
        {
            self.last += round.seconds;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sweeps of a second each.
    const COST: Cost = Cost { preparation: 0.0, charts: 0.0, sweep: 1.0, decoding: 0.0 };

    fn spread_over(effort: Effort, cost: Cost, seconds: u64, n_chains: usize, n_threads: usize) -> Effort {
        spread(effort, cost, Duration::from_secs(seconds), n_chains, n_threads)
    }

    #[test]
    fn chains_spread_over_the_time_and_the_threads() {
        let effort = Effort { chains: 2, voter_chains: Some(1), sweeps: 0 };
        for (n_threads, seconds, expected) in [
            (1, 1, (2, 1, 2)),
            (1, 399, (2, 1, 399)),
            (1, 799, (2, 1, 799)),
            (1, 800, (4, 2, 400)),
            (2, 800, (4, 2, 533)),
            (2, 2_000, (12, 6, 444)),
            (1, 10_000, (16, 8, 1_250)),
            (8, 200, (4, 2, 200)),
            (8, 1_000, (10, 5, 500)),
            (64, 2, (16, 8, 2)),
        ] {
            let spread = spread_over(effort, COST, seconds, 3, n_threads);
            assert_eq!(
                (spread.chains, spread.voter_chains.unwrap(), spread.sweeps),
                expected,
                "{n_threads} {seconds}"
            );
        }
    }

    #[test]
    fn a_run_takes_no_more_than_its_time() {
        let effort = Effort { chains: 2, voter_chains: None, sweeps: 0 };
        for decoding in [0.0, 3.0, 40.0] {
            let cost = Cost { preparation: 3.0, charts: 2.0, decoding, ..COST };
            for n_threads in 1..40 {
                for seconds in (50..MAX_SWEEPS).step_by(37) {
                    let Effort { chains, sweeps, .. } =
                        spread_over(effort, cost, seconds.into(), 2, n_threads);
                    let in_turn = |chains: u16| usize::from(chains).div_ceil(n_threads) as f64;
                    let of_sweeps = f64::from(sweeps) * in_turn(chains) / in_turn(2);
                    let whole = 5.0 + decoding * f64::from(chains) / 2.0 + of_sweeps;
                    assert!(whole <= f64::from(seconds) + 1e-6, "{decoding} {n_threads} {seconds} {whole}");
                    let least = cost.sweeps(Duration::from_secs(seconds.into()));
                    assert!(sweeps >= least.min(ENOUGH_SWEEPS as u32), "{decoding} {n_threads} {seconds}");
                }
            }
        }
    }

    #[test]
    fn samples_are_few_however_many_chains_and_sweeps() {
        for (chains, voter_chains, n_voters, sweeps, expected) in [
            (2, Some(1), 1, 200, 2),
            (4, None, 0, 50, 2),
            (4, Some(2), 1, 600, 5),
            (16, Some(8), 1, 1_250, 38),
            (2, None, 1, 10_000, 50),
        ] {
            let effort = Effort { chains, voter_chains, sweeps };
            assert_eq!(effort.keep_every(n_voters), expected);
        }
        for chains in (1..1_000).step_by(37) {
            for sweeps in (2..1_000_000).step_by(9_973) {
                let every = Effort { chains, voter_chains: None, sweeps }.keep_every(1);
                // The last sample of a chain is kept in any case.
                let n_chains = 2 * u64::from(chains);
                let kept = u64::from((sweeps - sweeps / 2).div_ceil(every)) * n_chains;
                assert!((2..=sweeps).contains(&every), "{chains} {sweeps} {every}");
                assert!(kept <= SAMPLES + 2 * n_chains, "{chains} {sweeps} {every}: {kept}");
            }
        }
    }
}
