//! Accuracies of dependency trees, and some of the trees.

use shared::data::dependency::Sentence;

use super::html::escape;
use super::{Report, arcs, line};
use crate::metrics::score_text;

/// Trees shown.
const SAMPLES: usize = 8;
/// Lengths of sentences that are worth a drawing and have room for one.
const DRAWN: std::ops::RangeInclusive<usize> = 4..=14;

/// Both sections; empty for other models.
pub fn section(report: &Report<'_>) -> String {
    scores(report) + &trees(report)
}

fn scores(report: &Report<'_>) -> String {
    let all = &report.summary.attachment;
    let Some(first) = all.values().next() else { return String::new() };
    let mut html = String::from(
        "<h2>Scores</h2>\n<div class=\"scroll\"><table>\n<thead><tr><th>attachment</th><th>directed</th><th>undirected</th>\
         <th>whole trees</th></tr></thead>\n<tbody>\n",
    );
    for (at, (class, of_class)) in first.classes().into_iter().enumerate() {
        let (sentences, words) = (of_class.sentences, of_class.words);
        line(
            &mut html,
            format_args!("<tr><th colspan=\"4\">{class}: {sentences} sentences, {words} words</th></tr>"),
        );
        for (decoder, scores) in all {
            let scores = scores.classes()[at].1;
            let [directed, undirected, exact] =
                [scores.directed, scores.undirected, scores.exact].map(|score| score_text(score, 4));
            line(
                &mut html,
                format_args!(
                    "<tr><td>{}</td><td class=\"main\">{directed}</td><td>{undirected}</td><td>{exact}</td></tr>",
                    escape(decoder)
                ),
            );
        }
        for (name, score) in
            [("each word on the next", of_class.attach_right), ("on the one before", of_class.attach_left)]
        {
            let score = score_text(score, 4);
            line(
                &mut html,
                format_args!("<tr class=\"quiet\"><td>{name}</td><td>{score}</td><td></td><td></td></tr>"),
            );
        }
    }
    html + "</tbody></table></div>\n"
}

fn trees(report: &Report<'_>) -> String {
    let heads = &report.outcome.heads;
    let Some((decoder, sentences)) = heads.by_decoder.first() else { return String::new() };
    let readable = |&at: &usize| DRAWN.contains(&sentences[at].n_words());
    let all: Vec<usize> = (0..sentences.len()).filter(readable).collect();
    let n = all.len().min(SAMPLES);
    if n == 0 {
        return String::new();
    }
    let gold = match heads.gold {
        Some(_) => " Dashed arcs are not in the gold trees; those missed are dotted, below.",
        None => "",
    };
    let mut html = format!(
        "<h2>Sentences</h2>\n<p class=\"quiet\">By {decoder}.{gold} All are in <code>parses.{decoder}.conllu</code>.</p>\n"
    );
    for at in (0..n).map(|at| all[(2 * at + 1) * all.len() / (2 * n)]) {
        let Sentence { words, tags, heads: found, .. } = &sentences[at];
        let gold = heads.gold.as_ref().and_then(|gold| gold[at].heads.as_deref());
        let drawing = arcs::svg(words, tags, found.as_deref().unwrap_or_default(), gold);
        line(&mut html, format_args!("<div class=\"scroll\">{drawing}</div>"));
    }
    html
}
