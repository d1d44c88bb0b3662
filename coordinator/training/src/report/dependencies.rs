//! Section on dependencies: accuracies, attachments tag by tag, and sample trees.

use std::collections::BTreeMap;

use grammaton::data::dependency::Sentence;
use maud::{Markup, html};

use super::{Report, arcs};
use crate::metrics::{recommended, recommended_first, score_text};
use crate::outcome::Heads;

/// Number of trees shown.
const SAMPLES: usize = 8;
/// Lengths of sentences to draw.
const DRAWN: std::ops::RangeInclusive<usize> = 4..=14;

/// Maximum number of heads of a tag in the table of attachments.
const HEADS: usize = 3;

/// Renders the sections; empty for other models.
pub fn section(report: &Report<'_>) -> Markup {
    let heads = &report.outcome.heads;
    html! { (scores(report)) (attachments(heads)) (trees(heads)) }
}

/// The recommended decoder, and the sentences with the heads that it found.
fn found(heads: &Heads) -> Option<(&'static str, &[Sentence])> {
    let name = recommended(heads.by_decoder.iter().map(|(decoder, _)| *decoder))?;
    heads
        .by_decoder
        .iter()
        .find(|(decoder, _)| *decoder == name)
        .map(|(decoder, found)| (*decoder, &found[..]))
}

fn scores(report: &Report<'_>) -> Markup {
    let all = &report.summary.result.attachment;
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
                        @for decoder in recommended_first(all.keys().map(String::as_str)) {
                            @let scores = all[decoder].classes()[at].1;
                            tr {
                                td { (decoder) }
                                td.main { (score_text(scores.directed, 4)) }
                                td { (score_text(scores.undirected, 4)) }
                                td { (score_text(scores.exact, 4)) }
                            }
                        }
                        @for (name, score) in [
                            ("baseline attach-right", of_class.attach_right),
                            ("baseline attach-left", of_class.attach_left),
                        ] {
                            tr.quiet { td { (name) } td { (score_text(score, 4)) } td {} td {} }
                        }
                    }
                }
            }
        }
    }
}

/// The words of a tag, with their heads.
#[derive(Default)]
struct OfTag<'a> {
    words: usize,
    /// Words with the head that gold gives.
    right: usize,
    /// Words by found head, and by gold head.
    heads: [BTreeMap<Head<'a>, usize>; 2],
}

/// The tag of a head and the side that it is on; `None` for the root.
type Head<'a> = Option<(&'a str, &'static str)>;

/// The head of the word at position `at`, from 0.
fn head(sentence: &Sentence, at: usize) -> Option<Head<'_>> {
    let head = *sentence.heads.as_ref()?.get(at)? as usize;
    let side = if head <= at { "left" } else { "right" };
    Some(head.checked_sub(1).map(|head| (&sentence.tags[head][..], side)))
}

fn by_tag<'a>(sentences: &'a [Sentence], gold: Option<&'a [Sentence]>) -> BTreeMap<&'a str, OfTag<'a>> {
    let mut tags: BTreeMap<&str, OfTag<'_>> = BTreeMap::new();
    for (place, sentence) in sentences.iter().enumerate() {
        let gold = gold.and_then(|gold| gold.get(place));
        for (at, tag) in sentence.tags.iter().enumerate() {
            let of_tag = tags.entry(tag).or_default();
            of_tag.words += 1;
            for (heads, sentence) in of_tag.heads.iter_mut().zip([Some(sentence), gold]) {
                if let Some(head) = sentence.and_then(|sentence| head(sentence, at)) {
                    *heads.entry(head).or_default() += 1;
                }
            }
            let number = |sentence: &Sentence| sentence.heads.as_ref()?.get(at).copied();
            let of_gold = gold.and_then(number);
            of_tag.right += usize::from(of_gold.is_some() && of_gold == number(sentence));
        }
    }
    tags
}

/// The most frequent heads of words of a tag, with their shares.
fn most_frequent(heads: &BTreeMap<Head<'_>, usize>) -> String {
    let all: usize = heads.values().sum();
    let mut heads: Vec<_> = heads.iter().collect();
    heads.sort_by_key(|(_, n)| std::cmp::Reverse(**n));
    let text = |(head, n): (&Head<'_>, &usize)| {
        let share = 100.0 * *n as f64 / all as f64;
        match head {
            Some((tag, side)) => format!("{tag} {side} {share:.0}\u{a0}%"),
            None => format!("root {share:.0}\u{a0}%"),
        }
    };
    heads.into_iter().take(HEADS).map(text).collect::<Vec<_>>().join(", ")
}

/// A row for every tag: the heads of its words, and how many are right.
fn attachments(heads: &Heads) -> Markup {
    let Some((decoder, sentences)) = found(heads) else { return html! {} };
    let mut rows: Vec<_> = by_tag(sentences, heads.gold.as_deref()).into_iter().collect();
    rows.sort_by_key(|(_, of_tag)| std::cmp::Reverse(of_tag.words));
    let share = |part: usize, all: usize| format!("{:.0}\u{a0}%", 100.0 * part as f64 / all as f64);
    html! {
        h2 { "Attachments by tag" }
        p.quiet {
            "The most frequent heads of the words of each tag, by " (decoder)
            ". " i { "Left" } " and " i { "right" } " say on which side of the word its head is."
        }
        div.scroll {
            table.attachments {
                thead {
                    tr {
                        th { "tag" } th { "words" }
                        @if heads.gold.is_some() { th { "right" } }
                        th.left { "heads found" }
                        @if heads.gold.is_some() { th.left { "heads in gold" } }
                    }
                }
                tbody {
                    @for (tag, OfTag { words, right, heads: [found, gold] }) in &rows {
                        tr {
                            td { (tag) } td { (words) }
                            @if heads.gold.is_some() { td.main { (share(*right, *words)) } }
                            td.left { (most_frequent(found)) }
                            @if heads.gold.is_some() { td.left { (most_frequent(gold)) } }
                        }
                    }
                }
            }
        }
    }
}

fn trees(heads: &Heads) -> Markup {
    let Some((decoder, sentences)) = found(heads) else { return html! {} };
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

#[cfg(test)]
mod tests {
    use super::*;

    fn sentence(tags: [&str; 3], heads: [u32; 3]) -> Sentence {
        Sentence {
            words: tags.map(str::to_lowercase).to_vec(),
            tags: tags.map(str::to_owned).to_vec(),
            heads: Some(heads.to_vec()),
            given: vec![None; 3],
            punctuation: vec![false; 3],
            breaks: Vec::new(),
            line: 1,
        }
    }

    #[test]
    fn heads_are_counted_by_tag_and_side() {
        let tags = ["DET", "NOUN", "VERB"];
        let found = [sentence(tags, [2, 3, 0]), sentence(tags, [3, 1, 0])];
        let gold = [sentence(tags, [2, 3, 0]), sentence(tags, [2, 3, 0])];
        let rows = by_tag(&found, Some(&gold));
        let row = |tag| (rows[tag].words, rows[tag].right, most_frequent(&rows[tag].heads[0]));
        assert_eq!(row("DET"), (2, 1, "NOUN right 50\u{a0}%, VERB right 50\u{a0}%".to_owned()));
        assert_eq!(row("NOUN"), (2, 1, "DET left 50\u{a0}%, VERB right 50\u{a0}%".to_owned()));
        assert_eq!(row("VERB"), (2, 2, "root 100\u{a0}%".to_owned()));
        assert_eq!(most_frequent(&rows["DET"].heads[1]), "NOUN right 100\u{a0}%");
    }

    #[test]
    fn the_table_has_columns_of_gold_only_with_gold() {
        let mut heads = Heads {
            by_decoder: vec![
                ("viterbi", vec![sentence(["A", "A", "A"], [0, 1, 2])]),
                ("mbr-arcs", vec![sentence(["A", "<b>", "A"], [2, 0, 2])]),
            ],
            ..Heads::default()
        };
        let html = attachments(&heads).into_string();
        assert!(html.contains("by mbr-arcs") && html.contains("&lt;b&gt; right 50\u{a0}%"), "{html}");
        assert!(!html.contains("gold"));
        heads.gold = Some(vec![sentence(["A", "<b>", "A"], [2, 0, 1])]);
        let html = attachments(&heads).into_string();
        assert!(
            html.contains("heads in gold") && html.contains("<td class=\"main\">50\u{a0}%</td>"),
            "{html}"
        );
    }
}
