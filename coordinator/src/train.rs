//! A training run: the phases in order, each a map over shards and a reduction in shard order.
//!
//! ```text
//! corpus, grammar → sentence shards → [candidates] → strings → [index] without those that have no derivation
//!   → [cover] with those that sentences need → string shards → [index] → rounds of [expect] → [decode]
//! ```
//!
//! Straight-line code over [`Map`]: where the tasks run, and what becomes of lost workers, is the fleet's business.
//! Everything is decided from job, data and seed, so the result is the same on any fleet.

pub mod input;
pub mod plan;
pub mod prepare;

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use shared::adaptor::hyper::Fit;
use shared::adaptor::vb::{Growth, RoundReport, Settings, Step, Trainer};
use shared::adaptor::{Model, Params};
use shared::eval::segmentation::score;
use shared::num::Noise;
use shared::task::{Decoded, Decoder};

use crate::fleet::{Map, Stage};
use crate::job::{AdaptorPrior, Hyperparameter, InferenceTable, Job, Selection};
use crate::metrics::{
    Hyper, Observer, Phase, RoundMetrics, Scores, ScoresByDecoder, Start, Timings, decoder_name,
};
use crate::outcome::{Decoding, Outcome};
use input::Input;
use plan::Plan;
use prepare::{Choice, prepare};

/// Trains on `fleet` what `input` holds.
pub fn train(job: &Job, input: &Input, fleet: &dyn Map, observer: &mut dyn Observer) -> Result<Outcome> {
    observer.started(&Start {
        sentences: input.corpus.sentences.len(),
        symbols: input.corpus.n_symbols(),
        rules: input.grammar.rules.len(),
        adapted: input.grammar.adapted().map(|symbol| input.grammar.name(symbol).to_owned()).collect(),
        max_rounds: job.inference.max_rounds,
    })?;
    observer.phase(Phase::Preprocess);
    let begun = clock();
    let mut notices = input.notices.clone();
    let choice = Choice {
        truncation: job.inference.truncation,
        rho: job.inference.rho,
        max_length: job.inference.max_string,
    };
    let prepared = prepare(fleet, input, &choice)?;
    observer.prepared()?;
    if prepared.added > 0 {
        notices.push(format!(
            "{} strings were added to the sticks, without which some sentence has no derivation",
            prepared.added
        ));
    }
    if prepared.underivable > 0 {
        notices.push(format!(
            "{} candidate strings were left out, since the strings they are made of are not on the sticks",
            prepared.underivable
        ));
    }
    notices.iter().for_each(|notice| observer.notice(notice));
    let plan = prepared.plan;
    let preprocess = begun.elapsed();

    observer.phase(Phase::Rounds);
    let mut best: Option<Run> = None;
    let mut bounds = Vec::new();
    for number in 1..=job.inference.restarts {
        let run = run(job, input, &plan, fleet, number, observer)?;
        bounds.push(run.bound);
        if best.as_ref().is_none_or(|best| run.bound > best.bound) {
            best = Some(run);
        }
    }
    let best = best.context("a job has at least one run")?;
    let rounds = begun.elapsed() - preprocess;

    observer.phase(Phase::Decode);
    let decoders = &job.output.decoders;
    let decoded = plan.decode(fleet, &best.params, &input.segments, decoders, true)?;
    let decoded = input.by_sentence(&decoded);
    let scores = scores(input, &decoded, decoders);
    let decodings = decodings(input, &decoded, decoders);
    let timings = Timings {
        preprocess: preprocess.as_secs_f64(),
        rounds: rounds.as_secs_f64(),
        decode: (begun.elapsed() - preprocess - rounds).as_secs_f64(),
    };
    let model = Model {
        grammar: plan.grammar.value.as_ref().clone(),
        lexicon: plan.lexicon.value.as_ref().clone(),
        params: best.params,
        segments: input.segments.clone(),
    };
    let gold = input.corpus.gold.as_ref();
    let gold =
        gold.map(|gold| gold.iter().enumerate().map(|(at, ends)| input.corpus.line(at, ends)).collect());
    Ok(Outcome {
        model,
        rounds: best.rounds,
        converged: best.converged,
        bound: best.bound,
        run: best.number,
        bounds,
        scores,
        timings,
        decodings,
        gold,
        notices,
    })
}

/// What one start leads to.
struct Run {
    number: usize,
    params: Params,
    rounds: usize,
    converged: bool,
    bound: Option<f64>,
}

fn run(
    job: &Job,
    input: &Input,
    plan: &Plan,
    fleet: &dyn Map,
    number: usize,
    observer: &mut dyn Observer,
) -> Result<Run> {
    let (grammar, lexicon) = (plan.grammar.value.clone(), plan.lexicon.value.clone());
    let noise = Noise::new(job.inference.seed, number as u64);
    let mut trainer = Trainer::new(grammar, lexicon, settings(&job.inference, number), noise);
    let (mut round, mut converged, mut bound) = (0, false, None);
    while round < job.inference.max_rounds && !converged {
        round += 1;
        let begun = clock();
        let mut restored = 0;
        let report = loop {
            let stage = Stage::Round { run: number, round };
            let totals = plan.expect(fleet, stage, &trainer.weights(), trainer.wants_losses())?;
            match trainer.absorb(totals)? {
                Step::Again { restored: strings } => restored += strings,
                Step::Next(report) => break report,
            }
        };
        let seconds = begun.elapsed();
        let last = round == job.inference.max_rounds || report.converged;
        let every = job.output.score_every;
        let mut scored = ScoresByDecoder::new();
        if input.corpus.gold.is_some() && every > 0 && round % every == 0 && !last {
            let viterbi = [Decoder::Viterbi];
            let decoded = plan.decode(fleet, trainer.params(), &input.segments, &viterbi, false)?;
            scored = scores(input, &input.by_sentence(&decoded), &viterbi);
        }
        (converged, bound) = (report.converged, report.bound);
        observer.round(&metrics(
            input,
            trainer.params(),
            number,
            round,
            &report,
            restored,
            seconds,
            scored,
        ))?;
    }
    Ok(Run { number, params: trainer.params().clone(), rounds: round, converged, bound })
}

/// How the run of that number trains.
pub fn settings(inference: &InferenceTable, run: usize) -> Settings {
    let fits = |which: Hyperparameter| inference.fit.contains(&which);
    let pitman_yor = inference.adaptor == AdaptorPrior::PitmanYor;
    let growth = Growth { start: inference.grow_from, step: inference.grow_by };
    Settings {
        select_by_bound: inference.selection == Selection::Bound,
        drop_share: inference.drop_share,
        resort: inference.selection != Selection::Fixed,
        fit: Fit {
            concentration: fits(Hyperparameter::Concentration),
            discount: pitman_yor && fits(Hyperparameter::Discount),
            alpha: fits(Hyperparameter::Alpha),
        },
        pitman_yor,
        discount: inference.discount,
        concentration: inference.concentration,
        growth: (inference.grow_from > 0).then_some(growth),
        tolerance: inference.tolerance,
        jitter: if run == 1 { 0.0 } else { inference.jitter },
    }
}

#[expect(clippy::too_many_arguments, reason = "a line of metrics has many sources")]
fn metrics(
    input: &Input,
    params: &Params,
    run: usize,
    round: usize,
    report: &RoundReport,
    restored: usize,
    seconds: Duration,
    scores: ScoresByDecoder,
) -> RoundMetrics {
    let seconds = seconds.as_secs_f64();
    let name = |symbol| input.grammar.name(symbol).to_owned();
    let hyper = |stick: &shared::adaptor::Stick| Hyper {
        discount: stick.discount,
        concentration: stick.concentration,
    };
    RoundMetrics {
        run,
        round,
        bound: report.bound,
        change: report.change,
        seconds,
        sentences_per_second: input.corpus.sentences.len() as f64 / seconds,
        strings: params.sticks.iter().map(|stick| (name(stick.symbol), stick.order.len())).collect(),
        hyper: params.sticks.iter().map(|stick| (name(stick.symbol), hyper(stick))).collect(),
        scores,
        dropped: report.dropped,
        restored,
        resorted: report.resorted,
    }
}

/// Scores of every decoder against gold; none without gold.
fn scores(input: &Input, decoded: &[&Decoded], decoders: &[Decoder]) -> ScoresByDecoder {
    let Some(gold) = &input.corpus.gold else { return ScoresByDecoder::new() };
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
