//! Laws of jobs whose workers give wrong answers: once these are found, the job has the result that it has without them, to the last bit, for
//! every model and method, wherever they are found.

use std::cell::Cell;
use std::path::Path;
use std::sync::Arc;

use shared::work::lease::TaskIndex;
use shared::work::task::Answer;

use super::group::Inputs;
use super::laws::{all, came_to_with, folder, job, parse};
use super::train;
use crate::events::All;
use crate::fleet::{FleetError, Inline, Map, MapReport, Mismatch, Stage, Tasks};
use crate::job::Job;
use crate::train::checkpoint::Checkpoints;

/// A fleet of which an audit finds a wrong answer in some batches, the last one of the batch.
struct Audited {
    /// The batch of every attempt in which it does; later attempts get further.
    fails_at: usize,
    batches: Cell<usize>,
    failures: Cell<usize>,
}

impl Map for Audited {
    fn map(
        &self,
        stage: Stage,
        tasks: Arc<dyn Tasks>,
        each: &mut dyn FnMut(usize, Answer),
    ) -> Result<MapReport, FleetError> {
        self.batches.set(self.batches.get() + 1);
        let last = tasks.len() - 1;
        let fails =
            self.batches.get() == self.fails_at * (self.failures.get() + 1) && self.failures.get() < 3;
        let report = Inline::default().map(stage, tasks, &mut |at, answer| {
            if !(fails && at == last) {
                each(at, answer)
            }
        })?;
        if fails {
            self.failures.set(self.failures.get() + 1);
            let (task, wrong) = (TaskIndex(last as u32), vec!["bob".to_owned()]);
            let mismatch = Mismatch { task, wrong, right: Some("alice".to_owned()), is_mended: true };
            return Err(FleetError::Audit { stage, mismatch });
        }
        Ok(report)
    }
}

/// A fleet whose counts are wrong in one round, unless every task is audited.
struct Lying {
    round: usize,
    is_audited: Cell<bool>,
    lies: Cell<usize>,
}

impl Map for Lying {
    fn map(
        &self,
        stage: Stage,
        tasks: Arc<dyn Tasks>,
        each: &mut dyn FnMut(usize, Answer),
    ) -> Result<MapReport, FleetError> {
        let is_wrong = stage.place().is_some_and(|(_, round)| round == self.round) && !self.is_audited.get();
        Inline::default().map(stage, tasks, &mut |at, mut answer| {
            if let Answer::Expectation(expectation) = &mut answer
                && is_wrong
            {
                self.lies.set(self.lies.get() + 1);
                expectation.counts.iter_mut().for_each(|count| *count *= 1e-3);
                expectation.log_z *= 2.0;
            }
            each(at, answer);
        })
    }

    fn audit_all(&self) -> bool {
        !self.is_audited.replace(true)
    }
}

fn came_to(job: &Job, fleet: &dyn Map, out: &Path) -> Result<String, String> {
    let mut job = job.clone();
    (job.output.dir, job.output.keep_checkpoints, job.output.checkpoint_seconds) = (out.to_owned(), 2, 0.0);
    let told = |error: anyhow::Error| format!("{error:#}");
    let inputs = Inputs::load(&job).map_err(told)?;
    let mut checkpoints = Checkpoints::open(&job.output, false).map_err(told)?;
    train(&job, &inputs, fleet, &mut checkpoints, &mut All(Vec::new()))
        .map(|outcome| came_to_with(&outcome))
        .map_err(told)
}

#[test]
fn answers_that_an_audit_finds_to_be_wrong_change_no_result() {
    let dir = folder();
    let mut found = 0;
    for (model, estimator) in all() {
        let job = parse(&job(model, estimator), dir.path(), &[]).unwrap();
        let undisturbed = came_to(&job, &Inline::default(), &dir.path().join("undisturbed")).unwrap();
        for fails_at in 1..=6 {
            let fleet = Audited { fails_at, batches: Cell::new(0), failures: Cell::new(0) };
            let out = tempfile::tempdir().unwrap();
            assert_eq!(
                came_to(&job, &fleet, out.path()).unwrap(),
                undisturbed,
                "{model:?} {estimator:?} {fails_at}"
            );
            found += fleet.failures.get();
        }
    }
    assert!(found > 100, "{found} wrong answers");
}

#[test]
fn a_bound_that_falls_by_wrong_counts_is_asked_again_of_other_workers() {
    let dir = folder();
    let text = "[model]\ngrammar = \"auto:unigram\"\n[corpus]\npath = \"words.txt\"\n[inference]\nmax_rounds = 8\ntolerance = 0\n";
    let job = parse(text, dir.path(), &[]).unwrap();
    let undisturbed = came_to(&job, &Inline::default(), &dir.path().join("undisturbed")).unwrap();
    let mut found = 0;
    for round in 2..=8 {
        let fleet = Lying { round, is_audited: Cell::new(false), lies: Cell::new(0) };
        let out = tempfile::tempdir().unwrap();
        let result = came_to(&job, &fleet, out.path()).unwrap();
        assert!(fleet.lies.get() > 0);
        // After strings were dropped a lower bound has them restored instead, so that wrong counts are not noticed.
        if fleet.is_audited.get() {
            found += 1;
            assert_eq!(result, undisturbed, "round {round}");
        }
    }
    assert!(found >= 4, "{found} of 7");
}
