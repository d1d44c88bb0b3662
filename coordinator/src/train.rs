//! A training run: the phases in order, each a map over shards and a reduction in shard order.
//!
//! ```text
//! corpus, grammar → sentence shards → [candidates] → strings → [index] without those that have no derivation
//!   → [cover] with those that sentences need → string shards → [index] → rounds → [decode]
//! ```
//!
//! A PCFG's strings are the substrings of the corpus, so that its way is shorter: sentence shards → [index] → rounds → [decode].
//!
//! All runs of a job (points of a grid, restarts, chains) go on together: one batch has the tasks of a round of every run that is
//! not over. Between two batches the job may be written down ([`crate::checkpoint`]), and another process goes on from there.
//!
//! Straight-line code over [`Map`]: where the tasks run, and what becomes of lost workers, is the fleet's business.
//! Everything is decided from job, data and seed, so the result is the same on any fleet.

pub mod held_out;
pub mod input;
pub mod learner;
pub mod plan;
pub mod prepare;
pub mod rounds;

use std::time::Instant;

use anyhow::{Context, Result};
use shared::eval::segmentation::score;
use shared::model::Model;
use shared::task::{Decoded, Decoder};

use crate::checkpoint::{Checkpoint, Checkpoints, Origin, Progress};
use crate::fleet::Map;
use crate::job::{InferenceTable, Job};
use crate::metrics::{Observer, Phase, PointSummary, Scores, ScoresByDecoder, Start, decoder_name};
use crate::outcome::{Decoding, Outcome};
use held_out::HeldOutShards;
use input::Input;
use prepare::{Choice, Sentences};
use rounds::{Finished, Keeper, Training};

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
        rules: input.grammar.rules.len(),
        adapted: input.grammar.adapted().map(|symbol| input.grammar.name(symbol).to_owned()).collect(),
        max_rounds: job.inference.max_rounds,
        runs: job.points.len() * job.inference.restarts,
    })?;
    observer.phase(Phase::Preprocess);
    let begun = clock();
    let mut notices = input.notices.clone();
    let sentences = Sentences::new(input);
    let origin = Origin::new(job, &sentences);
    let saved = checkpoints.resume(&origin, &input.grammar, &mut |notice| notices.push(notice))?;
    let (chosen, plan, mut progress) = match saved {
        Some(Checkpoint { chosen, progress, .. }) => {
            let (chosen, mut progress) = (chosen.into_owned(), progress.into_owned());
            progress.resumed += 1;
            let plan = prepare::plan(fleet, sentences, &chosen)?;
            (chosen, plan, progress)
        }
        None => {
            let (chosen, plan) = match &input.strings {
                Some(strings) => prepare::given(fleet, input, sentences, strings)?,
                None => prepare::prepare(fleet, input, sentences, &choice(&job.inference))?,
            };
            (chosen, plan, Progress::default())
        }
    };
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
    let held_out = HeldOutShards::new(&input.held_out);
    let Finished { points, progress, failed } =
        Training::new(job, input, &plan, fleet, &held_out, keeper, progress)?.run(observer)?;
    if failed > 0 {
        notices.push(format!("{failed} checkpoints could not be written"));
    }
    let Progress { mut timings, resumed, rounds, .. } = progress;

    observer.phase(Phase::Decode);
    let begun = clock();
    let decoders = &job.output.decoders;
    let mut summaries: Vec<PointSummary> = Vec::new();
    let mut best: Option<Outcome> = None;
    for point in points {
        let run = point.run;
        let decoded = plan.decode(fleet, &point.model, decoders, true)?;
        let decoded = input.by_sentence(&decoded);
        let scores = scores(input, &point.model, &decoded, decoders);
        let of_point = |round: &&crate::metrics::RoundMetrics| point.runs.contains(&round.run);
        summaries.push(PointSummary {
            name: point.name.clone(),
            run,
            rounds: point.rounds,
            converged: point.converged,
            bound: point.bound,
            bounds: point.bounds.clone(),
            held_out: point.held_out,
            scores: scores.clone(),
            busy_seconds: rounds.iter().filter(of_point).map(|round| round.busy_seconds).sum(),
        });
        let is_better = |other: &Outcome| match (&point.held_out, &other.held_out) {
            (Some(found), Some(known)) => found.is_better_than(known),
            _ => point.bound > other.bound,
        };
        if best.as_ref().is_none_or(is_better) {
            best = Some(Outcome {
                decodings: decodings(input, &decoded, decoders),
                model: point.model,
                rounds: point.rounds,
                converged: point.converged,
                bound: point.bound,
                run,
                bounds: point.bounds,
                resumed,
                held_out: point.held_out,
                points: Vec::new(),
                scores,
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

/// Scores of every decoder against gold; none without gold, or without segments to score.
fn scores(input: &Input, model: &Model, decoded: &[&Decoded], decoders: &[Decoder]) -> ScoresByDecoder {
    let Some(gold) = input.corpus.gold.as_ref().filter(|_| !model.segments.is_empty()) else {
        return ScoresByDecoder::new();
    };
    let of_decoder = |(at, &decoder): (usize, &Decoder)| {
        let found: Vec<Vec<u32>> = decoded.iter().map(|decoded| decoded.segmentations[at].clone()).collect();
        let scores = score(&input.corpus.sentences, gold, &found);
        (decoder_name(decoder).to_owned(), Scores::from(&scores))
    };
    decoders.iter().enumerate().map(of_decoder).collect()
}

/// The corpus as every decoder reads it.
fn decodings(input: &Input, decoded: &[&Decoded], decoders: &[Decoder]) -> Vec<Decoding> {
    let with_trees: Vec<Decoder> =
        decoders.iter().copied().filter(|&decoder| decoder != Decoder::Mbr).collect();
    let of_decoder = |(at, &decoder): (usize, &Decoder)| Decoding {
        decoder,
        segmentations: (decoded.iter().enumerate())
            .map(|(sentence, decoded)| input.corpus.line(sentence, &decoded.segmentations[at]))
            .collect(),
        trees: match with_trees.iter().position(|&known| known == decoder) {
            Some(at) => decoded.iter().map(|decoded| decoded.trees[at].clone()).collect(),
            None => Vec::new(),
        },
    };
    decoders.iter().enumerate().map(of_decoder).collect()
}

#[expect(clippy::disallowed_methods, reason = "a run tells how long it took; nothing is decided by it")]
fn clock() -> Instant {
    Instant::now()
}
