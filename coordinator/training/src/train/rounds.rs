//! The rounds of a job, in which all its runs advance together.
//!
//! A batch has, for every run that is not over, one task for each shard; so chains and grid points keep all workers busy even
//! where a run by itself has a single shard. A run whose round has to be run again, since a sentence lost its derivation, is in
//! the next batch with the same round. So is a run whose round goes on: the sweeps of a chain are as many tasks as keep each of them short.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, anyhow, ensure};
use basics::clock;
use fleet::{Map, Stage};
use grammaton::data::corpus::Corpus;
use grammaton::data::eval::chains::split_r_hat;
use grammaton::data::eval::segmentation::Scorer;
use grammaton::models::decode::{Decoded, Decoder};
use grammaton::models::tally::Tally;
use grammaton::models::{Model, Trained};
use grammaton::num::{Noise, Wide};
use grammaton::train::round::{RoundReport, Step};
use grammaton::train::trainer::{Collect, Failure, Shards, Trainer};
use grammaton::work::task::Language;

use super::checkpoint_writer::CheckpointWriter;
use super::dependencies::Dependencies;
use super::group::Prepared;
use super::grouping::Pace;
use super::input::Input;
use super::plan::{self, Plan};
use super::start;
use super::stopped::Stopped;
use crate::events::{Observer, RunEvent};
use crate::job::{self, Inference, Job, Method};
use crate::metrics::{
    AttachmentByDecoder, ComponentMetrics, Ending, HeldOut, RoundMetrics, RunResult, Scores, ScoresByDecoder,
    decoder_name, traces,
};
use crate::outcome::Sample;
use crate::snapshot::{self, SENTENCES, Snapshot};
use crate::train::checkpoint::{Progress, Run};
use grammaton::methods::{self, Basis, GivenTrees, RunStart, State, keeps};

/// The runs of a job and their shared state.
pub struct Training<'a> {
    job: &'a Job,
    fleet: &'a dyn Map,
    writer: CheckpointWriter<'a>,
    progress: Progress,
    runs: Vec<Active<'a>>,
    /// The runs as they go into a checkpoint, while `runs` have no state between two rounds: in a round that is measured, and at the
    /// end.
    settled: Option<Vec<Run>>,
    pace: Pace,
    /// Seconds since the last round that was finished, in batches that finished none.
    seconds: f64,
}

/// A running or finished run.
struct Active<'a> {
    /// Its point of the job's grid.
    point: usize,
    /// Training data of the point's group.
    of: &'a Prepared<'a>,
    inference: &'a Inference,
    trainer: Box<dyn methods::Run>,
    converged: bool,
    /// The best measurement on held-out sentences, and the state that gave it.
    best: Option<(HeldOut, State)>,
    /// Number of measurements since the best one.
    waited: usize,
    /// Number of strings restored since the round began.
    restored: usize,
    /// Share of the sentences that the round has read, and time that its tasks took.
    read: (f64, Duration),
}

/// The best run of a point.
pub struct FinishedPoint {
    /// The point's name.
    pub name: String,
    /// What the run came to, without scores.
    pub result: RunResult,
    /// All runs of the point, from 1.
    pub runs: std::ops::Range<usize>,
    /// Its model.
    pub model: Trained,
    /// Models of the other chains of a sampler.
    pub chains: Vec<Model>,
    /// The samples of all its runs, by sentence of the corpus; empty without samples.
    pub tallies: Arc<Vec<Tally>>,
}

impl FinishedPoint {
    /// The models of all its chains: the others', then its own.
    pub fn models(&self) -> impl Iterator<Item = &Model> {
        self.chains.iter().chain(self.model.of_grammar())
    }
}

/// A run whose round is over.
struct Ended {
    run: usize,
    /// Time that computing the round took, summed over workers.
    busy: Duration,
    /// Share of the sentences that the round has read.
    share: f64,
}

/// Measurements of a round with the fleet.
#[derive(Default)]
struct Measured {
    scores: ScoresByDecoder,
    attachment: AttachmentByDecoder,
    held_out: Option<HeldOut>,
    shown: Vec<Sample>,
}

/// The trees that a sampler is at, among decoders.
const SAMPLE: &str = "sample";

impl<'a> Training<'a> {
    /// The runs as `progress` has them.
    pub fn new(
        job: &'a Job,
        prepared: &'a [Prepared<'a>],
        fleet: &'a dyn Map,
        writer: CheckpointWriter<'a>,
        mut progress: Progress,
    ) -> Result<Training<'a>> {
        let given = |of: &Prepared<'_>| {
            let chains = of.group.job.points.iter().any(|point| point.inference.method == Method::Hastings);
            let given = of.input().start.as_ref();
            given.map(|given| start::given(of.input(), &of.plan, fleet, given, chains)).transpose()
        };
        let given: Vec<Option<GivenTrees>> = prepared.iter().map(given).collect::<Result<_>>()?;
        let mut saved = std::mem::take(&mut progress.runs).into_iter();
        let mut runs = Vec::new();
        for (point, restart) in job.runs() {
            let run = runs.len() + 1;
            let inference = &job.points[point].inference;
            let in_group =
                prepared.iter().zip(&given).find_map(|(of, given)| Some((of, given, of.place(point)?)));
            let (of, given, place) = in_group.expect("every point of a job is in one group");
            let harmonic = harmonic(of, inference, restart)?;
            let trees = harmonic.as_ref().or(given.as_ref());
            let families = of.input().dependencies().map(|dependencies| dependencies.families(place));
            let beginning = RunStart { model: job.model.model(), inference, restart, trees, families };
            let Run { converged, state, best, waited } = saved.next().unwrap_or_default();
            let goes_on = state.is_some();
            let trainer = methods::trainer(&of.plan, &beginning, state).map_err(|problem| {
                if goes_on {
                    writer.refusal(&format!("run {run}: {problem}"))
                } else {
                    anyhow!("run {run}: {problem}")
                }
            })?;
            runs.push(Active {
                point,
                of,
                inference,
                trainer,
                converged,
                best,
                waited,
                restored: 0,
                read: Default::default(),
            });
        }
        progress.tallies.resize(job.points.len(), Arc::default());
        let input = prepared.first().map(Prepared::input).expect("a job has at least one point");
        check_tallies(input, &progress.tallies).map_err(|problem| writer.refusal(&format!("{problem:#}")))?;
        Ok(Training {
            job,
            fleet,
            writer,
            progress,
            runs,
            settled: None,
            pace: Pace::default(),
            seconds: 0.0,
        })
    }

    /// Runs all of them to their end, and gives the best run of every point of the job.
    pub fn run(&mut self, observer: &mut dyn Observer) -> Result<Vec<FinishedPoint>> {
        while self.runs.iter().any(|run| !run.is_over()) {
            let begun = clock::instant();
            for (metrics, sentences) in self.batch()? {
                let (run, round) = (metrics.run, metrics.round);
                self.progress.rounds.push(metrics);
                let r_hat = self.r_hat(run, round);
                let metrics = self.progress.rounds.last_mut().expect("it was just put there");
                metrics.r_hat = r_hat;
                observer.on(&RunEvent::RoundFinished(Box::new(metrics.clone())))?;
                if (round == 1 || self.is_scored(run - 1)) && observer.shows_snapshots() {
                    observer.on(&RunEvent::Scored(Box::new(self.snapshot(run, &sentences))))?;
                }
            }
            self.progress.timings.rounds += begun.elapsed().as_secs_f64();
            let Training { writer, progress, runs, .. } = self;
            writer.advance(|| snapshot_of(progress, saved(runs)), observer)?;
        }
        self.writer.wait(observer)?;
        let points = (0..self.job.points.len()).map(|point| self.finished(point)).collect::<Result<_>>()?;
        self.settled = Some(saved(&self.runs));
        self.runs.clear();
        Ok(points)
    }

    /// Progress of the job, without its runs.
    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    /// Checkpoints that could not be written.
    pub fn n_failed(&self) -> usize {
        self.writer.n_failed()
    }

    /// Writes a last checkpoint of a job that stops; returns what is kept.
    pub fn stop(&mut self, observer: &mut dyn Observer) -> Result<Stopped> {
        let Training { writer, progress, runs, settled, .. } = self;
        let runs = settled.take().unwrap_or_else(|| saved(runs));
        let kept = writer.keep(|| snapshot_of(progress, runs), observer)?;
        Ok(Stopped { round: self.progress.last_round(), kept })
    }

    /// Waits until no checkpoint is being written.
    pub fn await_checkpoint(&mut self, observer: &mut dyn Observer) -> Result<()> {
        self.writer.wait(observer)
    }

    /// A round of every run that is not over; the metrics of those that count, each with some sentences as they were read.
    fn batch(&mut self) -> Result<Vec<(RoundMetrics, Vec<Sample>)>> {
        let begun = clock::instant();
        let active: Vec<usize> = (0..self.runs.len()).filter(|&run| !self.runs[run].is_over()).collect();
        let shards = active.iter().map(|&run| self.runs[run].trainer.shards(&self.runs[run].of.plan));
        let shards: Vec<Vec<usize>> = shards.collect();
        let n_shards = shards.iter().map(Vec::len).sum();
        let level = self.pace.next_level(n_shards);
        let mut asks = Vec::with_capacity(active.len());
        let mut asked = Vec::new();
        for (&run, shards) in active.iter().zip(shards) {
            let Active { trainer, inference, of, .. } = &mut self.runs[run];
            let round = trainer.past().rounds + 1;
            let (keep, due) = (keeps(inference, round), round.is_multiple_of(self.job.output.score_every));
            let with_trees = keep || due || round == inference.max_rounds;
            trainer.begin(Collect {
                segments: with_trees.then(|| of.input().segments.clone()),
                as_sample: keep,
            });
            let ask = trainer.ask(&of.plan).map_err(anyhow::Error::from_boxed)?;
            let groups = of.plan.groups(&shards, if ask.is_summed() { level } else { 0 });
            asked.extend(groups.into_iter().map(|group| (asks.len(), group)));
            asks.push((&of.plan, ask));
        }
        let first = active[0];
        let stage = Stage::Round { run: first + 1, round: self.runs[first].trainer.past().rounds + 1 };
        let runs = &mut self.runs;
        let of_run = |(ask, group): (usize, Range<usize>)| (active[ask], group);
        let takes = asked.iter().cloned().map(of_run).map(|(run, group)| self.pace.takes(run, &group));
        let tasks = plan::round(asks, asked.clone(), takes.collect(), self.pace.n_remote());
        let report = plan::map(self.fleet, stage, tasks, |at, answer| {
            let (ask, group) = &asked[at];
            let Active { trainer, of, .. } = &mut runs[active[*ask]];
            if trainer.add(&of.plan, group.clone(), answer).map_err(anyhow::Error::from_boxed)? {
                Ok(())
            } else {
                Err(Failure::WrongAnswer { shard: group.start }.into())
            }
        })?;
        self.pace.learn(&report, asked.iter().cloned().map(of_run));
        // Measuring may be cut short, and then the round has to be run again.
        self.settled = self.is_measured().then(|| saved(&self.runs));
        let mut finished: Vec<(RoundReport, Ended)> = Vec::new();
        for (ask, &run) in active.iter().enumerate() {
            let plan = &self.runs[run].of.plan;
            let of_run = report.busy_by_task.iter().zip(&asked).filter(|(_, asked)| asked.0 == ask);
            let busy = of_run.map(|(busy, _)| *busy).sum::<Duration>();
            let n_read = asked.iter().filter(|(of, _)| *of == ask).flat_map(|(_, group)| group.clone());
            let n_read = n_read.filter(|&shard| plan.strings(shard).is_none()).count();
            let share = n_read as f64 / plan.sentence_shards().count() as f64;
            let active = &mut self.runs[run];
            // A round that goes on has read everything before.
            let (share, busy) = (active.read.0.max(share), active.read.1 + busy);
            active.read = Default::default();
            match active.trainer.finish().map_err(|failure| explained(self.fleet, active.of, failure))? {
                Step::Again { restored } => active.restored += restored,
                Step::Continue => active.read = (share, busy),
                Step::Next(report) => {
                    self.runs[run].converged = report.converged;
                    finished.push((report, Ended { run, busy, share }));
                }
            }
        }
        self.seconds += begun.elapsed().as_secs_f64();
        if finished.is_empty() {
            self.settled = None;
            return Ok(Vec::new());
        }
        let seconds = std::mem::take(&mut self.seconds) / finished.len() as f64;
        let measured =
            finished.iter().map(|(_, ended)| self.measure(ended.run)).collect::<Result<Vec<_>>>()?;
        self.settled = None;
        let conclude = |((report, ended), measured)| self.conclude(report, ended, seconds, measured);
        finished.into_iter().zip(measured).map(conclude).collect()
    }

    /// Whether rounds may be measured with the fleet.
    fn is_measured(&self) -> bool {
        let has_gold = |dependencies: &Dependencies| dependencies.to_find().gold().is_some();
        self.runs.iter().any(|run| {
            !run.of.held_out.is_empty()
                || has_scores(run.of.input())
                || run.of.input().dependencies().is_some_and(has_gold)
        })
    }

    /// Measures the last round of a run, if that is due; changes nothing.
    fn measure(&self, run: usize) -> Result<Measured> {
        let Active { trainer, of, .. } = &self.runs[run];
        let (due, last) =
            (trainer.past().rounds.is_multiple_of(self.job.output.score_every), self.runs[run].is_over());
        let mut measured = Measured::default();
        let to_find = of.input().dependencies().filter(|_| due && !last).map(Dependencies::to_find);
        if let Some(to_find) = to_find.filter(|to_find| to_find.gold().is_some())
            && let Trained::Grammar(model) = self.runs[run].model()?
        {
            measured.attachment = to_find.find(self.fleet, &of.plan, &model, &[Decoder::Viterbi])?.1;
        }
        let is_decoded = !has_samples(&**trainer) && has_scores(of.input()) && !last;
        if (due || last) && (!of.held_out.is_empty() || is_decoded) {
            let model = self.runs[run].model()?;
            if let Some(model) = model.of_grammar().filter(|_| is_decoded) {
                let found = self.viterbi(of, model, &mut measured.shown)?;
                measured.scores.insert(decoder_name(Decoder::Viterbi).to_owned(), found);
            }
            measured.held_out = of.held_out.measure(self.fleet, &of.plan, &model)?;
        }
        Ok(measured)
    }

    /// Finishes a round and returns its metrics.
    fn conclude(
        &mut self,
        report: RoundReport,
        ended: Ended,
        seconds: f64,
        measured: Measured,
    ) -> Result<(RoundMetrics, Vec<Sample>)> {
        let Ended { run, busy, share } = ended;
        let input = self.runs[run].of.input();
        let Measured { mut scores, attachment, held_out, mut shown } = measured;
        let round = self.runs[run].trainer.past().rounds;
        let last = self.runs[run].is_over();
        let due = round.is_multiple_of(self.job.output.score_every);
        let samples = self.runs[run].trainer.report().samples;
        if has_samples(&*self.runs[run].trainer) {
            let mut scorer = Scorer::default();
            let mut tallies = keeps(self.runs[run].inference, round).then(|| {
                // In place, unless a checkpoint is being written.
                let tallies = Arc::make_mut(&mut self.progress.tallies[self.runs[run].point]);
                tallies.resize(input.text.n_sentences, Tally::default());
                tallies
            });
            input.text.blocks(|sentences, shards, block| {
                let first = shards.start;
                let samples =
                    block.by_occurrence(&samples[shards]).ok_or(Failure::WrongAnswer { shard: first })?;
                // A tag of a dependency model is two tokens, and its trees have no segments to show.
                if input.dependencies().is_none() {
                    show(&mut shown, &block.corpus, samples.iter().map(|sample| &sample.ends[..]));
                }
                for (at, sample) in samples.iter().enumerate() {
                    if let Some(gold) = &block.corpus.gold {
                        scorer.add(&block.corpus.sentences[at], &gold[at], &sample.ends);
                    }
                }
                if let Some(tallies) = &mut tallies {
                    let tallies = tallies[sentences].iter_mut();
                    tallies.zip(samples).for_each(|(tally, sample)| tally.add(sample));
                }
                Ok(())
            })?;
            if has_scores(input) && (due || last) {
                scores.insert(SAMPLE.to_owned(), Scores::from(&scorer.scores()));
            }
        }
        let active = &mut self.runs[run];
        if let Some(found) = held_out {
            if active.best.as_ref().is_none_or(|(best, _)| found.is_better_than(best)) {
                (active.best, active.waited) = (Some((found, active.trainer.saved())), 0);
            } else {
                active.waited += 1;
            }
        }
        let adapted = input.adapted();
        let hyper = adapted.iter().cloned().zip(active.trainer.report().hyper);
        let strings = adapted.iter().cloned().zip(active.trainer.report().n_strings);
        let components = active.trainer.report().components.into_iter();
        let components = components.map(|(name, share)| (name.to_owned(), ComponentMetrics::from(share)));
        let components = components.collect();
        let metrics = RoundMetrics {
            run: run + 1,
            round,
            bound: report.bound,
            change: report.change,
            seconds,
            busy_seconds: busy.as_secs_f64(),
            sentences_per_second: share * input.text.n_sentences as f64 / seconds,
            strings: strings.collect(),
            hyper: hyper.collect(),
            scores,
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
        active.trainer.past().rounds.is_multiple_of(self.job.output.score_every) || active.is_over()
    }

    /// Snapshot of a run, counted from 1.
    fn snapshot(&self, run: usize, sentences: &[Sample]) -> Snapshot {
        let Active { trainer, of, .. } = &self.runs[run - 1];
        let (strings, rules) = match &of.plan.basis {
            Basis::Language(Language { grammar, lexicon }) => {
                snapshot::most_used(&grammar.value, &lexicon.value, &**trainer, of.input().text.unit)
            }
            Basis::Treebank(_) => Default::default(),
        };
        Snapshot { run, round: trainer.past().rounds, strings, rules, sentences: sentences.to_vec() }
    }

    /// Scores of the corpus as Viterbi reads it, and some sentences to be shown.
    fn viterbi(&self, of: &Prepared<'_>, model: &Model, shown: &mut Vec<Sample>) -> Result<Scores> {
        let mut scorer = Scorer::default();
        let parser = of.plan.parser(model, &[Decoder::Viterbi], false, false)?;
        of.input().text.blocks(|_, shards, block| {
            let decoded = parser.parse(self.fleet, Stage::Decode, of.plan.shards(shards))?;
            let gold = block.corpus.gold.iter().flatten();
            let decoded = block.by_sentence(&decoded)?;
            show(shown, &block.corpus, decoded.iter().map(|decoded| &decoded.segmentations[0][..]));
            for ((sentence, gold), decoded) in block.corpus.sentences.iter().zip(gold).zip(decoded) {
                scorer.add(sentence, gold, &decoded.segmentations[0]);
            }
            Ok(())
        })?;
        Ok(Scores::from(&scorer.scores()))
    }

    /// Split R-hat of the objective over the chains of a point, without the first half of the rounds. It is in the metrics of the last chain,
    /// in every round that is scored. `None` for a single chain, which cannot show whether it has mixed.
    fn r_hat(&self, run: usize, round: usize) -> Option<f64> {
        let active = &self.runs[run - 1];
        let last = self.runs.get(run).is_none_or(|next| next.point != active.point);
        let due = round.is_multiple_of(self.job.output.score_every) || active.is_over();
        if !active.inference.method.is_sampler() || !last || !due {
            return None;
        }
        let first = self.runs.iter().position(|run| run.point == active.point)?;
        if first + 1 == run {
            return None;
        }
        let traces = traces(&self.progress.rounds, first + 1..run + 1);
        split_r_hat(&traces.iter().map(Vec::as_slice).collect::<Vec<_>>())
    }

    /// The best run of a point: by held-out sentences if there are such, else by the objective.
    fn finished(&self, point: usize) -> Result<FinishedPoint> {
        let of_point: Vec<usize> =
            (0..self.runs.len()).filter(|&run| self.runs[run].point == point).collect();
        let is_better = |run: &Active<'_>, other: &Active<'_>| match (&run.best, &other.best) {
            (Some((found, _)), Some((known, _))) => found.is_better_than(known),
            _ => run.trainer.past().bound > other.trainer.past().bound,
        };
        let better =
            |best: usize, run: usize| if is_better(&self.runs[run], &self.runs[best]) { run } else { best };
        let best =
            of_point.iter().copied().reduce(better).ok_or_else(|| anyhow!("a job has at least one run"))?;
        let Active { trainer, of, converged, best: kept, inference, .. } = &self.runs[best];
        let (rounds_run, ending) = (trainer.past().rounds, self.runs[best].ending().unwrap_or_default());
        let bounds = of_point.iter().map(|&run| self.runs[run].trainer.past().bound).collect();
        let (state, held_out) = match kept {
            Some((held_out, state)) => (state.clone(), Some(*held_out)),
            None => (trainer.saved(), None),
        };
        let (restart, run) = (best - of_point[0] + 1, best + 1);
        let beginning =
            RunStart { model: self.job.model.model(), inference, restart, trees: None, families: None };
        let (rounds, bound) = (state.past().rounds, state.past().bound);
        let kept = methods::trainer(&of.plan, &beginning, Some(state))?;
        let runs = of_point[0] + 1..of_point[0] + 1 + of_point.len();
        let name = self.job.points[point].name.clone();
        let (model, converged) = (model(of, &*kept)?, *converged);
        let tallies = self.progress.tallies[point].clone();
        let others = of_point.iter().filter(|&&run| run != best && inference.method.is_sampler());
        let models = others.map(|&run| self.runs[run].model()).collect::<Result<Vec<Trained>>>()?;
        let chains = models.iter().filter_map(|model| model.of_grammar().cloned()).collect();
        let result = RunResult {
            run,
            rounds,
            rounds_run,
            ending,
            converged,
            bound,
            bounds,
            held_out,
            ..RunResult::default()
        };
        Ok(FinishedPoint { name, result, runs, model, chains, tallies })
    }
}

/// The runs as they go into a checkpoint.
fn saved(runs: &[Active<'_>]) -> Vec<Run> {
    runs.iter().map(Active::saved).collect()
}

/// `progress`, which has no runs, with `runs`.
fn snapshot_of(progress: &Progress, runs: Vec<Run>) -> Progress {
    Progress { runs, ..progress.clone() }
}

/// Whether segmentations can be compared with gold.
fn has_scores(input: &Input) -> bool {
    input.text.has_gold && !input.segments.is_empty()
}

/// Whether the last round of a run gave trees of all sentences.
fn has_samples(trainer: &dyn Trainer) -> bool {
    let samples = trainer.report().samples;
    !samples.is_empty() && samples.iter().all(|of_shard| !of_shard.is_empty())
}

/// Whether the samples of every point are of the sentences of the corpus.
fn check_tallies(input: &Input, tallies: &[Arc<Vec<Tally>>]) -> Result<()> {
    let (n_sentences, n_tokens) = (input.text.n_sentences, input.tokens_per_symbol());
    for of_point in tallies.iter().filter(|of_point| !of_point.is_empty()) {
        ensure!(
            of_point.len() == n_sentences,
            "samples of {} sentences, expected {n_sentences}",
            of_point.len()
        );
        input.text.blocks(|sentences, _, block| {
            for (tally, sentence) in of_point[sentences].iter().zip(&block.corpus.sentences) {
                tally.check(n_tokens * sentence.len())?;
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// Puts the first readable sentences among those that are shown, until there are enough: the same ones in every round.
fn show<'a>(shown: &mut Vec<Sample>, corpus: &Corpus, ends: impl Iterator<Item = &'a [u32]>) {
    let readable = |(at, _): &(usize, &[u32])| READABLE.contains(&corpus.sentences[*at].len());
    let missing = SENTENCES.saturating_sub(shown.len());
    for (at, ends) in ends.enumerate().filter(readable).take(missing) {
        let gold = corpus.gold_line(at);
        let (line, segmentations) = (corpus.lines[at], vec![corpus.line(at, ends)]);
        shown.push(Sample { line, gold, segmentations, ..Sample::default() });
    }
}

/// Symbols of a sentence that is worth showing and has room in a line.
const READABLE: std::ops::RangeInclusive<usize> = 6..=70;

/// The error of a failure, with the sentence that it is about.
fn explained(fleet: &dyn Map, of: &Prepared<'_>, failure: Failure) -> anyhow::Error {
    let place = |shard: usize, sentence: usize| of.input().text.describe(shard, sentence as u32);
    match &failure {
        &Failure::Unbounded { shard, sentence } => match place(shard, sentence) {
            Ok(place) => anyhow::Error::from(failure).context(place),
            Err(_) => failure.into(),
        },
        Failure::ZeroProbability { shards, weights } => match improbable(fleet, &of.plan, shards, weights) {
            Ok(Some((shard, sentence))) => match place(shard, sentence) {
                Ok(place) => anyhow!(
                    "{place}: {failure}; start from trees that use the rules which the sentence needs, or choose another \
                     inference.start, or inference.method = \"map-em\""
                ),
                Err(_) => failure.into(),
            },
            Ok(None) => Failure::WrongAnswer { shard: shards.start }.into(),
            Err(error) => error,
        },
        Failure::BoundFell(_)
        | Failure::WrongAnswer { .. }
        | Failure::NoProgress { .. }
        | Failure::Method(_) => failure.into(),
    }
}

/// The first sentence of these shards that has probability 0 under weights of all parameters: its shard, and its position there.
fn improbable(
    fleet: &dyn Map,
    plan: &Plan,
    shards: &Range<usize>,
    weights: &[Wide],
) -> Result<Option<(usize, usize)>> {
    let decoded = plan.mass(weights)?.parse(fleet, Stage::Decode, plan.shards(shards.clone()))?;
    let in_shard = |(shard, decoded): (usize, &Vec<Decoded>)| {
        let sentence = decoded.iter().position(|decoded| decoded.log_z == f64::NEG_INFINITY)?;
        Some((shard, sentence))
    };
    Ok(shards.clone().zip(&decoded).find_map(in_shard))
}

/// The counts of the harmonic start, for methods without chains; with jitter in all runs of a point but the first.
fn harmonic(of: &Prepared<'_>, inference: &Inference, restart: usize) -> Result<Option<GivenTrees>> {
    let Some(dependencies) = of.input().dependencies().filter(|_| inference.start == job::Start::Harmonic)
    else {
        return Ok(None);
    };
    let grammar = &of.plan.basis.language()?.grammar.value;
    let noise = Noise::new(inference.seed, restart as u64);
    let jitter = (restart > 1).then_some((noise, inference.jitter));
    let counts = || inference.harmonic().counts(dependencies.tagged(), grammar, jitter);
    let has_counts = inference.method != Method::Hastings;
    Ok(has_counts.then(|| GivenTrees { counts: counts(), by_shard: Vec::new() }))
}

/// Model of a trainer of a group so far.
fn model(of: &Prepared<'_>, trainer: &dyn Trainer) -> Result<Trained> {
    Ok(methods::model(&of.plan.basis, &of.input().segments, trainer)?)
}

impl Active<'_> {
    /// The model so far.
    fn model(&self) -> Result<Trained> {
        model(self.of, &*self.trainer)
    }

    /// Whether it has no more rounds. A resumed job may have a larger maximum than before.
    fn is_over(&self) -> bool {
        self.ending().is_some()
    }

    /// Why it has ended, if it has.
    fn ending(&self) -> Option<Ending> {
        let Inference { max_rounds, patience, .. } = *self.inference;
        if self.converged {
            Some(Ending::Converged)
        } else if patience > 0 && self.waited >= patience {
            Some(Ending::Patience)
        } else if self.trainer.past().rounds >= max_rounds {
            Some(Ending::MaxRounds)
        } else {
            None
        }
    }

    fn saved(&self) -> Run {
        Run {
            converged: self.converged,
            state: Some(self.trainer.saved()),
            best: self.best.clone(),
            waited: self.waited,
        }
    }
}
