//! Trees of a treebank, passes over them and their answers, to the wire and back.
//!
//! A shard of trees says everything about itself, so all of it is checked here: the rules against labels and words, the trees
//! against the rules. Blocks of numbers are packed fields, 8 bytes a weight and 4 an own count, in the order of the layout.

use shared::data::treebank::{LabelId, Rhs, Rule, RuleId, Rules, WordId};
use shared::models::latent::collapsed::Own;
use shared::models::latent::layout::MAX_SUBTYPES;
use shared::models::latent::{self, Layout, Weights};
use shared::work::shard::Shard;
use shared::work::task::{Annotate, Annotated, Named, Pass, ShardState};

use super::{
    LOGARITHM, NON_NEGATIVE, Wire, WireError, cut, logarithm, non_negative, numbers, ragged, ragged_to_wire,
    same_length,
};
use crate::v1;

pub(super) fn shard_to_wire(rules: &Rules, shard: &latent::Shard) -> v1::Trees {
    let lexical = |rule: &Rule| match rule.right {
        Rhs::Lexical(word) => Some(word.0),
        Rhs::Binary(..) | Rhs::Unary(_) => None,
    };
    let children = |rule: &Rule| rule.right.labels().map(|label| label.0).collect::<Vec<_>>().into_iter();
    v1::Trees {
        labels: rules.labels.clone(),
        words: rules.words.clone(),
        parents: rules.rules.iter().map(|rule| rule.parent.0).collect(),
        children: Some(ragged_to_wire(rules.rules.iter().map(children))),
        lexical: rules.rules.iter().filter_map(lexical).collect(),
        occurrences: rules.occurrences.clone(),
        trees: Some(ragged_to_wire(shard.trees.iter().map(|tree| tree.iter().map(|rule| rule.0)))),
    }
}

pub(super) fn shard_from_wire(message: v1::Trees) -> Result<Shard, WireError> {
    let v1::Trees { labels, words, parents, children, lexical, occurrences, trees } = message;
    let children = ragged("trees.children", children)?;
    same_length("trees.children", children.len(), parents.len())?;
    same_length("trees.lexical", lexical.len(), children.iter().filter(|labels| labels.is_empty()).count())?;
    let mut lexical = lexical.into_iter();
    let rule = |(parent, labels): (u32, Vec<u32>)| {
        let right = match labels[..] {
            [left, right] => Rhs::Binary(LabelId(left), LabelId(right)),
            [child] => Rhs::Unary(LabelId(child)),
            [] => Rhs::Lexical(WordId(lexical.next().expect("there is one for each rule without labels"))),
            _ => {
                let (field, found) = ("trees.children", labels.len() as u64);
                return Err(WireError::Excess { field, found, expected: 2 });
            }
        };
        Ok(Rule { parent: LabelId(parent), right })
    };
    let rules = parents.into_iter().zip(children).map(rule).collect::<Result<_, _>>()?;
    let rules = Rules { labels, words, rules, occurrences };
    rules.check().map_err(|problem| WireError::Trees { problem })?;
    let tree = |tree: Vec<u32>| tree.into_iter().map(RuleId).collect();
    let trees = latent::Shard { trees: ragged("trees.trees", trees)?.into_iter().map(tree).collect() };
    trees.check(&rules).map_err(|problem| WireError::Trees { problem })?;
    Ok(Shard::Trees { rules, trees })
}

pub(super) fn annotate_to_wire(annotate: &Annotate) -> v1::Annotate {
    let pass = match &annotate.pass {
        Pass::Expect { weights } => v1::annotate::Pass::Expect(weights_to_wire(weights)),
        Pass::Begin { weights } => v1::annotate::Pass::Begin(weights_to_wire(weights)),
        Pass::Others { totals, alpha, carried: _ } => {
            v1::annotate::Pass::Others(v1::OtherTrees { totals: totals.to_vec(), alpha: *alpha })
        }
    };
    v1::Annotate { n_subtypes: annotate.n_subtypes as u32, pass: Some(pass) }
}

pub(super) fn annotate_from_wire(
    message: v1::Annotate,
    carried: impl FnOnce() -> Result<Named<ShardState>, WireError>,
) -> Result<Annotate, WireError> {
    let v1::Annotate { n_subtypes, pass } = message;
    super::in_range("annotate.n_subtypes", [n_subtypes], 1..MAX_SUBTYPES as u64 + 1)?;
    let pass = match pass.ok_or(WireError::Missing { field: "annotate.pass" })? {
        v1::annotate::Pass::Expect(weights) => Pass::Expect { weights: weights_from_wire(weights)?.into() },
        v1::annotate::Pass::Begin(weights) => Pass::Begin { weights: weights_from_wire(weights)?.into() },
        v1::annotate::Pass::Others(v1::OtherTrees { totals, alpha }) => {
            numbers("annotate.totals", &totals, NON_NEGATIVE, non_negative)?;
            numbers("annotate.alpha", &[alpha], "above 0 and at most 1e9", |alpha| {
                alpha > 0.0 && alpha <= 1e9
            })?;
            Pass::Others { totals: totals.into(), alpha, carried: carried()? }
        }
    };
    Ok(Annotate { n_subtypes: n_subtypes as usize, pass })
}

fn weights_to_wire(weights: &Weights) -> v1::SplitWeights {
    v1::SplitWeights { values: weights.values.clone(), exponents: weights.exponents.clone() }
}

/// Exponents add up over a tree, which has less than 2^30 nodes in any payload.
const LARGEST_EXPONENT: i64 = 1 << 32;

fn weights_from_wire(message: v1::SplitWeights) -> Result<Weights, WireError> {
    let v1::SplitWeights { values, exponents } = message;
    // Probabilities, or mantissas.
    numbers("annotate.values", &values, "from 0 to 2", |value| (0.0..=2.0).contains(&value))?;
    match exponents.iter().position(|exponent| !(-LARGEST_EXPONENT..=LARGEST_EXPONENT).contains(exponent)) {
        Some(at) => {
            let (found, largest) = (exponents[at], LARGEST_EXPONENT);
            Err(WireError::Exponent { field: "annotate.exponents", at, found, largest })
        }
        None => Ok(Weights { values, exponents }),
    }
}

pub(super) fn own_to_wire(own: &Own) -> v1::CarriedTrees {
    v1::CarriedTrees {
        lengths: own.trees.iter().map(|tree| tree.len() as u32).collect(),
        counts: own.trees.concat(),
    }
}

/// Of which shard they are, and that they are counts, its task says ([`fits`]).
pub(super) fn own_from_wire(message: v1::CarriedTrees) -> Result<Own, WireError> {
    let v1::CarriedTrees { lengths, counts } = message;
    Ok(Own { trees: cut("carried.trees", lengths, &counts)? })
}

pub(super) fn annotated_to_wire(annotated: &Annotated) -> v1::Annotated {
    v1::Annotated {
        counts: annotated.expectation.counts.clone(),
        log_z: annotated.expectation.ln_z,
        carried: annotated.carried.as_ref().map(Wire::to_wire),
    }
}

pub(super) fn annotated_from_wire(message: v1::Annotated) -> Result<Annotated, WireError> {
    let v1::Annotated { counts, log_z, carried } = message;
    numbers("annotated.counts", &counts, NON_NEGATIVE, non_negative)?;
    numbers("annotated.log_z", &[log_z], LOGARITHM, logarithm)?;
    let expectation = latent::Expectation { counts, ln_z: log_z };
    Ok(Annotated { expectation, carried: carried.map(ShardState::from_wire).transpose()? })
}

/// Whether a pass is one over the trees of `shard`.
pub(super) fn fits(shard: &Shard, annotate: &Annotate) -> Result<(), WireError> {
    let (layout, trees) = layout(shard, annotate)?;
    match &annotate.pass {
        Pass::Expect { weights } | Pass::Begin { weights } => {
            same_length("annotate.values", weights.values.len(), layout.n_params())?;
            same_length("annotate.exponents", weights.exponents.len(), layout.blocks.len())
        }
        Pass::Others { totals, carried, .. } => {
            same_length("annotate.totals", totals.len(), layout.n_params())?;
            self::carried(&layout, trees, &carried.value)
        }
    }
}

/// Whether an answer is one to that pass over `shard`.
pub(super) fn answers(shard: &Shard, annotate: &Annotate, annotated: &Annotated) -> Result<(), WireError> {
    let (layout, trees) = layout(shard, annotate)?;
    same_length("annotated.counts", annotated.expectation.counts.len(), layout.n_params())?;
    match (&annotate.pass, &annotated.carried) {
        (Pass::Expect { .. }, None) => Ok(()),
        (Pass::Begin { .. } | Pass::Others { .. }, Some(carried)) => self::carried(&layout, trees, carried),
        (Pass::Expect { .. }, Some(_)) => {
            Err(WireError::ShardState { problem: "this pass carries nothing".to_owned() })
        }
        (Pass::Begin { .. } | Pass::Others { .. }, None) => {
            Err(WireError::Missing { field: "annotated.carried" })
        }
    }
}

/// Numbers of an answer: its counts, and those that the shard carries.
pub(super) fn n_numbers(shard: &Shard, annotate: &Annotate) -> [u64; 2] {
    let Ok((layout, trees)) = layout(shard, annotate) else { return [0; 2] };
    let own = |rule: &RuleId| layout.blocks[rule.index()].n_entries() as u64;
    let n_own = match annotate.pass {
        Pass::Expect { .. } => 0,
        Pass::Begin { .. } | Pass::Others { .. } => trees.trees.iter().flatten().map(own).sum(),
    };
    [layout.n_params() as u64, n_own]
}

fn layout<'s>(shard: &'s Shard, annotate: &Annotate) -> Result<(Layout, &'s latent::Shard), WireError> {
    let Shard::Trees { rules, trees } = shard else {
        return Err(WireError::Kind { found: "a shard of sentences or strings", expected: "one of trees" });
    };
    Layout::check(rules, annotate.n_subtypes)
        .map_err(|error| WireError::Trees { problem: error.to_string() })?;
    Ok((Layout::new(rules, annotate.n_subtypes), trees))
}

fn carried(layout: &Layout, trees: &latent::Shard, carried: &ShardState) -> Result<(), WireError> {
    match carried {
        ShardState::Latent(own) if own.fits(layout, trees) => Ok(()),
        _ => Err(WireError::ShardState { problem: "it is not of the shard's trees".to_owned() }),
    }
}
