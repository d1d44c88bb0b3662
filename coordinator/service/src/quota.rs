//! Bytes that each user uploads in a day.
//!
//! In memory; a service that starts again takes the uploads of the last day from its audit. Invariant: the bytes that one user adds to the store
//! within a day stay within the limit, and an upload that fails counts for nothing.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use basics::human;
use parking_lot::{Mutex, MutexGuard};

use super::DAY;
use super::record::Millis;

/// Hours of a day, the unit in which bytes are counted.
const HOUR: u64 = 60 * 60 * 1000;

/// Uploads of all users within a day.
#[derive(Clone)]
pub struct Uploads {
    /// Bytes of a user within a day.
    most: u64,
    /// Hours by user, ascending, with the bytes in each.
    users: Arc<Mutex<Users>>,
}

type Users = BTreeMap<String, VecDeque<(u64, u64)>>;

/// A file that exceeds what its user may still upload.
#[derive(Debug, thiserror::Error)]
#[error(
    "a file of {}, of {} that a user may upload within a day (--max-daily-upload), {} of which are used; try again later",
    human::bytes(*bytes), human::bytes(*most), human::bytes(*used)
)]
pub struct OverQuota {
    /// Size of the file.
    bytes: u64,
    /// Bytes that the user may upload within a day.
    most: u64,
    /// Bytes that the user has uploaded within the last day.
    used: u64,
}

/// Bytes that are counted for a user; uncounted when dropped, unless kept.
pub struct Charge {
    uploads: Uploads,
    user: String,
    hour: u64,
    bytes: u64,
}

impl Uploads {
    /// A limit of `most` bytes a day for each user.
    pub fn new(most: u64) -> Uploads {
        Uploads { most, users: Arc::default() }
    }

    /// Counts an upload of `bytes` that begins.
    pub fn charge(&self, user: &str, bytes: u64, now: Millis) -> Result<Charge, OverQuota> {
        let hour = now.0 / HOUR;
        let since = hour.saturating_sub(DAY.as_secs() / 3600 - 1);
        let mut users = self.users();
        users.retain(|_, hours| {
            hours.retain(|&(hour, _)| hour >= since);
            !hours.is_empty()
        });
        let used: u64 = users
            .get(user)
            .map_or(0, |hours| hours.iter().fold(0_u64, |sum, &(_, bytes)| sum.saturating_add(bytes)));
        if bytes > self.most.saturating_sub(used) {
            return Err(OverQuota { bytes, most: self.most, used });
        }
        count(&mut users, user, bytes, hour);
        Ok(Charge { uploads: self.clone(), user: user.to_owned(), hour, bytes })
    }

    /// Counts an upload of an earlier process.
    pub fn restore(&self, user: &str, bytes: u64, at: Millis) {
        count(&mut self.users(), user, bytes, at.0 / HOUR);
    }

    /// Whether there is a limit.
    pub fn are_limited(&self) -> bool {
        self.most < u64::MAX
    }

    fn users(&self) -> MutexGuard<'_, Users> {
        self.users.lock()
    }
}

fn count(users: &mut Users, user: &str, bytes: u64, hour: u64) {
    let hours = users.entry(user.to_owned()).or_default();
    match hours.iter_mut().find(|(other, _)| *other == hour) {
        Some((_, counted)) => *counted = counted.saturating_add(bytes),
        None => hours.push_back((hour, bytes)),
    }
}

impl Charge {
    /// The upload has succeeded.
    pub fn keep(mut self) {
        self.bytes = 0;
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        let mut users = self.uploads.users();
        let hours = users.get_mut(&self.user);
        if let Some((_, counted)) =
            hours.and_then(|hours| hours.iter_mut().find(|(hour, _)| *hour == self.hour))
        {
            *counted = counted.saturating_sub(self.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Whatever is uploaded when, by whom, with or without success: the uploads of a user that succeeded within 23 hours never exceed the limit;
        /// an upload that would not exceed it within 25 hours is not refused; what is kept in memory is bounded.
        #[test]
        fn uploads_of_a_day_stay_within_the_limit(steps: Vec<(u8, u16, u16, bool)>) {
            let (uploads, most) = (Uploads::new(100_000), 100_000);
            let mut done: Vec<(String, u64, u64)> = Vec::new();
            let mut now = 1 << 40;
            for (user, wait, bytes, succeeds) in steps {
                let user = (user % 3).to_string();
                now += u64::from(wait) * 300;
                let bytes = u64::from(bytes);
                let within = |hours: u64| -> u64 {
                    let recent = done.iter().filter(|(of, at, _)| *of == user && now - at < hours * HOUR);
                    recent.map(|(.., bytes)| bytes).sum()
                };
                let (surely, perhaps) = (within(23), within(25));
                match uploads.charge(&user, bytes, Millis(now)) {
                    Ok(charge) => {
                        prop_assert!(surely + bytes <= most);
                        if succeeds {
                            charge.keep();
                            done.push((user, now, bytes));
                        }
                    }
                    Err(_) => prop_assert!(perhaps + bytes > most),
                }
                prop_assert!(uploads.users().values().all(|hours| hours.len() <= 24));
            }
        }
    }
}
