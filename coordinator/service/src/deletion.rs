//! Deletion of jobs: by their owners, and at the end of their time.

use std::time::Duration;

use fleet::access::Identity;

use super::queue::Event;
use super::record::{JobId, Millis, Record, View};
use super::{DAY, Problem, Service};

impl Service {
    /// Deletes a job that is over, with all that is stored of it but the audit; returns the job as it was.
    pub fn delete(&self, who: &Identity, id: JobId) -> Result<View, Problem> {
        let view = self.job(id)?;
        self.check_may(who, &view.record, "delete")?;
        self.forget(id, &who.name, "")?;
        self.discard(std::slice::from_ref(&view.record));
        Ok(view)
    }

    /// Deletes the jobs that were kept long enough.
    pub(super) fn expire(&self, now: Millis) {
        let Some(keep) = self.0.limits.keep else { return };
        let is_old = |record: &&Record| {
            record.ended.is_some_and(|ended| u128::from(now.0.saturating_sub(ended.0)) > keep.as_millis())
        };
        let old: Vec<Record> =
            self.queue().iter().filter(|record| record.state.is_over()).filter(is_old).cloned().collect();
        let why = format!("it ended more than {} days ago", keep.as_secs() / DAY.as_secs());
        let mut deleted = Vec::new();
        for record in old {
            match self.forget(record.id, "service", &why) {
                Ok(()) => deleted.push(record),
                Err(Problem::Refused(_)) => {} // a user deleted or resumed it meanwhile
                Err(problem) => tracing::warn!(job = record.id.0, "cannot delete the job: {problem}"),
            }
        }
        if !deleted.is_empty() {
            self.discard(&deleted);
        }
    }

    /// Stores that a job is deleted. From then on it is no job, for the next process as well.
    fn forget(&self, id: JobId, who: &str, why: &str) -> Result<(), Problem> {
        let (who, why) = (who.to_owned(), why.to_owned());
        self.control(move |controller| {
            controller.change(Event::Deleted(id), |service| service.audit(&who, "delete", Some(id), &why))
        })??;
        self.0.run_statuses.lock().remove(&id);
        Ok(())
    }

    /// Removes what is stored of deleted jobs. What cannot be removed now is removed when the service starts again.
    fn discard(&self, deleted: &[Record]) {
        let removed = deleted.iter().try_for_each(|record| self.0.job_store.remove_deleted(record.id));
        let records = deleted.to_vec();
        let forgotten = self.control(move |controller| controller.forget_files(&records));
        let forgotten = forgotten.unwrap_or_else(|problem| Err(problem.into()));
        if let Err(error) = removed.and(forgotten) {
            tracing::warn!("some of what was deleted is removed when the service starts again: {error:#}");
        }
    }
}

/// Whether the clock that tells when jobs ended may be trusted to delete them: a clock that jumps by years would delete all of them.
#[derive(Default)]
pub(super) struct SteadyClock {
    /// Start of the time in which it agrees with the monotonic clock, by both clocks.
    since: Option<(Millis, Duration)>,
}

/// Time for which the clock has to run evenly.
const STEADY: Duration = Duration::from_secs(60 * 60);
/// Maximum difference from the monotonic clock.
const JUMP: Duration = Duration::from_secs(60);

impl SteadyClock {
    /// Takes note of the present moment by the clock and by the monotonic clock; returns whether the former has run evenly for long enough.
    pub fn check(&mut self, now: Millis, monotonic: Duration) -> bool {
        let (wall, begun) = *self.since.get_or_insert((now, monotonic));
        let passed = monotonic.saturating_sub(begun);
        let expected = Duration::from_millis(wall.0).saturating_add(passed);
        if Duration::from_millis(now.0).abs_diff(expected) > JUMP {
            self.since = Some((now, monotonic));
            return false;
        }
        passed >= STEADY
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_jumps_deletes_nothing_until_it_runs_evenly_for_an_hour() {
        let mut clock = SteadyClock::default();
        let mut check = |wall_minutes: u64, minutes: u64| {
            clock.check(Millis(wall_minutes * 60_000), Duration::from_secs(minutes * 60))
        };
        assert_eq!(
            [(100, 0), (130, 30), (159, 59), (160, 60), (200, 100)].map(|(a, b)| check(a, b)),
            [false, false, false, true, true]
        );
        // Forty years ahead, and back.
        for (wall, at) in [(21_000_000, 101), (202, 102), (261, 161)] {
            assert!(!check(wall, at), "{wall}");
        }
        assert!(check(262, 162));
    }
}
