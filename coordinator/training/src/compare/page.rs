//! `compare.html`: a comparison as a page, with the look of the report, self-contained and without scripts.

use basics::human::whole;
use grammaton::data::corpus::Analyses;
use grammaton::data::eval::segmentation::{closest, spans};
use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::scores::{self, label};
use super::text::facts;
use super::{Comparison, Line, Run, Segments, Word};
use crate::report::{STYLE, markup};

/// Lines that are shown.
const LINES: usize = 200;
/// Words that are shown of each kind.
const WORDS: usize = 50;

/// Renders the page.
pub fn render(found: &Comparison) -> String {
    let names: Vec<&str> = found.runs.iter().map(name).collect();
    let title = names.join(" · ");
    markup::visible(html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) " · Grammaton" }
                style { (PreEscaped(STYLE)) (PreEscaped(markup::bar_lengths())) }
            }
            body {
                main {
                    p.quiet { "Grammaton, runs compared" }
                    h1 { (title) }
                    (figures(found))
                    @for verdict in found.verdicts() { p { (verdict) } }
                    @if !found.notices.is_empty() {
                        h2 { "Notices" }
                        ul.notices { @for notice in &found.notices { li { (notice) } } }
                    }
                    (runs(found))
                    (scores(found))
                    (lines(found))
                    (words(found))
                    footer { p { "Grammaton " (found.runs[0].summary.version) "." } }
                }
            }
        }
    })
}

/// The last part of the folder.
fn name(run: &Run) -> &str {
    let folder = run.folder.trim_end_matches('/');
    folder.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or(folder)
}

fn figures(found: &Comparison) -> Markup {
    let token_f1 = |run: usize| found.scored.as_ref()?.outputs[run].intervals.get("token_f1");
    let scores = (0..found.runs.len()).filter_map(|run| {
        Some((format!("token F1 of {}", label(run)), format!("{:.3}", token_f1(run)?.score)))
    });
    let agreement = found.agreement.iter().zip(1..).map(|(scores, other)| {
        let name = format!("agreement of {} and {}", label(0), label(other));
        (name, crate::metrics::score_text(scores.token.f1, 3))
    });
    let lines = format!("of {} lines differ", whole(found.n_lines as f64));
    let all = scores.chain(agreement).chain([(lines, whole(found.lines.len() as f64))]);
    html! { dl.figures { @for (name, value) in all { div { dt { (name) } dd { (value) } } } } }
}

fn letters(found: &Comparison) -> impl Iterator<Item = char> {
    (0..found.runs.len()).map(label)
}

fn runs(found: &Comparison) -> Markup {
    let of_runs: Vec<Vec<(&str, String)>> = found.runs.iter().map(facts).collect();
    let n_same = if found.settings.is_empty() {
        "All settings are the same."
    } else {
        "Settings that are the same in all runs are not listed."
    };
    html! {
        h2 { "Runs" }
        div.scroll {
            table.compared {
                thead { tr { th {} @for letter in letters(found) { th.left { (letter) } } } }
                tbody {
                    tr { td { "folder" } @for run in &found.runs { td.left { (run.folder) } } }
                    @for (at, (name, _)) in of_runs[0].iter().enumerate() {
                        tr { td { (name) } @for facts in &of_runs { td.left { (facts[at].1) } } }
                    }
                    @for setting in &found.settings {
                        tr {
                            td { code { (setting.key) } }
                            @for value in &setting.values { td.left.main { (value.as_deref().unwrap_or("–")) } }
                        }
                    }
                }
            }
        }
        p.quiet { (n_same) " Objectives of different grammars, methods and priors cannot be compared." }
    }
}

fn scores(found: &Comparison) -> Markup {
    let Some(scored) = &found.scored else { return html! {} };
    let n = scored.outputs[0].scores.sentences;
    html! {
        h2 { "Scores" }
        p.quiet {
            "Of " (whole(n as f64)) " sentences against gold, with 95 % intervals of a bootstrap over sentences. Differences are paired; p-values are two-sided."
        }
        @for table in scores::tables(scored) {
            @if let Some((head, rows)) = table.split_first().filter(|(_, rows)| !rows.is_empty()) {
                div.scroll {
                    table.compared {
                        thead { tr { @for cell in head { th { (cell) } } } }
                        tbody {
                            @for row in rows {
                                tr class=[row[0].ends_with("token F1").then_some("kept")] { @for cell in row { td { (cell) } } }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn lines(found: &Comparison) -> Markup {
    let shown = &found.lines[..found.lines.len().min(LINES)];
    html! {
        h2 { "Lines that differ" }
        p.quiet {
            (whole(found.lines.len() as f64)) " of " (whole(found.n_lines as f64)) " lines, the most different first. Marked segments are not in "
            @if found.scored.is_some() { "the gold segmentation." } @else { "all runs." }
            @if shown.len() < found.lines.len() { " The first " (shown.len()) " are shown; all of them are in " code { "lines.tsv" } "." }
        }
        div.samples.compared { @for line in shown { (self::line(line)) } }
    }
}

fn line(line: &Line) -> Markup {
    let ends = |segments: &Segments| segments.segments.iter().map(|(_, end)| *end).collect::<Vec<u32>>();
    let gold: Analyses = line.gold.iter().map(ends).collect();
    let row = |name: &str, segments: &Segments, marked: bool| {
        let found = ends(segments);
        // Against gold the marked segments are wrong; without, they are not in all runs.
        let others = match closest(&gold, &found) {
            Some(gold) => vec![gold.to_vec()],
            None => line.segmentations.iter().map(ends).collect(),
        };
        let is_off = move |span| marked && others.iter().any(|ends| !spans(ends).any(|other| other == span));
        let of_segments = segments.segments.iter().zip(spans(&found).collect::<Vec<_>>());
        let marked: Vec<(&String, bool)> =
            of_segments.map(|((text, _), span)| (text, is_off(span))).collect();
        html! {
            dt { (name) }
            dd { @for (text, is_off) in marked { i class=[is_off.then_some("off")] { (text) } " " } }
        }
    };
    html! {
        dl {
            dt { "line " (line.line) }
            dd.quiet { (line.differing) @if line.differing == 1 { " position" } @else { " positions" } }
            @for gold in &line.gold { (row("gold", gold, false)) }
            @for (at, segments) in line.segmentations.iter().enumerate() {
                (row(&label(at).to_string(), segments, true))
            }
        }
    }
}

fn words(found: &Comparison) -> Markup {
    html! {
        @if !found.words.is_empty() {
            h2 { "Words gained and lost" }
            p.quiet {
                "Words of which some run has more than another are all in " code { "words.tsv" } "."
                @if found.words.iter().any(|word| word.in_gold.is_some()) { " Words in bold are in the gold segmentation." }
            }
            @for run in 1..found.runs.len() {
                @for lost in [false, true] { (changed(found, run, lost)) }
            }
        }
    }
}

fn changed(found: &Comparison, run: usize, lost: bool) -> Markup {
    let [has, lacks] = if lost { [0, run] } else { [run, 0] };
    let words = found.changed_words(run, lost);
    let shown: &[(&Word, u64)] = &words[..words.len().min(WORDS)];
    let most = shown.first().map_or(1, |(_, count)| *count).max(1) as f64;
    html! {
        h3 { (whole(words.len() as f64)) " words that " (label(has)) " has and " (label(lacks)) " lacks" }
        ol.strings {
            @for (word, count) in shown {
                li class=(format_args!("w{:.0}", 100.0 * *count as f64 / most)) {
                    span class=[(word.in_gold == Some(true)).then_some("main")] { (word.word) }
                    b { (whole(*count as f64)) }
                }
            }
        }
    }
}
