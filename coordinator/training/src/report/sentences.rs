//! Section of sentences: as the recommended decoder segments them, each gap shaded by the probability of a boundary; gold where it differs, other decoders
//! folded away.
//!
//! Without script it is a plain list in the order of the text. [`SCRIPT`] sorts and filters it, by the data attributes of its rows.

use std::collections::{BTreeMap, BTreeSet};

use basics::human::whole;
use grammaton::data::corpus::Unit;
use maud::{Markup, html};

use super::Report;
use crate::metrics::recommended;
use crate::outcome::Sample;

/// Script of the section.
pub const SCRIPT: &str = include_str!("sentences.js");

/// Probability in percent from which a gap without a boundary is shaded.
const SHADED: u8 = 5;
/// Probabilities in percent of an unsure boundary, which the keyboard reaches and screen readers read.
const UNSURE: std::ops::RangeInclusive<u8> = 10..=90;

/// Renders the section; empty without sentences.
pub fn section(report: &Report<'_>) -> Markup {
    let samples = &report.outcome.samples;
    let names: Vec<&str> = report.outcome.decodings.iter().map(|decoding| decoding.name).collect();
    let Some(decoder) = recommended(names.iter().copied()).filter(|_| !samples.is_empty()) else {
        return html! {};
    };
    let has_gold = samples.iter().any(|sample| sample.gold.is_some());
    let has_probabilities = samples.iter().any(|sample| !sample.probabilities.is_empty());
    html! {
        h2 { "Sentences" }
        p.quiet {
            (samples.len()) " of " (whole(report.summary.sentences as f64)) " sentences, evenly over the text, as segmented by "
            code { (decoder) } ", the recommended decoder."
            @if has_probabilities {
                " The darker a gap is, the more probable is a boundary there; the number is shown where the pointer rests. All of them are in "
                code { "boundaries.tsv" } "."
            }
            @if has_gold { " Marked segments are not in the gold segmentation." }
        }
        div.controls #controls hidden {
            label {
                "Order " select #order {
                    option value="text" { "of the text" }
                    @if has_gold { option value="errors" { "most errors first" } }
                    @if has_probabilities {
                        option value="unsure" { "most unsure first" }
                        option value="sure" { "surest first" }
                    }
                }
            }
            @if has_gold { label { input #wrong type="checkbox"; " only with errors" } }
            input #search type="search" placeholder="Find text" aria-label="Find text";
            output #shown aria-live="polite" {}
        }
        (list(samples, &names, report.saved.unit))
    }
}

/// A list of sentences as segmented by decoders with these names.
pub fn list(samples: &[Sample], names: &[&str], unit: Unit) -> Markup {
    let main = recommended(names.iter().copied());
    let main = names.iter().position(|name| Some(*name) == main).unwrap_or_default();
    html! {
        ol.sentences { @for sample in samples { (row(sample, names, main, unit)) } }
    }
}

/// Text of a segment, and its span in characters without spaces, which are the same in all segmentations.
type Segment<'a> = (&'a str, (usize, usize));

fn segments(line: &str, unit: Unit) -> Vec<Segment<'_>> {
    let mut from = 0;
    let words: Vec<&str> = match unit {
        Unit::Char | Unit::Grapheme | Unit::Ipa => line.split_whitespace().collect(),
        Unit::Token => line.split(" | ").map(str::trim).collect(),
    };
    let span = |word| {
        let length = str::chars(word).filter(|c| !c.is_whitespace()).count();
        from += length;
        (word, (from - length, from))
    };
    words.into_iter().map(span).collect()
}

/// Probabilities of boundaries in percent, by the number of characters before them.
type Gaps = BTreeMap<usize, u8>;

/// A sentence by the decoder at position `main`, with the others below it where they differ.
fn row(sample: &Sample, names: &[&str], main: usize, unit: Unit) -> Markup {
    let gold = sample.gold.as_ref().map(|gold| segments(gold, unit));
    let found = sample.segmentations.get(main).map(|line| segments(line, unit)).unwrap_or_default();
    let gaps: Gaps = sample.probabilities.iter().map(|&(at, percent)| (at as usize, percent)).collect();
    let ends = |line: &[Segment<'_>]| line.iter().map(|(_, (_, end))| *end).collect::<BTreeSet<usize>>();
    let errors = gold.as_ref().map(|gold| ends(gold).symmetric_difference(&ends(&found)).count());
    let doubt: u32 = gaps.values().map(|&percent| u32::from(percent.min(100 - percent.min(100)))).sum();
    let others: Vec<(&str, Vec<Segment<'_>>)> = names
        .iter()
        .zip(&sample.segmentations)
        .map(|(name, line)| (*name, segments(line, unit)))
        .filter(|(_, other)| *other != found)
        .collect();
    let differing: Vec<&str> = others.iter().map(|(name, _)| *name).collect();
    let none = Gaps::new();
    html! {
        li data-errors=[errors] data-doubt=[(!gaps.is_empty()).then_some(doubt)] {
            div.found dir="auto" { (line(&found, gold.as_deref(), &gaps, unit)) }
            @if let Some(gold) = gold.as_ref().filter(|_| errors != Some(0)) {
                div.other dir="auto" { span.quiet { "gold" } " " (line(gold, None, &none, unit)) }
            }
            @if !others.is_empty() {
                details {
                    summary { "differs: " (differing.join(", ")) }
                    @for (name, other) in &others {
                        div.other dir="auto" { span.quiet { (name) } " " (line(other, gold.as_deref(), &none, unit)) }
                    }
                }
            }
        }
    }
}

/// A segmented line; segments that are not in `gold` are marked.
fn line(found: &[Segment<'_>], gold: Option<&[Segment<'_>]>, gaps: &Gaps, unit: Unit) -> Markup {
    let is_off = |span| gold.is_some_and(|gold| !gold.iter().any(|(_, of_gold)| of_gold == span));
    html! {
        @for (at, (text, span)) in found.iter().enumerate() {
            @if at > 0 { (gap(gaps.get(&span.0).copied(), Some(unit.separators().1))) }
            i class=[is_off(span).then_some("off")] { (inside(text, span.0, gaps)) }
        }
    }
}

/// The text of a segment that begins after `start` characters, with its shaded gaps.
fn inside(text: &str, start: usize, gaps: &Gaps) -> Markup {
    let mut parts: Vec<(&str, Option<u8>)> = Vec::new();
    let (mut from, mut n) = (0, start);
    for (place, letter) in text.char_indices().filter(|(_, letter)| !letter.is_whitespace()) {
        if n > start
            && let Some(percent) = gaps.get(&n).filter(|percent| **percent >= SHADED)
        {
            parts.push((&text[from..place], Some(*percent)));
            from = place;
        }
        n += usize::from(!letter.is_whitespace());
    }
    parts.push((&text[from..], None));
    html! {
        @for (text, percent) in parts {
            (text) @if percent.is_some() { (gap(percent, None)) }
        }
    }
}

/// A gap with the probability of a boundary in percent; one with a boundary has its separator.
fn gap(percent: Option<u8>, separator: Option<&str>) -> Markup {
    let Some(percent) = percent else {
        return html! { (separator.unwrap_or_default()) };
    };
    let about = if separator.is_some() { "boundary" } else { "no boundary" };
    let shown = format!("{percent}\u{a0}%");
    let is_unsure = UNSURE.contains(&percent);
    let label = is_unsure.then(|| format!("{about}, {shown}"));
    let class = format!("gap w{percent}{}", if separator.is_some() { " cut" } else { "" });
    html! {
        b class=(class) title=(shown) aria-label=[label] role=[is_unsure.then_some("img")] tabindex=[is_unsure.then_some("0")] {
            (separator.unwrap_or_default())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::markup::visible;

    fn sample(gold: Option<&str>, segmentations: &[&str], probabilities: &[(u32, u8)]) -> Sample {
        Sample {
            gold: gold.map(str::to_owned),
            segmentations: segmentations.iter().map(|&line| line.to_owned()).collect(),
            probabilities: probabilities.to_vec(),
            ..Sample::default()
        }
    }

    fn html(sample: Sample, names: &[&str], unit: Unit) -> String {
        visible(list(&[sample], names, unit))
    }

    #[test]
    fn gaps_are_shaded_by_their_probability() {
        let html = html(sample(None, &["ab c"], &[(1, 28), (2, 95)]), &["mbr"], Unit::Char);
        let unsure = "<b class=\"gap w28\" title=\"28\u{a0}%\" aria-label=\"no boundary, 28\u{a0}%\" role=\"img\" tabindex=\"0\"></b>";
        let sure = "<b class=\"gap w95 cut\" title=\"95\u{a0}%\"> </b>";
        assert!(html.contains(&format!("<i>a{unsure}b</i>{sure}<i>c</i>")), "{html}");
        assert!(
            html.contains("<li data-doubt=\"33\">") && !html.contains("gold") && !html.contains("<details"),
            "{html}"
        );
    }

    #[test]
    fn improbable_gaps_are_not_shaded_and_unknown_ones_are_plain() {
        let shaded = html(sample(None, &["ab c"], &[(1, 4), (2, 0)]), &["mbr"], Unit::Char);
        assert!(
            shaded.contains("<i>ab</i><b class=\"gap w0 cut\" title=\"0\u{a0}%\"> </b><i>c</i>"),
            "{shaded}"
        );
        let plain = html(sample(None, &["ab c"], &[]), &["mbr"], Unit::Char);
        assert!(
            plain.contains("<li><div class=\"found\" dir=\"auto\"><i>ab</i> <i>c</i></div></li>"),
            "{plain}"
        );
        let tokens = html(sample(None, &["a b | c"], &[(1, 50), (2, 60)]), &["mbr"], Unit::Token);
        assert!(
            tokens.contains("> | </b><i>c</i>") && tokens.contains("<i>a <b class=\"gap w50\""),
            "{tokens}"
        );
    }

    #[test]
    fn the_recommended_decoder_is_shown_and_those_that_differ_are_folded() {
        let sample = sample(Some("the dog"), &["thedog", "th e dog", "thedog"], &[]);
        let html = html(sample, &["viterbi", "mbr-vote", "mbr"], Unit::Char);
        let (shown, folded) = html.split_once("<details>").unwrap();
        assert!(shown.contains("<i class=\"off\">th</i> <i class=\"off\">e</i> <i>dog</i>"), "{html}");
        assert!(
            shown.contains("gold</span> <i>the</i> <i>dog</i>") && shown.contains("data-errors=\"1\""),
            "{html}"
        );
        assert!(folded.starts_with("<summary>differs: viterbi, mbr</summary>"), "{html}");
    }

    #[test]
    fn all_text_is_escaped() {
        let hostile = "<a&\"'>";
        let html = html(
            sample(Some(hostile), &["<a &\"'>", hostile], &[(1, 50), (2, 50)]),
            &["mbr", "x<y"],
            Unit::Char,
        );
        assert!(!html.contains("<a") && !html.contains("x<y") && html.contains("&lt;"), "{html}");
    }

    #[test]
    fn a_row_without_segmentations_is_empty() {
        assert!(
            html(Sample::default(), &["mbr"], Unit::Char)
                .contains("<div class=\"found\" dir=\"auto\"></div>")
        );
        assert!(html(sample(None, &[""], &[(3, 100)]), &[], Unit::Token).contains("<i></i>"));
    }
}
