//! Deletion of jobs: by their owners, and at the end of their time.

use super::queue::Event;
use super::record::{JobId, Millis, Record, View};
use super::{DAY, Problem, Service};
use crate::access::Identity;

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
        super::lock(&self.0.run_statuses).remove(&id);
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
