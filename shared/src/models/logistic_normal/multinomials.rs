//! The multinomials of a PCFG that have priors: one for every nonterminal with more than one rule.
//!
//! Where there is one rule only, nothing is to be learned, and its weight is 1. Strings have no such priors: a covariance of thousands of
//! strings would be larger than any corpus from which to learn it.

use std::ops::Range;

use super::{PointEstimate, Prior};
use crate::grammar::ParamId;
use crate::grammar::groups::Groups;
use crate::grammar::lexicon::Lexicon;
use crate::grammar::{Grammar, SymbolId};
use crate::limits::{MAX_COVARIANCES, MAX_OUTCOMES};
use crate::num::Wide;

/// Map between parameters and outcomes of multinomials.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Multinomials {
    /// Parameters of each, ascending.
    ranges: Vec<Range<usize>>,
    n_params: usize,
}

/// Why a grammar has no such priors.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Unsuited {
    /// A nonterminal has strings.
    #[error(
        "nonterminal `{symbol}` is adapted or rewrites to substrings; logistic-normal priors are of rules only"
    )]
    Strings {
        /// A nonterminal that has.
        symbol: String,
    },
    /// Covariances would be too large.
    #[error(
        "nonterminal `{symbol}` has {found} rules, expected at most {MAX_OUTCOMES} with a logistic-normal prior"
    )]
    Outcomes {
        /// The nonterminal.
        symbol: String,
        /// Its rules.
        found: usize,
    },
    /// All covariances together would be too large.
    #[error(
        "the covariances of {multinomials} nonterminals have {found} entries, expected at most {MAX_COVARIANCES} with \
         logistic-normal priors; a nonterminal of K rules has K²"
    )]
    Covariances {
        /// Nonterminals that have one.
        multinomials: usize,
        /// Entries of all.
        found: usize,
    },
}

/// Why priors do not belong to a grammar.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PriorsError {
    /// The grammar cannot have logistic-normal priors.
    #[error(transparent)]
    Unsuited(#[from] Unsuited),
    /// The number of priors differs from that of the multinomials.
    #[error("{found} priors, expected {expected}")]
    Number {
        /// Number of priors.
        found: usize,
        /// Number of multinomials.
        expected: usize,
    },
    /// The number of outcomes of a prior differs from that of its multinomial.
    #[error("the prior of multinomial {at} has {found} outcomes, expected {expected}")]
    Outcomes {
        /// The multinomial.
        at: usize,
        /// Outcomes of the prior.
        found: usize,
        /// Outcomes of the multinomial.
        expected: usize,
    },
}

impl Multinomials {
    /// The multinomials of a grammar.
    pub fn new(grammar: &Grammar) -> Result<Multinomials, Unsuited> {
        if let Some(symbol) = grammar.with_strings().next() {
            return Err(Unsuited::Strings { symbol: grammar.name(symbol).to_owned() });
        }
        let groups = Groups::new(grammar, &Lexicon::default());
        let ranges: Vec<Range<usize>> = groups.iter().filter(|group| group.len() > 1).collect();
        let large = ranges.iter().position(|range| range.len() > MAX_OUTCOMES);
        let multinomials = Multinomials { ranges, n_params: groups.n_params() };
        if let Some(large) = large {
            let symbol = grammar.name(multinomials.parent(grammar, large)).to_owned();
            return Err(Unsuited::Outcomes { symbol, found: multinomials.n_outcomes(large) });
        }
        let found = multinomials.iter().map(|range| range.len().pow(2)).sum();
        if found > MAX_COVARIANCES {
            return Err(Unsuited::Covariances { multinomials: multinomials.len(), found });
        }
        Ok(multinomials)
    }

    /// The nonterminal of which they are the rules, in the grammar from which they were made.
    pub fn parent(&self, grammar: &Grammar, multinomial: usize) -> SymbolId {
        grammar.rules[self.ranges[multinomial].start - grammar.space().rules().start].parent
    }

    /// Number of multinomials.
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    /// Whether there are no multinomials, and so nothing to learn.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The parameters of each.
    pub fn iter(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        self.ranges.iter().cloned()
    }

    /// Outcomes of one of them.
    pub fn n_outcomes(&self, multinomial: usize) -> usize {
        self.ranges[multinomial].len()
    }

    /// The multinomial of a parameter, and which of its outcomes that is; none if there is nothing to learn of it.
    pub fn outcome(&self, param: ParamId) -> Option<(usize, usize)> {
        let multinomial = self.ranges.partition_point(|range| range.end <= param.index());
        let range = self.ranges.get(multinomial).filter(|range| range.contains(&param.index()))?;
        Some((multinomial, param.index() - range.start))
    }

    /// Checks that there is a prior for each.
    pub fn check(&self, priors: &[Prior]) -> Result<(), PriorsError> {
        if priors.len() != self.len() {
            return Err(PriorsError::Number { found: priors.len(), expected: self.len() });
        }
        for (at, (prior, range)) in priors.iter().zip(&self.ranges).enumerate() {
            if prior.n_outcomes() != range.len() {
                let (found, expected) = (prior.n_outcomes(), range.len());
                return Err(PriorsError::Outcomes { at, found, expected });
            }
        }
        Ok(())
    }

    /// Weights of all parameters without a sentence. `[n_params]`
    pub fn weights(&self, priors: &[Prior], estimate: PointEstimate) -> Vec<Wide> {
        let mut weights = vec![Wide::ONE; self.n_params];
        for (range, prior) in self.iter().zip(priors) {
            let ln_weights = prior.ln_weights(estimate).into_iter().map(Wide::from_ln);
            weights[range].iter_mut().zip(ln_weights).for_each(|(weight, found)| *weight = found);
        }
        weights
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grammar::syntax;

    #[test]
    fn rules_without_a_choice_are_left_out() {
        let text = "1 1 S --> A B\n1 1 S --> B A\n1 1 A --> a\n1 1 B --> a\n1 1 B --> b\n1 1 B --> B B\n";
        let multinomials = Multinomials::new(&syntax::parse(text, "g").unwrap().0).unwrap();
        assert_eq!(multinomials.iter().collect::<Vec<_>>(), [1..3, 4..7]);
        let outcomes: Vec<_> = (0..8).map(|param| multinomials.outcome(ParamId(param))).collect();
        let expected =
            [None, Some((0, 0)), Some((0, 1)), None, Some((1, 0)), Some((1, 1)), Some((1, 2)), None];
        assert_eq!(outcomes, expected);
        let prior = |n: usize| Prior::independent(vec![0.0; n]).unwrap();
        assert_eq!(multinomials.check(&[prior(2), prior(3)]), Ok(()));
        assert_eq!(multinomials.check(&[prior(2)]).unwrap_err().to_string(), "1 priors, expected 2");
        let error = multinomials.check(&[prior(2), prior(2)]).unwrap_err().to_string();
        assert_eq!(error, "the prior of multinomial 1 has 2 outcomes, expected 3");
        let weights = multinomials.weights(&[prior(2), prior(3)], PointEstimate::Softmax);
        let weights: Vec<f64> = weights.into_iter().map(Wide::to_f64).collect();
        let third = 1.0 / 3.0;
        for (found, expected) in weights.iter().zip([1.0, 0.5, 0.5, 1.0, third, third, third]) {
            assert!((found - expected).abs() < 1e-15, "{found}, expected {expected}");
        }
    }

    #[test]
    fn grammars_with_strings_or_too_many_rules_are_refused() {
        let error = |text: &str| Multinomials::new(&syntax::parse(text, "g").unwrap().0).unwrap_err();
        assert_eq!(error("1 1 S --> W\nW --> a\n"), Unsuited::Strings { symbol: "W".to_owned() });
        let many: String = (0..=MAX_OUTCOMES).map(|at| format!("1 1 S --> a{at}\n")).collect();
        assert_eq!(
            error(&many).to_string(),
            "nonterminal `S` has 2049 rules, expected at most 2048 with a logistic-normal prior"
        );
    }
}
