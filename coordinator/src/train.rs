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
pub mod shelf;
pub mod start;
pub mod text;
pub mod trees;

use std::time::Instant;

use anyhow::{Context, Result};
use shared::eval::chains::effective_sample_size;
use shared::eval::segmentation::Scorer;
use shared::model::Params;
use shared::sampler::tally::Tally;
use shared::tree::Tree;

use crate::checkpoint::{Checkpoint, Checkpoints, Origin, Progress};
use crate::fleet::Map;
use crate::job::{InferenceTable, Job};
use crate::metrics::{
    AttachmentByDecoder, BracketsByDecoder, MAXIMUM_MARGINAL, Observer, Phase, PointSummary, RoundMetrics,
    SAMPLE_AVERAGE, Scores, ScoresByDecoder, Start, decoder_name, traces,
};
use crate::outcome::{Decoding, Heads, Lines, Outcome, Sample, Samples};
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
            _ => readings = self::readings(job, input, &plan, fleet, &point, at == kept)?,
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

/// The corpus as every decoder reads it.
#[derive(Default)]
struct Readings {
    decodings: Vec<Decoding>,
    samples: Vec<Sample>,
    scores: ScoresByDecoder,
}

/// The corpus as every decoder reads it, and then, of samplers, as most samples do; to be written down if it is `kept`.
fn readings(
    job: &Job,
    input: &Input,
    plan: &Plan,
    fleet: &dyn Map,
    point: &FinishedPoint,
    kept: bool,
) -> Result<Readings> {
    let (text, decoders) = (&input.text, &job.output.decoders);
    // Every sentence has a tree in every sample.
    let trees: Option<Vec<&str>> = point.tallies.iter().map(Tally::tree).collect();
    let of_samples = trees.filter(|trees| !trees.is_empty());
    let is_segment = |label: &str| input.segments.iter().any(|&symbol| input.grammar.name(symbol) == label);
    let mut names: Vec<&'static str> = decoders.iter().map(|&decoder| decoder_name(decoder)).collect();
    if of_samples.is_some() {
        names.extend([SAMPLE_AVERAGE, MAXIMUM_MARGINAL]);
    }
    let decoding = |&name| Decoding {
        name,
        segmentations: Lines::new_in(&job.output.dir),
        trees: Lines::new_in(&job.output.dir),
    };
    let mut decodings: Vec<Decoding> = names.iter().map(decoding).collect();
    let mut scorers: Vec<Scorer<u32>> = names.iter().map(|_| Scorer::default()).collect();
    let mut samples = Samples::default();
    text.blocks(|sentences, shards, block| {
        let decoded = plan.decode(fleet, &point.model, shards, decoders, kept)?;
        for ((at, place), decoded) in sentences.enumerate().zip(block.by_sentence(&decoded)) {
            let mut trees = decoded.trees.iter().map(String::as_str);
            let mut found: Vec<(Vec<u32>, Option<&str>)> = Vec::with_capacity(names.len());
            for (decoder, ends) in decoders.iter().zip(&decoded.segmentations) {
                found.push((ends.clone(), if decoder.gives_trees() { trees.next() } else { None }));
            }
            if let Some(of_samples) = &of_samples {
                let tree = of_samples[place];
                found.push((Tree::parse(tree)?.segment_ends(is_segment), Some(tree)));
                found.push((point.tallies[place].segmentation().unwrap_or_default().to_vec(), None));
            }
            if let Some(gold) = &block.corpus.gold {
                for (scorer, (ends, _)) in scorers.iter_mut().zip(&found) {
                    scorer.add(&block.corpus.sentences[at], &gold[at], ends);
                }
            }
            if kept {
                let line = |ends: &Vec<u32>| block.corpus.line(at, ends);
                let segmentations: Vec<String> = found.iter().map(|(ends, _)| line(ends)).collect();
                for ((decoding, line), (_, tree)) in decodings.iter_mut().zip(&segmentations).zip(&found) {
                    decoding.segmentations.push(line)?;
                    tree.map_or(Ok(()), |tree| decoding.trees.push(tree))?;
                }
                samples.offer(&segmentations[0], || Sample {
                    gold: block.corpus.gold.as_ref().map(|gold| line(&gold[at])),
                    tree: found.iter().find_map(|(_, tree)| *tree).map(str::to_owned),
                    segmentations: segmentations.clone(),
                });
            }
        }
        Ok(())
    })?;
    let is_scored = text.has_gold && !input.segments.is_empty();
    let scored = names.iter().zip(&scorers).filter(|_| is_scored);
    let scores = scored.map(|(&name, scorer)| (name.to_owned(), Scores::from(&scorer.scores()))).collect();
    Ok(Readings { decodings, samples: samples.chosen(), scores })
}

#[expect(clippy::disallowed_methods, reason = "a run tells how long it took; nothing is decided by it")]
fn clock() -> Instant {
    Instant::now()
}
