//! How a job is accepted: with an id that is used once, and as a whole or not at all.
//!
//! ```text
//! reserve the id ──> folder of the job ──> record ──> accepted
//!                          └── error ────────┴──> discarded, the id is not used again
//! ```
//!
//! Invariants: the id after that of a job is in storage before anything of the job is, so that no process gives an id twice, also if its
//! job was deleted or never accepted; no job is accepted while storage may hold something of one that was not.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use tempfile::TempDir;

use super::job_store::JobStore;
use super::record::JobId;
use crate::store::Store;

/// The object that holds the next id, in decimal digits.
const NAME: &str = "next-id";

/// Accepts jobs, one at a time.
pub struct Acceptance {
    store: Store,
    next: u64,
    /// Ids whose jobs were not accepted, and of which storage may hold something.
    abandoned: BTreeSet<JobId>,
}

impl Acceptance {
    /// Goes on after the id in `store`, and after `used`, the highest id of which there is anything.
    pub fn open(store: Store, used: Option<JobId>) -> Result<Acceptance> {
        let stored = match store.find(NAME)? {
            Some(digits) => {
                let digits = String::from_utf8_lossy(&digits);
                digits.trim().parse().with_context(|| {
                    format!(
                        "{}: expected the id of the next job, found {digits:?}; write there a number above all ids that were given",
                        store.describe(NAME)
                    )
                })?
            }
            None => 1,
        };
        let next = used.map_or(stored, |used| stored.max(used.0 + 1));
        Ok(Acceptance { store, next, abandoned: BTreeSet::new() })
    }

    /// Gives the job in the folder `aside` an id, and stores the folder; `store` stores the record. An error means that the job was not
    /// accepted.
    pub fn accept<T>(
        &mut self,
        job_store: &JobStore,
        aside: TempDir,
        store: impl FnOnce(JobId) -> Result<T>,
    ) -> Result<T> {
        self.discard_abandoned(job_store)?;
        let id = self.reserve()?;
        self.abandoned.insert(id);
        let stored = job_store.settle(aside, id).and_then(|()| store(id));
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

    /// An id that no job has had.
    fn reserve(&mut self) -> Result<JobId> {
        self.store.put(NAME, (self.next + 1).to_string().into_bytes())?;
        self.next += 1;
        Ok(JobId(self.next - 1))
    }

    /// Removes what storage holds of jobs that were not accepted. The record goes first: without it there is no job.
    fn discard_abandoned(&mut self, job_store: &JobStore) -> Result<()> {
        while let Some(&id) = self.abandoned.first() {
            job_store.remove_record(id)?;
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
        assert_eq!(Acceptance::open(store(), None).unwrap().reserve().unwrap(), JobId(1));
        assert_eq!(Acceptance::open(store(), None).unwrap().reserve().unwrap(), JobId(2));
        assert_eq!(Acceptance::open(store(), Some(JobId(7))).unwrap().reserve().unwrap(), JobId(8));
        std::fs::write(dir.path().join(NAME), "nine").unwrap();
        let error = Acceptance::open(store(), None).err().unwrap().to_string();
        assert!(error.contains("next-id: expected the id of the next job, found \"nine\"; write"), "{error}");
    }
}
