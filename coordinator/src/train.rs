//! A training run: the phases in order, each a map over shards and a reduction in shard order.
//!
//! ```text
//! corpus, grammar → sentence shards → [candidates] → strings → [index] without those that have no derivation
//!   → [cover] with those that sentences need → string shards → [index] → rounds of [expect] → [decode]
//! ```
//!
//! Between two rounds the job may be written down ([`crate::checkpoint`]), and another process goes on from there.
//!
//! Straight-line code over [`Map`]: where the tasks run, and what becomes of lost workers, is the fleet's business.
//! Everything is decided from job, data and seed, so the result is the same on any fleet.

pub mod input;
pub mod plan;
pub mod prepare;

use std::borrow::Cow;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use shared::adaptor::hyper::Fit;
use shared::adaptor::vb::{Growth, Settings, State, Trainer};
use shared::adaptor::{Model, Stick};
use shared::eval::segmentation::score;
use shared::num::Noise;
use shared::round::Step;
use shared::task::{Decoded, Decoder};

use crate::checkpoint::{Checkpoint, Checkpoints, Origin, Progress, Run};
use crate::fleet::{Map, Stage};
use crate::job::{AdaptorPrior, Hyperparameter, InferenceTable, Job, Selection};
use crate::metrics::{Hyper, Observer, Phase, RoundMetrics, Scores, ScoresByDecoder, Start, decoder_name};
use crate::outcome::{Decoding, Outcome};
use input::Input;
use plan::Plan;
use prepare::{Choice, Chosen, Sentences};

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
            let (chosen, plan) = prepare::prepare(fleet, input, sentences, &choice(&job.inference))?;
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
    let mut keeper = Keeper { checkpoints, origin, chosen, failed: 0 };
    if keeper.checkpoints.are_due() {
        keeper.keep(&progress, observer); // choosing strings took long
    }
    let mut training = Training { job, input, plan: &plan, fleet, keeper, observer };
    for number in progress.bounds.len() + 1..=job.inference.restarts {
        training.run(number, &mut progress)?;
    }
    let Training { keeper, observer, .. } = training;
    if keeper.failed > 0 {
        notices.push(format!("{} checkpoints could not be written", keeper.failed));
    }
    let Progress { bounds, best, mut timings, resumed, .. } = progress;
    let best = best.context("a job has at least one run")?;

    observer.phase(Phase::Decode);
    let begun = clock();
    let State { params, rounds, bound, .. } = best.state;
    let decoders = &job.output.decoders;
    let decoded = plan.decode(fleet, &params, &input.segments, decoders, true)?;
    let decoded = input.by_sentence(&decoded);
    let scores = scores(input, &decoded, decoders);
    let decodings = decodings(input, &decoded, decoders);
    timings.decode = begun.elapsed().as_secs_f64();
    let model = Model {
        grammar: plan.grammar.value.as_ref().clone(),
        lexicon: plan.lexicon.value.as_ref().clone(),
        params,
        segments: input.segments.clone(),
    };
    let gold = input.corpus.gold.as_ref();
    let gold =
        gold.map(|gold| gold.iter().enumerate().map(|(at, ends)| input.corpus.line(at, ends)).collect());
    Ok(Outcome {
        model,
        rounds,
        converged: best.converged,
        bound,
        run: best.number,
        bounds,
        resumed,
        scores,
        timings,
        decodings,
        gold,
        notices,
    })
}

/// How strings are chosen.
pub fn choice(inference: &InferenceTable) -> Choice {
    Choice { truncation: inference.truncation, rho: inference.rho, max_length: inference.max_string }
}

/// The rounds of a job.
struct Training<'a> {
    job: &'a Job,
    input: &'a Input,
    plan: &'a Plan,
    fleet: &'a dyn Map,
    keeper: Keeper<'a>,
    observer: &'a mut dyn Observer,
}

impl Training<'_> {
    /// Runs the run of that number to its end, from where `progress` has it.
    fn run(&mut self, number: usize, progress: &mut Progress) -> Result<()> {
        let inference = &self.job.inference;
        let (grammar, lexicon) = (self.plan.grammar.value.clone(), self.plan.lexicon.value.clone());
        let (settings, noise) = (settings(inference, number), Noise::new(inference.seed, number as u64));
        let (mut trainer, mut converged) = match progress.current.take() {
            Some(run) => (Trainer::resume(grammar, lexicon, settings, noise, run.state), run.converged),
            None => (Trainer::new(grammar, lexicon, settings, noise), false),
        };
        let run = |trainer: &Trainer, converged| Run { number, converged, state: trainer.state().clone() };
        while trainer.state().rounds < inference.max_rounds && !converged {
            let begun = clock();
            let metrics = self.round(number, &mut trainer, &mut converged)?;
            self.observer.round(&metrics)?;
            progress.rounds.push(metrics);
            progress.timings.rounds += begun.elapsed().as_secs_f64();
            if self.keeper.checkpoints.are_due() {
                progress.current = Some(run(&trainer, converged));
                self.keeper.keep(progress, self.observer);
            }
        }
        progress.current = None;
        progress.bounds.push(trainer.state().bound);
        if progress.best.as_ref().is_none_or(|best| trainer.state().bound > best.state.bound) {
            progress.best = Some(run(&trainer, converged));
        }
        Ok(())
    }

    fn round(&self, run: usize, trainer: &mut Trainer, converged: &mut bool) -> Result<RoundMetrics> {
        let Training { job, input, plan, fleet, .. } = *self;
        let begun = clock();
        let round = trainer.state().rounds + 1;
        let (mut restored, mut busy) = (0, Duration::ZERO);
        let report = loop {
            let (weights, stage) = (trainer.weights(), Stage::Round { run, round });
            let (totals, cost) = plan.expect(fleet, stage, &weights, trainer.wants_losses())?;
            busy += cost.busy;
            match trainer.absorb(totals)? {
                Step::Again { restored: strings } => restored += strings,
                Step::Next(report) => break report,
            }
        };
        let seconds = begun.elapsed().as_secs_f64();
        *converged = report.converged;
        let last = round == job.inference.max_rounds || report.converged;
        let every = job.output.score_every;
        let mut scored = ScoresByDecoder::new();
        if input.corpus.gold.is_some() && round.is_multiple_of(every) && !last {
            let viterbi = [Decoder::Viterbi];
            let decoded = plan.decode(fleet, trainer.params(), &input.segments, &viterbi, false)?;
            scored = scores(input, &input.by_sentence(&decoded), &viterbi);
        }
        let name = |symbol| input.grammar.name(symbol).to_owned();
        let sticks = &trainer.params().sticks;
        let hyper = |stick: &Stick| Hyper { discount: stick.discount, concentration: stick.concentration };
        Ok(RoundMetrics {
            run,
            round,
            bound: report.bound,
            change: report.change,
            seconds,
            busy_seconds: busy.as_secs_f64(),
            sentences_per_second: input.corpus.sentences.len() as f64 / seconds,
            strings: sticks.iter().map(|stick| (name(stick.symbol), stick.order.len())).collect(),
            hyper: sticks.iter().map(|stick| (name(stick.symbol), hyper(stick))).collect(),
            scores: scored,
            dropped: report.dropped,
            restored,
            resorted: report.resorted,
        })
    }
}

/// Writes checkpoints of one job. That one cannot be written is told, and does not end the job: it may be the last that
/// is wanted.
struct Keeper<'a> {
    checkpoints: &'a mut Checkpoints,
    origin: Origin,
    chosen: Chosen,
    failed: usize,
}

impl Keeper<'_> {
    fn keep(&mut self, progress: &Progress, observer: &mut dyn Observer) {
        let (origin, chosen) = (Cow::Borrowed(&self.origin), Cow::Borrowed(&self.chosen));
        let written =
            self.checkpoints.write(&Checkpoint { origin, chosen, progress: Cow::Borrowed(progress) });
        self.failed += usize::from(written.is_err());
        observer.checkpoint(written.as_ref());
    }
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
