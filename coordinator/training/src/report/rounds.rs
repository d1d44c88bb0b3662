//! Charts of the rounds: the objective of every run of the kept setting, and further metrics of the kept run.
//!
//! A chart without measurements is left out; a section without charts, too.

use std::collections::BTreeSet;
use std::ops::Range;

use maud::{Markup, html};

use super::Report;
use super::chart::{self, Chart, SHARES, Scale, Series};
use crate::metrics::{MIXED, NOT_MIXED, RoundMetrics};

/// Maximum number of decoders or nonterminals in a chart.
const NAMES: usize = 4;

/// Rounds to draw.
pub struct Rounds<'a> {
    /// Rounds of all runs, in the order in which they ended.
    pub all: &'a [RoundMetrics],
    /// Numbers of the runs to draw.
    pub runs: Range<usize>,
    /// Number of the kept run, which is drawn before the others.
    pub kept: usize,
    /// Name of the objective.
    pub objective: &'a str,
}

/// Renders the section.
pub fn section(report: &Report<'_>) -> Markup {
    let (runs, kept) = (report.runs(), report.kept());
    let figures = figures(&Rounds {
        all: report.rounds,
        runs: runs.clone(),
        kept,
        objective: report.method().objective(report.job.model.kind),
    });
    if figures.0.is_empty() {
        return figures;
    }
    let name = &report.job.points[report.point()].name;
    let setting = html! {
        @if !name.is_empty() { " of the setting " code { (name) } }
    };
    html! {
        h2 { "Rounds" }
        @match runs.len() {
            1 if name.is_empty() => {}
            1 => { p.quiet { "Rounds" (setting) ", which was kept." } }
            n => { p.quiet { (n) " runs" (setting) ", of which run " (kept) " was kept." } }
        }
        (figures)
    }
}

/// Renders the charts; empty without measurements.
pub fn figures(rounds: &Rounds<'_>) -> Markup {
    chart::all(charts(rounds).iter().filter_map(Chart::figure).collect())
}

fn charts<'a>(rounds: &Rounds<'a>) -> Vec<Chart<'a>> {
    let Rounds { all, ref runs, kept, objective } = *rounds;
    // The first rounds, which change the objective most, would hide how it moves later.
    let half = all.iter().filter(|round| round.run == kept).map(|round| round.round).max().unwrap_or(0) / 2;
    let several = runs.len() > 1;
    let points = |run: usize, value: &dyn Fn(&RoundMetrics) -> Option<f64>| -> Vec<(f64, f64)> {
        let of_run = all.iter().filter(|round| round.run == run);
        of_run.filter_map(|round| Some((round.round as f64, value(round)?))).collect()
    };
    let by_run = |name: &str, value: &dyn Fn(&RoundMetrics) -> Option<f64>| -> Vec<Series> {
        let name = |run: usize| if several { format!("run {run}") } else { name.to_owned() };
        let series = |run| Series { name: name(run), points: points(run, value), quiet: run != kept };
        runs.clone().map(series).collect()
    };
    let of_kept = |name: &str, value: &dyn Fn(&RoundMetrics) -> Option<f64>| Series {
        name: name.to_owned(),
        points: points(kept, value),
        quiet: false,
    };
    let by_name = |names: BTreeSet<&String>, value: &dyn Fn(&RoundMetrics, &str) -> Option<f64>| {
        let names = names.into_iter().take(NAMES);
        names.map(|name| of_kept(name, &|round| value(round, name))).collect()
    };
    let chart =
        |title: &'a str, series: Vec<Series>| Chart { title, x_label: "round", series, ..Chart::default() };
    let shares = |title: &'a str, series: Vec<Series>| Chart { y_includes: &SHARES, ..chart(title, series) };
    let is_annealed = all.iter().any(|round| round.run == kept && round.temperature.is_some());
    let temperature = |round: &RoundMetrics| is_annealed.then(|| round.temperature.unwrap_or(1.0));
    // R-hat is in the metrics of the last chain; it may be below 1.
    let r_hat = all
        .iter()
        .filter(|round| runs.contains(&round.run))
        .filter_map(|round| Some((round.round as f64, (round.r_hat? - 1.0).max(CLOSEST))));
    let r_hat = Series { name: "R-hat".to_owned(), points: r_hat.collect(), quiet: false };
    vec![
        chart(objective, by_run("objective", &|round| round.bound)),
        chart(
            "The same, second half of the rounds",
            by_run("objective", &|round| round.bound.filter(|_| half >= MIN_HALF && round.round > half)),
        ),
        chart(
            "Perplexity of held-out sentences",
            by_run("perplexity", &|round| Some(round.held_out?.perplexity)),
        ),
        shares(
            "Token F1 against gold",
            by_name(all.iter().flat_map(|round| round.scores.keys()).collect(), &|round, name| {
                round.scores.get(name)?.token_f1
            }),
        ),
        shares(
            "Directed attachment against gold",
            by_name(all.iter().flat_map(|round| round.attachment.keys()).collect(), &|round, name| {
                round.attachment.get(name)?.all.directed
            }),
        ),
        shares(
            "Weights of the components",
            by_name(all.iter().flat_map(|round| round.components.keys()).collect(), &|round, name| {
                Some(round.components.get(name)?.weight)
            }),
        ),
        chart(
            "Variational bounds of the components",
            by_name(all.iter().flat_map(|round| round.components.keys()).collect(), &|round, name| {
                Some(round.components.get(name)?.bound)
            }),
        ),
        Chart {
            y_scale: Scale::Log,
            marks: vec![(MIXED - 1.0, "R-hat 1.01: mixed"), (NOT_MIXED - 1.0, "R-hat 1.1: not mixed")],
            ..chart("R-hat − 1 of the objective over the chains", vec![r_hat])
        },
        shares(
            "Share of the proposed trees",
            vec![of_kept("accepted", &|round| round.acceptance), of_kept("changed", &|round| round.changed)],
        ),
        chart("Temperature", vec![of_kept("temperature", &temperature)]),
        chart(
            "Strings in use",
            most_strings(all, kept)
                .map(|name| of_kept(name, &|round| round.strings.get(name).map(|&n| n as f64)))
                .collect(),
        ),
        chart("Seconds per round", vec![of_kept("seconds", &|round| Some(round.seconds))]),
    ]
}

/// The nonterminals that have the most strings after the last round of a run.
fn most_strings(all: &[RoundMetrics], run: usize) -> impl Iterator<Item = &str> {
    let last = all.iter().rfind(|round| round.run == run && !round.strings.is_empty());
    let mut names: Vec<(&String, &usize)> = last.into_iter().flat_map(|round| &round.strings).collect();
    names.sort_by_key(|&(name, &n)| (std::cmp::Reverse(n), name));
    names.into_iter().map(|(name, _)| name.as_str()).take(NAMES)
}

/// Rounds of which a half has so many are drawn twice, the second time without their first half.
const MIN_HALF: usize = 4;
/// Minimum of R-hat − 1 that is drawn.
const CLOSEST: f64 = 1e-3;
