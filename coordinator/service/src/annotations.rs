//! Annotations of the results of jobs: a file beside the results of each, which is removed with the job.
//!
//! Invariants: a change is stored, in the object store too if there is one, before it is acknowledged. There it replaces the version that was read, so that
//! a former leader overwrites nothing. A change that crosses a deletion leaves nothing.

use basics::human;
use basics::store::Version;
use fleet::access::{Identity, Role};
use training::output::{BOUNDARIES, JOB, SUMMARY};
use training::segmented::Segmented;

use super::queue::Refusal;
use super::record::{JobId, State, View};
use super::{Problem, Service};

/// Bytes of a table of boundaries up to which results are annotated on a service: some 30,000 utterances or words.
const MAX_BOUNDARIES: u64 = 8 << 20;
/// Bytes of a file of annotations on a service: some 20,000 words.
const MAX_ANNOTATIONS: usize = 256 << 10;

impl Service {
    /// A job whose results can be annotated here.
    pub fn annotatable(&self, id: JobId) -> Result<View, Problem> {
        let view = self.job(id)?;
        if !matches!(view.record.state, State::Done { .. }) {
            return Err(Problem::Invalid(format!(
                "{id}: the job is {}; its lines can be annotated once it is done",
                view.record.state.name()
            )));
        }
        let files = self.files(&view.record)?;
        let Some((_, size)) = files.iter().find(|(path, _)| path == BOUNDARIES) else {
            return Err(Problem::Invalid(format!(
                "{id}: the results have no probabilities of boundaries ({BOUNDARIES}), which those of vb and em lack; train with \
                 inference.method = \"hastings\" or \"gibbs\", or with corpus.annotated"
            )));
        };
        if *size > MAX_BOUNDARIES {
            return Err(Problem::Invalid(format!(
                "{id}: {BOUNDARIES} has {}, and a service takes up to {}; download the results (grammaton fetch {id} --out results), and run \
                 grammaton annotate results",
                human::bytes(*size),
                human::bytes(MAX_BOUNDARIES)
            )));
        }
        Ok(view)
    }

    /// Whether a user may annotate the lines of a job.
    pub fn may_annotate(&self, who: &Identity, view: &View) -> bool {
        who.may(Role::Submit) && self.may_change(who, &view.record)
    }

    /// Refuses a user who may not annotate the lines of a job, and takes note of one who may.
    pub fn check_annotates(&self, who: &Identity, view: &View, what: &'static str) -> Result<(), Problem> {
        self.check_may(who, &view.record, what)?;
        self.audit(&who.name, what, Some(view.record.id), "");
        Ok(())
    }

    /// Reads the results of a job to annotate them.
    pub fn segmented(&self, id: JobId) -> Result<Segmented, Problem> {
        let (folder, files) = self.results(id)?;
        let is_read =
            |path: &str| [JOB, SUMMARY, BOUNDARIES].contains(&path) || path.starts_with("segmentation.");
        files.iter().filter(|file| is_read(&file.path)).try_for_each(|file| file.check(&folder))?;
        Ok(Segmented::read(&folder)?)
    }

    /// The file of annotations of a job, empty if there is none, and its version in the object store.
    pub fn annotations(&self, id: JobId) -> Result<(Vec<u8>, Option<Version>), Problem> {
        self.job(id)?;
        Ok(self.0.job_store.annotations(id)?)
    }

    /// Stores the file of annotations of a job in the place of a version that was read.
    pub fn keep_annotations(&self, id: JobId, bytes: &[u8], over: Option<&Version>) -> Result<(), Problem> {
        if bytes.len() > MAX_ANNOTATIONS {
            return Err(Problem::Invalid(format!(
                "{id}: the annotations would have more than {}, up to which a service takes them; download the results and the annotations, and \
                 run grammaton annotate",
                human::bytes(MAX_ANNOTATIONS as u64)
            )));
        }
        let is_kept = self.0.job_store.keep_annotations(id, bytes, over)?;
        if let Err(problem) = self.job(id) {
            if matches!(problem, Problem::Refused(Refusal::Unknown(_))) {
                self.0.job_store.remove_work(id)?;
            }
            return Err(problem);
        }
        if !is_kept {
            return Err(Problem::Invalid(format!(
                "{id}: the annotations were changed by another service meanwhile; reload the page"
            )));
        }
        Ok(())
    }
}
