//! Whose turn it is to serve from an object store, which knows no locks.
//!
//! In: an object that names the leader and how often it was renewed. Out: whether this process is the leader. One that is not renewed for
//! [`Timeouts::silence`] is gone, and another takes its place; no clocks are compared, as each process waits by its own. Deliberately absent:
//! certainty. A leader that was cut off from the store for so long notices only when it comes back, and ends then; until then two may train the
//! same job, and both write the same results, but what one was told meanwhile (to cancel a job) the other may overwrite.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use super::remote::BEAT;
use crate::store::Store;

/// The object.
const NAME: &str = "keeper.json";

/// How long to wait for others.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// From one look to the next.
    pub look: Duration,
    /// Looks in which nothing changes before the leader is taken to be gone.
    pub silence: u32,
}

impl Default for Timeouts {
    fn default() -> Timeouts {
        Timeouts { look: BEAT / 2, silence: 8 }
    }
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Leader {
    /// Names a job store's folder, so that who comes back to it need not wait.
    name: String,
    /// How often it was renewed.
    renewed: u64,
    /// Whether it gave its place up.
    left: bool,
}

/// Being the leader.
#[derive(Debug)]
pub struct LeaderLease {
    leader: Leader,
    /// Whether the leader before was another: what this one knows of the jobs may be out of date.
    pub is_successor: bool,
}

impl LeaderLease {
    /// Takes the place of a leader that is gone, or of none; refuses if there is one. Blocks until that is known.
    pub fn take(store: &Store, name: &str, timeouts: Timeouts) -> Result<LeaderLease> {
        let found = read(store)?;
        let other = found.filter(|found| found.name != name);
        if let Some(other) = other.as_ref().filter(|other| !other.left) {
            tracing::warn!(
                "{}: another service is the leader; waiting to see whether it is gone",
                store.describe(NAME)
            );
            for _ in 0..timeouts.silence {
                std::thread::sleep(timeouts.look);
                let now = read(store)?;
                match now {
                    Some(now) if now.left => break,
                    Some(now) if now != *other => bail!("{}", taken(store)),
                    Some(_) => {}
                    None => break,
                }
            }
        }
        let leader = Leader { name: name.to_owned(), renewed: 0, left: false };
        let mut leader_lease = LeaderLease { leader, is_successor: other.is_some() };
        leader_lease.write(store)?;
        // Of several that begin at once, the last that wrote is the leader.
        std::thread::sleep(timeouts.look / 10);
        match leader_lease.renew(store)? {
            true => Ok(leader_lease),
            false => bail!("{}", taken(store)),
        }
    }

    /// Tells others that the leader is there; or is told, by `false`, that it is another one by now.
    pub fn renew(&mut self, store: &Store) -> Result<bool> {
        let is_keeper = read(store)?.is_none_or(|found| found.name == self.leader.name);
        if is_keeper {
            self.write(store)?;
        }
        Ok(is_keeper)
    }

    /// Gives the place up.
    pub fn leave(&mut self, store: &Store) -> Result<()> {
        self.leader.left = true;
        self.renew(store).map(drop)
    }

    fn write(&mut self, store: &Store) -> Result<()> {
        self.leader.renewed += 1;
        store.put(NAME, serde_json::to_vec(&self.leader).context("a leader does not serialise")?)
    }
}

/// What there is to say if it is another.
pub fn taken(store: &Store) -> String {
    let place = store.describe("");
    format!("{place}: another service works there; wait for its end, or choose another place with --store")
}

/// What cannot be read is nobody's.
fn read(store: &Store) -> Result<Option<Leader>> {
    Ok(store.find(NAME)?.and_then(|json| serde_json::from_slice(&json).ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HASTY: Timeouts = Timeouts { look: Duration::from_millis(20), silence: 5 };

    fn store(dir: &tempfile::TempDir) -> Store {
        Store::open(&dir.path().display().to_string()).unwrap()
    }

    #[test]
    fn one_that_is_renewed_stays_and_one_that_is_not_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let mut first = LeaderLease::take(&store(&dir), "first", HASTY).unwrap();
        let renewals = std::thread::scope(|scope| {
            let renewing = scope.spawn(|| {
                let renew = || first.renew(&store(&dir)).unwrap().then(|| std::thread::sleep(HASTY.look / 4));
                std::iter::repeat_with(renew).take(60).take_while(Option::is_some).count()
            });
            let refused = LeaderLease::take(&store(&dir), "second", HASTY).unwrap_err().to_string();
            assert!(refused.contains("another service works there"), "{refused}");
            renewing.join().unwrap()
        });
        assert_eq!(renewals, 60);
        let mut second = LeaderLease::take(&store(&dir), "second", HASTY).unwrap();
        assert!(!first.renew(&store(&dir)).unwrap() && second.renew(&store(&dir)).unwrap());
    }

    #[test]
    fn who_comes_back_or_finds_the_place_empty_need_not_wait() {
        let dir = tempfile::tempdir().unwrap();
        let endless = Timeouts { look: Duration::from_millis(1), silence: u32::MAX };
        let killed = LeaderLease::take(&store(&dir), "one", endless).unwrap();
        drop(killed);
        let mut back = LeaderLease::take(&store(&dir), "one", endless).unwrap();
        back.leave(&store(&dir)).unwrap();
        let mut other = LeaderLease::take(&store(&dir), "other", endless).unwrap();
        assert!(!back.is_successor && other.is_successor);
        back.leave(&store(&dir)).unwrap();
        assert!(other.renew(&store(&dir)).unwrap(), "only one's own place is given up");
        std::fs::write(dir.path().join(NAME), "half a keep").unwrap();
        LeaderLease::take(&store(&dir), "third", endless).unwrap();
    }
}
