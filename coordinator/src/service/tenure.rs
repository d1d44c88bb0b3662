//! Whose turn it is to serve from an object store, which knows no locks.
//!
//! In: an object that names the keeper and how often it was renewed. Out: whether this process is the keeper. One that is not renewed for
//! [`Patience::silence`] is gone, and another takes its place; no clocks are compared, as each process waits by its own. Deliberately absent:
//! certainty. A keeper that was cut off from the store for so long notices only when it comes back, and ends then; until then two may train the
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
pub struct Patience {
    /// From one look to the next.
    pub look: Duration,
    /// Looks in which nothing changes before the keeper is taken to be gone.
    pub silence: u32,
}

impl Default for Patience {
    fn default() -> Patience {
        Patience { look: BEAT / 2, silence: 8 }
    }
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Keeper {
    /// Names a depot's folder, so that who comes back to it need not wait.
    name: String,
    /// How often it was renewed.
    renewed: u64,
    /// Whether it gave its place up.
    left: bool,
}

/// Being the keeper.
#[derive(Debug)]
pub struct Tenure {
    keeper: Keeper,
    /// Whether the keeper before was another: what this one knows of the jobs may be out of date.
    pub is_successor: bool,
}

impl Tenure {
    /// Takes the place of a keeper that is gone, or of none; refuses if there is one. Blocks until that is known.
    pub fn take(store: &Store, name: &str, patience: Patience) -> Result<Tenure> {
        let found = read(store)?;
        let other = found.filter(|found| found.name != name);
        if let Some(other) = other.as_ref().filter(|other| !other.left) {
            tracing::warn!(
                "{}: another service is the keeper; waiting to see whether it is gone",
                store.describe(NAME)
            );
            for _ in 0..patience.silence {
                std::thread::sleep(patience.look);
                let now = read(store)?;
                match now {
                    Some(now) if now.left => break,
                    Some(now) if now != *other => bail!("{}", taken(store)),
                    Some(_) => {}
                    None => break,
                }
            }
        }
        let keeper = Keeper { name: name.to_owned(), renewed: 0, left: false };
        let mut tenure = Tenure { keeper, is_successor: other.is_some() };
        tenure.write(store)?;
        // Of several that begin at once, the last that wrote is the keeper.
        std::thread::sleep(patience.look / 10);
        match tenure.renew(store)? {
            true => Ok(tenure),
            false => bail!("{}", taken(store)),
        }
    }

    /// Tells others that the keeper is there; or is told, by `false`, that it is another one by now.
    pub fn renew(&mut self, store: &Store) -> Result<bool> {
        let is_keeper = read(store)?.is_none_or(|found| found.name == self.keeper.name);
        if is_keeper {
            self.write(store)?;
        }
        Ok(is_keeper)
    }

    /// Gives the place up.
    pub fn leave(&mut self, store: &Store) -> Result<()> {
        self.keeper.left = true;
        self.renew(store).map(drop)
    }

    fn write(&mut self, store: &Store) -> Result<()> {
        self.keeper.renewed += 1;
        store.put(NAME, serde_json::to_vec(&self.keeper).context("a keeper does not serialise")?)
    }
}

/// What there is to say if it is another.
pub fn taken(store: &Store) -> String {
    let place = store.describe("");
    format!("{place}: another service works there; wait for its end, or choose another place with --store")
}

/// What cannot be read is nobody's.
fn read(store: &Store) -> Result<Option<Keeper>> {
    Ok(store.find(NAME)?.and_then(|json| serde_json::from_slice(&json).ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HASTY: Patience = Patience { look: Duration::from_millis(20), silence: 5 };

    fn store(dir: &tempfile::TempDir) -> Store {
        Store::open(&dir.path().display().to_string()).unwrap()
    }

    #[test]
    fn one_that_is_renewed_stays_and_one_that_is_not_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let mut first = Tenure::take(&store(&dir), "first", HASTY).unwrap();
        let renewals = std::thread::scope(|scope| {
            let renewing = scope.spawn(|| {
                let renew = || first.renew(&store(&dir)).unwrap().then(|| std::thread::sleep(HASTY.look / 4));
                std::iter::repeat_with(renew).take(60).take_while(Option::is_some).count()
            });
            let refused = Tenure::take(&store(&dir), "second", HASTY).unwrap_err().to_string();
            assert!(refused.contains("another service works there"), "{refused}");
            renewing.join().unwrap()
        });
        assert_eq!(renewals, 60);
        let mut second = Tenure::take(&store(&dir), "second", HASTY).unwrap();
        assert!(!first.renew(&store(&dir)).unwrap() && second.renew(&store(&dir)).unwrap());
    }

    #[test]
    fn who_comes_back_or_finds_the_place_empty_need_not_wait() {
        let dir = tempfile::tempdir().unwrap();
        let endless = Patience { look: Duration::from_millis(1), silence: u32::MAX };
        let killed = Tenure::take(&store(&dir), "one", endless).unwrap();
        drop(killed);
        let mut back = Tenure::take(&store(&dir), "one", endless).unwrap();
        back.leave(&store(&dir)).unwrap();
        let mut other = Tenure::take(&store(&dir), "other", endless).unwrap();
        assert!(!back.is_successor && other.is_successor);
        back.leave(&store(&dir)).unwrap();
        assert!(other.renew(&store(&dir)).unwrap(), "only one's own place is given up");
        std::fs::write(dir.path().join(NAME), "half a keep").unwrap();
        Tenure::take(&store(&dir), "third", endless).unwrap();
    }
}
