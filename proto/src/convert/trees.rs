//! Shards of trees.
//!
//! A shard of trees holds its own rules, so all of it is checked here: the rules against labels and words, the trees against
//! the rules.

use grammaton::data::treebank::{LabelId, Rhs, Rule, RuleId, Rules, WordId};
use grammaton::models::latent;
use grammaton::work::shard::Shard;

use super::{WireError, ragged, ragged_to_wire, same_length};
use crate::v1;

pub fn to_wire(rules: &Rules, shard: &latent::Shard) -> v1::Trees {
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

pub fn from_wire(message: v1::Trees) -> Result<Shard, WireError> {
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
    rules.check().map_err(|error| WireError::Trees { problem: error.to_string() })?;
    let tree = |tree: Vec<u32>| tree.into_iter().map(RuleId).collect();
    let trees = latent::Shard { trees: ragged("trees.trees", trees)?.into_iter().map(tree).collect() };
    trees.check(&rules).map_err(|error| WireError::Trees { problem: error.to_string() })?;
    Ok(Shard::Trees { rules, trees })
}
