//! Acceptance of jobs: each gets an id that is used once, and is stored as a whole or not at all.
//!
//! ```text
//! reserve the id ──> folder of the job ──> record ──> accepted
//!                          └── error ────────┴──> discarded, the id is not used again
//! ```
//!
//! Invariants: the id after that of a job is in storage before anything of the job is, so that no process gives an id twice, also if its
//! job was deleted or never accepted; no job is accepted while storage may hold something of one that was not.

use std::collections::BTreeSet;

use anyhow::{Context, Result, bail};
use basics::store::{Store, Version};
use tempfile::TempDir;

use super::job_store::JobStore;
use super::leader_lease::Term;
use super::now;
use super::record::JobId;

/// The object that holds the next id in decimal digits, and in a second line who wrote it.
const NAME: &str = "next-id";

/// Accepts jobs, one at a time.
pub struct Acceptance {
    store: Store,
    next: u64,
    /// The term of the leader, if `store` is an object store,
    term: Option<Term>,
    /// and the version of the object that the leader knows.
    version: Option<Version>,
    /// Ids whose jobs were not accepted, and of which storage may hold something.
    abandoned: BTreeSet<JobId>,
}

impl Acceptance {
    /// Goes on after the id in `store`, and after `used`, the highest id of which there is anything.
    pub fn open(store: Store, term: Option<Term>, used: Option<JobId>) -> Result<Acceptance> {
        let next = used.map_or(1, |used| used.0 + 1);
        let mut acceptance = Acceptance { store, next, term, version: None, abandoned: BTreeSet::new() };
        acceptance.read()?;
        Ok(acceptance)
    }

    /// Voids the last id that was reserved unless it is among `known`, the ids with a record: its record may be under way, and a job that
    /// appears later would be one that no client knows of.
    pub fn void_last(&mut self, job_store: &JobStore, known: &BTreeSet<JobId>) -> Result<()> {
        let last = JobId(self.next - 1);
        if self.version.is_some() && !known.contains(&last) {
            self.abandoned.insert(last);
        }
        self.discard_abandoned(job_store)
    }

    /// Goes on after the id that is stored.
    fn read(&mut self) -> Result<()> {
        let found = match self.term {
            None => self.store.find(NAME)?,
            Some(_) => self.store.find_version(NAME)?.map(|(bytes, version)| {
                self.version = Some(version);
                bytes
            }),
        };
        let Some(bytes) = found else { return Ok(()) };
        let text = String::from_utf8_lossy(&bytes);
        let digits = text.lines().next().unwrap_or_default();
        let stored: u64 = digits.trim().parse().with_context(|| {
            format!(
                "{}: expected the id of the next job, found {digits:?}; write there a number above all ids that were given",
                self.store.describe(NAME)
            )
        })?;
        self.next = self.next.max(stored);
        Ok(())
    }

    /// Gives the job in the folder `staging` an id, and stores the folder; `store` stores the record. An error means that the job was not
    /// accepted.
    pub fn accept<T>(
        &mut self,
        job_store: &JobStore,
        staging: TempDir,
        store: impl FnOnce(JobId) -> Result<T>,
    ) -> Result<T> {
        self.discard_abandoned(job_store)?;
        let id = self.reserve()?;
        self.abandoned.insert(id);
        let stored = job_store.settle(staging, id).and_then(|()| store(id));
        match stored {
            Ok(_) => drop(self.abandoned.remove(&id)),
            Err(_) => {
                if let Err(error) = self.discard_abandoned(job_store) {
                    tracing::warn!(
                        job = id.0,
                        "a job that was not accepted cannot be removed yet: {error:#}"
                    );
                }
            }
        }
        stored
    }

    /// An id that no job has had. In an object store it is reserved only if no other leader has reserved one since it was read.
    fn reserve(&mut self) -> Result<JobId> {
        let id = JobId(self.next);
        let next = self.next + 1;
        match &self.term {
            None => self.store.put(NAME, next.to_string().into_bytes())?,
            Some(term) => {
                term.check()?;
                let text = format!("{next}\nepoch {}\n", term.epoch).into_bytes();
                let written = match &self.version {
                    None => self.store.create(NAME, text)?,
                    Some(version) => self.store.replace(NAME, text, version)?,
                };
                let Some(version) = written else {
                    // An earlier leader was late; its ids are used, and the next attempt takes the one after.
                    self.read()?;
                    self.abandoned.extend((id.0..self.next).map(JobId));
                    bail!("{}: another service wrote there; try again", self.store.describe(NAME));
                };
                self.version = Some(version);
            }
        }
        self.next = next;
        Ok(id)
    }

    /// Removes what storage holds of jobs that were not accepted. The record goes first: without it there is no job.
    fn discard_abandoned(&mut self, job_store: &JobStore) -> Result<()> {
        while let Some(&id) = self.abandoned.first() {
            job_store.records().void(id, now())?;
            job_store.remove_work(id)?;
            self.abandoned.remove(&id);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_next_id_that_is_no_number_is_refused_with_the_way_out() {
        let dir = tempfile::tempdir().unwrap();
        let store = || Store::open(&dir.path().display().to_string()).unwrap();
        assert_eq!(Acceptance::open(store(), None, None).unwrap().reserve().unwrap(), JobId(1));
        assert_eq!(Acceptance::open(store(), None, None).unwrap().reserve().unwrap(), JobId(2));
        assert_eq!(Acceptance::open(store(), None, Some(JobId(7))).unwrap().reserve().unwrap(), JobId(8));
        std::fs::write(dir.path().join(NAME), "nine").unwrap();
        let error = Acceptance::open(store(), None, None).err().unwrap().to_string();
        assert!(error.contains("next-id: expected the id of the next job, found \"nine\"; write"), "{error}");
    }
}
