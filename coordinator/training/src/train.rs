//! A training run: the phases in order, each a map over shards and a reduction in shard order.
//!
//! ```text
//! corpus, grammar → sentence shards → [candidates] → strings → [index] without those that have no derivation
//!   → [index] of sentences → [cover] with the strings that some need → rounds → [decode]
//! ```
//!
//! With latent annotations the trees are given: tree shards → rounds → held-out trees, found again.
//!
//! A PCFG's strings are the substrings of the corpus, so its way is shorter: sentence shards → index → rounds → decode.
//!
//! Points of a grid that differ in a key that acts before the rounds are prepared apart ([`group`]).
//!
//! All runs of a job (points of a grid, restarts, chains) go on together: one batch has the tasks of a round of every run that is
//! not over. Between two batches a snapshot of the job may be taken, which is written beside the next ones ([`checkpoint_writer`]); another
//! process goes on from there ([`checkpoint`]).
//!
//! Straight-line code over [`Map`]: the fleet decides where tasks run, and assigns tasks of lost workers again.
//! Everything is decided from job, data and seed, so the result is the same on any fleet.

#[cfg(test)]
mod altered;
pub mod annotations;
pub mod auto_grammars;
mod ballots;
pub mod brackets;
pub mod checkpoint;
pub mod checkpoint_writer;
mod contexts;
mod deciders;
mod decodings;
pub mod dependencies;
mod found;
mod gold;
pub mod group;
mod grouping;
pub mod held_out;
pub mod input;
#[cfg(test)]
mod laws;
#[cfg(test)]
mod liars;
mod memory;
pub mod plan;
mod posterior;
pub mod prepare;
pub mod readings;
pub mod rounds;
#[cfg(test)]
mod same_bits;
pub mod segment_lengths;
mod sentence;
pub mod spill;
pub mod start;
pub mod start_trees;
pub mod stopped;
pub mod stream;
pub mod test;
pub mod text;
pub mod trees;
mod voters;
#[cfg(test)]
mod written;
#[cfg(test)]
mod wrong_answers;

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail};
use basics::clock;
use fleet::{FleetError, Map, Stage};
use grammaton::data::eval::chains::effective_sample_size;
use grammaton::models::Trained;
use grammaton::train::trainer::Failure;

use crate::events::{Observer, RunEvent};
use crate::job::Job;
use crate::metrics::{
    AttachmentByDecoder, BracketsByDecoder, Phase, PointSummary, RoundMetrics, RunResult, Start, traces,
};
use crate::model::parameters_sha256;
use crate::outcome::{Heads, Outcome};
use crate::train::checkpoint::{Checkpoint, Checkpoints, Origin, Progress, Resumed};
use ballots::Ballots;
use checkpoint_writer::CheckpointWriter;
use grammaton::methods;
use grammaton::prepare::Chosen;
use grammaton::prepare::candidates::StringChoice;
use group::{Inputs, Prepared, of_point};
use input::Dataset;
use prepare::Items;
use readings::Readings;
use rounds::{FinishedPoint, Training};
use scheduler::{FailedAttempt, Fault};
use stopped::{Resumable, Stopped, is_cancellation};
use stream::Stream;
use text::Text;
use voters::Voters;

/// Attempts after answers of workers that turned out to be wrong. Each has fewer workers that could give one than the attempt before; so many
/// wrong ones are not a fleet to go on with.
const MAX_REPEATS: usize = 100;

/// Trains on `fleet` what `inputs` hold, from the checkpoint to go on from if there is one. If the job is cancelled, the error is
/// [`Stopped`], and what was done so far is in a checkpoint.
///
/// A worker whose answer is found to be wrong is expelled, and the job goes on from its newest checkpoint. If a round has no result, or its
/// tasks cannot be computed, some worker gave a wrong answer before; so the job starts over, with every task computed by two workers. This
/// happens once, and each of the other repeats has expelled a worker that no repeat before had: so there are finitely many.
pub fn train(
    job: &Job,
    inputs: &Inputs,
    fleet: &dyn Map,
    checkpoints: &mut Checkpoints,
    observer: &mut dyn Observer,
) -> Result<Outcome> {
    let (mut repeats, mut expelled) = (0, BTreeSet::new());
    loop {
        let mut has_begun = false;
        let stream = Stream::new(fleet, observer);
        let outcome = attempt(job, inputs, &stream, checkpoints, &mut has_begun);
        let (error, repeat) = match outcome.map_err(|error| with_sentence(error, inputs, &stream)) {
            Ok(outcome) => return Ok(outcome),
            Err(error) => match Repeat::after(&error, fleet, &mut expelled).filter(|_| repeats < MAX_REPEATS)
            {
                Some(repeat) => (error, repeat),
                None => return Err(error),
            },
        };
        repeats += 1;
        let place = match repeat {
            // Before the run begins, checkpoints belong to an earlier run.
            Repeat::FromCheckpoint if has_begun => {
                checkpoints.reopen(&job.output, true)?;
                "from the newest checkpoint, or else from the start"
            }
            Repeat::FromCheckpoint => "from the same place",
            Repeat::FromStart => {
                checkpoints.reopen(&job.output, false)?;
                "from the start, with every task computed by two workers"
            }
        };
        observer.on(&RunEvent::Notice(format!("{error:#}; the job continues {place}")))?;
    }
}

/// The error, with the longest sentence of the task that no worker could compute.
fn with_sentence(error: anyhow::Error, inputs: &Inputs, stream: &Stream<'_>) -> anyhow::Error {
    let shards = stream.given_up();
    let longest = |text: &Text| text.describe_longest(&shards).ok().flatten();
    match inputs.groups.iter().find_map(|group| longest(&group.input.text)) {
        Some(longest) => error.context(format!("the longest sentence of the task has {longest}")),
        None => error,
    }
}

/// The step that a job repeats after wrong answers.
enum Repeat {
    FromCheckpoint,
    FromStart,
}

impl Repeat {
    /// Where another attempt after `error` may succeed, since the workers that gave wrong answers are gone, or will be found. `expelled` are
    /// those that are gone.
    fn after(error: &anyhow::Error, fleet: &dyn Map, expelled: &mut BTreeSet<u64>) -> Option<Repeat> {
        if let Some(FleetError::Audit { mismatch, .. }) = error.downcast_ref() {
            let n_before = expelled.len();
            expelled.extend(&mismatch.expelled);
            let is_progress = mismatch.is_mended && expelled.len() > n_before;
            return is_progress.then_some(Repeat::FromCheckpoint);
        }
        let is_doubtful = match error.downcast_ref() {
            // What other workers answered before is part of these tasks, and of no others.
            Some(FleetError::Batch { stage, failure, .. }) => {
                is_reported(failure) && matches!(stage, Stage::Round { .. } | Stage::HeldOut | Stage::Decode)
            }
            _ => error.downcast_ref::<Failure>().is_some(),
        };
        (is_doubtful && fleet.audit_all()).then_some(Repeat::FromStart)
    }
}

/// Whether a task failed because it cannot be computed, rather than with its workers.
fn is_reported(failure: &scheduler::Failure) -> bool {
    let is_report = |attempt: &FailedAttempt| matches!(attempt.how, Fault::Reported(_));
    match failure {
        scheduler::Failure::Task { .. } => true,
        scheduler::Failure::GivenUp { attempts, .. } => attempts.iter().any(is_report),
        scheduler::Failure::NoMembers { .. } => false,
    }
}

/// One attempt to train; `has_begun` says whether earlier checkpoints are the job's own.
fn attempt(
    job: &Job,
    inputs: &Inputs,
    stream: &Stream<'_>,
    checkpoints: &mut Checkpoints,
    has_begun: &mut bool,
) -> Result<Outcome> {
    let (fleet, observer) = (stream, &mut &*stream);
    observer.on(&RunEvent::Started(Start {
        sentences: inputs.first().text.n_sentences,
        symbols: inputs.first().text.n_symbols,
        rules: inputs.first().n_rules(),
        adapted: inputs.first().adapted(),
        max_rounds: job.points.iter().map(|point| point.inference.max_rounds).max().unwrap_or_default(),
        runs: job.n_runs(),
        points: job.runs().map(|(point, _)| job.points[point].name.clone()).collect(),
        memory: if observer.shows_memory() { memory::of_chains(inputs)? } else { None },
    }))?;
    observer.on(&RunEvent::PhaseBegun(Phase::Preprocess))?;
    let begun = clock::instant();
    let mut notices = [&job.notices[..], &inputs.notices()].concat();
    let items: Vec<Items> = inputs.groups.iter().map(|group| Items::new(&group.input)).collect();
    let origin = Origin::new(job, &items);
    let saved = checkpoints.resume(&origin, inputs, &mut |notice| notices.push(notice))?;
    let (before, mut progress) = match saved {
        Some(Resumed { name, checkpoint: Checkpoint { chosen, progress, .. } }) => {
            observer.on(&RunEvent::Resumed { checkpoint: name, round: progress.last_round() })?;
            (Some(chosen.into_owned()), progress.into_owned())
        }
        None => (None, Progress::default()),
    };
    let kept = if before.is_some() { Resumable::Checkpoint } else { Resumable::Nothing };
    let stopped = Stopped { round: progress.last_round(), kept };
    let or_stopped = |error| if is_cancellation(&error) { stopped.clone().into() } else { error };
    progress.resumed = progress.resumed.saturating_add(u32::from(before.is_some()));
    let mut before = before.map(Vec::into_iter);
    let (mut prepared, mut chosen): (Vec<Prepared<'_>>, Vec<Chosen>) = Default::default();
    for (group, items) in inputs.groups.iter().zip(items) {
        let before = before.as_mut().and_then(Iterator::next);
        let choice = StringChoice::from(&group.job.inference);
        let (of_group, plan) =
            prepare::plan(fleet, &group.input, items, &choice, before).map_err(or_stopped)?;
        for notice in prepare::notices(&of_group) {
            let of = if inputs.groups.len() > 1 {
                format!("{}: ", group.job.points[0].name)
            } else {
                String::new()
            };
            notices.push(format!("{of}{notice}"));
        }
        let n_shards = plan.sentence_shards().count();
        let mut of_points: Vec<String> =
            group.job.points.iter().filter_map(|point| methods::notice(&point.inference, n_shards)).collect();
        of_points.dedup();
        notices.extend(of_points);
        prepared.push(Prepared::new(group, plan));
        chosen.push(of_group);
    }
    checkpoints.begin()?;
    *has_begun = true;
    observer.on(&RunEvent::Prepared { earlier: progress.rounds.clone() })?;
    notices.iter().try_for_each(|notice| observer.on(&RunEvent::Notice(notice.clone())))?;
    progress.timings.preprocess += begun.elapsed().as_secs_f64();

    observer.on(&RunEvent::PhaseBegun(Phase::Rounds))?;
    let mut writer = CheckpointWriter::new(checkpoints, origin, chosen);
    writer.advance(|| progress.clone(), observer)?; // choosing strings may have taken long
    let mut training = Training::new(job, &prepared, fleet, writer, progress).map_err(or_stopped)?;
    let outcome = training.run(observer).and_then(|points| {
        observer.on(&RunEvent::PhaseBegun(Phase::Decode))?;
        let n_told = notices.len();
        let outcome = decode(job, &prepared, fleet, &training, points, notices)?;
        outcome.notices[n_told..]
            .iter()
            .try_for_each(|notice| observer.on(&RunEvent::Notice(notice.clone())))?;
        Ok(outcome)
    });
    match outcome {
        Err(error) if is_cancellation(&error) => Err(training.stop(observer)?.into()),
        outcome => {
            let checkpointed = training.await_checkpoint(observer);
            outcome.and_then(|outcome| checkpointed.map(|()| outcome))
        }
    }
}

/// Finds what the best run of every point says about the sentences; the best point of all gives the outcome.
fn decode(
    job: &Job,
    prepared: &[Prepared<'_>],
    fleet: &dyn Map,
    training: &Training<'_>,
    points: Vec<FinishedPoint>,
    mut notices: Vec<String>,
) -> Result<Outcome> {
    if training.n_failed() > 0 {
        notices.push(format!("{} checkpoints could not be written", training.n_failed()));
    }
    let Progress { mut timings, resumed, ref rounds, .. } = *training.progress();
    let begun = clock::instant();
    let mut summaries: Vec<PointSummary> = Vec::new();
    let is_better = |result: &RunResult, other: &RunResult| match (&result.held_out, &other.held_out) {
        (Some(found), Some(known)) => found.is_better_than(known),
        _ => result.bound > other.bound,
    };
    let better =
        |best: usize, at: usize| if is_better(&points[at].result, &points[best].result) { at } else { best };
    // Bounds of different grammars are not compared.
    let of_grammar = (0..points.len()).filter(|&at| job.points[at].voter.is_none());
    let kept = of_grammar.reduce(better).context("a job has at least one run")?;
    let voters = Voters::of(job, &points, kept);
    notices.extend(voters.notice());
    let mut others = voters.models(&points);
    let mut ballots: Vec<Ballots> = voted(job, prepared, fleet, &points)?;
    let mut best: Option<Outcome> = None;
    for (at, (point, of_job)) in points.into_iter().zip(&job.points).enumerate() {
        let of = of_point(prepared, at);
        let (input, plan, n_sentences) = (of.input(), &of.plan, of.input().text.n_sentences as u64);
        let (mut readings, mut brackets) = (Readings::default(), BracketsByDecoder::new());
        let (mut heads, mut attachment) = (Heads::default(), AttachmentByDecoder::new());
        match (&input.dataset, &point.model) {
            (Dataset::Trees(trees), Trained::Treebank(model)) => {
                (readings.decodings, brackets) = trees.held_out.find(fleet, model)?
            }
            (Dataset::Dependencies { dependencies, .. }, Trained::Grammar(model)) => {
                let decoders = &job.output.decoders;
                (heads, attachment) = dependencies.to_find().find(fleet, plan, model, decoders)?;
                notices.extend(heads.flat_notice(&point.name));
            }
            (Dataset::Text { .. }, Trained::Grammar(model)) => {
                let ballots = std::mem::take(&mut ballots[at]);
                readings = Readings::of(job, input, plan, fleet, (&point, model), ballots, at == kept)?
            }
            (Dataset::Trees(_), Trained::Grammar(_)) | (_, Trained::Treebank(_)) => {
                bail!("internal error: the model is not of the data; please report it")
            }
        }
        let Readings {
            decodings,
            lexicon,
            boundaries,
            certainty,
            errors,
            segmenter,
            samples,
            scores,
            notice,
        } = readings;
        notices.extend(notice.filter(|_| at == kept));
        let test = input.test.as_ref().map(|test| test.score(job, fleet, plan, &point.model)).transpose()?;
        let of_point = |round: &&RoundMetrics| point.runs.contains(&round.run);
        let r_hat = rounds.iter().filter(of_point).filter_map(|round| round.r_hat).next_back();
        let effective_sample_size = of_job.inference.method.is_sampler().then(|| {
            let traces = traces(rounds, point.runs.clone());
            effective_sample_size(&traces.iter().map(Vec::as_slice).collect::<Vec<_>>())
        });
        let effective_sample_size = effective_sample_size.flatten();
        let is_last =
            |round: &&RoundMetrics| (round.run, round.round) == (point.result.run, point.result.rounds);
        let last = rounds.iter().rfind(is_last);
        let components = last.map(|round| round.components.clone()).unwrap_or_default();
        for (name, _) in components.iter().filter(|(_, found)| found.empty == n_sentences) {
            notices.push(format!(
                "component `{name}` allows no tree of any sentence, so that the base has its weight; inference.components says what it is"
            ));
        }
        let result = RunResult {
            r_hat,
            effective_sample_size,
            scores,
            brackets,
            attachment,
            certainty,
            components,
            test,
            parameters_sha256: parameters_sha256(&point.model),
            ..point.result
        };
        summaries.push(PointSummary {
            name: point.name,
            settings: json(&of_job.settings),
            result: result.clone(),
            busy_seconds: rounds.iter().filter(of_point).map(|round| round.busy_seconds).sum(),
        });
        if at == kept {
            best = Some(Outcome {
                model: point.model,
                result,
                resumed,
                seed: of_job.inference.seed,
                points: Vec::new(),
                sentences: input.text.n_sentences,
                heads,
                timings,
                decodings,
                lexicon,
                boundaries,
                errors,
                voters: std::mem::take(&mut others),
                segmenter,
                samples,
                notices: Vec::new(),
            });
        }
    }
    timings.decode = begun.elapsed().as_secs_f64();
    let best = best.context("a job has at least one run")?;
    let points = if summaries.len() > 1 { summaries } else { Vec::new() };
    Ok(Outcome { points, timings, notices, ..best })
}

/// The segmentations by the models of every point's voters, and the samples of their chains; none of points without voters.
fn voted(
    job: &Job,
    prepared: &[Prepared<'_>],
    fleet: &dyn Map,
    points: &[FinishedPoint],
) -> Result<Vec<Ballots>> {
    let mut ballots: Vec<Ballots> = points.iter().map(|_| Ballots::default()).collect();
    let mut elected = 0;
    for (at, point) in points.iter().enumerate() {
        if job.points[at].voter.is_none() {
            elected = at;
            continue;
        }
        let of = of_point(prepared, at);
        for model in point.models() {
            ballots[elected].add(of.input(), &of.plan, fleet, model)?;
        }
        ballots[elected].add_samples(point);
    }
    Ok(ballots)
}

/// The values of a point, as they stand in `summary.json`.
fn json(settings: &BTreeMap<String, toml::Value>) -> BTreeMap<String, serde_json::Value> {
    let value = |value: &toml::Value| serde_json::to_value(value).unwrap_or_default();
    settings.iter().map(|(key, found)| (key.clone(), value(found))).collect()
}
