//! Section on the most used rules of a PCFG, with their mean probabilities.
//!
//! Adaptor grammars have a section on strings instead.

use grammaton::models::{Model, Params};
use maud::{Markup, html};

use super::markup::bars;
use crate::model::SavedModel;
use crate::snapshot;

/// Number of rules shown.
const RULES: usize = 30;

/// Renders the section.
pub fn section(saved: &SavedModel) -> Markup {
    let Some(Model { grammar, params: Params::Pcfg(params), .. }) = saved.model.of_grammar() else {
        return html! {};
    };
    let list = list(&snapshot::rules(grammar, params, RULES));
    html! {
        @if !list.0.is_empty() {
            p {
                "The rules used most, with their mean probabilities. All of them are in "
                code { "model/grammar.txt" }
                "."
            }
            (list)
        }
    }
}

/// Renders rules with their probabilities.
pub fn list(rules: &[(String, f64)]) -> Markup {
    let digits = |share: f64| if share < 1e-3 { format!("{share:.0e}") } else { format!("{share:.3}") };
    match rules {
        [] => html! {},
        rules => bars(rules.iter().map(|(rule, share)| (&rule[..], *share, digits(*share)))),
    }
}

#[cfg(test)]
mod tests {
    use grammaton::grammar::groups::Estimate;
    use grammaton::models::pcfg;

    use super::*;
    use crate::model::tests::{OfGrammar as _, small};

    #[test]
    fn rules_are_sorted_by_use_and_have_probabilities() {
        let mut saved = small();
        assert!(section(&saved).0.is_empty(), "rules of adaptor grammars are not shown");
        let model = saved.of_grammar();
        let n = model.lexicon.space(&model.grammar).n_params();
        let mut counts = vec![0.0; n];
        (counts[1], counts[2]) = (2.0, 6.0);
        let estimate = Estimate { alpha: vec![1.0; n], counts };
        let params = pcfg::Params { estimate, weights: Vec::new(), is_point: false, escapes: Vec::new() };
        model.params = Params::Pcfg(params);
        let html = section(&saved).into_string();
        assert_eq!(html.matches("<li").count(), 2, "unused rules are left out: {html}");
        assert!(html.contains("<span>Sentence → Word Sentence</span><b>0.700</b>"), "{html}");
    }
}
