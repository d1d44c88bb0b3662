//! The number of sweeps that fit in a time, measured on the first sweeps of a job, whose rounds are one sweep each.

use std::time::Duration;

use anyhow::Result;

use crate::clock;
use crate::commands::train::FleetOptions;
use crate::events::{Observer, RunEvent};
use crate::fleet::Fleet;
use crate::job::Job;
use crate::train::checkpoint::Checkpoints;
use crate::train::group::Inputs;
use crate::train::train;

/// Sweeps that are run for the measurement. The first ones after the start are the slowest, so the last one counts.
pub const PROBE_SWEEPS: usize = 4;

/// How many sweeps of `job` this machine computes in `time`, less that of the measurement; at least two. Nothing is written.
pub fn sweeps(job: &Job, time: Duration, workers: Option<u16>) -> Result<usize> {
    let begun = clock::now();
    let inputs = Inputs::load(job)?;
    let options = FleetOptions { workers, ..FleetOptions::default() };
    let fleet = Fleet::start(options.config()?)?;
    let mut probe = Probe { n_runs: job.n_runs(), ..Probe::default() };
    let probed = train(job, &inputs, &fleet, &mut Checkpoints::none(), &mut probe);
    fleet.shutdown();
    match probed {
        Err(error) if error.is::<Measured>() => {}
        probed => drop(probed?),
    }
    let left = time.saturating_sub(clock::now().saturating_sub(begun));
    let sweeps = left.as_secs_f64() / probe.of_last_round.max(f64::MIN_POSITIVE);
    Ok((sweeps as usize).clamp(2, MAX_SWEEPS))
}

/// Largest number of sweeps, for tiny texts whose sweeps take no time that could be measured.
const MAX_SWEEPS: usize = 10_000;

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
            && round.round == PROBE_SWEEPS
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
