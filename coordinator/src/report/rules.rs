//! The rules of a PCFG that are used most, with their mean probabilities.
//!
//! Adaptor grammars have none here: what they learn is in their strings.

use shared::grammar::Rule;
use shared::model::Params;
use shared::shard::ParamId;

use super::html::escape;
use super::line;
use crate::model::SavedModel;

/// Rules shown.
const RULES: usize = 30;

/// The section.
pub fn section(saved: &SavedModel) -> String {
    let top = top(saved);
    if top.is_empty() {
        return String::new();
    }
    let grammar = &saved.model.grammar;
    let mut html = String::from(
        "<p>The rules used most, with their mean probabilities. All of them are in <code>model/grammar.txt</code>.</p>\n\
         <ol class=\"strings\">",
    );
    for (rule, probability) in top {
        let children: Vec<&str> = rule.children.iter().map(|&child| grammar.name(child)).collect();
        let text = format!("{} → {}", grammar.name(rule.parent), children.join(" "));
        let (text, width) = (escape(&text), 100.0 * probability);
        let digits =
            if probability < 1e-3 { format!("{probability:.0e}") } else { format!("{probability:.3}") };
        line(
            &mut html,
            format_args!("<li style=\"--w:{width:.1}%\"><span>{text}</span><b>{digits}</b></li>"),
        );
    }
    html + "</ol>\n"
}

/// The rules with the most expected uses, the most used first; each with its share among those of its parent.
fn top(saved: &SavedModel) -> Vec<(&Rule, f64)> {
    let grammar = &saved.model.grammar;
    let Params::Pcfg(params) = &saved.model.params else { return Vec::new() };
    let (uses, posterior) = (&params.estimate.counts, params.estimate.posterior());
    let mut totals = vec![0.0; grammar.n_nonterminals as usize];
    for (at, rule) in grammar.rules.iter().enumerate() {
        totals[rule.parent.index()] += posterior[ParamId::of_rule(at).index()];
    }
    let of_rule = |(at, rule)| (rule, ParamId::of_rule(at).index());
    let rules = grammar.rules.iter().enumerate().map(of_rule);
    let mut used: Vec<(&Rule, usize)> = rules.filter(|&(_, param)| uses[param] > 0.0).collect();
    used.sort_by(|a, b| uses[b.1].total_cmp(&uses[a.1]).then(a.1.cmp(&b.1)));
    used.truncate(RULES);
    used.into_iter().map(|(rule, param)| (rule, posterior[param] / totals[rule.parent.index()])).collect()
}

#[cfg(test)]
mod tests {
    use shared::pcfg::{self, Estimate};

    use super::*;
    use crate::model::tests::small;

    #[test]
    fn rules_are_by_use_with_their_probabilities() {
        let mut saved = small();
        assert!(section(&saved).is_empty(), "an adaptor grammar's are not shown");
        let n = saved.model.lexicon.n_params(&saved.model.grammar);
        let mut counts = vec![0.0; n];
        (counts[1], counts[2]) = (2.0, 6.0);
        let estimate = Estimate { alpha: vec![1.0; n], counts };
        let params = pcfg::Params { estimate, weights: Vec::new(), escapes: Vec::new() };
        saved.model.params = Params::Pcfg(params);
        let found: Vec<f64> = top(&saved).iter().map(|(_, probability)| *probability).collect();
        assert_eq!(found, [0.7, 0.3], "unused rules are left out");
        let html = section(&saved);
        assert!(html.contains("<span>Sentence → Word Sentence</span><b>0.700</b>"), "{html}");
    }
}
