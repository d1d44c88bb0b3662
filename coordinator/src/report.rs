//! `report.html`: one page that tells how a run went and what it found.
//!
//! Self-contained: no network, no scripts. Light and dark follow the reader's system; it reads on a phone. All text
//! that comes from the user's files is escaped.

mod chart;
mod html;
mod tree;

use std::collections::BTreeSet;
use std::fmt::Write as _;

use chart::{Chart, Series};
use html::escape;
use shared::corpus::Unit;
use shared::tree::Tree;

use crate::job::Job;
use crate::metrics::{RoundMetrics, Scores, Summary, score_text};
use crate::model::{self, SavedModel};
use crate::outcome::Outcome;
use crate::progress::duration;

/// What the page is made of.
pub struct Report<'a> {
    /// The job as it ran.
    pub job: &'a Job,
    /// All rounds.
    pub rounds: &'a [RoundMetrics],
    /// The result.
    pub outcome: &'a Outcome,
    /// The model as saved.
    pub saved: &'a SavedModel,
    /// The summary as saved.
    pub summary: &'a Summary,
}

/// The page.
pub fn render(report: &Report<'_>) -> String {
    let corpus = report.job.corpus.path.file_name().map_or(String::new(), |name| name.display().to_string());
    let title = format!("{} · {}", escape(&corpus), escape(&grammar_name(report.job)));
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title} · Grammaton</title>\n<style>\n{}</style>\n</head>\n<body>\n<main>\n\
         <p class=\"quiet\">Grammaton, training report</p>\n<h1>{title}</h1>\n{}{}{}{}{}{}{}{}{}</main>\n</body>\n</html>\n",
        include_str!("report/style.css"),
        figures(report),
        notices(report),
        curves(report),
        scores(report),
        strings(report),
        samples(report),
        drawn_tree(report),
        timings(report),
        job(report),
    )
}

fn grammar_name(job: &Job) -> String {
    let text = job.model.grammar.to_string();
    text.rsplit(['/', '\\']).next().unwrap_or_default().to_owned()
}

fn figures(report: &Report<'_>) -> String {
    let summary = report.summary;
    let mut figures: Vec<(String, String)> = summary
        .scores
        .iter()
        .map(|(decoder, scores)| (format!("token F1, {decoder}"), score_text(scores.token_f1, 3)))
        .collect();
    let brackets = summary.brackets.iter();
    figures.extend(
        brackets
            .map(|(decoder, scores)| (format!("bracket F1, {decoder}"), score_text(scores.labelled.f1, 3))),
    );
    if let Some(bound) = summary.bound {
        figures.push(("bound".to_owned(), chart::number(bound, &[])));
    }
    let rounds = if summary.converged { "rounds, converged" } else { "rounds, not converged" };
    figures.push((rounds.to_owned(), summary.rounds.to_string()));
    let timings = summary.timings;
    figures.push(("time".to_owned(), duration(timings.preprocess + timings.rounds + timings.decode)));
    figures.push(("sentences".to_owned(), chart::number(summary.sentences as f64, &[0.0, 1.0])));
    let mut html = String::from("<dl class=\"figures\">\n");
    for (name, value) in figures {
        line(&mut html, format_args!("<div><dt>{}</dt><dd>{value}</dd></div>", escape(&name)));
    }
    html + "</dl>\n"
}

fn notices(report: &Report<'_>) -> String {
    if report.summary.notices.is_empty() {
        return String::new();
    }
    let mut html = String::from("<h2>Notices</h2>\n<ul class=\"notices\">\n");
    for notice in &report.summary.notices {
        line(&mut html, format_args!("<li>{}</li>", escape(notice)));
    }
    html + "</ul>\n"
}

fn curves(report: &Report<'_>) -> String {
    let points = |value: &dyn Fn(&RoundMetrics) -> Option<f64>| -> Vec<(f64, f64)> {
        report.rounds.iter().filter_map(|round| Some((round.round as f64, value(round)?))).collect()
    };
    let by_name = |names: BTreeSet<&String>, value: &dyn Fn(&RoundMetrics, &str) -> Option<f64>| {
        let series = names.into_iter().take(4);
        series
            .map(|name| Series { name: name.clone(), points: points(&|round| value(round, name)) })
            .collect()
    };
    let bound = Chart {
        title: "Variational bound",
        x_label: "round",
        series: vec![Series { name: "bound".to_owned(), points: points(&|round| round.bound) }],
    };
    let scores = Chart {
        title: "Token F1 against gold",
        x_label: "round",
        series: by_name(
            report.rounds.iter().flat_map(|round| round.scores.keys()).collect(),
            &|round, name| round.scores.get(name)?.token_f1,
        ),
    };
    let strings = Chart {
        title: "Strings in use",
        x_label: "round",
        series: by_name(
            report.rounds.iter().flat_map(|round| round.strings.keys()).collect(),
            &|round, name| round.strings.get(name).map(|&n| n as f64),
        ),
    };
    let speed = Chart {
        title: "Seconds per round",
        x_label: "round",
        series: vec![Series { name: "seconds".to_owned(), points: points(&|round| Some(round.seconds)) }],
    };
    let mut html = String::from("<h2>Rounds</h2>\n<div class=\"charts\">\n");
    for chart in [bound, scores, strings, speed].iter().filter(|chart| !chart.series.is_empty()) {
        line(
            &mut html,
            format_args!("<figure><figcaption>{}</figcaption>{}</figure>", chart.title, chart.svg()),
        );
    }
    html + "</div>\n"
}

fn scores(report: &Report<'_>) -> String {
    if report.summary.scores.is_empty() {
        return String::new();
    }
    let all = &report.summary.scores;
    let mut html = String::from("<h2>Scores</h2>\n<div class=\"scroll\"><table>\n<thead><tr><th></th>");
    for decoder in all.keys() {
        write!(html, "<th colspan=\"3\">{}</th>", escape(decoder)).expect(TEXT);
    }
    html.push_str("</tr>\n<tr><th></th>");
    html.push_str(&"<th>precision</th><th>recall</th><th>F1</th>".repeat(all.len()));
    html.push_str("</tr></thead>\n<tbody>\n");
    for (at, (kind, _)) in Scores::default().kinds().iter().enumerate() {
        write!(html, "<tr><td>{kind}</td>").expect(TEXT);
        for scores in all.values() {
            let [precision, recall, f1] = scores.kinds()[at].1.map(|score| score_text(score, 4));
            write!(html, "<td>{precision}</td><td>{recall}</td><td class=\"main\">{f1}</td>").expect(TEXT);
        }
        html.push_str("</tr>\n");
    }
    html.push_str("<tr><td>exact sentences</td>");
    for scores in all.values() {
        write!(html, "<td colspan=\"3\">{} of {}</td>", scores.exact, scores.sentences).expect(TEXT);
    }
    html + "</tr>\n</tbody></table></div>\n"
}

/// Strings shown of each adapted nonterminal.
const STRINGS: usize = 60;

fn strings(report: &Report<'_>) -> String {
    let model = &report.saved.model;
    let mut html = String::new();
    for (at, stick) in model.lexicon.sticks.iter().enumerate() {
        let top = model::top(report.saved, at, STRINGS);
        let most = top.first().map_or(1.0, |entry| entry.uses).max(f64::MIN_POSITIVE);
        let about = match model.adaptor().map(|params| &params.sticks[at]) {
            Some(stick) => format!(
                "{} strings; discount {:.3}, concentration {:.3}",
                chart::number(stick.order.len() as f64, &[0.0, 1.0]),
                stick.discount,
                stick.concentration,
            ),
            None => {
                format!("one of {} strings", chart::number(stick.strings.len() as f64, &[0.0, 1.0]))
            }
        };
        line(
            &mut html,
            format_args!(
                "<h3>{}</h3>\n<p class=\"quiet\">{about}</p>\n<ol class=\"strings\">",
                escape(model.grammar.name(stick.symbol)),
            ),
        );
        for entry in top {
            let width = 100.0 * entry.uses / most;
            let (string, uses) = (escape(&entry.string), entry.uses);
            line(
                &mut html,
                format_args!("<li style=\"--w:{width:.1}%\"><span>{string}</span><b>{uses:.1}</b></li>"),
            );
        }
        html.push_str("</ol>\n");
    }
    if html.is_empty() {
        return html;
    }
    format!(
        "<h2>What was learned</h2>\n<p>The strings used most, with their expected number of uses in the corpus and in \
         longer strings. All of them are in <code>model/sticks.tsv</code>.</p>\n{html}"
    )
}

/// Sentences shown.
const SAMPLES: usize = 12;

/// Sentences of readable length, evenly over the corpus.
fn sampled(report: &Report<'_>) -> Vec<usize> {
    let Some(decoding) = report.outcome.decodings.first() else { return Vec::new() };
    let readable = |line: &String| (8..=70).contains(&line.chars().count());
    let all: Vec<usize> =
        decoding.segmentations.iter().enumerate().filter(|(_, l)| readable(l)).map(|(i, _)| i).collect();
    let n = all.len().min(SAMPLES);
    (0..n).map(|at| all[(2 * at + 1) * all.len() / (2 * n)]).collect()
}

fn samples(report: &Report<'_>) -> String {
    let outcome = report.outcome;
    let unit = report.saved.unit;
    let chosen = sampled(report);
    if chosen.is_empty() {
        return String::new();
    }
    let mut html = String::from("<h2>Sentences</h2>\n");
    if outcome.gold.is_some() {
        html.push_str("<p class=\"quiet\">Marked segments are not in the gold segmentation.</p>\n");
    }
    html.push_str("<div class=\"samples\">\n");
    for at in chosen {
        let gold = outcome.gold.as_ref().map(|gold| segments(&gold[at], unit));
        html.push_str("<dl>");
        if let Some(gold) = &gold {
            row(&mut html, "gold", gold, None);
        }
        for decoding in &outcome.decodings {
            let found = segments(&decoding.segmentations[at], unit);
            row(&mut html, decoding.name, &found, gold.as_deref());
        }
        html.push_str("</dl>\n");
    }
    html + "</div>\n"
}

/// A segment's text, and its span in symbols that do not depend on where the segments end.
type Segment<'a> = (&'a str, (usize, usize));

fn segments(line: &str, unit: Unit) -> Vec<Segment<'_>> {
    let mut from = 0;
    let words: Vec<&str> = match unit {
        Unit::Char => line.split_whitespace().collect(),
        Unit::Token => line.split(" | ").map(str::trim).collect(),
    };
    let span = |word| {
        let length = str::chars(word).filter(|c| !c.is_whitespace()).count();
        from += length;
        (word, (from - length, from))
    };
    words.into_iter().map(span).collect()
}

fn row(html: &mut String, name: &str, found: &[Segment<'_>], gold: Option<&[Segment<'_>]>) {
    write!(html, "<dt>{name}</dt><dd>").expect(TEXT);
    for (text, span) in found {
        let off = gold.is_some_and(|gold| !gold.iter().any(|(_, of_gold)| of_gold == span));
        let class = if off { " class=\"off\"" } else { "" };
        write!(html, "<i{class}>{}</i> ", escape(text)).expect(TEXT);
    }
    html.push_str("</dd>");
}

fn drawn_tree(report: &Report<'_>) -> String {
    let Some(decoding) = report.outcome.with_trees() else { return String::new() };
    let grammar = &report.saved.model.grammar;
    let adapted: BTreeSet<&str> = grammar.adapted().map(|symbol| grammar.name(symbol)).collect();
    let keep = |label: &str| adapted.contains(label);
    let read = |at: usize| tree::drawn(&Tree::parse(decoding.trees.get(at)?).ok()?, &keep, 12);
    let mut trees = sampled(report).into_iter().filter_map(read);
    let Some(drawn) = trees.find(|tree| (3..=12).contains(&tree::n_leaves(tree))) else {
        return String::new();
    };
    let separator = if report.saved.unit == Unit::Char { "" } else { " " };
    format!(
        "<h2>A parse</h2>\n<p class=\"quiet\">By {}; only adapted nonterminals are drawn. All parses are in \
         <code>parses.txt</code>.</p>\n<div class=\"scroll\">{}</div>\n",
        decoding.name,
        tree::svg(&drawn, separator)
    )
}

fn timings(report: &Report<'_>) -> String {
    let summary = report.summary;
    let parts = [
        ("preparing", summary.timings.preprocess),
        ("training", summary.timings.rounds),
        ("decoding", summary.timings.decode),
    ];
    let total: f64 = parts.iter().map(|part| part.1).sum::<f64>().max(f64::MIN_POSITIVE);
    let (mut bar, mut key) = (String::new(), String::new());
    for (at, (name, seconds)) in parts.into_iter().enumerate() {
        write!(bar, "<span class=\"s{at}\" style=\"width:{:.2}%\"></span>", 100.0 * seconds / total)
            .expect(TEXT);
        write!(key, "<li class=\"s{at}\">{name} {seconds:.2} s</li>").expect(TEXT);
    }
    let workers =
        if summary.workers == 1 { "1 worker".to_owned() } else { format!("{} workers", summary.workers) };
    format!(
        "<h2>Time</h2>\n<div class=\"bar\">{bar}</div>\n<ul class=\"key\">{key}</ul>\n\
         <p class=\"quiet\">Wall time, with {workers}.</p>\n"
    )
}

fn job(report: &Report<'_>) -> String {
    format!(
        "<details><summary>The job</summary>\n<pre>{}</pre></details>\n<footer><p>Grammaton {}, seed {}. The same job, \
         data and seed give the same parameters on any number of workers:<br><code>{}</code></p></footer>\n",
        escape(&report.job.to_toml()),
        escape(&report.summary.version),
        report.summary.seed,
        escape(&report.summary.parameters_sha256),
    )
}

const TEXT: &str = "a string takes all text";

fn line(html: &mut String, text: std::fmt::Arguments<'_>) {
    html.write_fmt(text).expect(TEXT);
    html.push('\n');
}
