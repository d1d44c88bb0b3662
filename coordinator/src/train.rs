//! A training run: the phases in order, each a map over shards and a reduction in shard order.
//!
//! ```text
//! corpus, grammar → sentence shards → [candidates] → strings → [index] without those that have no derivation
//!   → [cover] with those that sentences need → string shards → [index] → rounds → [decode]
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
pub mod rounds;
pub mod start;
pub mod trees;

use std::time::Instant;

use anyhow::{Context, Result};
use shared::eval::chains::effective_sample_size;
use shared::eval::segmentation::score;
use shared::model::Params;
use shared::sampler::tally::Tally;
use shared::task::Decoder;
use shared::tree::Tree;

use crate::checkpoint::{Checkpoint, Checkpoints, Origin, Progress};
use crate::fleet::Map;
use crate::job::{InferenceTable, Job};
use crate::metrics::{
    AttachmentByDecoder, BracketsByDecoder, MAXIMUM_MARGINAL, Observer, Phase, PointSummary, RoundMetrics,
    SAMPLE_AVERAGE, Scores, ScoresByDecoder, Start, decoder_name, traces,
};
use crate::outcome::{Decoding, Heads, Outcome};
use held_out::HeldOutShards;
use input::Input;
use plan::Plan;
use prepare::{Choice, Sentences};
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
        sentences: input.corpus.sentences.len(),
        symbols: input.corpus.n_symbols(),
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
    notices.iter().for_each(|notice| observer.notice(notice));
    progress.timings.preprocess += begun.elapsed().as_secs_f64();

    observer.phase(Phase::Rounds);
    let mut keeper = Keeper::new(checkpoints, origin, chosen);
    if keeper.is_due() {
        keeper.keep(&progress, observer); // choosing strings took long
    }
    let held_out = HeldOutShards::new(&input.held_out, input.tokens_per_symbol());
    let Finished { points, progress, failed } =
        Training::new(job, input, &plan, fleet, &held_out, keeper, progress)?.run(observer)?;
    if failed > 0 {
        notices.push(format!("{failed} checkpoints could not be written"));
    }
    let Progress { mut timings, resumed, rounds, .. } = progress;

    observer.phase(Phase::Decode);
    let begun = clock();
    let mut summaries: Vec<PointSummary> = Vec::new();
    let mut best: Option<Outcome> = None;
    let n_sentences = input.corpus.sentences.len() as u64;
    for (point, of_job) in points.into_iter().zip(&job.points) {
        let run = point.run;
        let (mut decodings, mut brackets) = (Vec::new(), BracketsByDecoder::new());
        let (mut heads, mut attachment) = (Heads::default(), AttachmentByDecoder::new());
        match (&input.trees, &input.dependencies, &point.model.params) {
            (Some(trees), _, Params::Latent(model)) => (decodings, brackets) = trees.find(model)?,
            (_, Some(dependencies), _) => {
                let decoders = &job.output.decoders;
                (heads, attachment) = dependencies.find(fleet, &plan, &point.model, decoders)?;
                notices.extend(heads.flat_notice(&point.name));
            }
            _ => decodings = self::decodings(job, input, &plan, fleet, &point)?,
        }
        let scores: ScoresByDecoder = decodings
            .iter()
            .flat_map(|decoding| score_of(input, decoding.name, decoding.ends.clone()))
            .collect();
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
        let is_better = |other: &Outcome| match (&point.held_out, &other.held_out) {
            (Some(found), Some(known)) => found.is_better_than(known),
            _ => point.bound > other.bound,
        };
        if best.as_ref().is_none_or(is_better) {
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
                sentences: input.corpus.sentences.len(),
                scores,
                brackets,
                heads,
                attachment,
                components,
                timings,
                gold: None,
                notices: Vec::new(),
            });
        }
    }
    timings.decode = begun.elapsed().as_secs_f64();
    let gold = input.corpus.gold.as_ref();
    let gold =
        gold.map(|gold| gold.iter().enumerate().map(|(at, ends)| input.corpus.line(at, ends)).collect());
    let best = best.context("a job has at least one run")?;
    let points = if summaries.len() > 1 { summaries } else { Vec::new() };
    Ok(Outcome { points, timings, gold, notices, ..best })
}

/// How strings are chosen.
pub fn choice(inference: &InferenceTable) -> Choice {
    Choice { truncation: inference.truncation, rho: inference.rho, max_length: inference.max_string }
}

/// The score of a segmentation, one list of ends for each sentence, under a name; none without gold, or without segments to score.
fn score_of(input: &Input, name: &str, ends: Vec<Vec<u32>>) -> Option<(String, Scores)> {
    let gold = input.corpus.gold.as_ref().filter(|_| !input.segments.is_empty())?;
    Some((name.to_owned(), Scores::from(&score(&input.corpus.sentences, gold, &ends))))
}

/// The corpus as every decoder reads it, and then, of samplers, as most samples do.
fn decodings(
    job: &Job,
    input: &Input,
    plan: &Plan,
    fleet: &dyn Map,
    point: &FinishedPoint,
) -> Result<Vec<Decoding>> {
    let decoders = &job.output.decoders;
    let decoded = plan.decode(fleet, &point.model, decoders, true)?;
    let decoded = input.by_sentence(&decoded);
    let decoding = |name, ends: Vec<Vec<u32>>, trees| {
        let line = |(sentence, ends): (usize, &Vec<u32>)| input.corpus.line(sentence, ends);
        let segmentations = ends.iter().enumerate().map(line).collect();
        Decoding { name, ends, segmentations, trees }
    };
    let mut n_trees = 0;
    let of_decoder = |(at, &decoder): (usize, &Decoder)| {
        let ends = decoded.iter().map(|decoded| decoded.segmentations[at].clone()).collect();
        let mut trees = Vec::new();
        if decoder.gives_trees() {
            trees = decoded.iter().map(|decoded| decoded.trees[n_trees].clone()).collect();
            n_trees += 1;
        }
        decoding(decoder_name(decoder), ends, trees)
    };
    let mut decodings: Vec<Decoding> = decoders.iter().enumerate().map(of_decoder).collect();
    // Every sentence has a tree in every sample.
    let is_segment = |label: &str| input.segments.iter().any(|&symbol| input.grammar.name(symbol) == label);
    let trees: Option<Vec<&str>> = point.tallies.iter().map(Tally::tree).collect();
    if let Some(trees) = trees.filter(|trees| !trees.is_empty()) {
        let ends = |tree: &&str| Ok(Tree::parse(tree)?.segment_ends(is_segment));
        let ends = trees.iter().map(ends).collect::<Result<_>>()?;
        let trees = trees.into_iter().map(str::to_owned).collect();
        decodings.push(decoding(SAMPLE_AVERAGE, ends, trees));
        let ends = point.tallies.iter().filter_map(Tally::segmentation).map(<[u32]>::to_vec).collect();
        decodings.push(decoding(MAXIMUM_MARGINAL, ends, Vec::new()));
    }
    Ok(decodings)
}

#[expect(clippy::disallowed_methods, reason = "a run tells how long it took; nothing is decided by it")]
fn clock() -> Instant {
    Instant::now()
}
