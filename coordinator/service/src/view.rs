//! The view of a job for pages and commands: its rounds, thinned out once there are many, and snapshots of its runs.
//!
//! In: what training tells. Out: a [`JobView`] for pages and commands; when the job ends it is written beside its results, and dropped.
//! Invariant: of every run the first and the last round are kept, and of the others those whose number divides evenly, so that curves
//! keep their shape and a job of any length takes a bounded amount of memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Result;
use basics::human::number;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use training::events::{Observer, RunEvent};
use training::job::Job;
use training::metrics::{RoundMetrics, Start, Summary, recommended_scores};
use training::snapshot::Snapshot;

/// Rounds that are kept, of all runs together, beside the first and last ones.
const ROUNDS: usize = 1500;

/// View of a job.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct JobView {
    /// Name of the objective.
    pub objective: String,
    /// Whether rounds are samples of a chain.
    pub is_chain: bool,
    /// Scores of the result by the recommended decoder, name and value, the main one first; of a job without gold, its objective.
    #[serde(default)]
    pub final_scores: Vec<(String, String)>,
    /// Facts known when the run began.
    pub start: Start,
    /// Rounds of all runs, as they ended.
    pub rounds: Vec<RoundMetrics>,
    /// Rounds of a run that are kept are so far apart.
    pub stride: usize,
    /// Latest snapshot of each run.
    #[serde(rename = "glimpses")]
    pub snapshots: BTreeMap<usize, Snapshot>,
}

impl JobView {
    fn push(&mut self, round: RoundMetrics) {
        self.stride = self.stride.max(1);
        let before = self.rounds.iter().rposition(|other| other.run == round.run);
        if let Some(at) = before.filter(|&at| !self.keeps(&self.rounds[at])) {
            self.rounds.remove(at);
        }
        self.rounds.push(round);
        while self.rounds.len() > ROUNDS && self.stride < usize::MAX / 2 {
            self.stride *= 2;
            let last: BTreeMap<usize, usize> =
                self.rounds.iter().map(|round| (round.run, round.round)).collect();
            let rounds = std::mem::take(&mut self.rounds).into_iter();
            let kept = rounds.filter(|round| self.keeps(round) || last.get(&round.run) == Some(&round.round));
            let kept: Vec<RoundMetrics> = kept.collect();
            self.rounds = kept;
        }
    }

    /// Puts a snapshot in the place of the one before it.
    fn learn(&mut self, snapshot: Snapshot) {
        let known = self.snapshots.entry(snapshot.run).or_default();
        // The last round is read once the run has ended; what was read before stays.
        let sentences =
            if snapshot.sentences.is_empty() { std::mem::take(&mut known.sentences) } else { Vec::new() };
        *known = snapshot;
        known.sentences.extend(sentences);
    }

    fn keeps(&self, round: &RoundMetrics) -> bool {
        round.round == 1 || round.round.is_multiple_of(self.stride)
    }

    /// The last rounds of a run and of the scores that it has, if there are such.
    pub fn last(&self, run: usize) -> (Option<&RoundMetrics>, Option<&RoundMetrics>) {
        let mut of_run = self.rounds.iter().rev().filter(|round| round.run == run);
        let scored = of_run.clone().find(|round| !round.scores.is_empty() || !round.attachment.is_empty());
        (of_run.next(), scored)
    }

    /// The run with the highest objective so far.
    pub fn best(&self) -> usize {
        let of = |run: usize| self.last(run).0.and_then(|round| round.bound).unwrap_or(f64::NEG_INFINITY);
        (1..=self.start.runs).reduce(|best, run| if of(run) > of(best) { run } else { best }).unwrap_or(1)
    }
}

/// View of a job that its thread writes and others read.
#[derive(Clone, Default)]
pub struct SharedView(Arc<Mutex<JobView>>);

impl SharedView {
    /// A copy of the view.
    pub fn read(&self) -> JobView {
        self.0.lock().clone()
    }

    /// Says which job it is of.
    pub fn of(&self, job: &Job) {
        let method = job.inference.method;
        let mut seen = self.0.lock();
        (seen.objective, seen.is_chain) = (method.objective(job.model.kind).to_owned(), method.is_sampler());
    }
}

impl Observer for SharedView {
    fn on(&mut self, event: &RunEvent) -> Result<()> {
        match event {
            RunEvent::Started(start) => self.0.lock().start = start.clone(),
            RunEvent::Prepared { earlier } => {
                let mut seen = self.0.lock();
                seen.rounds.clear();
                earlier.iter().for_each(|round| seen.push(round.clone()));
            }
            RunEvent::RoundFinished(round) => self.0.lock().push((**round).clone()),
            RunEvent::Finished(summary) => self.0.lock().final_scores = final_scores(summary),
            RunEvent::Scored(snapshot) => self.0.lock().learn((**snapshot).clone()),
            _ => {}
        }
        Ok(())
    }

    fn shows_snapshots(&self) -> bool {
        true
    }
}

/// The scores of a result that a list of jobs shows, or else its objective.
fn final_scores(summary: &Summary) -> Vec<(String, String)> {
    let scores =
        recommended_scores(&summary.result.scores, &summary.result.brackets, &summary.result.attachment);
    let objective = || summary.result.bound.map(|bound| ("objective".to_owned(), number(bound, &[])));
    if scores.is_empty() { objective().into_iter().collect() } else { scores }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_rounds_some_are_kept_and_always_the_first_and_the_last() {
        let mut seen = JobView { start: Start { runs: 2, ..Default::default() }, ..Default::default() };
        for round in 1..=10_001 {
            for run in 1..=2 {
                let bound = Some(-(round as f64) * run as f64);
                seen.push(RoundMetrics { run, round, bound, ..Default::default() });
            }
            assert!(seen.rounds.len() <= ROUNDS + 1);
        }
        assert!(seen.rounds.len() > ROUNDS / 3, "{}", seen.rounds.len());
        for run in 1..=2 {
            let rounds: Vec<usize> =
                seen.rounds.iter().filter(|of| of.run == run).map(|of| of.round).collect();
            assert!(rounds.is_sorted() && rounds[0] == 1 && rounds.ends_with(&[10_001]), "{rounds:?}");
            assert_eq!(rounds[2] - rounds[1], rounds[400] - rounds[399], "evenly");
        }
        assert_eq!((seen.best(), seen.last(2).0.unwrap().round), (1, 10_001));
    }

    #[test]
    fn views_of_training_round_trip() {
        let view = SharedView::default();
        let mut observer = view.clone();
        training::fixture::train(&mut observer).unwrap();
        let sentences = vec![Default::default()];
        let mut scored = |snapshot: Snapshot| observer.on(&RunEvent::Scored(Box::new(snapshot))).unwrap();
        scored(Snapshot { run: 1, round: 39, sentences, ..Default::default() });
        scored(Snapshot { run: 1, round: 40, ..Default::default() });
        let seen = view.read();
        assert_eq!((seen.rounds.len(), seen.start.max_rounds), (40, 40));
        assert_eq!((seen.snapshots[&1].round, seen.snapshots[&1].sentences.len()), (40, 1));
        let json = serde_json::to_vec(&seen).unwrap();
        assert_eq!(serde_json::from_slice::<JobView>(&json).unwrap(), seen);
    }
}
