//! The rounds of a job: of all its runs at once.
//!
//! A batch has, for every run that is not over, one task for each shard; so chains and grid points keep all workers busy even
//! where a run by itself has a single shard. A run whose round has to be run again, since a sentence lost its derivation, is in
//! the next batch with the same round.

use std::borrow::Cow;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use shared::corpus::Corpus;
use shared::eval::chains::split_r_hat;
use shared::eval::segmentation::Scorer;
use shared::logistic_normal::trainer::Failure as Normal;
use shared::model::Model;
use shared::num::Noise;
use shared::round::{RoundReport, Step};
use shared::sampler::tally::Tally;
use shared::task::Decoder;

use super::held_out::HeldOutShards;
use super::input::Input;
use super::learner::{Beginning, Failure, GivenTrees, Learner, State};
use super::plan::{self, Plan};
use super::prepare::Chosen;
use super::{clock, start};
use crate::checkpoint::{Checkpoint, Checkpoints, Origin, Progress, Run};
use crate::fleet::{Map, Stage};
use crate::glimpse::{Glimpse, SENTENCES};
use crate::job::{self, InferenceTable, Job, Method};
use crate::metrics::{
    AttachmentByDecoder, ComponentMetrics, HeldOut, Hyper, Observer, RoundMetrics, Scores, ScoresByDecoder,
    decoder_name, traces,
};
use crate::outcome::Sample;

/// The runs of a job, and what they need.
pub struct Training<'a> {
    job: &'a Job,
    input: &'a Input,
    plan: &'a Plan,
    fleet: &'a dyn Map,
    held_out: &'a HeldOutShards,
    keeper: Keeper<'a>,
    progress: Progress,
    runs: Vec<Active<'a>>,
}

/// A run that is under way, or over.
struct Active<'a> {
    /// Its point among those of the job.
    point: usize,
    inference: &'a InferenceTable,
    learner: Learner<'a>,
    converged: bool,
    /// The best measurement on held-out sentences, and the state that gave it.
    best: Option<(HeldOut, State)>,
    /// Measurements since then.
    waited: usize,
    /// Strings taken back into use since the round began.
    restored: usize,
}

/// What all runs came to.
pub struct Finished {
    /// By point of the job.
    pub points: Vec<FinishedPoint>,
    /// Rounds and times.
    pub progress: Progress,
    /// Checkpoints that could not be written.
    pub failed: usize,
}

/// The best run of a point.
pub struct FinishedPoint {
    /// The point's name.
    pub name: String,
    /// The run, from 1 among all of the job.
    pub run: usize,
    /// All runs of the point, from 1.
    pub runs: std::ops::Range<usize>,
    /// What it learned.
    pub model: Model,
    /// Its rounds.
    pub rounds: usize,
    /// Whether it converged.
    pub converged: bool,
    /// Its last objective.
    pub bound: Option<f64>,
    /// The last objective of every run of the point.
    pub bounds: Vec<Option<f64>>,
    /// How well it predicts held-out sentences.
    pub held_out: Option<HeldOut>,
    /// The samples of all its runs, by sentence of the corpus; empty without samples.
    pub tallies: Vec<Tally>,
}

/// The trees that a sampler is at, among decoders.
const SAMPLE: &str = "sample";

impl<'a> Training<'a> {
    /// The runs as `progress` has them.
    pub fn new(
        job: &'a Job,
        input: &'a Input,
        plan: &'a Plan,
        fleet: &'a dyn Map,
        held_out: &'a HeldOutShards,
        keeper: Keeper<'a>,
        mut progress: Progress,
    ) -> Result<Training<'a>> {
        let chains = job.points.iter().any(|point| point.inference.method == Method::Hastings);
        let given = input.start.as_ref().map(|given| start::given(input, plan, fleet, given, chains));
        let given = given.transpose()?;
        let mut saved = std::mem::take(&mut progress.runs).into_iter();
        let mut runs = Vec::new();
        for (point, of_point) in job.points.iter().enumerate() {
            for restart in 1..=job.inference.restarts {
                let run = runs.len() + 1;
                let inference = &of_point.inference;
                let harmonic = harmonic(input, inference, restart, run);
                let trees = harmonic.as_ref().or(given.as_ref());
                let families = input.dependencies.as_ref().map(|dependencies| dependencies.families(point));
                let beginning = Beginning { inference, restart, run, trees, families };
                let Run { converged, state, best, waited } = saved.next().unwrap_or_default();
                let where_from = if state.is_some() { "the checkpoint cannot be gone on from: " } else { "" };
                let learner = Learner::new(plan, beginning, state)
                    .map_err(|problem| anyhow!("{where_from}run {run}: {problem}"))?;
                let restored = 0;
                runs.push(Active { point, inference, learner, converged, best, waited, restored });
            }
        }
        progress.tallies.resize(job.points.len(), Vec::new());
        Ok(Training { job, input, plan, fleet, held_out, keeper, progress, runs })
    }

    /// Runs all of them to their end.
    pub fn run(mut self, observer: &mut dyn Observer) -> Result<Finished> {
        while self.runs.iter().any(|run| !run.is_over()) {
            let begun = clock();
            for (metrics, sentences) in self.batch()? {
                let (run, round) = (metrics.run, metrics.round);
                self.progress.rounds.push(metrics);
                let r_hat = self.r_hat(run, round);
                let metrics = self.progress.rounds.last_mut().expect("it was just put there");
                metrics.r_hat = r_hat;
                observer.round(metrics)?;
                if round == 1 || self.is_scored(run - 1) {
                    observer.glimpse(&|| self.glimpse(run, &sentences));
                }
            }
            self.progress.timings.rounds += begun.elapsed().as_secs_f64();
            if self.keeper.is_due() {
                self.progress.runs = self.runs.iter().map(Active::saved).collect();
                self.keeper.keep(&self.progress, observer);
            }
        }
        let points = (0..self.job.points.len()).map(|point| self.finished(point)).collect::<Result<_>>()?;
        let Training { progress, keeper, .. } = self;
        Ok(Finished { points, progress, failed: keeper.failed })
    }

    /// A round of every run that is not over; the metrics of those that count, each with some sentences as they were read.
    fn batch(&mut self) -> Result<Vec<(RoundMetrics, Vec<Sample>)>> {
        let begun = clock();
        let active: Vec<usize> = (0..self.runs.len()).filter(|&run| !self.runs[run].is_over()).collect();
        let mut asks = Vec::with_capacity(active.len());
        let mut asked = Vec::new();
        for &run in &active {
            let Active { learner, inference, .. } = &mut self.runs[run];
            let round = learner.rounds() + 1;
            let (keep, due) = (keeps(inference, round), round.is_multiple_of(self.job.output.score_every));
            let with_trees = keep || due || round == inference.max_rounds;
            learner.begin(with_trees.then_some(&self.input.segments[..]), keep);
            asked.extend(learner.shards(self.plan).into_iter().map(|shard| (asks.len(), shard)));
            asks.push(learner.ask(self.plan)?);
        }
        let first = active[0];
        let stage = Stage::Round { run: first + 1, round: self.runs[first].learner.rounds() + 1 };
        let (plan, runs) = (self.plan, &mut self.runs);
        let report = plan::map(self.fleet, stage, plan.round(asks, asked.clone()), |at, answer| {
            let (ask, shard) = asked[at];
            let run = active[ask];
            if !runs[run].learner.add(plan, shard, answer)? {
                bail!("internal error: shard {shard} has no counts; please report it");
            }
            Ok(())
        })?;
        let mut finished: Vec<(usize, RoundReport, Duration, f64)> = Vec::new();
        let n_sentence_shards = plan.sentence_shards().count() as f64;
        for (ask, &run) in active.iter().enumerate() {
            let of_run = report.busy_by_task.iter().zip(&asked).filter(|(_, asked)| asked.0 == ask);
            let busy = of_run.map(|(busy, _)| *busy).sum();
            let of_sentences =
                |&&(of, shard): &&(usize, usize)| of == ask && plan.shards[shard].strings.is_none();
            let share = asked.iter().filter(of_sentences).count() as f64 / n_sentence_shards;
            let active = &mut self.runs[run];
            match active.learner.finish().map_err(|failure| told(self.input, failure))? {
                Step::Again { restored } => active.restored += restored,
                Step::Next(report) => finished.push((run, report, busy, share)),
            }
        }
        let seconds = begun.elapsed().as_secs_f64() / finished.len().max(1) as f64;
        let conclude = |(run, report, busy, share)| self.conclude(run, report, seconds, busy, share);
        finished.into_iter().map(conclude).collect()
    }

    /// Measures a round that is over and has read this share of the sentences, and says whether the run is.
    fn conclude(
        &mut self,
        run: usize,
        report: RoundReport,
        seconds: f64,
        busy: Duration,
        share: f64,
    ) -> Result<(RoundMetrics, Vec<Sample>)> {
        let round = self.runs[run].learner.rounds();
        self.runs[run].converged = report.converged;
        let last = self.runs[run].is_over();
        let due = round.is_multiple_of(self.job.output.score_every);
        let mut scored = ScoresByDecoder::new();
        let mut held_out = None;
        let mut shown = Vec::new();
        let is_scored = self.input.text.has_gold && !self.input.segments.is_empty();
        let samples = self.runs[run].learner.samples();
        let has_samples = !samples.is_empty() && samples.iter().all(|of_shard| !of_shard.is_empty());
        if has_samples {
            let mut scorer = Scorer::default();
            let tallies = &mut self.progress.tallies[self.runs[run].point];
            let keeps = keeps(self.runs[run].inference, round);
            tallies.resize(if keeps { self.input.text.n_sentences } else { tallies.len() }, Tally::default());
            self.input.text.blocks(|sentences, shards, block| {
                let samples = block.by_occurrence(&samples[shards]).unwrap_or_default();
                // A tag of a dependency model is two tokens, and its trees have no segments to show.
                if self.input.dependencies.is_none() {
                    show(&mut shown, &block.corpus, samples.iter().map(|sample| &sample.ends[..]));
                }
                for (at, sample) in samples.iter().enumerate() {
                    if let Some(gold) = &block.corpus.gold {
                        scorer.add(&block.corpus.sentences[at], &gold[at], &sample.ends);
                    }
                }
                if keeps {
                    let tallies = tallies[sentences].iter_mut();
                    tallies.zip(samples).for_each(|(tally, sample)| tally.add(sample));
                }
                Ok(())
            })?;
            if is_scored && (due || last) {
                scored.insert(SAMPLE.to_owned(), Scores::from(&scorer.scores()));
            }
        }
        let mut attachment = AttachmentByDecoder::new();
        let dependencies = self.input.dependencies.as_ref().filter(|_| due && !last);
        if let Some(dependencies) = dependencies.filter(|dependencies| dependencies.gold().is_some()) {
            let model = self.model(&self.runs[run].learner);
            attachment = dependencies.find(self.fleet, self.plan, &model, &[Decoder::Viterbi])?.1;
        }
        let is_decoded = !has_samples && is_scored && !last;
        if (due || last) && (!self.held_out.is_empty() || is_decoded) {
            let model = self.model(&self.runs[run].learner);
            if is_decoded {
                let found = self.viterbi(&model, &mut shown)?;
                scored.insert(decoder_name(Decoder::Viterbi).to_owned(), found);
            }
            held_out = self.held_out.measure(self.fleet, self.plan, &model)?;
        }
        let active = &mut self.runs[run];
        if let Some(found) = held_out {
            if active.best.as_ref().is_none_or(|(best, _)| found.is_better_than(best)) {
                (active.best, active.waited) = (Some((found, active.learner.state())), 0);
            } else {
                active.waited += 1;
            }
        }
        let adapted: Vec<String> =
            self.input.grammar.adapted().map(|symbol| self.input.grammar.name(symbol).to_owned()).collect();
        let hyper = |(discount, concentration)| Hyper { discount, concentration };
        let hyper = adapted.iter().cloned().zip(active.learner.hyper().into_iter().map(hyper));
        let strings = adapted.iter().cloned().zip(active.learner.n_strings());
        let components = active.learner.components().into_iter();
        let components = components.map(|(name, share)| (name.to_owned(), ComponentMetrics::from(share)));
        let components = components.collect();
        let metrics = RoundMetrics {
            run: run + 1,
            round,
            bound: report.bound,
            change: report.change,
            seconds,
            busy_seconds: busy.as_secs_f64(),
            sentences_per_second: share * self.input.text.n_sentences as f64 / seconds,
            strings: strings.collect(),
            hyper: hyper.collect(),
            scores: scored,
            attachment,
            components,
            dropped: report.dropped,
            restored: std::mem::take(&mut active.restored),
            resorted: report.resorted,
            temperature: report.temperature,
            held_out,
            acceptance: report.moves.map(|moves| moves.accepted as f64 / moves.proposed.max(1) as f64),
            changed: report.moves.map(|moves| moves.changed as f64 / moves.proposed.max(1) as f64),
            r_hat: None,
        };
        Ok((metrics, shown))
    }

    /// Whether the last round of a run was one that is scored.
    fn is_scored(&self, run: usize) -> bool {
        let active = &self.runs[run];
        active.learner.rounds().is_multiple_of(self.job.output.score_every) || active.is_over()
    }

    /// What a run, from 1, has learned so far.
    fn glimpse(&self, run: usize, sentences: &[Sample]) -> Glimpse {
        let learner = &self.runs[run - 1].learner;
        let (strings, rules) = learner.glimpse(self.plan, self.input.text.unit);
        Glimpse { run, round: learner.rounds(), strings, rules, sentences: sentences.to_vec() }
    }

    /// Scores of the corpus as Viterbi reads it, and some sentences to be shown.
    fn viterbi(&self, model: &Model, shown: &mut Vec<Sample>) -> Result<Scores> {
        let mut scorer = Scorer::default();
        let parser = self.plan.parser(model, &[Decoder::Viterbi], false);
        self.input.text.blocks(|_, shards, block| {
            let decoded = parser.parse(self.fleet, Stage::Decode, self.plan.shards(shards))?;
            let gold = block.corpus.gold.iter().flatten();
            let decoded = block.by_sentence(&decoded);
            show(shown, &block.corpus, decoded.iter().map(|decoded| &decoded.segmentations[0][..]));
            for ((sentence, gold), decoded) in block.corpus.sentences.iter().zip(gold).zip(decoded) {
                scorer.add(sentence, gold, &decoded.segmentations[0]);
            }
            Ok(())
        })?;
        Ok(Scores::from(&scorer.scores()))
    }

    /// Split R-hat of the objective over the chains of a point, the first half of the rounds left out; told with the last chain's
    /// metrics of every round that is scored.
    fn r_hat(&self, run: usize, round: usize) -> Option<f64> {
        let active = &self.runs[run - 1];
        let last = self.runs.get(run).is_none_or(|next| next.point != active.point);
        let due = round.is_multiple_of(self.job.output.score_every) || active.is_over();
        if !active.inference.method.is_sampler() || !last || !due {
            return None;
        }
        let first = self.runs.iter().position(|run| run.point == active.point)?;
        let traces = traces(&self.progress.rounds, first + 1..run + 1);
        split_r_hat(&traces.iter().map(Vec::as_slice).collect::<Vec<_>>())
    }

    fn model(&self, learner: &Learner<'_>) -> Model {
        let (lexicon, params) = learner.learned(self.plan);
        let (grammar, segments) = (self.plan.grammar.value.as_ref().clone(), self.input.segments.clone());
        Model { grammar, lexicon, params, segments }
    }

    /// The best run of a point: by held-out sentences if there are such, else by the objective.
    fn finished(&self, point: usize) -> Result<FinishedPoint> {
        let of_point: Vec<usize> =
            (0..self.runs.len()).filter(|&run| self.runs[run].point == point).collect();
        let is_better = |run: &Active<'_>, other: &Active<'_>| match (&run.best, &other.best) {
            (Some((found, _)), Some((known, _))) => found.is_better_than(known),
            _ => run.learner.state().bound() > other.learner.state().bound(),
        };
        let better =
            |best: usize, run: usize| if is_better(&self.runs[run], &self.runs[best]) { run } else { best };
        let best =
            of_point.iter().copied().reduce(better).ok_or_else(|| anyhow!("a job has at least one run"))?;
        let Active { learner, converged, best: kept, inference, .. } = &self.runs[best];
        let bounds = of_point.iter().map(|&run| self.runs[run].learner.state().bound()).collect();
        let (state, held_out) = match kept {
            Some((held_out, state)) => (state.clone(), Some(*held_out)),
            None => (learner.state(), None),
        };
        let (restart, run) = (1, best + 1);
        let beginning = Beginning { inference, restart, run, trees: None, families: None };
        let (rounds, bound) = (state.rounds(), state.bound());
        let kept = Learner::new(self.plan, beginning, Some(state)).map_err(|problem| anyhow!("{problem}"))?;
        let runs = of_point[0] + 1..of_point[0] + 1 + of_point.len();
        let name = self.job.points[point].name.clone();
        let (model, converged) = (self.model(&kept), *converged);
        let tallies = self.progress.tallies[point].clone();
        Ok(FinishedPoint { name, run, runs, model, rounds, converged, bound, bounds, held_out, tallies })
    }
}

/// Puts the first readable sentences among those that are shown, until there are enough: the same ones in every round.
fn show<'a>(shown: &mut Vec<Sample>, corpus: &Corpus, ends: impl Iterator<Item = &'a [u32]>) {
    let readable = |(at, _): &(usize, &[u32])| READABLE.contains(&corpus.sentences[*at].len());
    let missing = SENTENCES.saturating_sub(shown.len());
    for (at, ends) in ends.enumerate().filter(readable).take(missing) {
        let gold = corpus.gold.as_ref().map(|gold| corpus.line(at, &gold[at]));
        shown.push(Sample { gold, segmentations: vec![corpus.line(at, ends)], tree: None });
    }
}

/// Symbols of a sentence that is worth showing and has room in a line.
const READABLE: std::ops::RangeInclusive<usize> = 6..=70;

/// A failure, with the sentence that it is about.
fn told(input: &Input, failure: Failure) -> anyhow::Error {
    match failure {
        Failure::Normal(Normal::Unbounded { shard, sentence }) => {
            match input.text.describe(shard, sentence as u32) {
                Ok(place) => anyhow!("{place}: {failure}"),
                Err(_) => failure.into(),
            }
        }
        Failure::Normal(Normal::Prior { .. } | Normal::Mixture(_)) | Failure::BoundFell(_) => failure.into(),
    }
}

/// The counts of the harmonic start, for methods without chains; with jitter in all runs of a point but the first.
fn harmonic(input: &Input, inference: &InferenceTable, restart: usize, run: usize) -> Option<GivenTrees> {
    let dependencies = input.dependencies.as_ref().filter(|_| inference.start == job::Start::Harmonic)?;
    let noise = Noise::new(inference.seed, run as u64);
    let jitter = (restart > 1).then_some((noise, inference.jitter));
    let counts = || dependencies.harmonic(inference, jitter);
    (inference.method != Method::Hastings).then(|| GivenTrees { counts: counts(), by_shard: Vec::new() })
}

/// Whether the samples of a round are kept: those after the burn-in, so many rounds apart, the last one among them.
fn keeps(inference: &InferenceTable, round: usize) -> bool {
    let InferenceTable { max_rounds, burn_in, keep_every, .. } = *inference;
    inference.method.is_sampler()
        && round as f64 > burn_in * max_rounds as f64
        && (max_rounds - round).is_multiple_of(keep_every)
}

impl Active<'_> {
    /// Whether it has no more rounds. It may be given more than it had when it ended.
    fn is_over(&self) -> bool {
        let InferenceTable { max_rounds, patience, .. } = *self.inference;
        self.converged || self.learner.rounds() >= max_rounds || patience > 0 && self.waited >= patience
    }

    fn saved(&self) -> Run {
        Run {
            converged: self.converged,
            state: Some(self.learner.state()),
            best: self.best.clone(),
            waited: self.waited,
        }
    }
}

/// Writes checkpoints of one job. That one cannot be written is told, and does not end the job: it may be the last that
/// is wanted.
pub struct Keeper<'a> {
    checkpoints: &'a mut Checkpoints,
    origin: Origin,
    chosen: Chosen,
    failed: usize,
}

impl<'a> Keeper<'a> {
    /// Of the job of that origin, with the strings that were chosen for it.
    pub fn new(checkpoints: &'a mut Checkpoints, origin: Origin, chosen: Chosen) -> Keeper<'a> {
        Keeper { checkpoints, origin, chosen, failed: 0 }
    }

    /// Whether it is time for the next one.
    pub fn is_due(&self) -> bool {
        self.checkpoints.are_due()
    }

    /// Writes one.
    pub fn keep(&mut self, progress: &Progress, observer: &mut dyn Observer) {
        let (origin, chosen) = (Cow::Borrowed(&self.origin), Cow::Borrowed(&self.chosen));
        let written =
            self.checkpoints.write(&Checkpoint { origin, chosen, progress: Cow::Borrowed(progress) });
        self.failed += usize::from(written.is_err());
        observer.checkpoint(written.as_ref());
    }
}
