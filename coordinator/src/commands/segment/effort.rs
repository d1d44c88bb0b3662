//! The effort of a run: chains, sweeps and kept samples, and those that fit in a time, measured on the first sweeps of its job, whose rounds are one
//! sweep each.

use std::time::Duration;

use anyhow::Result;

use crate::clock;
use crate::events::{Observer, RunEvent};
use crate::fleet::{Fleet, FleetConfig};
use crate::job::Job;
use crate::train::checkpoint::Checkpoints;
use crate::train::group::Inputs;
use crate::train::train;

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
    /// some 400, since the trees of kept samples are in memory (2 MB a sample of 10,000 utterances).
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

/// Sweeps that are run for the measurement. The first ones after the start are the slowest, so the last one counts.
pub const PROBE_SWEEPS: u32 = 4;

/// How many sweeps of `job` such a fleet computes in `time`, less that of the measurement; at least two. Nothing is written.
pub fn sweeps(job: &Job, time: Duration, fleet: FleetConfig) -> Result<u32> {
    let begun = clock::now();
    let inputs = Inputs::load(job)?;
    let fleet = Fleet::start(fleet)?;
    let mut probe = Probe { n_runs: job.n_runs(), ..Probe::default() };
    let probed = train(job, &inputs, &fleet, &mut Checkpoints::none(), &mut probe);
    fleet.shutdown();
    match probed {
        Err(error) if error.is::<Measured>() => {}
        probed => drop(probed?),
    }
    let left = time.saturating_sub(clock::now().saturating_sub(begun));
    let sweeps = left.as_secs_f64() / probe.of_last_round.max(f64::MIN_POSITIVE);
    Ok((sweeps as u32).clamp(2, MAX_SWEEPS))
}

/// Largest number of sweeps, for tiny texts whose sweeps take no time that could be measured.
const MAX_SWEEPS: u32 = 10_000;

/// Spends the time of `effort`, which has `n_chains` chains of all grammars, on more of them: threads without a chain get one, and time for more than
/// 400 sweeps is for up to eight times as many chains, each grammar's in the same proportion.
pub fn spread(effort: Effort, n_chains: usize, n_threads: usize) -> Effort {
    // Sweeps that are computed one after the other in a round.
    let in_turn = |times: u16| (usize::from(times) * n_chains).div_ceil(n_threads.max(1)) as u32;
    let times_as_many = |times: u16| Effort {
        chains: effort.chains * times,
        voter_chains: effort.voter_chains.map(|n| n * times),
        sweeps: effort.sweeps * in_turn(1) / in_turn(times),
    };
    let is_enough = |spread: &Effort| spread.sweeps >= effort.sweeps.min(ENOUGH_SWEEPS);
    (2..=MOST_TIMES).rev().map(times_as_many).find(is_enough).unwrap_or(effort)
}

/// Sweeps of a chain beyond which further chains are worth more than longer ones (docs/results/segment.md).
const ENOUGH_SWEEPS: u32 = 400;

/// Largest factor of the number of chains.
const MOST_TIMES: u16 = 8;

/// Measures the last round of the probe, and ends it.
#[derive(Default)]
struct Probe {
    n_runs: usize,
    /// Seconds of the last round, of all runs together.
    of_last_round: f64,
    /// Runs whose last round is over.
    n_over: usize,
}

/// The end of a probe.
#[derive(Debug, thiserror::Error)]
#[error("the rounds are measured")]
struct Measured;

impl Observer for Probe {
    fn on(&mut self, event: &RunEvent<'_>) -> Result<()> {
        if let RunEvent::RoundFinished(round) = event
            && round.round == PROBE_SWEEPS as usize
        {
            self.of_last_round += round.seconds;
            self.n_over += 1;
            if self.n_over == self.n_runs {
                return Err(Measured.into());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chains_spread_over_the_time_and_the_threads() {
        let effort = Effort { chains: 2, voter_chains: Some(1), sweeps: 0 };
        for (n_threads, sweeps, expected) in [
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
            let spread = spread(Effort { sweeps, ..effort }, 3, n_threads);
            assert_eq!(
                (spread.chains, spread.voter_chains.unwrap(), spread.sweeps),
                expected,
                "{n_threads} {sweeps}"
            );
        }
    }

    #[test]
    fn more_chains_take_no_more_time() {
        let effort = Effort { chains: 2, voter_chains: None, sweeps: 0 };
        for n_threads in 1..40 {
            for sweeps in (2..MAX_SWEEPS).step_by(37) {
                let spread = spread(Effort { sweeps, ..effort }, 2, n_threads);
                let in_turn = |chains: u16| usize::from(chains).div_ceil(n_threads) as u32;
                assert!(
                    spread.sweeps * in_turn(spread.chains) <= sweeps * in_turn(2),
                    "{n_threads} {sweeps}"
                );
                assert!(spread.sweeps >= sweeps.min(ENOUGH_SWEEPS), "{n_threads} {sweeps}");
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
