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
        line(
            &mut html,
            format_args!("<li style=\"--w:{width:.1}%\"><span>{text}</span><b>{probability:.3}</b></li>"),
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
