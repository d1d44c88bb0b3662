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
//! All runs of a job (points of a grid, restarts, chains) go on together: one batch has the tasks of a round of every run that is
//! not over. Between two batches the job may be written down ([`crate::checkpoint`]), and another process goes on from there.
//!
//! Straight-line code over [`Map`]: where the tasks run, and what becomes of lost workers, is the fleet's business.
//! Everything is decided from job, data and seed, so the result is the same on any fleet.

pub mod dependencies;
pub mod held_out;
pub mod input;
pub mod learner;
pub mod plan;
pub mod prepare;
pub mod readings;
pub mod rounds;
pub mod shelf;
pub mod shuffle;
pub mod start;
pub mod text;
pub mod trees;

use std::time::Instant;

use anyhow::{Context, Result};
use shared::eval::chains::effective_sample_size;
use shared::model::Params;

use crate::checkpoint::{Checkpoint, Checkpoints, Origin, Progress};
use crate::fleet::Map;
use crate::job::{InferenceTable, Job};
use crate::metrics::{
    AttachmentByDecoder, BracketsByDecoder, Observer, Phase, PointSummary, RoundMetrics, Start, traces,
};
use crate::outcome::{Heads, Outcome};
use held_out::HeldOutShards;
use input::Input;
use learner::sampled;
use prepare::{Choice, Sentences};
use readings::Readings;
use rounds::{Finished, FinishedPoint, Keeper, Training};

/// Trains on `fleet` what `input` holds, from the checkpoint to go on from if there is one.
pub fn train(
    job: &Job,
    input: &Input,
    fleet: &dyn Map,
    checkpoints: &mut Checkpoints,
    observer: &mut dyn Observer,
) -> Result<Outcome> {
    observer.started(&Start {
        sentences: input.text.n_sentences,
        symbols: input.text.n_symbols,
        rules: input.n_rules(),
        adapted: input.grammar.adapted().map(|symbol| input.grammar.name(symbol).to_owned()).collect(),
        max_rounds: job.inference.max_rounds,
        runs: job.points.len() * job.inference.restarts,
        points: job.points.iter().map(|point| point.name.clone()).collect(),
    })?;
    observer.phase(Phase::Preprocess);
    let begun = clock();
    let mut notices = input.notices.clone();
    let sentences = Sentences::new(input);
    let origin = Origin::new(job, &sentences);
    let saved = checkpoints.resume(&origin, &input.grammar, &mut |notice| notices.push(notice))?;
    let (before, mut progress) = match saved {
        Some(Checkpoint { chosen, progress, .. }) => (Some(chosen.into_owned()), progress.into_owned()),
        None => (None, Progress::default()),
    };
    progress.resumed += u32::from(before.is_some());
    let (chosen, plan) = prepare::plan(fleet, input, sentences, &choice(&job.inference), before)?;
    checkpoints.begin()?;
    observer.prepared(&progress.rounds)?;
    if chosen.added > 0 {
        notices.push(format!(
            "{} strings were added to the sticks, without which some sentence has no derivation",
            chosen.added
        ));
    }
    if chosen.underivable > 0 {
        notices.push(format!(
            "{} candidate strings were left out, since the strings they are made of are not on the sticks",
            chosen.underivable
        ));
    }
    let n_shards = plan.sentence_shards().count();
    let mut of_points: Vec<String> =
        job.points.iter().filter_map(|point| sampled::notice(&point.inference, n_shards)).collect();
    of_points.dedup();
    notices.extend(of_points);
    notices.iter().for_each(|notice| observer.notice(notice));
    progress.timings.preprocess += begun.elapsed().as_secs_f64();

    observer.phase(Phase::Rounds);
    let mut keeper = Keeper::new(checkpoints, origin, chosen);
    if keeper.is_due() {
        keeper.keep(&progress, observer); // choosing strings took long
    }
    let held_out = HeldOutShards::new(input.held_out.clone(), input.tokens_per_symbol());
    let Finished { points, progress, failed } =
        Training::new(job, input, &plan, fleet, &held_out, keeper, progress)?.run(observer)?;
    if failed > 0 {
        notices.push(format!("{failed} checkpoints could not be written"));
    }
    let Progress { mut timings, resumed, rounds, .. } = progress;

    observer.phase(Phase::Decode);
    let begun = clock();
    let mut summaries: Vec<PointSummary> = Vec::new();
    let is_better = |point: &FinishedPoint, other: &FinishedPoint| match (&point.held_out, &other.held_out) {
        (Some(found), Some(known)) => found.is_better_than(known),
        _ => point.bound > other.bound,
    };
    let better = |best: usize, at: usize| if is_better(&points[at], &points[best]) { at } else { best };
    let kept = (0..points.len()).reduce(better).context("a job has at least one run")?;
    let mut best: Option<Outcome> = None;
    let n_sentences = input.text.n_sentences as u64;
    for (at, (point, of_job)) in points.into_iter().zip(&job.points).enumerate() {
        let run = point.run;
        let (mut readings, mut brackets) = (Readings::default(), BracketsByDecoder::new());
        let (mut heads, mut attachment) = (Heads::default(), AttachmentByDecoder::new());
        match (&input.trees, &input.dependencies, &point.model.params) {
            (Some(trees), _, Params::Latent(model)) => (readings.decodings, brackets) = trees.find(model)?,
            (_, Some(dependencies), _) => {
                let decoders = &job.output.decoders;
                (heads, attachment) = dependencies.find(fleet, &plan, &point.model, decoders)?;
                notices.extend(heads.flat_notice(&point.name));
            }
            _ => readings = Readings::of(job, input, &plan, fleet, &point, at == kept)?,
        }
        let Readings { decodings, samples, scores } = readings;
        let of_point = |round: &&RoundMetrics| point.runs.contains(&round.run);
        let r_hat = rounds.iter().filter(of_point).filter_map(|round| round.r_hat).next_back();
        let effective_sample_size = of_job.inference.method.is_sampler().then(|| {
            let traces = traces(&rounds, point.runs.clone());
            effective_sample_size(&traces.iter().map(Vec::as_slice).collect::<Vec<_>>())
        });
        let effective_sample_size = effective_sample_size.flatten();
        let is_last = |round: &&RoundMetrics| (round.run, round.round) == (run, point.rounds);
        let last = rounds.iter().rfind(is_last);
        let components = last.map(|round| round.components.clone()).unwrap_or_default();
        for (name, _) in components.iter().filter(|(_, found)| found.empty == n_sentences) {
            notices.push(format!(
                "component `{name}` allows no tree of any sentence, so that the base has its weight; inference.components says what it is"
            ));
        }
        summaries.push(PointSummary {
            name: point.name.clone(),
            run,
            rounds: point.rounds,
            converged: point.converged,
            bound: point.bound,
            bounds: point.bounds.clone(),
            held_out: point.held_out,
            r_hat,
            effective_sample_size,
            scores: scores.clone(),
            brackets: brackets.clone(),
            attachment: attachment.clone(),
            components: components.clone(),
            busy_seconds: rounds.iter().filter(of_point).map(|round| round.busy_seconds).sum(),
        });
        if at == kept {
            best = Some(Outcome {
                decodings,
                model: point.model,
                rounds: point.rounds,
                converged: point.converged,
                bound: point.bound,
                run,
                bounds: point.bounds,
                resumed,
                held_out: point.held_out,
                r_hat,
                effective_sample_size,
                points: Vec::new(),
                sentences: input.text.n_sentences,
                scores,
                brackets,
                heads,
                attachment,
                components,
                timings,
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

/// How strings are chosen.
pub fn choice(inference: &InferenceTable) -> Choice {
    Choice { truncation: inference.truncation, rho: inference.rho, max_length: inference.max_string }
}

#[expect(clippy::disallowed_methods, reason = "a run tells how long it took; nothing is decided by it")]
fn clock() -> Instant {
    Instant::now()
}
