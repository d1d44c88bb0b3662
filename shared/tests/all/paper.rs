//! Cohen, Blei & Smith (2010): what their §3 claims, with its misprints corrected, one test each.

use std::sync::Arc;

use grammaton::grammar::ParamId;
use grammaton::grammar::lexicon::Lexicon;
use grammaton::grammar::{Grammar, StickId};
use grammaton::models::adaptor::hyper::{Fit, expected_log_prior};
use grammaton::models::adaptor::params::{Params, Stick};
use grammaton::models::adaptor::start::Start;
use grammaton::num::special::{digamma, ln_gamma};
use grammaton::num::{Noise, Wide};
use grammaton::work::engine::Engine;
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};

use crate::support::{self, Run, assert_close, choose, draw};

const FIT_NOTHING: Fit = Fit { concentration: false, discount: false, alpha: false };

fn grammar() -> Grammar {
    support::grammar("2 1 S --> W S\n1 1 S --> W\nW --> C\n0.5 W --> C W\n1 1 C --> a\n3 1 C --> b\n")
}

fn lexicon(grammar: &Grammar) -> Lexicon {
    support::lexicon(grammar, &[("W", "a"), ("W", "b"), ("W", "a b"), ("W", "b a b"), ("W", "a a")])
}

/// Parameters with all strings in use, in the order of the lexicon.
fn params(grammar: &Grammar, lexicon: &Lexicon, discount: f64, concentration: f64) -> Params {
    let stick = |(number, stick): (usize, &grammaton::grammar::lexicon::StickStrings)| Stick {
        symbol: stick.symbol,
        order: lexicon.space(grammar).stick(StickId(number as u32)).map(ParamId).collect(),
        gamma1: Vec::new(),
        gamma2: Vec::new(),
        discount,
        concentration,
    };
    Params::new(grammar, lexicon.sticks.iter().enumerate().map(stick).collect())
}

fn counts(n_params: usize) -> Vec<f64> {
    (0..n_params).map(|at| [0.0, 3.25, 0.5, 7.0, 1.75, 0.0, 2.0][at % 7]).collect()
}

fn ln(weights: &[Wide]) -> Vec<f64> {
    weights.iter().map(|weight| weight.ln()).collect()
}

/// The part of the bound that depends on q(v) and q(θ) while the expected uses are `counts`:
/// E_q[log p(z | v, θ)] − divergence.
fn bound(params: &Params, grammar: &Grammar, lexicon: &Lexicon, counts: &[f64]) -> f64 {
    let weights = ln(&params.weights(grammar, lexicon));
    counts.iter().zip(weights).map(|(count, weight)| count * weight).sum::<f64>() - params.divergence(grammar)
}

#[test]
fn figure_1_gamma_2_sums_over_later_atoms() {
    let (grammar, discount, concentration) = (grammar(), 0.3, 1.5);
    let lexicon = lexicon(&grammar);
    let mut params = params(&grammar, &lexicon, discount, concentration);
    let counts = counts(lexicon.space(&grammar).n_params());
    params.update(&counts);
    let stick = &params.sticks[0];
    // Conjugacy: v_i was broken F_i times, and passed by every use of a later atom.
    let uses: Vec<f64> = stick.order.iter().map(|param| counts[param.index()]).collect();
    for i in 0..uses.len() {
        let passed: f64 = uses[i + 1..].iter().sum();
        assert_close(stick.gamma1[i], 1.0 - discount + uses[i], 1e-15, "γ¹");
        assert_close(stick.gamma2[i], concentration + (i + 1) as f64 * discount + passed, 1e-15, "γ²");
    }
}

#[test]
fn figure_1_tau_has_the_prior_in_it() {
    let grammar = grammar();
    let lexicon = lexicon(&grammar);
    let mut params = params(&grammar, &lexicon, 0.0, 1.0);
    let counts = counts(lexicon.space(&grammar).n_params());
    params.update(&counts);
    for (number, rule) in grammar.rules.iter().enumerate() {
        assert_close(params.tau[number], rule.alpha + counts[1 + number], 1e-15, "τ");
    }
}

#[test]
fn figure_1_updates_are_the_optimum_of_the_bound() {
    let grammar = grammar();
    let lexicon = lexicon(&grammar);
    let mut params = params(&grammar, &lexicon, 0.4, 2.5);
    let counts = counts(lexicon.space(&grammar).n_params());
    params.update(&counts);
    let best = bound(&params, &grammar, &lexicon, &counts);
    for factor in [0.8, 0.99, 1.01, 1.25] {
        let lower = |changed: Params, what: &str| {
            let found = bound(&changed, &grammar, &lexicon, &counts);
            assert!(found < best, "{what} times {factor}: {found} is not below {best}");
        };
        for at in 0..params.tau.len() {
            // C → a alone would do; every rule here has a sibling.
            let mut changed = params.clone();
            changed.tau[at] *= factor;
            lower(changed, "τ");
        }
        for at in 0..params.sticks[0].order.len() - 1 {
            let mut changed = params.clone();
            changed.sticks[0].gamma1[at] *= factor;
            lower(changed, "γ¹");
            let mut changed = params.clone();
            changed.sticks[0].gamma2[at] *= factor;
            lower(changed, "γ²");
        }
    }
}

#[test]
fn sticks_are_sorted_only_where_that_raises_the_bound() {
    let grammar = grammar();
    let lexicon = lexicon(&grammar);
    let mut random = Pcg64Mcg::seed_from_u64(2);
    let mut uniform = || (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
    let (mut sorted, mut left) = (0, 0);
    for _ in 0..500 {
        let mut params = params(&grammar, &lexicon, 0.95 * uniform(), 5.0 * uniform() + 0.01);
        let scale = 3.0 * uniform();
        let counts: Vec<f64> = (0..lexicon.space(&grammar).n_params()).map(|_| scale * uniform()).collect();
        params.update(&counts);
        let before = bound(&params, &grammar, &lexicon, &counts);
        let uses = |param: ParamId| counts[param.index()];
        let mut changed = params.clone();
        changed.sticks[0].order.sort_by(|&a, &b| uses(b).total_cmp(&uses(a)));
        changed.update(&counts);
        let gain = bound(&changed, &grammar, &lexicon, &counts) - before;
        if gain.abs() < 1e-9 {
            continue;
        }
        assert_eq!(params.sticks[0].sort_by_uses(&uses), gain > 0.0, "the order by uses gains {gain}");
        params.update(&counts);
        assert!(bound(&params, &grammar, &lexicon, &counts) >= before);
        if gain > 0.0 { sorted += 1 } else { left += 1 }
    }
    assert!(sorted > 50 && left > 5, "{sorted} sorted, {left} left as they were");
}

#[test]
fn figure_1_weight_of_an_atom_is_its_break_and_all_passes_before() {
    let grammar = grammar();
    let lexicon = lexicon(&grammar);
    let mut params = params(&grammar, &lexicon, 0.2, 0.7);
    params.update(&counts(lexicon.space(&grammar).n_params()));
    let weights = ln(&params.weights(&grammar, &lexicon));
    let stick = &params.sticks[0];
    let n = stick.order.len();
    for i in 0..n {
        let psi_sum = |j: usize| digamma(stick.gamma1[j] + stick.gamma2[j]);
        let passed: f64 = (0..i).map(|j| digamma(stick.gamma2[j]) - psi_sum(j)).sum();
        // q(v_N = 1) = 1: the last atom takes what is left.
        let broken = if i + 1 < n { digamma(stick.gamma1[i]) - psi_sum(i) } else { 0.0 };
        assert_close(weights[stick.order[i].index()], broken + passed, 1e-13, "φ of a string");
    }
    for (number, rule) in grammar.rules.iter().enumerate() {
        let siblings = grammar.rules.iter().zip(&params.tau).filter(|(other, _)| other.parent == rule.parent);
        let sum: f64 = siblings.map(|(_, tau)| tau).sum();
        let expected = digamma(params.tau[number]) - digamma(sum);
        assert_close(weights[1 + number], expected, 1e-13, "φ of a rule");
    }
    let mass: f64 = stick.order.iter().map(|param| weights[param.index()].exp()).sum();
    assert!(mass < 1.0, "exp E[log π] sums to {mass}");
}

#[test]
fn figure_1_counts_sentences_and_strings() {
    // One sentence, one string; without the sentence, W would have no uses at all.
    let grammar = support::grammar("1 1 S --> W\nW --> a b\n");
    let lexicon = support::lexicon(&grammar, &[("W", "a b")]);
    let sentence = support::tokens(&grammar, "a b");
    let run = Run::new(&grammar, &lexicon, &[sentence.clone(), sentence]);
    let weights = vec![Wide::ONE; lexicon.space(&grammar).n_params()];
    let totals = run.expect(&Engine::default(), &weights, false);
    // S → W and the string twice, for the two sentences; W → a b once, for the string, however often it is used.
    assert_eq!(totals.counts[1..], [2.0, 1.0, 2.0]);
}

#[test]
fn figure_2_prior_is_the_beta_distribution() {
    // ln Beta(v; 1 − b, a + ib), with the normaliser Γ(a + 1 + (i − 1)b), taken apart by hand.
    let (a, b) = (1.7, 0.35);
    let (broken, left) = ([-0.4, -1.1, -2.0], [-0.9, -0.3, -0.2]);
    let mut expected = 0.0;
    for i in 1..=3 {
        let ib = f64::from(i) * b;
        expected += ln_gamma(a + 1.0 + f64::from(i - 1) * b) - ln_gamma(1.0 - b) - ln_gamma(a + ib);
        expected += -b * broken[i as usize - 1] + (a + ib - 1.0) * left[i as usize - 1];
    }
    assert_close(expected_log_prior(a, b, broken.iter().sum(), &left), expected, 1e-14, "E[log p(v)]");
}

#[test]
fn figure_2_prior_is_what_the_bound_depends_on() {
    let grammar = grammar();
    let lexicon = lexicon(&grammar);
    let mut params = params(&grammar, &lexicon, 0.2, 1.0);
    params.update(&counts(lexicon.space(&grammar).n_params()));
    let prior = |params: &Params| {
        let stick = &params.sticks[0];
        let atoms = 0..stick.order.len() - 1;
        let psi_sum = |i: usize| digamma(stick.gamma1[i] + stick.gamma2[i]);
        let broken = atoms.clone().map(|i| digamma(stick.gamma1[i]) - psi_sum(i)).sum();
        let left: Vec<f64> = atoms.map(|i| digamma(stick.gamma2[i]) - psi_sum(i)).collect();
        expected_log_prior(stick.concentration, stick.discount, broken, &left)
    };
    let before = (prior(&params), params.divergence(&grammar));
    (params.sticks[0].discount, params.sticks[0].concentration) = (0.55, 3.0);
    let after = (prior(&params), params.divergence(&grammar));
    assert_close(after.0 - before.0, before.1 - after.1, 1e-12, "change of the bound");
}

#[test]
fn figure_2_without_a_discount_the_concentration_has_a_closed_form() {
    let grammar = grammar();
    let lexicon = lexicon(&grammar);
    let mut params = params(&grammar, &lexicon, 0.0, 1.0);
    params.update(&counts(lexicon.space(&grammar).n_params()));
    params.fit(&grammar, Fit { concentration: true, ..FIT_NOTHING });
    let slope = slope_of(&params, &grammar, |params, step| params.sticks[0].concentration += step);
    assert!(slope.abs() < 1e-8, "the bound's slope in the concentration is {slope}");
}

/// Of the bound, by finite differences.
fn slope_of(params: &Params, grammar: &Grammar, change: impl Fn(&mut Params, f64)) -> f64 {
    let at = |step| {
        let mut changed = params.clone();
        change(&mut changed, step);
        -changed.divergence(grammar)
    };
    (at(1e-5) - at(-1e-5)) / 2e-5
}

#[test]
fn figure_2_fits_climb_to_where_the_bound_is_flat() {
    let grammar = grammar();
    let lexicon = lexicon(&grammar);
    let counts = counts(lexicon.space(&grammar).n_params());
    type Change = fn(&mut Params, f64);
    let cases: [(&str, Fit, Change); 3] = [
        ("concentration", Fit { concentration: true, ..FIT_NOTHING }, |p, x| p.sticks[0].concentration += x),
        ("discount", Fit { discount: true, ..FIT_NOTHING }, |p, x| p.sticks[0].discount += x),
        ("alpha", Fit { alpha: true, ..FIT_NOTHING }, |p, x| {
            // All rules of S by the same factor: |R_S| copies of Ψ(Σ τ) belong to the slope.
            p.alpha[..2].iter_mut().for_each(|alpha| *alpha *= 1.0 + x);
        }),
    ];
    for (discount, concentration) in [(0.05, 0.2), (0.5, 1.0), (0.9, 30.0)] {
        for (name, fit, change) in cases {
            let mut params = params(&grammar, &lexicon, discount, concentration);
            params.update(&counts);
            for _ in 0..120 {
                let before = -params.divergence(&grammar);
                params.fit(&grammar, fit);
                let after = -params.divergence(&grammar);
                assert!(after >= before - 1e-12, "{name}: the bound fell from {before} to {after}");
            }
            let slope = slope_of(&params, &grammar, change);
            let at_border = name == "discount" && params.sticks[0].discount < 1e-4 && slope < 0.0;
            assert!(
                at_border || slope.abs() < 1e-4,
                "{name} from {discount}, {concentration}: slope {slope}"
            );
        }
    }
}

#[test]
fn figure_2_alpha_counts_the_sum_once_per_rule() {
    // Of S, with two rules: the maximum over a common α of ln Γ(2α) − 2 ln Γ(α) + (α − 1)·Σ_β (Ψ(τ_β) − Ψ(Σ τ)).
    let grammar = support::grammar("1 1 S --> W S\n1 1 S --> W\nW --> a\nW --> b\n");
    let lexicon = support::lexicon(&grammar, &[("W", "a"), ("W", "b")]);
    let mut params = params(&grammar, &lexicon, 0.0, 1.0);
    params.tau[..2].copy_from_slice(&[5.0, 2.0]);
    (0..60).for_each(|_| params.fit(&grammar, Fit { alpha: true, ..FIT_NOTHING }));
    let logs = digamma(5.0) + digamma(2.0) - 2.0 * digamma(7.0);
    let objective = |alpha: f64| ln_gamma(2.0 * alpha) - 2.0 * ln_gamma(alpha) + (alpha - 1.0) * logs;
    let (mut low, mut high) = (1e-3f64, 1e3f64);
    for _ in 0..200 {
        let (a, b) = (low + (high - low) / 3.0, high - (high - low) / 3.0);
        if objective(a) < objective(b) { low = a } else { high = b }
    }
    assert_close(params.alpha[0], low, 1e-4, "α");
    assert_eq!(params.alpha[0], params.alpha[1]);
}

/// Uses of the atoms of a stick with discount 1/2 and concentration 1: v_i from Beta(1/2, 1 + i/2), then `n` draws.
fn uses_of_atoms(n_atoms: usize, n: usize, seed: u64) -> Vec<f64> {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mut uniform = || ((random.next_u64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
    // Gamma(halves / 2): exponential draws, and half a squared normal one.
    let mut gamma = |halves: usize| {
        let whole: f64 = (0..halves / 2).map(|_| -uniform().ln()).sum();
        let angle = std::f64::consts::TAU * uniform();
        let half = -uniform().ln() * angle.cos().powi(2);
        whole + if halves % 2 == 1 { half } else { 0.0 }
    };
    let (mut left, mut masses) = (1.0, Vec::new());
    for i in 1..n_atoms {
        let (broken, rest) = (gamma(1), gamma(2 + i));
        masses.push(left * broken / (broken + rest));
        left *= rest / (broken + rest);
    }
    masses.push(left);
    let mut uses = vec![0.0; n_atoms];
    for _ in 0..n {
        let mut at = uniform();
        let drawn = masses.iter().position(|mass| {
            at -= mass;
            at < 0.0
        });
        uses[drawn.unwrap_or(n_atoms - 1)] += 1.0;
    }
    uses
}

#[test]
fn figure_2_discount_is_found_again_and_the_printed_objective_drives_it_to_zero() {
    let uses = uses_of_atoms(150, 50_000, 7);
    let texts: Vec<String> = (0..uses.len()).map(|atom| format!("1 1 V --> v{atom}\n")).collect();
    let grammar = support::grammar(&format!("1 1 S --> W\nW --> V\n{}", texts.concat()));
    let names: Vec<String> = (0..uses.len()).map(|atom| format!("v{atom}")).collect();
    let strings: Vec<(&str, &str)> = names.iter().map(|name| ("W", name.as_str())).collect();
    let lexicon = support::lexicon(&grammar, &strings);
    let mut counts = vec![0.0; lexicon.space(&grammar).n_params()];
    counts[grammar.space().n_params()..].copy_from_slice(&uses);

    let mut params = params(&grammar, &lexicon, 0.1, 0.3);
    let fit = Fit { concentration: true, discount: true, alpha: false };
    for _ in 0..60 {
        params.update(&counts);
        params.fit(&grammar, fit);
    }
    let found = params.sticks[0].discount;
    assert!((found - 0.5).abs() < 0.1, "discount {found}");

    // As printed: without −b·Σ E[log v_i].
    for _ in 0..30 {
        params.update(&counts);
        params.fit(&grammar, Fit { concentration: true, ..FIT_NOTHING });
        let stick = &params.sticks[0];
        let psi_sum = |i: usize| digamma(stick.gamma1[i] + stick.gamma2[i]);
        let left: Vec<f64> = (0..uses.len() - 1).map(|i| digamma(stick.gamma2[i]) - psi_sum(i)).collect();
        let printed = |b: f64| expected_log_prior(stick.concentration, b, 0.0, &left);
        let grid = (0..99).map(|b| f64::from(b) * 0.01);
        let best = grid.max_by(|&a, &b| printed(a).total_cmp(&printed(b))).unwrap();
        params.sticks[0].discount = best;
    }
    assert_eq!(params.sticks[0].discount, 0.0);
}

#[test]
fn section_3_1_recursive_nonterminals_train_and_no_string_contains_itself() {
    use grammaton::train::adaptor::{Settings, Trainer};
    use grammaton::train::round::Step;
    let grammar = grammar(); // W → C W is adapted
    assert_eq!(grammar.recursive_adapted(), [grammar.symbol("W").unwrap()]);
    let lexicon = lexicon(&grammar);
    let weights = vec![Wide::ONE; lexicon.space(&grammar).n_params()];
    let strings_only = Run::new(&grammar, &lexicon, &[]);
    let totals = strings_only.expect(&Engine::default(), &weights, false);
    let uses = |string| totals.counts[support::param(&grammar, &lexicon, "W", string).index()];
    // Every use is inside a longer string: `b` ends `a b`, `a b` ends `b a b`, `a` ends `a a`.
    assert_eq!(["b", "a b", "a", "b a b", "a a"].map(uses), [1.0, 1.0, 1.0, 0.0, 0.0]);

    let sentences = draw(&grammar, 60, 5);
    let lexicon = choose(&grammar, &sentences, 40, 0.2);
    let run = Run::new(&grammar, &lexicon, &sentences);
    let settings = Settings {
        pitman_yor: true,
        select_by_bound: false,
        drop_share: 0.1,
        resort: true,
        fit: Fit { concentration: true, discount: true, alpha: true },
        discount: 0.2,
        concentration: 1.0,
        growth: None,
        tolerance: 0.0,
        start: Start::Uniform,
        samples: None,
    };
    let (grammar, lexicon) = (Arc::new(grammar), Arc::new(lexicon));
    let mut trainer = Trainer::new(grammar, lexicon, settings, Noise::new(0, 0));
    let engine = Engine::default();
    for _ in 0..15 {
        let totals = run.expect(&engine, &trainer.weights(), false);
        assert!(matches!(trainer.absorb(totals).expect("the bound rises"), Step::Next(_)));
    }
}

#[test]
fn extreme_alpha_never_lowers_the_bound() {
    for alpha in ["1e-9", "1e9"] {
        let grammar = support::grammar(&format!("{alpha} 1 S --> a\n{alpha} 1 S --> b\n1 1 S --> c\n"));
        let mut params = Params::new(&grammar, Vec::new());
        params.update(&[0.0, 3.0, 1.0, 2.0]);
        for _ in 0..5 {
            let before = params.divergence(&grammar);
            params.fit(&grammar, Fit { alpha: true, ..FIT_NOTHING });
            let after = params.divergence(&grammar);
            assert!(after <= before, "α {alpha}: the divergence rose from {before} to {after}");
        }
    }
}

#[test]
fn hyper_parameters_beyond_the_limits_of_fits_do_not_move_downhill() {
    let grammar = grammar();
    let lexicon = lexicon(&grammar);
    for (discount, concentration) in [(0.0, 1e-5), (0.995, 1e-5), (0.995, 1e7), (0.0, 1e7)] {
        for counts in
            [counts(lexicon.space(&grammar).n_params()), vec![0.0; lexicon.space(&grammar).n_params()]]
        {
            let mut params = params(&grammar, &lexicon, discount, concentration);
            params.update(&counts);
            let before = params.divergence(&grammar);
            params.fit(&grammar, Fit { concentration: true, discount: true, alpha: false });
            let after = params.divergence(&grammar);
            let slack = 1e-9 * before.abs().max(1.0);
            assert!(after <= before + slack, "{discount}, {concentration}: from {before} to {after}");
        }
    }
}
