//! A snapshot of the learned parameters for display: a few strings, rules and sentences.
//!
//! It is taken of a trainer between two rounds, or of a saved model, and holds the strings or rules used most, spelled. It costs one
//! pass over the expected uses, and spells no more than is shown. A training run takes one only if an observer asks for it
//! ([`RunEvent::Scored`](crate::events::RunEvent::Scored)), and decides nothing by it.

use grammaton::data::corpus::Unit;
use grammaton::grammar::ParamId;
use grammaton::grammar::lexicon::Lexicon;
use grammaton::grammar::{Grammar, RuleId, StickId};
use grammaton::models::Params;
use grammaton::models::adaptor::Stick;
use grammaton::models::pcfg;
use grammaton::train::trainer::{Learned, Trainer};
use serde::{Deserialize, Serialize};

use crate::model::spell;
use crate::outcome::Sample;

/// Strings of each adapted nonterminal, and rules, that a snapshot shows.
pub const SHOWN: usize = 20;
/// Sentences that it shows.
pub const SENTENCES: usize = 5;

/// A run after a round.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Snapshot {
    /// The run, from 1.
    pub run: usize,
    /// The round, from 1.
    pub round: usize,
    /// Strings by adapted nonterminal.
    pub strings: Vec<Strings>,
    /// The rules used most, with their mean probabilities; of a PCFG.
    pub rules: Vec<(String, f64)>,
    /// Some sentences, the same in every round, as the round's scoring read them or its sampler drew them.
    pub sentences: Vec<Sample>,
}

/// The strings of a nonterminal that are used most.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Strings {
    /// The nonterminal.
    pub of: String,
    /// Number of strings in use.
    pub n: usize,
    /// The first of them, with their expected uses.
    pub most_used: Vec<(String, f64)>,
}

/// The strings or rules that a run uses most. `lexicon` is the one that it trains with.
pub fn most_used(
    grammar: &Grammar,
    lexicon: &Lexicon,
    trainer: &dyn Trainer,
    unit: Unit,
) -> (Vec<Strings>, Vec<(String, f64)>) {
    if !trainer.report().sticks.is_empty() {
        return (strings(grammar, lexicon, trainer.report().sticks, unit), Vec::new());
    }
    let Learned::Grammar { lexicon: own, params } = trainer.learned() else { return Default::default() };
    match params {
        Params::Adaptor(params) => {
            (strings(grammar, own.as_ref().unwrap_or(lexicon), &params.sticks, unit), Vec::new())
        }
        Params::Pcfg(params) => (Vec::new(), rules(grammar, &params, SHOWN)),
        Params::LogisticNormal(_) => Default::default(),
    }
}

/// The strings of every stick that are used most.
pub fn strings(grammar: &Grammar, lexicon: &Lexicon, sticks: &[Stick], unit: Unit) -> Vec<Strings> {
    let of_stick = |(at, stick): (usize, &Stick)| {
        let first = lexicon.space(grammar).stick(StickId(at as u32)).start;
        let uses: Vec<f64> =
            stick.gamma1.iter().map(|gamma| (gamma - 1.0 + stick.discount).max(0.0)).collect();
        let string =
            |param: ParamId| spell(grammar, &lexicon.sticks[at].strings[(param.0 - first) as usize], unit);
        let most_used = largest(&uses, SHOWN).into_iter().map(|rank| (string(stick.order[rank]), uses[rank]));
        Strings {
            of: grammar.name(stick.symbol).to_owned(),
            n: stick.order.len(),
            most_used: most_used.collect(),
        }
    };
    sticks.iter().enumerate().map(of_stick).collect()
}

/// The `limit` rules of a PCFG with the most expected uses, each with its probability: the estimate of EM and MAP-EM, the posterior mean
/// among the rules of its parent of other methods.
pub fn rules(grammar: &Grammar, params: &pcfg::Params, limit: usize) -> Vec<(String, f64)> {
    let param = |at: usize| ParamId::of_rule(RuleId::at(at)).index();
    let (uses, probabilities) = (&params.estimate.counts, params.rule_probabilities(grammar));
    let of_rules: Vec<f64> =
        (0..grammar.rules.len()).map(|at| uses.get(param(at)).copied().unwrap_or(0.0)).collect();
    let described = |at: usize| {
        let rule = &grammar.rules[at];
        let children: Vec<&str> = rule.children.iter().map(|&child| grammar.name(child)).collect();
        (format!("{} → {}", grammar.name(rule.parent), children.join(" ")), probabilities[at])
    };
    largest(&of_rules, limit).into_iter().filter(|&at| of_rules[at] > 0.0).map(described).collect()
}

/// Places of the `limit` largest values, the largest first, of equal ones the first.
fn largest(values: &[f64], limit: usize) -> Vec<usize> {
    let mut places: Vec<usize> = (0..values.len()).collect();
    let by_value = |a: &usize, b: &usize| values[*b].total_cmp(&values[*a]).then(a.cmp(b));
    if limit < places.len() {
        places.select_nth_unstable_by(limit, by_value);
        places.truncate(limit);
    }
    places.sort_unstable_by(by_value);
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_are_first_and_ties_keep_their_order() {
        let values = [1.0, 3.0, 2.0, 3.0, 0.0];
        assert_eq!(largest(&values, 3), [1, 3, 2]);
        assert_eq!(largest(&values, 9), [1, 3, 2, 0, 4]);
        assert!(largest(&[], 2).is_empty());
    }

    #[test]
    fn strings_are_those_of_the_report() {
        let model = crate::fixture::train(&mut crate::progress::Progress::new(crate::progress::Style::Quiet))
            .unwrap()
            .model;
        let saved = crate::model::SavedModel {
            unit: Unit::Char,
            format: Default::default(),
            cleaning: Default::default(),
            model,
            voters: Vec::new(),
            segmenter: Default::default(),
        };
        let model = saved.model.of_grammar().unwrap();
        let sticks = &model.adaptor().unwrap().sticks;
        let [of_words] = &strings(&model.grammar, &model.lexicon, sticks, Unit::Char)[..] else {
            panic!("one stick")
        };
        let expected =
            crate::model::top(&saved, 0, SHOWN).into_iter().map(|entry| (entry.string, entry.uses));
        assert_eq!(of_words.most_used, expected.collect::<Vec<_>>());
        assert_eq!((&of_words.of[..], of_words.n), ("Word", model.lexicon.sticks[0].strings.len()));
    }
}
