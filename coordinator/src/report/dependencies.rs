//! Section on dependencies: accuracies and sample trees.

use maud::{Markup, html};
use shared::data::dependency::Sentence;

use super::{Report, arcs};
use crate::metrics::score_text;

/// Number of trees shown.
const SAMPLES: usize = 8;
/// Lengths of sentences to draw.
const DRAWN: std::ops::RangeInclusive<usize> = 4..=14;

/// Renders both sections; empty for other models.
pub fn section(report: &Report<'_>) -> Markup {
    html! { (scores(report)) (trees(report)) }
}

fn scores(report: &Report<'_>) -> Markup {
    let all = &report.summary.attachment;
    let Some(first) = all.values().next() else { return html! {} };
    html! {
        h2 { "Scores" }
        div.scroll {
            table {
                thead {
                    tr { th { "attachment" } th { "directed" } th { "undirected" } th { "whole trees" } }
                }
                tbody {
                    @for (at, (class, of_class)) in first.classes().into_iter().enumerate() {
                        tr {
                            th colspan="4" {
                                (class) ": " (of_class.sentences) " sentences, " (of_class.words) " words"
                            }
                        }
                        @for (decoder, scores) in all {
                            @let scores = scores.classes()[at].1;
                            tr {
                                td { (decoder) }
                                td.main { (score_text(scores.directed, 4)) }
                                td { (score_text(scores.undirected, 4)) }
                                td { (score_text(scores.exact, 4)) }
                            }
                        }
                        @for (name, score) in [
                            ("attach right", of_class.attach_right),
                            ("attach left", of_class.attach_left),
                        ] {
                            tr.quiet { td { (name) } td { (score_text(score, 4)) } td {} td {} }
                        }
                    }
                }
            }
        }
    }
}

fn trees(report: &Report<'_>) -> Markup {
    let heads = &report.outcome.heads;
    let Some((decoder, sentences)) = heads.by_decoder.first() else { return html! {} };
    let readable = |&at: &usize| DRAWN.contains(&sentences[at].n_words());
    let all: Vec<usize> = (0..sentences.len()).filter(readable).collect();
    let n = all.len().min(SAMPLES);
    if n == 0 {
        return html! {};
    }
    let drawing = |at: usize| {
        let Sentence { words, tags, heads: found, .. } = &sentences[at];
        let gold = heads.gold.as_ref().and_then(|gold| gold[at].heads.as_deref());
        arcs::svg(words, tags, found.as_deref().unwrap_or_default(), gold)
    };
    html! {
        h2 { "Sentences" }
        p.quiet {
            "By " (decoder) "."
            @if heads.gold.is_some() {
                " Dashed arcs are not in the gold trees; missed arcs are dotted, below."
            }
            " All are in " code { "parses." (decoder) ".conllu" } "."
        }
        @for at in (0..n).map(|at| all[(2 * at + 1) * all.len() / (2 * n)]) {
            div.scroll { (drawing(at)) }
        }
    }
}
