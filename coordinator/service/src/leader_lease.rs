//! The leader lease: which service works in an object store.
//!
//! One object names the leader, the leader's epoch, and how often the lease was renewed. It is written only in the place of the version that
//! was read, so of several services that take or renew it at once one succeeds. A lease that is not renewed for [`Timeouts::unchanged_looks`] looks
//! is taken by another service, with the next epoch. No clocks are compared: each service measures durations by its own.
//!
//! Invariant: a leader stops to confirm anything ([`Term::check`]) before another service can take the lease, also if it cannot reach the store.
//! A write after the next leader has begun is refused ([`super::records`]). The lease assumes that clocks of two machines run equally fast within a quarter.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use basics::clock;
use basics::store::{Store, Version};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::remote::COPY_INTERVAL;

/// The object.
const NAME: &str = "keeper.json";

/// Timeouts of services that wait for each other.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// Interval between looks at the lease of another service.
    pub look: Duration,
    /// Looks in which nothing changes before the leader is taken to be gone.
    pub unchanged_looks: u32,
    /// Time that a leader may act after it began to renew its lease: less than `unchanged_looks` looks.
    pub term: Duration,
}

impl Default for Timeouts {
    fn default() -> Timeouts {
        Timeouts { look: COPY_INTERVAL / 2, unchanged_looks: 8, term: COPY_INTERVAL * 3 }
    }
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Leader {
    /// Names the folder of a service, so that a restarted service need not wait for its own lease.
    name: String,
    /// Number of leaders before.
    #[serde(default)]
    epoch: u64,
    /// Number of renewals.
    renewed: u64,
    /// A number that no other attempt to write the lease has: a write that arrives late must not pass for a later one of the same content,
    /// as another service waits for a change.
    #[serde(default)]
    attempt: u64,
    /// Whether the leader gave the lease up.
    left: bool,
}

/// A held lease.
#[derive(Debug)]
pub struct LeaderLease {
    leader: Leader,
    version: Version,
    timeouts: Timeouts,
    term: Term,
    /// Whether another service was the leader before, so that what this one has on disk may be out of date.
    pub is_successor: bool,
}

/// Term of a leader. Clones share it.
#[derive(Clone, Debug)]
pub struct Term {
    /// The leader's epoch, from 1.
    pub epoch: u64,
    /// End by [`clock::now`].
    end: Arc<Mutex<Duration>>,
}

impl Term {
    /// Refuses to act for a leader whose term is over.
    pub fn check(&self) -> Result<()> {
        ensure!(
            clock::now() < *self.end.lock(),
            "the service has lost its object store, and another service may have taken over; try again in a minute"
        );
        Ok(())
    }
}

impl LeaderLease {
    /// Takes the lease if there is none or its leader is gone; refuses if there is a leader. Blocks until that is known. Refuses a store without
    /// conditional writes.
    pub fn take(store: &Store, name: &str, timeouts: Timeouts) -> Result<LeaderLease> {
        // A name of its own each time: what an earlier attempt wrote may arrive late.
        store.check_conditional(&format!("{NAME}.{name}-{}", clock::nanoseconds()))?;
        let mut found = read(store)?;
        let other =
            found.as_ref().and_then(|(leader, _)| leader.clone()).filter(|leader| leader.name != name);
        if other.as_ref().is_some_and(|other| !other.left) {
            tracing::warn!(
                "{}: another service is the leader; waiting to see whether it is gone",
                store.describe(NAME)
            );
            for _ in 0..timeouts.unchanged_looks {
                clock::sleep(timeouts.look);
                let now = read(store)?;
                let leader =
                    |found: &Option<(Option<Leader>, Version)>| found.as_ref().and_then(|of| of.0.clone());
                match leader(&now) {
                    Some(leader) if leader.left => {
                        found = now;
                        break;
                    }
                    Some(leader) if Some(&leader) != other.as_ref() => bail!("{}", taken_over(store)),
                    Some(_) => {}
                    None => {
                        found = now;
                        break;
                    }
                }
            }
        }
        let before = found.as_ref().and_then(|(leader, _)| leader.as_ref());
        let epoch = before.map_or(0, |leader| leader.epoch) + 1;
        let begun = clock::now();
        let leader =
            Leader { name: name.to_owned(), epoch, renewed: 1, attempt: clock::nanoseconds(), left: false };
        let json = serde_json::to_vec(&leader).context("a leader does not serialise")?;
        let version = match &found {
            None => store.create(NAME, json)?,
            Some((_, version)) => store.replace(NAME, json, version)?,
        };
        let version = version.with_context(|| taken_over(store))?;
        let term = Term { epoch, end: Arc::new(Mutex::new(begun + timeouts.term)) };
        Ok(LeaderLease { leader, version, timeouts, term, is_successor: other.is_some() })
    }

    /// The term of this leader.
    pub fn term(&self) -> Term {
        self.term.clone()
    }

    /// Renews the lease. Returns whether this service is still the leader.
    pub fn renew(&mut self, store: &Store) -> Result<bool> {
        let begun = clock::now();
        let (renewed, attempt) = (self.leader.renewed + 1, clock::nanoseconds());
        let leader = Leader { renewed, attempt, ..self.leader.clone() };
        let json = serde_json::to_vec(&leader).context("a leader does not serialise")?;
        let Some(version) = store.replace(NAME, json, &self.version)? else { return self.recover(store) };
        (self.leader, self.version) = (leader, version);
        *self.term.end.lock() = begun + self.timeouts.term;
        Ok(true)
    }

    /// The lease has another version: one that this service wrote without an answer, or that of another leader.
    fn recover(&mut self, store: &Store) -> Result<bool> {
        match read(store)? {
            Some((Some(leader), version))
                if (&leader.name, leader.epoch) == (&self.leader.name, self.leader.epoch) && !leader.left =>
            {
                (self.leader, self.version) = (leader, version);
                Ok(true)
            }
            _ => {
                *self.term.end.lock() = clock::now();
                Ok(false)
            }
        }
    }

    /// Gives the lease up, so that another service need not wait.
    pub fn leave(&mut self, store: &Store) -> Result<()> {
        self.leader.left = true;
        self.renew(store).map(drop)
    }
}

/// Says that another service is the leader.
pub fn taken_over(store: &Store) -> String {
    let place = store.describe("");
    format!("{place}: another service works there; wait for its end, or choose another place with --store")
}

/// Returns the lease and its version, if it is there. One that cannot be read has no leader.
fn read(store: &Store) -> Result<Option<(Option<Leader>, Version)>> {
    let found = store.find_version(NAME)?;
    Ok(found.map(|(json, version)| (serde_json::from_slice(&json).ok(), version)))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use basics::store::memory::{self, Fate, Network};

    use super::*;

    const HASTY: Timeouts =
        Timeouts { look: Duration::from_millis(20), unchanged_looks: 5, term: Duration::from_millis(75) };

    #[test]
    fn a_lease_that_is_renewed_stays_and_one_that_is_not_is_replaced() {
        let store = || Store::open("memory://lease").unwrap();
        let mut first = LeaderLease::take(&store(), "first", HASTY).unwrap();
        let renewals = std::thread::scope(|scope| {
            let renewing = scope.spawn(|| {
                let renew = || first.renew(&store()).unwrap().then(|| std::thread::sleep(HASTY.look / 4));
                std::iter::repeat_with(renew).take(60).take_while(Option::is_some).count()
            });
            let refused = LeaderLease::take(&store(), "second", HASTY).unwrap_err().to_string();
            assert!(refused.contains("another service works there"), "{refused}");
            renewing.join().unwrap()
        });
        assert_eq!(renewals, 60);
        let mut second = LeaderLease::take(&store(), "second", HASTY).unwrap();
        // Whatever the first one does now, its term ended before that of the second began.
        assert!(first.term().check().is_err() && second.term().epoch > first.term().epoch);
        assert!(!first.renew(&store()).unwrap() && second.renew(&store()).unwrap());
        assert!(first.term().check().is_err());
    }

    #[test]
    fn an_epoch_has_one_leader() {
        let store = || Store::open("memory://race").unwrap();
        let mut epochs = Vec::new();
        for round in 0..20 {
            let names: Vec<String> = (0..4).map(|service| format!("{round}-{service}")).collect();
            let taken = std::thread::scope(|scope| {
                let take = |name: &String| LeaderLease::take(&store(), name, HASTY).ok();
                let takers: Vec<_> = names.iter().map(|name| scope.spawn(move || take(name))).collect();
                takers.into_iter().filter_map(|taker| taker.join().unwrap()).collect::<Vec<_>>()
            });
            epochs.extend(taken.iter().map(|lease| lease.term().epoch));
            taken.into_iter().for_each(|mut lease| lease.leave(&store()).unwrap());
        }
        epochs.sort_unstable();
        assert!(epochs.len() >= 20 && epochs.iter().copied().eq(1..=epochs.len() as u64), "{epochs:?}");
    }

    #[test]
    fn a_restarted_service_or_an_empty_store_need_not_wait() {
        let store = || Store::open("memory://restart").unwrap();
        let endless =
            Timeouts { look: Duration::from_millis(1), unchanged_looks: u32::MAX, term: COPY_INTERVAL };
        let killed = LeaderLease::take(&store(), "one", endless).unwrap();
        drop(killed);
        let mut back = LeaderLease::take(&store(), "one", endless).unwrap();
        back.leave(&store()).unwrap();
        let mut other = LeaderLease::take(&store(), "other", endless).unwrap();
        assert!(!back.is_successor && other.is_successor);
        back.leave(&store()).unwrap();
        assert!(other.renew(&store()).unwrap(), "a service gives up its own lease only");
        store().put(NAME, b"half a lease".to_vec()).unwrap();
        LeaderLease::take(&store(), "third", endless).unwrap();
    }

    /// Its first request arrives late, the others at once.
    struct Slow(std::sync::atomic::AtomicBool);

    impl Network for Slow {
        fn send(&self) -> Fate {
            if self.0.swap(false, Ordering::SeqCst) { Fate::Late(Duration::ZERO) } else { Fate::Arrives }
        }

        fn receive(&self, _: Fate) {}
    }

    /// A service that waits for a change of the lease sees each renewal, also if an earlier attempt arrived late.
    #[test]
    fn each_renewal_changes_the_lease() {
        let store = Store::open("memory://renewal").unwrap();
        let mut lease = LeaderLease::take(&store, "one", HASTY).unwrap();
        memory::behind(Arc::new(Slow(true.into())), || {
            lease.renew(&store).unwrap_err();
            // The attempt arrives with the next request.
            let late = read(&store).unwrap().unwrap().0.unwrap();
            assert_eq!(late.renewed, 2);
            assert!(lease.renew(&store).unwrap(), "it is known for its own");
            assert!(lease.renew(&store).unwrap());
            assert_ne!(read(&store).unwrap().unwrap().0.unwrap(), late);
        });
    }

    #[test]
    fn a_leader_that_cannot_reach_the_store_stops_in_time() {
        let store = Store::open("memory://cut-off").unwrap();
        let lease = LeaderLease::take(&store, "one", HASTY).unwrap();
        lease.term().check().unwrap();
        std::thread::sleep(HASTY.term);
        assert!(lease.term().check().is_err());
    }
}
