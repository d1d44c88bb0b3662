//! Section on the settings of a grid: a table, if a single number varies charts of scores against it, and if two keys vary a heat map.
//!
//! The charts follow Johnson, Griffiths & Goldwater (2007), Fig. 3. Columns without values are left out, and so is the section with a
//! single setting.

mod heat;

use basics::human::{number, perplexity};
use maud::{Markup, html};

use super::Report;
use super::chart::{Chart, SHARES, Scale, Series, all};
use crate::metrics::{PointSummary, Scores, recommended, recommended_first};

/// Ratio of the highest value to the lowest from which an axis is logarithmic.
const DECADES: f64 = 100.0;

/// Renders the section.
pub fn section(report: &Report<'_>) -> Markup {
    let points = &report.summary.points;
    if points.is_empty() {
        return html! {};
    }
    let best = &points[report.point()];
    html! {
        h2 { "Settings" }
        p.quiet {
            "The setting " code { (best.name) } " was kept: "
            @if report.job.points.iter().any(|point| point.voter.is_some()) {
                "its grammar is that of the job, and the models of the others vote with its models."
            } @else if best.result.held_out.is_some() {
                "its held-out sentences are the most probable."
            } @else {
                "its objective is the highest. Objectives of different methods and priors cannot be compared; the probability of held-out sentences can ("
                code { "corpus.held_out_share" }
                ")."
            }
        }
        (table(report))
        (charts(points))
        (heat::map(points))
    }
}

/// A column: name, and text of every setting.
type Column = (String, Vec<String>);

fn table(report: &Report<'_>) -> Markup {
    let points = &report.summary.points;
    let column = |name: &str, value: &dyn Fn(usize, &PointSummary) -> Option<String>| -> Column {
        let cells: Vec<Option<String>> =
            points.iter().enumerate().map(|(at, point)| value(at, point)).collect();
        let is_empty = cells.iter().all(Option::is_none);
        let cells = cells.into_iter().map(|cell| cell.unwrap_or("–".to_owned()));
        (name.to_owned(), if is_empty { Vec::new() } else { cells.collect() })
    };
    let fixed = |value: f64, decimals: usize| format!("{value:.decimals$}");
    let per_round = |at: usize| {
        let runs = report.runs_of(at);
        let seconds = report.rounds.iter().filter(|round| runs.contains(&round.run));
        let seconds: Vec<f64> = seconds.map(|round| round.busy_seconds).collect();
        (!seconds.is_empty()).then(|| seconds.iter().sum::<f64>() / seconds.len() as f64)
    };
    let columns = [
        column("run", &|_, point| Some(point.result.run.to_string())),
        column("rounds", &|_, point| Some(point.result.rounds.to_string())),
        column("objective", &|_, point| Some(number(point.result.bound?, &[]))),
        column("held-out log-likelihood", &|_, point| {
            Some(number(point.result.held_out?.log_likelihood, &[]))
        }),
        column("perplexity", &|_, point| Some(perplexity(point.result.held_out?.perplexity))),
        column("R-hat", &|_, point| Some(fixed(point.result.r_hat?, 3))),
        column("effective draws", &|_, point| Some(fixed(point.result.effective_sample_size?, 0))),
        column("CPU seconds per round", &|at, _| Some(number(per_round(at)?, &[]))),
    ];
    let arcs =
        points.first().and_then(|point| recommended(point.result.attachment.keys().map(String::as_str)));
    let attachment = arcs.into_iter().flat_map(|decoder| {
        let of_class = |at: usize| {
            let directed =
                |point: &PointSummary| point.result.attachment.get(decoder)?.classes()[at].1.directed;
            let class = ["≤ 10", "≤ 20", "all"][at];
            column(&format!("{decoder} {class}"), &|_, point| Some(fixed(directed(point)?, 3)))
        };
        [0, 1, 2].map(of_class)
    });
    // Of the recommended decoder all scores, of the others F1.
    let decoders =
        points.first().map_or(Vec::new(), |point| point.result.scores.keys().map(String::as_str).collect());
    let scores = recommended_first(decoders).into_iter().enumerate().flat_map(|(at, decoder)| {
        let column = |part: usize| {
            let (name, _) = parts(&Scores::default())[part];
            let name = if part == 0 { format!("token F1, {decoder}") } else { name.to_owned() };
            let score = move |point: &PointSummary| parts(point.result.scores.get(decoder)?)[part].1;
            column(&name, &|_, point| Some(fixed(score(point)?, 3)))
        };
        (0..if at == 0 { 4 } else { 1 }).map(column).collect::<Vec<_>>()
    });
    let columns: Vec<Column> =
        columns.into_iter().chain(attachment).chain(scores).filter(|(_, cells)| !cells.is_empty()).collect();

    html! {
        div.scroll {
            table.settings {
                thead { tr { th { "setting" } @for (name, _) in &columns { th { (name) } } } }
                tbody {
                    @for (at, point) in points.iter().enumerate() {
                        tr class=[(at == report.point()).then_some("kept")] {
                            td { (point.name) }
                            @for (_, cells) in &columns { td { (cells[at]) } }
                        }
                    }
                }
            }
        }
    }
}

/// Scores of a decoder that are shown.
fn parts(scores: &Scores) -> [(&'static str, Option<f64>); 4] {
    let exact = (scores.sentences > 0).then(|| scores.exact as f64 / scores.sentences as f64);
    [
        ("F1", scores.token_f1),
        ("precision", scores.token_precision),
        ("recall", scores.token_recall),
        ("exact sentences", exact),
    ]
}

fn charts(points: &[PointSummary]) -> Markup {
    let names: Vec<&str> = points.iter().map(|point| &point.name[..]).collect();
    let Some((key, values)) = number_that_varies(&names) else { return html! {} };
    let mut order: Vec<usize> = (0..points.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let (lowest, highest) = (values[order[0]], values[order[order.len() - 1]]);
    let x_scale = if lowest > 0.0 && highest / lowest >= DECADES { Scale::Log } else { Scale::Linear };
    let chart = |decoder: &str| {
        let series = (0..4).map(|part| {
            let score = |at: usize| parts(points[at].result.scores.get(decoder)?)[part].1;
            let points = order.iter().filter_map(|&at| Some((values[at], score(at)?))).collect();
            Series { name: parts(&Scores::default())[part].0.to_owned(), points, quiet: false }
        });
        let title = format!("Tokens and exact sentences by {key}, {decoder}");
        let series = series.collect();
        let chart =
            Chart { title: &title, x_label: key, x_scale, y_includes: &SHARES, series, ..Chart::default() };
        chart.figure()
    };
    all(recommended(points[0].result.scores.keys().map(String::as_str)).and_then(chart).into_iter().collect())
}

/// The only key that differs between settings with these names (`alpha=1e-5 method=em`), if its values are numbers.
fn number_that_varies<'a>(names: &[&'a str]) -> Option<(&'a str, Vec<f64>)> {
    let of_all = |part: &&str| names.iter().all(|name| name.split(' ').any(|other| other == *part));
    let mut key = None;
    let mut values = Vec::new();
    for name in names {
        let mut differing = name.split(' ').filter(|part| !of_all(part));
        let (found, value) = differing.next()?.split_once('=')?;
        if differing.next().is_some() || *key.get_or_insert(found) != found {
            return None;
        }
        values.push(value.parse().ok()?);
    }
    Some((key?, values))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_number_that_varies_is_found() {
        let found = number_that_varies;
        assert_eq!(found(&["alpha=1", "alpha=1e-10"]), Some(("alpha", vec![1.0, 1e-10])));
        let beside = ["alpha=1 method=em", "alpha=2 method=em"];
        assert_eq!(found(&beside), Some(("alpha", vec![1.0, 2.0])));
        for names in [
            &["method=em", "method=vb"][..],
            &["alpha=1 method=em", "alpha=2 method=vb"],
            &["alpha=1", "seed=2"],
            &["fit=[alpha, discount]", "fit=[alpha]"],
            &[""],
            &[],
        ] {
            assert_eq!(found(names), None, "{names:?}");
        }
    }
}
