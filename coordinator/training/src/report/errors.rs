//! Section on the errors by kind: the most frequent wrong cuts and wrong joins.

use basics::human::whole;
use maud::{Markup, html};

use super::Report;
use crate::errors::OfKind;
use crate::metrics::recommended;

/// Renders the section; empty without gold.
pub fn section(report: &Report<'_>) -> Markup {
    let decoder = recommended(report.outcome.decodings.iter().map(|decoding| decoding.name));
    let (Some(errors), Some(decoder)) = (&report.outcome.errors, decoder) else { return html! {} };
    html! {
        h2 { "Errors" }
        p.quiet {
            "By " code { (decoder) } ", the recommended decoder: the most frequent pairs of segments that are cut or joined, against gold, and the line of the first."
        }
        div.charts {
            (table("Wrong cuts", &errors.cuts, |pair| (&pair.joined, &pair.apart)))
            (table("Wrong joins", &errors.joins, |pair| (&pair.apart, &pair.joined)))
        }
    }
}

/// Errors of a kind; `sides` gives gold and what was found.
fn table(title: &str, kind: &OfKind, sides: fn(&crate::errors::Pair) -> (&str, &str)) -> Markup {
    html! {
        section {
            h3 { (title) ": " (whole(kind.n as f64)) }
            @if !kind.most.is_empty() {
                div.scroll.long {
                    table.errors {
                        thead { tr { th { "gold" } th.left { "found" } th { "count" } th.left { "line" } } }
                        tbody {
                            @for pair in &kind.most {
                                @let (gold, found) = sides(pair);
                                tr {
                                    td { (gold) } td.left.off { (found) } td.main { (whole(pair.count as f64)) }
                                    td.left { (pair.example) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::errors::Pair;

    #[test]
    fn rows_are_escaped_and_say_what_gold_has() {
        let pair = Pair {
            apart: "<b> s".to_owned(),
            joined: "<b>s".to_owned(),
            count: 1234,
            example: "a <b> s".to_owned(),
        };
        let kind = OfKind { n: 2000, most: vec![pair] };
        let html = table("Wrong cuts", &kind, |pair| (&pair.joined, &pair.apart)).into_string();
        let row = "<tr><td>&lt;b&gt;s</td><td class=\"left off\">&lt;b&gt; s</td><td class=\"main\">1\u{202f}234</td><td class=\"left\">a &lt;b&gt; s</td></tr>";
        assert!(html.contains(row), "{html}");
        let none = table("Wrong cuts", &OfKind::default(), |pair| (&pair.joined, &pair.apart)).into_string();
        assert_eq!(none, "<section><h3>Wrong cuts: 0</h3></section>");
    }
}
