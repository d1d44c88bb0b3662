//! The global variational parameters: their weights, updates and share of the bound.
//!
//! Letters as in the paper: q(v_i) = Beta(γ¹_i, γ²_i), q(θ_A) = Dirichlet(τ_A), priors Beta(1 − b, a + i·b) and
//! Dirichlet(α_A) with discount b and concentration a.

use std::collections::BTreeSet;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::grammar::ParamId;
use crate::grammar::lexicon::Lexicon;
use crate::grammar::{Grammar, RuleId, SymbolId};
use crate::limits::is_parameter;
use crate::num::Wide;
use crate::num::blocks::{self, BLOCK};
use crate::num::bulk::{digamma_each, ln_beta_each, ln_gamma_each};
use crate::num::dirichlet::divergence;
use crate::num::special::{digamma, ln_gamma};

/// Variational parameters and hyper-parameters.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Params {
    /// τ of every rule, `[n_rules]`: Dirichlet parameters of q(θ).
    pub tau: Vec<f64>,
    /// α of every rule, `[n_rules]`: Dirichlet parameters of the prior.
    pub alpha: Vec<f64>,
    /// Stick of each adapted nonterminal, in symbol order.
    pub sticks: Vec<Stick>,
}

/// The truncated stick of one adapted nonterminal.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Stick {
    /// The adapted nonterminal.
    pub symbol: SymbolId,
    /// The strings in use, in stick order.
    pub order: Vec<ParamId>,
    /// First Beta parameter of q(v_i), `[order.len()]`; that of the last atom is not used, v = 1.
    pub gamma1: Vec<f64>,
    /// Second Beta parameter of q(v_i), `[order.len()]`.
    pub gamma2: Vec<f64>,
    /// Discount of the Pitman–Yor process.
    pub discount: f64,
    /// Concentration of the Pitman–Yor process.
    pub concentration: f64,
}

/// Why [`Params`] do not belong to a grammar and a lexicon.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct ParamsError(&'static str);

impl Params {
    /// Parameters that equal the priors, with the given strings in use.
    pub fn new(grammar: &Grammar, sticks: Vec<Stick>) -> Params {
        let alpha: Vec<f64> = grammar.rules.iter().map(|rule| rule.alpha).collect();
        let mut params = Params { tau: alpha.clone(), alpha, sticks };
        params.sticks.iter_mut().for_each(|stick| stick.update(&|_| 0.0));
        params
    }

    /// Checks that they belong to this grammar and lexicon, so that every index is in range and every distribution
    /// is one.
    pub fn check(&self, grammar: &Grammar, lexicon: &Lexicon) -> Result<(), ParamsError> {
        self.check_strings(grammar, lexicon)?;
        for stick in &self.sticks {
            let n = stick.order.len();
            if stick.gamma1.len() != n || stick.gamma2.len() != n {
                return Err(ParamsError("a stick and its parameters differ"));
            }
            if !are_positive(&stick.gamma1) || !are_positive(&stick.gamma2) {
                return Err(ParamsError("a string of a stick has no weight"));
            }
        }
        Ok(())
    }

    /// [`Params::check`] for sticks whose γ are yet to be updated.
    pub(crate) fn check_strings(&self, grammar: &Grammar, lexicon: &Lexicon) -> Result<(), ParamsError> {
        let holds = |condition: bool, otherwise| if condition { Ok(()) } else { Err(otherwise) };
        let n_rules = grammar.rules.len();
        holds(
            self.tau.len() == n_rules && self.alpha.len() == n_rules,
            ParamsError("rules and their parameters differ"),
        )?;
        holds(are_positive(&self.tau) && are_positive(&self.alpha), ParamsError("a rule has no weight"))?;
        let of_params = self.sticks.iter().map(|stick| stick.symbol);
        let same = of_params.eq(lexicon.sticks.iter().map(|stick| stick.symbol));
        holds(same, ParamsError("sticks and adapted nonterminals differ"))?;
        for (strings, stick) in lexicon.space(grammar).sticks().zip(&self.sticks) {
            holds(
                stick.order.iter().all(|param| strings.contains(&param.0)),
                ParamsError("a stick has a string it lacks"),
            )?;
            let distinct = stick.order.iter().collect::<BTreeSet<_>>().len() == stick.order.len();
            holds(distinct, ParamsError("a stick has a string twice"))?;
            let is_prior = (0.0..1.0).contains(&stick.discount) && are_positive(&[stick.concentration]);
            holds(is_prior, ParamsError("a stick has no prior"))?;
        }
        Ok(())
    }

    /// Weight one for every rule and every string in use: what the first round runs with. `[n_params]`
    pub fn uniform_weights(&self, grammar: &Grammar, lexicon: &Lexicon) -> Vec<Wide> {
        let mut weights = vec![Wide::ZERO; lexicon.space(grammar).n_params()];
        weights[..grammar.space().n_params()].fill(Wide::ONE);
        for param in self.sticks.iter().flat_map(|stick| &stick.order) {
            weights[param.index()] = Wide::ONE;
        }
        weights
    }

    /// exp E_q[log θ] and exp E_q[log π], by parameter; zero for strings that are not in use. `[n_params]`
    pub fn weights(&self, grammar: &Grammar, lexicon: &Lexicon) -> Vec<Wide> {
        let mut weights = vec![Wide::ZERO; lexicon.space(grammar).n_params()];
        weights[ParamId::ONE.index()] = Wide::ONE;
        let of_rules = &mut weights[grammar.space().rules()];
        for rules in groups(grammar) {
            let psi_sum = digamma(self.tau[rules.clone()].iter().sum());
            for rule in rules {
                let phi = digamma(self.tau[rule]) - psi_sum;
                of_rules[rule] = Wide::from_ln(phi);
            }
        }
        for stick in &self.sticks {
            let phi = stick.phi();
            let exp = |atoms: Range<usize>| {
                let mut exp = [Wide::ZERO; BLOCK];
                exp.iter_mut().zip(&phi[atoms]).for_each(|(exp, &phi)| *exp = Wide::from_ln(phi));
                exp
            };
            blocks::each(phi.len(), exp, |atoms, exp| {
                let atoms = stick.order[atoms].iter().zip(exp);
                atoms.for_each(|(param, exp)| weights[param.index()] = exp);
            });
        }
        weights
    }

    /// [`Params::weights`], then the escape weights of the sticks: what [`crate::models::decode::Decode`] needs.
    pub fn decoding_weights(&self, grammar: &Grammar, lexicon: &Lexicon) -> Vec<Wide> {
        let mut weights = self.weights(grammar, lexicon);
        weights.extend(self.sticks.iter().map(|stick| Wide::from_f64(stick.escape())));
        weights
    }

    /// Sets γ and τ from `f`, the expected uses of a round. `[n_params]`
    ///
    /// With the next [`Params::weights`] these are the lines of the paper's Fig. 1 (corrected as in `docs/MATHS.md`), i from 1:
    ///
    /// 1. γ¹_i = 1 − b + F_i ([`Stick::update`])
    /// 2. γ²_i = a + i·b + Σ_{j>i} F_j ([`Stick::update`])
    /// 3. τ_{A→β} = α_{A→β} + F_{A→β}
    /// 4. φ_{A→s_i} = E[ln v_i] + Σ_{j<i} E[ln(1 − v_j)]
    /// 5. φ_{A→β} = Ψ(τ_{A→β}) − Ψ(Σ_β τ_{A→β})
    /// 6. the weight of a rule or a string is e^φ
    pub fn update(&mut self, f: &[f64]) {
        self.sticks.iter_mut().for_each(|stick| stick.update(&|param| f[param.index()]));
        for ((rule, tau), alpha) in (0..).map(RuleId).zip(&mut self.tau).zip(&self.alpha) {
            *tau = alpha + f[ParamId::of_rule(rule).index()];
        }
    }

    /// Σ KL(q(v)‖p(v)) + Σ KL(q(θ)‖p(θ)): what the bound pays for the global parameters. The bound itself is
    /// Σ log Z of a round run with [`Params::weights`], less this.
    pub fn divergence(&self, grammar: &Grammar) -> f64 {
        let rules: f64 = groups(grammar).map(|rules| divergence(&self.tau, &self.alpha, rules)).sum();
        rules + self.sticks.iter().map(Stick::divergence).sum::<f64>()
    }
}

fn are_positive(numbers: &[f64]) -> bool {
    numbers.iter().all(|&number| is_parameter(number))
}

/// The rules of each nonterminal, as ranges.
pub(crate) fn groups(grammar: &Grammar) -> impl Iterator<Item = Range<usize>> + '_ {
    let mut start = 0;
    grammar.rules.chunk_by(|a, b| a.parent == b.parent).map(move |chunk| {
        let range = start..start + chunk.len();
        start = range.end;
        range
    })
}

impl Stick {
    /// All strings of a stick in use, in the order of their parameters; γ are yet to be updated.
    pub fn new(
        symbol: SymbolId,
        strings: impl IntoIterator<Item = u32>,
        discount: f64,
        concentration: f64,
    ) -> Stick {
        let order = strings.into_iter().map(ParamId).collect();
        Stick { symbol, order, gamma1: Vec::new(), gamma2: Vec::new(), discount, concentration }
    }

    /// Sets γ from `f`, the expected uses of the strings.
    pub fn update(&mut self, f: &dyn Fn(ParamId) -> f64) {
        let Stick { concentration: a, discount: b, .. } = *self;
        let n = self.order.len();
        self.gamma1.resize(n, 0.0);
        self.gamma2.resize(n, 0.0);
        let mut f_after = 0.0; // Σ_{j>i} F_j
        for at in (0..n).rev() {
            let (i, f_i) = ((at + 1) as f64, f(self.order[at]));
            self.gamma1[at] = 1.0 - b + f_i;
            self.gamma2[at] = a + i * b + f_after;
            f_after += f_i;
        }
    }

    /// φ_i = E[ln v_i] + Σ_{j<i} E[ln(1 − v_j)], with v_N = 1. `[n_strings]`
    fn phi(&self) -> Vec<f64> {
        let mut phi = Vec::with_capacity(self.order.len());
        let mut left_before = 0.0; // Σ_{j<i} E[ln(1 − v_j)]
        self.each_log(|e_ln_v, e_ln_1mv| {
            phi.push(e_ln_v + left_before);
            left_before += e_ln_1mv;
        });
        phi.extend((!self.order.is_empty()).then_some(left_before));
        phi
    }

    /// Sorts the strings by expected uses, most used first, if that raises the bound; whether it did. γ are to be updated then, in any case.
    ///
    /// With q(z) fixed and γ at its optimum, the stick's part of the bound is Σ_{i<N} ln B(γ¹_i, γ²_i) less terms of
    /// the prior that do not depend on the order.
    pub fn sort_by_uses(&mut self, uses: &dyn Fn(ParamId) -> f64) -> bool {
        let mut order = self.order.clone();
        order.sort_by(|&a, &b| uses(b).total_cmp(&uses(a))); // stable: ties keep their order
        if order == self.order {
            return false;
        }
        // One after the other, in place, so that a stick of millions is there once.
        let of_unsorted = self.fitted(uses);
        let unsorted = std::mem::replace(&mut self.order, order);
        let better = self.fitted(uses) > of_unsorted;
        if !better {
            self.order = unsorted;
        }
        better
    }

    /// Sets γ from `uses`; Σ_{i<N} ln B(γ¹_i, γ²_i).
    fn fitted(&mut self, uses: &dyn Fn(ParamId) -> f64) -> f64 {
        self.update(uses);
        let ln_betas = |atoms: Range<usize>| {
            let mut ln_betas = [0.0; BLOCK];
            ln_betas[..atoms.len()].copy_from_slice(&self.gamma1[atoms.clone()]);
            ln_beta_each(&mut ln_betas[..atoms.len()], &self.gamma2[atoms]);
            ln_betas
        };
        let mut sum = 0.0;
        blocks::each(self.n_breaks(), ln_betas, |atoms, ln_betas| {
            ln_betas[..atoms.len()].iter().for_each(|ln_beta| sum += ln_beta);
        });
        sum
    }

    /// Expected total uses, from γ.
    pub fn uses(&self) -> f64 {
        let prior = 1.0 - self.discount;
        self.gamma1.iter().map(|gamma1| gamma1 - prior).sum()
    }

    /// Posterior mean of the mass outside the strings in use, were the restaurant open:
    /// (a + K·b) / (a + n) for K tables and n uses, where a string used less than once is as much of a table.
    ///
    /// γ is of the discount before the last fit, so that uses may be negative: then they count as 0.
    pub fn escape(&self) -> f64 {
        let prior = 1.0 - self.discount;
        let tables: f64 = self.gamma1.iter().map(|gamma1| (gamma1 - prior).min(1.0)).sum();
        (self.concentration + tables.max(0.0) * self.discount) / (self.concentration + self.uses().max(0.0))
    }

    /// Number of breaks that are not 1: of all atoms but the last.
    fn n_breaks(&self) -> usize {
        self.order.len().saturating_sub(1)
    }

    /// Calls `found(E_q[ln v_i], E_q[ln(1 − v_i)])` for all breaks that are not 1, in order.
    pub(crate) fn each_log(&self, mut found: impl FnMut(f64, f64)) {
        blocks::each(
            self.n_breaks(),
            |atoms| self.logs(atoms),
            |atoms, [of_break, of_rest]| {
                of_break.iter().zip(&of_rest).take(atoms.len()).for_each(|(&one, &rest)| found(one, rest));
            },
        );
    }

    /// E_q[ln v_i] and E_q[ln(1 − v_i)] of a block of atoms.
    fn logs(&self, atoms: Range<usize>) -> [[f64; BLOCK]; 2] {
        let n = atoms.len();
        let [mut of_break, mut of_rest, mut sums] = [[0.0; BLOCK]; 3];
        of_break[..n].copy_from_slice(&self.gamma1[atoms.clone()]);
        of_rest[..n].copy_from_slice(&self.gamma2[atoms]);
        sums.iter_mut().zip(of_break.iter().zip(&of_rest)).for_each(|(sum, (one, two))| *sum = one + two);
        digamma_each(&mut sums[..n]);
        for psi in [&mut of_break, &mut of_rest] {
            digamma_each(&mut psi[..n]);
            psi.iter_mut().zip(&sums).for_each(|(psi, sum)| *psi -= sum);
        }
        [of_break, of_rest]
    }

    /// Σ_{i<N} KL(Beta(γ¹_i, γ²_i) ‖ Beta(1 − b, a + i·b)).
    fn divergence(&self) -> f64 {
        let prior1 = 1.0 - self.discount;
        let ln_gamma1 = ln_gamma(prior1);
        let prior2 = |i: usize| self.concentration + (i + 1) as f64 * self.discount;
        let make = |atoms: Range<usize>| {
            let n = atoms.len();
            let [mut ln_gamma2, mut ln_gamma_sum, mut ln_betas] = [[0.0; BLOCK]; 3];
            for (at, i) in atoms.clone().enumerate() {
                (ln_gamma2[at], ln_gamma_sum[at], ln_betas[at]) =
                    (prior2(i), prior1 + prior2(i), self.gamma1[i]);
            }
            ln_gamma_each(&mut ln_gamma2[..n]);
            ln_gamma_each(&mut ln_gamma_sum[..n]);
            ln_beta_each(&mut ln_betas[..n], &self.gamma2[atoms.clone()]);
            ([ln_gamma2, ln_gamma_sum, ln_betas], self.logs(atoms))
        };
        let mut sum = 0.0;
        blocks::each(self.n_breaks(), make, |atoms, (of_gammas, [e_ln_v, e_ln_1mv])| {
            let [ln_gamma2, ln_gamma_sum, ln_betas] = of_gammas;
            for (at, i) in atoms.enumerate() {
                let (gamma1, gamma2, prior2) = (self.gamma1[i], self.gamma2[i], prior2(i));
                if (gamma1, gamma2) == (prior1, prior2) {
                    continue; // a string behind the last one that is used
                }
                sum += ln_gamma1 + ln_gamma2[at] - ln_gamma_sum[at] - ln_betas[at]
                    + (gamma1 - prior1) * e_ln_v[at]
                    + (gamma2 - prior2) * e_ln_1mv[at];
            }
        });
        sum
    }
}
