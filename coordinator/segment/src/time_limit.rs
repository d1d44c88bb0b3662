//! Computations that end when their time is over.
//!
//! In: a computation on a fleet. Out: its result, or nothing if the time was over before. Results depend on the clock only by that.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use anyhow::Result;
use fleet::{Fleet, FleetConfig};
use training::train::stopped::is_cancelled;

/// Computes on a fleet of its own, whose batches are cancelled once `time` is over.
pub fn within<T>(
    time: Duration,
    fleet: FleetConfig,
    compute: impl FnOnce(&Fleet) -> Result<T>,
) -> Result<Option<T>> {
    if time.is_zero() {
        return Ok(None);
    }
    let fleet = Fleet::start(fleet)?;
    let handle = fleet.handle();
    let computed = thread::scope(|scope| {
        let (computing, ends) = mpsc::channel::<()>();
        scope.spawn(move || {
            if ends.recv_timeout(time) == Err(RecvTimeoutError::Timeout) {
                handle.cancel();
            }
        });
        let computed = compute(&fleet);
        drop(computing);
        computed
    });
    fleet.shutdown();
    match computed {
        Err(error) if is_cancelled(&error) => Ok(None),
        computed => computed.map(Some),
    }
}

#[cfg(test)]
mod tests {
    use anyhow::bail;

    use fleet::Map as _;

    use super::*;

    fn config() -> FleetConfig {
        FleetConfig { local_workers: 1, ..FleetConfig::default() }
    }

    #[test]
    fn a_computation_within_its_time_gives_its_result() {
        let hour = Duration::from_secs(3600);
        assert_eq!(within(hour, config(), |_| Ok(7)).unwrap(), Some(7));
        let failed = within(hour, config(), |_| -> Result<()> { bail!("no grammar") });
        assert_eq!(failed.unwrap_err().to_string(), "no grammar");
    }

    #[test]
    fn nothing_is_computed_in_no_time() {
        assert_eq!(
            within(Duration::ZERO, config(), |_| -> Result<()> { unreachable!("no time") }).unwrap(),
            None
        );
    }

    #[test]
    fn a_computation_without_an_end_is_cancelled() {
        let endless = |fleet: &Fleet| -> Result<()> {
            loop {
                fleet.check()?;
                thread::yield_now();
            }
        };
        assert_eq!(within(Duration::from_millis(1), config(), endless).unwrap(), None);
    }
}
