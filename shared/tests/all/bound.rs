//! The bound: what it is, that it never falls, and what training does to keep it so.

use std::sync::Arc;

use grammaton::grammar::ParamId;
use grammaton::grammar::lexicon::Lexicon;
use grammaton::grammar::{Grammar, SymbolId};
use grammaton::models::adaptor::hyper::Fit;
use grammaton::models::adaptor::params::Params;
use grammaton::models::adaptor::start::Start;
use grammaton::num::Noise;
use grammaton::num::special::{digamma, ln_gamma};
use grammaton::train::adaptor::{Growth, Settings, State, Trainer};
use grammaton::train::round::{RoundReport, Step, Totals};
use grammaton::work::engine::Engine;

use crate::support::{self, Examined, Run, assert_all_close, assert_close, choose, draw};

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

/// Collocations of words, both adapted.
fn colloc() -> Grammar {
    support::grammar(
        "1 1 S --> Cs\n1 1 Cs --> C\n1 1 Cs --> C Cs\nC --> Ws\n2 1 Ws --> W\n1 1 Ws --> W Ws\nW --> Ls\n\
         2 1 Ls --> L\n1 1 Ls --> L Ls\n1 1 L --> a\n1 1 L --> b\n1 1 L --> c\n",
    )
}

fn corpus(grammar: &Grammar) -> Vec<Vec<SymbolId>> {
    let mut sentences = draw(grammar, 120, 11);
    sentences.retain(|sentence| sentence.len() <= 12);
    sentences
}

struct Training {
    run: Run,
    engine: Engine,
    trainer: Trainer,
}

impl Training {
    fn new(
        grammar: &Grammar,
        lexicon: &Lexicon,
        sentences: &[Vec<SymbolId>],
        settings: Settings,
    ) -> Training {
        let (shared_grammar, shared_lexicon) = (Arc::new(grammar.clone()), Arc::new(lexicon.clone()));
        Training {
            run: Run::new(grammar, lexicon, sentences),
            engine: Engine::default(),
            trainer: Trainer::new(shared_grammar, shared_lexicon, settings, Noise::new(3, 0)),
        }
    }

    fn totals(&self) -> Totals {
        self.run.expect(&self.engine, &self.trainer.weights(), self.trainer.wants_losses())
    }

    /// Rounds until one counts; how often it ran again.
    fn round(&mut self) -> (RoundReport, usize) {
        for again in 0..50 {
            match self.trainer.absorb(self.totals()).unwrap_or_else(|error| panic!("{error}")) {
                Step::Again { .. } | Step::Continue => {}
                Step::Next(report) => return (report, again),
            }
        }
        panic!("the round runs again and again");
    }

    fn rounds(&mut self, n: usize) {
        for _ in 0..n {
            self.round();
        }
    }

    fn n_in_use(&self) -> usize {
        self.trainer.params().in_use().count()
    }
}

/// The bound, as the long formula has it, without what the code calls divergence.
fn long_formula(grammar: &Grammar, params: &Params, log_z: f64) -> f64 {
    let mut bound = log_z;
    for stick in &params.sticks {
        let (a, b) = (stick.concentration, stick.discount);
        for i in 1..stick.order.len() {
            let (g1, g2) = (stick.gamma1[i - 1], stick.gamma2[i - 1]);
            let (broken, left) = (digamma(g1) - digamma(g1 + g2), digamma(g2) - digamma(g1 + g2));
            let ib = i as f64 * b;
            let prior = ln_gamma(1.0 - b + a + ib) - ln_gamma(1.0 - b) - ln_gamma(a + ib) - b * broken
                + (a + ib - 1.0) * left;
            let q = ln_gamma(g1 + g2) - ln_gamma(g1) - ln_gamma(g2) + (g1 - 1.0) * broken + (g2 - 1.0) * left;
            bound += prior - q;
        }
    }
    for parent in 0..grammar.n_nonterminals {
        let rules: Vec<usize> =
            (0..grammar.rules.len()).filter(|&rule| grammar.rules[rule].parent.0 == parent).collect();
        let (sum_alpha, sum_tau): (f64, f64) =
            (rules.iter().map(|&r| params.alpha[r]).sum(), rules.iter().map(|&r| params.tau[r]).sum());
        bound += ln_gamma(sum_alpha) - ln_gamma(sum_tau);
        for rule in rules {
            let (alpha, tau) = (params.alpha[rule], params.tau[rule]);
            bound += ln_gamma(tau) - ln_gamma(alpha) + (alpha - tau) * (digamma(tau) - digamma(sum_tau));
        }
    }
    bound
}

#[test]
fn bound_is_the_long_formula() {
    let grammar = colloc();
    let sentences = corpus(&grammar);
    let lexicon = choose(&grammar, &sentences, 60, 0.2);
    let settings = Settings { fit: FIT_ALL, discount: 0.3, resort: true, ..settings() };
    let mut training = Training::new(&grammar, &lexicon, &sentences, settings);
    assert_eq!(training.round().0.bound, None);
    for _ in 0..5 {
        let params = training.trainer.params().clone();
        let expected = long_formula(&grammar, &params, training.totals().log_z);
        let found = training.round().0.bound.unwrap();
        assert_close(found, expected, 1e-9, "bound");
    }
}

#[test]
fn bound_never_falls() {
    let grammar = colloc();
    let sentences = corpus(&grammar);
    let lexicon = choose(&grammar, &sentences, 80, 0.0);
    for select_by_bound in [false, true] {
        for resort in [false, true] {
            for fit in [FIT_NOTHING, FIT_ALL] {
                for discount in [0.0, 0.5] {
                    let settings = Settings { select_by_bound, resort, fit, discount, ..settings() };
                    let what = format!("{settings:?}");
                    let mut training = Training::new(&grammar, &lexicon, &sentences, settings);
                    let (mut before, examined) = (f64::NEG_INFINITY, Examined::none());
                    for round in 0..20 {
                        let (report, _) = training.round();
                        let Some(bound) = report.bound else { continue };
                        examined.one();
                        let slack = 1e-9 * bound.abs();
                        assert!(bound >= before - slack, "{what}, round {round}: {bound} after {before}");
                        before = bound;
                    }
                    examined.assert_at_least(19);
                    let all = lexicon.sticks.iter().map(|stick| stick.strings.len()).sum();
                    assert_eq!(training.n_in_use() < all, select_by_bound, "{what}");
                }
            }
        }
    }
}

#[test]
fn selection_raises_the_bound() {
    let grammar = colloc();
    let sentences = corpus(&grammar);
    let lexicon = choose(&grammar, &sentences, 80, 0.0);
    let bound = |select_by_bound| {
        let settings = Settings { select_by_bound, ..settings() };
        let mut training = Training::new(&grammar, &lexicon, &sentences, settings);
        (0..25).map(|_| training.round().0.bound).last().flatten().unwrap()
    };
    let (all, selected) = (bound(false), bound(true));
    assert!(selected > all + 100.0, "{selected} with the strings that pay, {all} with all");
}

#[test]
fn a_drop_that_lowers_the_bound_is_taken_back() {
    let grammar = support::grammar(
        "1 1 S --> W\n1 1 S --> W S\nW --> Ls\n1 1 Ls --> L\n1 1 Ls --> L Ls\n1 1 L --> a\n1 1 L --> b\n1 1 L --> c\n",
    );
    let words = ["a", "b", "c", "a b c a", "c b"];
    let lexicon = support::lexicon(&grammar, &words.map(|word| ("W", word)));
    let sentences: Vec<Vec<SymbolId>> = (0..60)
        .map(|at| {
            support::tokens(&grammar, ["a b c a", "c b a b c a", "c b", "a b c a c b b", "c b a"][at % 5])
        })
        .collect();
    let settings = Settings { select_by_bound: true, drop_share: 1.0, resort: true, ..settings() };
    let mut training = Training::new(&grammar, &lexicon, &sentences, settings);
    training.rounds(8);
    assert_eq!(training.n_in_use(), words.len());
    // Those that are left pay for themselves, but rumour has it that they bring nothing.
    let mut totals = training.totals();
    totals.losses.fill(0.0);
    let in_use = training.n_in_use();
    let Step::Next(report) = training.trainer.absorb(totals).unwrap() else { panic!("nothing was missing") };
    let mut before = report.bound.unwrap();
    assert!(report.dropped == 2 && !report.converged, "{} of {in_use} strings dropped", report.dropped);
    let Step::Again { restored } = training.trainer.absorb(training.totals()).unwrap() else {
        panic!("the bound did not fall")
    };
    assert_eq!(restored, report.dropped);
    assert_eq!(training.n_in_use(), in_use);
    // The bound goes on rising, until rumours are no longer heard.
    let examined = Examined::none();
    for _ in 0..5 {
        let mut totals = training.totals();
        totals.losses.fill(0.0);
        let Step::Next(report) = training.trainer.absorb(totals).unwrap() else { continue };
        assert!(report.bound.unwrap() >= before - 1e-9 * before.abs());
        before = report.bound.unwrap();
        examined.one();
    }
    examined.assert_at_least(2);
    assert!(!training.trainer.wants_losses());
}

#[test]
fn a_fall_without_a_drop_is_an_error() {
    let grammar = colloc();
    let sentences = corpus(&grammar);
    let lexicon = choose(&grammar, &sentences, 30, 0.0);
    let mut training = Training::new(&grammar, &lexicon, &sentences, settings());
    training.rounds(3);
    let mut totals = training.totals();
    totals.log_z -= 1000.0;
    let error = training.trainer.absorb(totals).unwrap_err();
    assert_eq!(error.round, 4);
    assert!(error.after < error.before - 900.0, "{error}");
}

#[test]
fn strings_that_a_sentence_needs_come_back() {
    // `a b` can only be `a b` or `a`, `b`. All are dropped by rumour, but for single symbols, which stay.
    let grammar = support::grammar(
        "1 1 S --> W\n1 1 S --> W S\nW --> L\n1 1 L --> a b\n1 1 L --> b b\n1 1 L --> b a\n",
    );
    let lexicon = support::lexicon(&grammar, &[("W", "a b"), ("W", "b b"), ("W", "b a")]);
    let sentences = [support::tokens(&grammar, "a b b b"), support::tokens(&grammar, "a b")];
    let settings = Settings { select_by_bound: true, drop_share: 1.0, ..settings() };
    let mut training = Training::new(&grammar, &lexicon, &sentences, settings);
    training.rounds(2);
    let mut totals = training.totals();
    totals.losses.fill(0.0);
    let Step::Next(report) = training.trainer.absorb(totals).unwrap() else { panic!("nothing was missing") };
    assert_eq!((report.dropped, training.n_in_use()), (3, 0));
    let step = training.trainer.absorb(training.totals()).unwrap();
    assert_eq!(step, Step::Again { restored: 2 });
    let of = |string| support::param(&grammar, &lexicon, "W", string);
    assert_eq!(training.trainer.params().in_use().collect::<Vec<_>>(), [of("a b"), of("b b")]);
    let (report, _) = training.round();
    assert!(report.bound.is_some());
}

#[test]
fn strings_of_one_symbol_are_never_dropped() {
    let grammar = colloc();
    let sentences = corpus(&grammar);
    let lexicon = choose(&grammar, &sentences, 60, 0.0);
    let settings = Settings { select_by_bound: true, drop_share: 1.0, ..settings() };
    let mut training = Training::new(&grammar, &lexicon, &sentences, settings);
    training.rounds(2);
    let mut totals = training.totals();
    totals.losses.fill(0.0);
    training.trainer.absorb(totals).unwrap();
    let length = |param| lexicon.string(&grammar, param).unwrap().1.len();
    let single = (0..lexicon.space(&grammar).n_params() as u32)
        .map(ParamId)
        .filter(|&param| lexicon.string(&grammar, param).is_some_and(|(_, string)| string.len() == 1));
    let left: Vec<ParamId> = training.trainer.params().in_use().collect();
    assert!(single.clone().count() > 0 && single.clone().all(|param| left.contains(&param)));
    assert!(left.iter().all(|&param| length(param) == 1));
}

/// What a checkpoint relies on: after any round, the state written and read again leads to the same bits.
#[test]
fn a_trainer_made_from_a_saved_state_goes_on_to_the_same_bits() {
    let grammar = colloc();
    let sentences = corpus(&grammar);
    let lexicon = choose(&grammar, &sentences, 60, -0.2);
    let growth = Some(Growth { start: 20, step: 10 });
    let selecting =
        Settings { select_by_bound: true, drop_share: 0.6, resort: true, fit: FIT_ALL, ..settings() };
    for settings in [selecting.clone(), Settings { growth, start: Start::Jitter(0.5), ..selecting }] {
        let mut undisturbed = Training::new(&grammar, &lexicon, &sentences, settings.clone());
        let mut resumed = Training::new(&grammar, &lexicon, &sentences, settings.clone());
        for round in 0..12 {
            let config = bincode::config::legacy();
            let saved = bincode::serde::encode_to_vec(resumed.trainer.state(), config).unwrap();
            let (state, _): (State, usize) = bincode::serde::decode_from_slice(&saved, config).unwrap();
            assert_eq!(state.check(&grammar, &lexicon), Ok(()));
            let (grammar, lexicon) = (Arc::new(grammar.clone()), Arc::new(lexicon.clone()));
            resumed.trainer = Trainer::resume(grammar, lexicon, settings.clone(), Noise::new(3, 0), state);
            assert_eq!(undisturbed.round(), resumed.round(), "round {round}");
            assert_eq!(undisturbed.trainer.state(), resumed.trainer.state(), "round {round}");
        }
    }
}

#[test]
fn every_sentence_keeps_a_parse() {
    let grammar = colloc();
    let sentences = corpus(&grammar);
    let lexicon = choose(&grammar, &sentences, 10, -0.2);
    for drop_share in [0.2, 1.0] {
        let settings = Settings { select_by_bound: true, drop_share, fit: FIT_ALL, ..settings() };
        let mut training = Training::new(&grammar, &lexicon, &sentences, settings);
        training.rounds(12);
        assert!(training.totals().log_z.is_finite());
    }
}

#[test]
fn pitman_yor_without_a_discount_is_dirichlet() {
    let grammar = colloc();
    let sentences = corpus(&grammar);
    let lexicon = choose(&grammar, &sentences, 50, 0.0);
    let params = |text: &str| {
        let grammar = support::grammar(text);
        let settings = Settings { fit: Fit { concentration: true, ..FIT_NOTHING }, ..settings() };
        let mut training = Training::new(&grammar, &lexicon, &sentences, settings);
        training.rounds(6);
        training.trainer.params().clone()
    };
    let printed = grammaton::grammar::syntax::print(&grammar);
    let fixed = printed.replace("C --> Ws", "1 0 C --> Ws").replace("W --> Ls", "1 0 W --> Ls");
    let explicit: Vec<String> = fixed.lines().map(|line| line.replace("1 1 0 ", "1 0 ")).collect();
    assert_eq!(params(&printed), params(&explicit.join("\n")));
    // γ² of a Dirichlet process: a + Σ_{j>i} F_j, the same a for all.
    let found = params(&printed);
    let stick = &found.sticks[0];
    assert_eq!(stick.discount, 0.0);
    let uses: Vec<f64> = stick.gamma1.iter().map(|gamma1| gamma1 - 1.0).collect();
    let first = stick.gamma2[0] - uses[1..].iter().sum::<f64>();
    let expected: Vec<f64> = (0..uses.len()).map(|i| first + uses[i + 1..].iter().sum::<f64>()).collect();
    assert_all_close(&stick.gamma2, &expected, 1e-9, "γ²");
}

#[test]
fn growing_sticks_grow() {
    let grammar = colloc();
    let sentences = corpus(&grammar);
    let lexicon = choose(&grammar, &sentences, 60, 0.0);
    let all: usize = lexicon.sticks.iter().map(|stick| stick.strings.len()).sum();
    let growth = Some(Growth { start: 20, step: 15 });
    let settings = Settings { growth, discount: 0.3, tolerance: 0.5, ..settings() };
    let mut training = Training::new(&grammar, &lexicon, &sentences, settings);
    assert_eq!(training.n_in_use(), 40);
    let mut sizes = Vec::new();
    let mut converged = Vec::new();
    for _ in 0..8 {
        converged.push(training.round().0.converged);
        sizes.push(training.n_in_use());
    }
    assert!(sizes.windows(2).all(|pair| pair[0] <= pair[1]), "{sizes:?}");
    assert!(sizes[0] >= 70 && sizes[7] == all, "{sizes:?} of {all}");
    assert!(!converged[0] && converged[7], "{converged:?}");
}

#[test]
fn short_initial_sticks_get_the_strings_that_sentences_need() {
    let grammar = colloc();
    let sentences = corpus(&grammar);
    let lexicon = choose(&grammar, &sentences, 60, 0.0);
    let growth = Some(Growth { start: 1, step: 5 });
    for select_by_bound in [false, true] {
        let settings = Settings { growth, select_by_bound, fit: FIT_ALL, resort: true, ..settings() };
        let mut training = Training::new(&grammar, &lexicon, &sentences, settings);
        let (_, again) = training.round();
        assert!(again > 0, "one string per stick is too few");
        training.rounds(18);
        assert!(training.totals().missing.is_empty());
    }
}

#[test]
fn jitter_depends_on_the_seed_alone() {
    let grammar = colloc();
    let sentences = corpus(&grammar);
    let lexicon = Arc::new(choose(&grammar, &sentences, 20, 0.0));
    let grammar = Arc::new(grammar);
    let weights = |seed, jitter| {
        let start = if jitter > 0.0 { Start::Jitter(jitter) } else { Start::Uniform };
        let settings = Settings { start, ..settings() };
        Trainer::new(grammar.clone(), lexicon.clone(), settings, Noise::new(seed, 0)).weights()
    };
    assert_eq!(weights(1, 0.0), weights(2, 0.0));
    assert_eq!(weights(1, 0.5), weights(1, 0.5));
    assert_ne!(weights(1, 0.5), weights(2, 0.5));
    let far = |weight: &grammaton::num::Wide| weight.ln().abs() > 0.5;
    assert!(!weights(1, 0.5).iter().any(far));
    assert_eq!(weights(1, 0.5)[0].ln(), 0.0, "the constant one");
}
