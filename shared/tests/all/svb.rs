//! Stochastic rounds: that they are batch training where everything is sampled, that samples are unbiased, and where they lead.

use std::sync::Arc;

use grammaton::grammar::ParamId;
use grammaton::grammar::groups::Groups;
use grammaton::grammar::lexicon::Lexicon;
use grammaton::grammar::{Grammar, SymbolId};
use grammaton::models::adaptor::hyper::Fit;
use grammaton::models::adaptor::start::Start;
use grammaton::num::{Noise, Wide};
use grammaton::train;
use grammaton::train::adaptor::{Growth, Samples, Settings, State, Trainer};
use grammaton::train::round::{RoundReport, Step, Summing, Totals, in_use};
use grammaton::train::stochastic::Schedule;
use grammaton::train::trainer::{self, Collect};
use grammaton::work::engine::Engine;
use grammaton::work::shard::Shard;
use grammaton::work::task::{Answer, Work};

use crate::support::{self, Run, assert_all_close, assert_close, choose, draw};

const FIT_NOTHING: Fit = Fit { concentration: false, discount: false, alpha: false };
const FIT_ALL: Fit = Fit { concentration: true, discount: true, alpha: true };

fn settings() -> Settings {
    Settings {
        pitman_yor: true,
        select_by_bound: false,
        drop_share: 0.2,
        resort: false,
        fit: FIT_NOTHING,
        discount: 0.0,
        concentration: 1.0,
        growth: None,
        tolerance: 0.0,
        start: Start::Uniform,
        samples: None,
    }
}

/// Everything in every round, and nothing but the last round counts.
const BATCH: Schedule =
    Schedule { shards: 0, sample: usize::MAX, delay: 3.0, power: 0.0, first: 1, seed: 3, run: 0 };
const SAMPLES: Schedule = Schedule { sample: 2, delay: 1.0, power: 0.75, ..BATCH };

/// Collocations of words, both adapted.
fn colloc() -> Grammar {
    support::grammar(
        "1 1 S --> Cs\n1 1 Cs --> C\n1 1 Cs --> C Cs\nC --> Ws\n2 1 Ws --> W\n1 1 Ws --> W Ws\nW --> Ls\n\
         2 1 Ls --> L\n1 1 Ls --> L Ls\n1 1 L --> a\n1 1 L --> b\n1 1 L --> c\n",
    )
}

/// Nothing adapted: as an unsupervised parser's.
fn plain() -> Grammar {
    support::grammar(
        "1 1 S --> A\n1 1 S --> S A\n1 1 A --> L\n1 1 A --> L B\n1 1 B --> L L\n1 1 B --> A L\n1 1 L --> a\n1 1 L --> b\n1 1 L --> c\n",
    )
}

fn corpus(grammar: &Grammar, n: usize, seed: u64) -> Vec<Vec<SymbolId>> {
    let mut sentences = draw(grammar, n, seed);
    sentences.retain(|sentence| sentence.len() <= 12);
    sentences
}

/// The shards of a run, and what they touch.
struct Shards {
    run: Run,
    engine: Engine,
    indexes: Vec<Vec<ParamId>>,
    n_sentences: usize,
}

impl Shards {
    fn new(grammar: &Grammar, lexicon: &Lexicon, sentences: &[Vec<SymbolId>]) -> Shards {
        let (run, engine) = (Run::cut(grammar, lexicon, sentences, 60, 40), Engine::default());
        let index = |shard| match run.answer(&engine, shard, Work::Index) {
            Answer::Index(index) => index.params,
            _ => unreachable!(),
        };
        let indexes = run.shards.iter().map(index).collect();
        let is_sentences =
            |shard: &&grammaton::work::task::Named<Shard>| matches!(*shard.value, Shard::Sentences(_));
        let n_sentences = run.shards.iter().filter(is_sentences).count();
        Shards { run, engine, indexes, n_sentences }
    }

    fn sums(&self, shards: impl Iterator<Item = usize>, weights: &[Wide], losses: bool) -> Totals {
        let mut sums = Summing::new(weights.len(), losses);
        for at in shards {
            let (shard, index) = (&self.run.shards[at], &self.indexes[at]);
            let local = index.iter().map(|param| weights[param.index()]).collect();
            let work = Work::Expect { weights: local, losses };
            let Answer::Expectation(found) = self.run.answer(&self.engine, shard, work) else {
                unreachable!()
            };
            let strings = match &*shard.value {
                Shard::Strings(strings) => Some(strings),
                Shard::Sentences(_) | Shard::Trees { .. } => None,
            };
            sums.add(at, strings, in_use(weights, index), found);
        }
        sums.finish()
    }

    fn strings(&self) -> std::ops::Range<usize> {
        self.n_sentences..self.run.shards.len()
    }

    fn all(&self) -> std::ops::Range<usize> {
        0..self.run.shards.len()
    }
}

fn trainer(grammar: &Grammar, lexicon: &Lexicon, settings: Settings, schedule: Schedule) -> Trainer {
    let settings = Settings { samples: Some(Samples { schedule, select_every: 1 }), ..settings };
    let noise = Noise::new(schedule.seed, schedule.run);
    Trainer::new(Arc::new(grammar.clone()), Arc::new(lexicon.clone()), settings, noise)
}

/// A round, again until it counts; how often it ran again.
fn round(shards: &Shards, trainer: &mut Trainer) -> (RoundReport, usize) {
    for again in 0..50 {
        let (weights, losses) = (trainer.weights(), trainer.wants_losses());
        let samples = trainer.settings().samples.unwrap();
        let sampled = samples.schedule.sampled(trainer.state().past.rounds + 1);
        let sample = shards.sums(sampled.into_iter(), &weights, losses);
        let strings = shards.sums(shards.strings(), &weights, losses);
        if let Step::Next(report) = trainer.absorb_sample(samples, sample, strings) {
            return (report, again);
        }
    }
    panic!("the round runs again and again");
}

fn rounds(shards: &Shards, trainer: &mut Trainer, n: usize) {
    for _ in 0..n {
        round(shards, trainer);
    }
}

fn batch_round(shards: &Shards, trainer: &mut train::adaptor::Trainer) -> RoundReport {
    loop {
        let totals = shards.sums(shards.all(), &trainer.weights(), trainer.wants_losses());
        if let Step::Next(report) = trainer.absorb(totals).unwrap() {
            return report;
        }
    }
}

#[test]
fn at_rate_one_over_all_shards_it_is_batch_training() {
    let grammar = colloc();
    let sentences = corpus(&grammar, 120, 11);
    let lexicon = choose(&grammar, &sentences, 60, 0.0);
    let shards = Shards::new(&grammar, &lexicon, &sentences);
    let schedule = Schedule { shards: shards.n_sentences, ..BATCH };
    let (resort, fit) = (true, FIT_ALL);
    let growth = Some(Growth { start: 20, step: 3 });
    for settings in [
        settings(),
        Settings { resort, fit, discount: 0.3, start: Start::Jitter(0.5), ..settings() },
        Settings { resort, fit, select_by_bound: true, ..settings() },
        Settings { resort, fit, growth, ..settings() },
    ] {
        let what = format!("{settings:?}");
        let mut online = trainer(&grammar, &lexicon, settings.clone(), schedule);
        let (grammar, lexicon) = (Arc::new(grammar.clone()), Arc::new(lexicon.clone()));
        let mut batch = train::adaptor::Trainer::new(grammar, lexicon, settings, Noise::new(3, 0));
        for number in 1..=12 {
            let what = format!("{what}, round {number}");
            let (found, expected) = (round(&shards, &mut online).0, batch_round(&shards, &mut batch));
            assert_eq!(found.bound.is_some(), expected.bound.is_some(), "{what}");
            assert_close(found.bound.unwrap_or(0.0), expected.bound.unwrap_or(0.0), 1e-12, &what);
            assert_eq!((found.dropped, found.resorted), (expected.dropped, expected.resorted), "{what}");
            let (found, expected) = (online.params(), batch.params());
            assert_all_close(&found.tau, &expected.tau, 1e-11, &what);
            assert_all_close(&found.alpha, &expected.alpha, 1e-11, &what);
            for (found, expected) in found.sticks.iter().zip(&expected.sticks) {
                assert_eq!(found.order.len(), expected.order.len(), "{what}");
                assert_all_close(&found.gamma1, &expected.gamma1, 1e-11, &what);
                assert_all_close(&found.gamma2, &expected.gamma2, 1e-11, &what);
            }
        }
    }
}

#[test]
fn at_rate_one_over_all_shards_a_pcfg_is_trained_in_batch_bit_for_bit() {
    let grammar = plain();
    let sentences = corpus(&grammar, 150, 5);
    let shards = Shards::new(&grammar, &Lexicon::default(), &sentences);
    let schedule = Schedule { shards: shards.n_sentences, ..BATCH };
    let groups = Groups::new(&grammar, &Lexicon::default());
    let harmonic: Vec<f64> = (0..groups.n_params()).map(|at| 0.5 + at as f64).collect();
    let indexes: Vec<_> = shards.indexes.iter().cloned().map(Arc::new).collect();
    let starts = [train::pcfg::Start::Jitter(0.5), train::pcfg::Start::Counts(harmonic)];
    let methods = [train::pcfg::Method::Vb { fit_alpha: false }, train::pcfg::Method::Em];
    for (start, method) in starts.iter().flat_map(|start| methods.map(|method| (start.clone(), method))) {
        let trainer = |schedule| pcfg(&grammar, method, start.clone(), schedule);
        let (mut batch, mut online) = (trainer(None), trainer(Some(schedule)));
        for _ in 0..8 {
            let answer =
                |shard: usize, work| shards.run.answer(&shards.engine, &shards.run.shards[shard], work);
            let step = |trainer: &mut train::pcfg::Trainer| match trainer::round(
                trainer,
                &indexes,
                Collect::default(),
                answer,
            )
            .unwrap()
            {
                Step::Next(report) => report,
                step => panic!("{step:?}"),
            };
            let (found, expected) = (step(&mut online), step(&mut batch));
            assert_eq!((found.bound, found.change), (expected.bound, expected.change));
            assert_eq!(online.params(), batch.params());
        }
    }
}

fn pcfg(
    grammar: &Grammar,
    method: train::pcfg::Method,
    start: train::pcfg::Start,
    schedule: Option<Schedule>,
) -> train::pcfg::Trainer {
    let groups = Groups::new(grammar, &Lexicon::default());
    let alpha = groups.alpha(grammar);
    let anneal = grammaton::train::anneal::Anneal::default();
    let settings = train::pcfg::Settings {
        method,
        start,
        schedule,
        backoff: None,
        anneal,
        tolerance: 0.0,
        seed: 3,
        run: 0,
    };
    train::pcfg::Trainer::new(groups, alpha, settings)
}

/// The statistics of the first sample have no use of most rules, and the sentences of the next need them.
#[test]
fn stepwise_em_gives_every_sentence_a_derivation() {
    let grammar = plain();
    let sentences = corpus(&grammar, 150, 5);
    let shards = Shards::new(&grammar, &Lexicon::default(), &sentences);
    let indexes: Vec<_> = shards.indexes.iter().cloned().map(Arc::new).collect();
    // With κ = 0 each round forgets all that came before it.
    for power in [0.0, 0.7] {
        let schedule = Schedule { shards: shards.n_sentences, sample: 1, power, first: 1, ..SAMPLES };
        let (method, start) = (train::pcfg::Method::Em, train::pcfg::Start::Uniform);
        let mut trainer = pcfg(&grammar, method, start, Some(schedule));
        for _ in 0..20 {
            let answer =
                |shard: usize, work| shards.run.answer(&shards.engine, &shards.run.shards[shard], work);
            let step = trainer::round(&mut trainer, &indexes, Collect::default(), answer);
            let Step::Next(report) = step.unwrap() else { panic!("a sentence lacks a derivation") };
            assert!(report.bound.unwrap().is_finite(), "{report:?}");
        }
    }
}

/// Every sample of two shards is as likely as any other, and the mean of what they estimate is what the corpus gives.
#[test]
fn samples_are_unbiased() {
    let grammar = plain();
    let sentences = corpus(&grammar, 90, 7);
    let shards = Shards::new(&grammar, &Lexicon::default(), &sentences);
    let n = shards.n_sentences;
    assert!(n >= 4, "{n} shards are too few");
    let weights = vec![Wide::ONE; Groups::new(&grammar, &Lexicon::default()).n_params()];
    let expected = shards.sums(0..n, &weights, false);
    let (mut counts, mut log_z, mut samples) = (vec![0.0; weights.len()], 0.0, 0.0);
    let schedule = |seed| Schedule { shards: n, seed, ..SAMPLES };
    for sample in (0..n).flat_map(|a| (a + 1..n).map(move |b| [a, b])) {
        let found = shards.sums(sample.into_iter(), &weights, false);
        counts.iter_mut().zip(found.counts).for_each(|(sum, found)| *sum += n as f64 / 2.0 * found);
        (log_z, samples) = (log_z + n as f64 / 2.0 * found.log_z, samples + 1.0);
    }
    counts.iter_mut().for_each(|sum| *sum /= samples);
    assert_all_close(&counts, &expected.counts, 1e-12, "mean of the counts");
    assert_close(log_z / samples, expected.log_z, 1e-12, "mean of log Z");

    // Every round of an epoch draws each sample as often as any other.
    for round in [1, 2] {
        let n_samples = match schedule(0).sampled(round).len() {
            1 => n,
            _ => samples as usize,
        };
        let mut drawn = std::collections::BTreeMap::new();
        for seed in 0..400 * n_samples as u64 {
            let schedule = schedule(seed);
            let sample = schedule.sampled(round);
            assert_eq!(schedule.scale(round), n as f64 / sample.len() as f64);
            *drawn.entry(sample).or_insert(0) += 1;
        }
        assert_eq!(drawn.len(), n_samples);
        assert!(drawn.values().all(|&times| (300..500).contains(&times)), "{drawn:?}");
    }
}

/// The bound of the whole corpus under the parameters of a run.
fn whole_bound(grammar: &Grammar, lexicon: &Lexicon, shards: &Shards, trainer: &Trainer) -> f64 {
    let weights = trainer.params().weights(grammar, lexicon);
    let totals = shards.sums(shards.all(), &weights, false);
    assert!(totals.missing.is_empty());
    totals.log_z - trainer.params().divergence(grammar)
}

#[test]
fn samples_lead_where_batch_training_leads() {
    let grammar = colloc();
    let sentences = corpus(&grammar, 2000, 11);
    let lexicon = choose(&grammar, &sentences, 60, 0.0);
    let shards = Shards::new(&grammar, &lexicon, &sentences);
    assert!(shards.n_sentences >= 20, "{} shards", shards.n_sentences);
    for select_by_bound in [false, true] {
        let settings = Settings { select_by_bound, resort: true, fit: FIT_ALL, ..settings() };
        let (a, b) = (Arc::new(grammar.clone()), Arc::new(lexicon.clone()));
        let mut batch = train::adaptor::Trainer::new(a, b, settings.clone(), Noise::new(3, 0));
        let best = (0..30).filter_map(|_| batch_round(&shards, &mut batch).bound).last().unwrap();
        let schedule = Schedule { shards: shards.n_sentences, sample: 4, ..SAMPLES };
        let mut online = trainer(&grammar, &lexicon, settings, schedule);
        let mut estimated = 0.0;
        for _ in 0..6 * schedule.epoch() {
            estimated = round(&shards, &mut online).0.bound.unwrap_or(0.0);
        }
        let bound = whole_bound(&grammar, &lexicon, &shards, &online);
        assert!((bound - best).abs() < 0.01 * best.abs(), "{bound}, in batch {best}");
        assert!((estimated - bound).abs() < 0.01 * bound.abs(), "{bound}, estimated {estimated}");
    }
}

/// What a checkpoint relies on: after any round, the state written and read again leads to the same bits.
#[test]
fn a_trainer_made_from_a_saved_state_goes_on_to_the_same_bits() {
    let grammar = colloc();
    let sentences = corpus(&grammar, 300, 11);
    let lexicon = choose(&grammar, &sentences, 60, -0.2);
    let shards = Shards::new(&grammar, &lexicon, &sentences);
    let schedule = Schedule { shards: shards.n_sentences, ..SAMPLES };
    let growth = Some(Growth { start: 20, step: 10 });
    let selecting =
        Settings { select_by_bound: true, drop_share: 0.6, resort: true, fit: FIT_ALL, ..settings() };
    for settings in [selecting.clone(), Settings { growth, start: Start::Jitter(0.5), ..selecting }] {
        let [mut undisturbed, mut resumed] =
            [(), ()].map(|()| trainer(&grammar, &lexicon, settings.clone(), schedule));
        for number in 1..=15 {
            let config = bincode::config::legacy();
            let saved = bincode::serde::encode_to_vec(resumed.state(), config).unwrap();
            let (state, _): (State, usize) = bincode::serde::decode_from_slice(&saved, config).unwrap();
            assert_eq!(state.check(&grammar, &lexicon), Ok(()));
            let (grammar, lexicon) = (Arc::new(grammar.clone()), Arc::new(lexicon.clone()));
            resumed =
                Trainer::resume(grammar, lexicon, undisturbed.settings().clone(), Noise::new(3, 0), state);
            assert_eq!(
                round(&shards, &mut undisturbed),
                round(&shards, &mut resumed),
                "round {number}, {settings:?}"
            );
            assert_eq!(undisturbed.state(), resumed.state(), "round {number}");
        }
        let Schedule { seed, .. } = schedule;
        let mut other =
            trainer(&grammar, &lexicon, settings.clone(), Schedule { seed: seed + 1, ..schedule });
        rounds(&shards, &mut other, 15);
        assert_ne!(other.params(), undisturbed.params(), "another seed");
    }
}

#[test]
fn a_string_that_a_sampled_sentence_needs_comes_back() {
    // `a b` can only be `a b` or `a`, `b`; every sentence is a shard.
    let grammar = support::grammar(
        "1 1 S --> W\n1 1 S --> W S\nW --> L\n1 1 L --> a b\n1 1 L --> b b\n1 1 L --> b a\n",
    );
    let lexicon = support::lexicon(&grammar, &[("W", "a b"), ("W", "b b"), ("W", "b a")]);
    let sentences = [support::tokens(&grammar, "a b b b"), support::tokens(&grammar, "a b")];
    let settings = Settings { select_by_bound: true, drop_share: 1.0, ..settings() };
    let shards = Shards::new(&grammar, &lexicon, &sentences);
    let mut trainer =
        trainer(&grammar, &lexicon, settings, Schedule { shards: shards.n_sentences, ..SAMPLES });
    rounds(&shards, &mut trainer, 2);
    let weights = trainer.weights();
    let samples = trainer.settings().samples.unwrap();
    let sampled = samples.schedule.sampled(trainer.state().past.rounds + 1);
    let mut sample = shards.sums(sampled.into_iter(), &weights, true);
    sample.losses.fill(0.0);
    let Step::Next(report) =
        trainer.absorb_sample(samples, sample, shards.sums(shards.strings(), &weights, true))
    else {
        panic!("nothing was missing")
    };
    assert_eq!((report.dropped, trainer.params().in_use().count()), (3, 0));
    let (report, again) = round(&shards, &mut trainer);
    assert!(again == 1 && report.bound.is_some_and(f64::is_finite));
    assert_eq!(trainer.params().in_use().count(), 2, "the string that no sentence needs stays out of use");
}

#[test]
fn sticks_that_grow_take_the_strings_out_of_use_over_and_over() {
    let grammar = colloc();
    let sentences = corpus(&grammar, 120, 11);
    let lexicon = choose(&grammar, &sentences, 30, 0.0);
    let shards = Shards::new(&grammar, &lexicon, &sentences);
    let growth = Some(Growth { start: 10, step: 7 });
    let settings = Settings { growth, select_by_bound: true, drop_share: 1.0, ..settings() };
    let schedule = Schedule { shards: shards.n_sentences, ..SAMPLES };
    let mut trainer = trainer(&grammar, &lexicon, settings, schedule);
    let in_use = |trainer: &Trainer| trainer.params().in_use().collect::<std::collections::BTreeSet<_>>();
    let (mut before, mut came) = (in_use(&trainer), std::collections::BTreeMap::new());
    let mut dropped = 0;
    for _ in 0..30 {
        dropped += round(&shards, &mut trainer).0.dropped;
        let now = in_use(&trainer);
        now.difference(&before).for_each(|&param| *came.entry(param).or_insert(0) += 1);
        before = now;
    }
    assert!(dropped > 30 && came.values().any(|&times| times > 1), "{dropped} dropped, {came:?}");
}

#[test]
fn states_of_other_models_are_refused() {
    let grammar = colloc();
    let sentences = corpus(&grammar, 60, 11);
    let (few, many) = (choose(&grammar, &sentences, 10, 0.0), choose(&grammar, &sentences, 40, 0.0));
    let schedule = Schedule { shards: 4, ..SAMPLES };
    let mut state = trainer(&grammar, &few, settings(), schedule).state().clone();
    assert_eq!(state.check(&grammar, &few), Ok(()));
    assert!(state.check(&grammar, &many).unwrap_err().to_string().contains("counts"));
    state.past.rounds = usize::MAX;
    assert!(state.check(&grammar, &few).unwrap_err().to_string().contains("rounds"));
}
