//! How workers did so far, by name, so that one that fails again and again is trusted with less.
//!
//! In: losses and answers. Out: who is on probation, which means one task at a time: a worker lost
//! [`MANY`] times within [`RECENTLY`], until it has answered [`ENOUGH`] tasks in a row.

use std::collections::BTreeMap;
use std::time::Duration;

/// Losses that put a name on probation.
const MANY: usize = 3;

/// The time within which they count.
const RECENTLY: Duration = Duration::from_secs(5 * 60);

/// Answers, with no loss between them, that end a probation.
const ENOUGH: u32 = 10;

#[derive(Debug, Default)]
struct Record {
    losses: u32,
    /// The times of the last losses, [`MANY`] at most.
    recent: Vec<Duration>,
    /// Answers that are still wanting; 0 if it is not on probation.
    wanting: u32,
}

/// Records of all names that were lost once; members of the same name share one.
#[derive(Debug, Default)]
pub(super) struct Records(BTreeMap<String, Record>);

impl Records {
    /// A worker of that name was lost.
    pub fn lost(&mut self, now: Duration, name: &str) {
        let record = self.0.entry(name.to_owned()).or_default();
        record.losses += 1;
        if record.recent.len() == MANY {
            record.recent.remove(0);
        }
        record.recent.push(now);
        let often = record.recent.len() == MANY && now.saturating_sub(record.recent[0]) <= RECENTLY;
        if often || record.wanting > 0 {
            record.wanting = ENOUGH;
        }
    }

    /// A worker of that name answered.
    pub fn answered(&mut self, name: &str) {
        if let Some(record) = self.0.get_mut(name) {
            record.wanting = record.wanting.saturating_sub(1);
        }
    }

    /// Whether workers of that name are lent one task at a time.
    pub fn is_on_probation(&self, name: &str) -> bool {
        self.0.get(name).is_some_and(|record| record.wanting > 0)
    }

    /// How often workers of that name were lost.
    pub fn losses(&self, name: &str) -> u32 {
        self.0.get(name).map_or(0, |record| record.losses)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_in_short_time_mean_probation_until_it_answers_well() {
        let mut records = Records::default();
        let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
        for at in [0, 3, 6, 9] {
            records.lost(minutes(at), "bob");
            assert!(!records.is_on_probation("bob"), "lost every three minutes, by minute {at}");
        }
        records.lost(minutes(10), "bob");
        assert!(records.is_on_probation("bob") && !records.is_on_probation("alice"));
        (0..9).for_each(|_| records.answered("bob"));
        records.lost(minutes(60), "bob");
        (0..9).for_each(|_| records.answered("bob"));
        assert!(records.is_on_probation("bob"), "ten in a row were wanted");
        records.answered("bob");
        assert!(!records.is_on_probation("bob"));
        assert_eq!((records.losses("bob"), records.losses("alice")), (6, 0));
    }
}
