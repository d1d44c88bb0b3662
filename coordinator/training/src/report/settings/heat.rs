//! Heat map of a grid over two keys: the score of every pair of values, the better the darker.

use std::collections::BTreeMap;

use basics::human::number;
use maud::{Markup, html};
use serde_json::Value;

use crate::metrics::{PointSummary, recommended, score_text};

/// Number of shades in the style sheet, besides none.
const SHADES: f64 = 10.0;

/// Draws the map; empty unless exactly two keys vary.
pub fn map(points: &[PointSummary]) -> Markup {
    let Some((rows, columns)) = two_that_vary(points) else { return html! {} };
    let Some((what, values)) = measure(points) else { return html! {} };
    let known = || values.iter().copied().flatten();
    let (low, high) = (known().fold(f64::INFINITY, f64::min), known().fold(f64::NEG_INFINITY, f64::max));
    let shade = |value: f64| if high > low { (SHADES * (value - low) / (high - low)).round() } else { 0.0 };
    let text = |value: f64| {
        if (0.0..=1.0).contains(&low) && high <= 1.0 {
            score_text(Some(value), 3)
        } else {
            number(value, &[])
        }
    };
    let cell = |row: &Value, column: &Value| {
        let at = points.iter().position(|point| {
            point.settings.get(rows.key) == Some(row) && point.settings.get(columns.key) == Some(column)
        });
        at.and_then(|at| values[at])
    };
    html! {
        h3 { (what) " by " (rows.key) " and " (columns.key) }
        div.scroll {
            table.heat {
                thead {
                    tr { th { (rows.key) " \\ " (columns.key) } @for column in &columns.values { th { (shown(column)) } } }
                }
                tbody {
                    @for row in &rows.values {
                        tr {
                            th { (shown(row)) }
                            @for column in &columns.values {
                                @match cell(row, column) {
                                    Some(value) => { td class=(format_args!("h{:.0}", shade(value))) { (text(value)) } }
                                    None => { td { "–" } }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// A key that varies, and its values in order.
struct Axis<'a> {
    key: &'a str,
    values: Vec<&'a Value>,
}

/// The two keys that vary, the one with more values first; `None` if there are not two.
fn two_that_vary(points: &[PointSummary]) -> Option<(Axis<'_>, Axis<'_>)> {
    let mut by_key: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
    for (key, value) in points.iter().flat_map(|point| &point.settings) {
        let values = by_key.entry(key).or_default();
        if !values.contains(&value) {
            values.push(value);
        }
    }
    let mut axes: Vec<Axis<'_>> = by_key
        .into_iter()
        .filter(|(_, values)| values.len() > 1)
        .map(|(key, mut values)| {
            // Numbers ascending, other values in the order of the job.
            if values.iter().all(|value| value.is_number()) {
                values.sort_by(|a, b| a.as_f64().unwrap_or(0.0).total_cmp(&b.as_f64().unwrap_or(0.0)));
            }
            Axis { key, values }
        })
        .collect();
    axes.sort_by_key(|axis| std::cmp::Reverse(axis.values.len()));
    match <[Axis<'_>; 2]>::try_from(axes) {
        Ok([rows, columns]) => Some((rows, columns)),
        Err(_) => None,
    }
}

/// The drawn value of each point: the score of the recommended decoder, or else the objective.
fn measure(points: &[PointSummary]) -> Option<(String, Vec<Option<f64>>)> {
    let first = points.first()?;
    let all = |value: &dyn Fn(&PointSummary) -> Option<f64>| points.iter().map(value).collect();
    if let Some(decoder) = recommended(first.result.scores.keys().map(String::as_str)) {
        return Some((
            format!("Token F1, {decoder},"),
            all(&|point| point.result.scores.get(decoder)?.token_f1),
        ));
    }
    if let Some(decoder) = recommended(first.result.attachment.keys().map(String::as_str)) {
        let directed = |point: &PointSummary| point.result.attachment.get(decoder)?.all.directed;
        return Some((format!("Attachment, {decoder},"), all(&directed)));
    }
    if let Some(decoder) = recommended(first.result.brackets.keys().map(String::as_str)) {
        return Some((
            format!("Bracket F1, {decoder},"),
            all(&|point| point.result.brackets.get(decoder)?.labelled.f1),
        ));
    }
    first.result.bound.map(|_| ("Objective".to_owned(), all(&|point| point.result.bound)))
}

/// A value as the job file has it, strings without quotes.
fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::metrics::RunResult;

    fn point(settings: Value, bound: f64) -> PointSummary {
        let settings = settings.as_object().unwrap().clone().into_iter().collect();
        let result = RunResult { bound: Some(bound), ..RunResult::default() };
        PointSummary { settings, result, ..PointSummary::default() }
    }

    #[test]
    fn two_keys_make_a_map_and_others_none() {
        let points = [
            point(json!({ "alpha": 0.1, "method": "<em>" }), -5.0),
            point(json!({ "alpha": 1e-3, "method": "<em>" }), -4.0),
            point(json!({ "alpha": 1e-5, "method": "<em>" }), -3.0),
            point(json!({ "alpha": 0.1, "method": "vb" }), -2.0),
        ];
        let html = map(&points).into_string();
        assert!(html.contains("Objective by alpha and method"), "{html}");
        assert!(html.contains("<th>&lt;em&gt;</th><th>vb</th>"), "{html}");
        let rows = ["0.00001", "0.001", "0.1"]
            .map(|value| html.find(&format!("<th>{value}</th>")).or(html.find("<th>1e-5</th>")));
        assert!(rows.is_sorted() && rows.iter().all(Option::is_some), "{html}");
        assert!(html.contains("<td class=\"h0\">−5.000</td><td class=\"h10\">−2.000</td>"), "{html}");
        assert!(html.contains("<td>–</td>"), "{html}");
        assert!(map(&points[..3]).0.is_empty() && map(&[]).0.is_empty());
    }
}
