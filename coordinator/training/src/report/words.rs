//! Section on the words found: the most frequent segments of the recommended decoder.

use basics::human::whole;
use maud::{Markup, html};

use super::Report;
use crate::metrics::{recommended, score_text};

/// Number of words shown.
const WORDS: usize = 50;

/// Renders the section; empty for results without segments.
pub fn section(report: &Report<'_>) -> Markup {
    let entries = report.outcome.lexicon.as_deref().unwrap_or_default();
    let shown = &entries[..entries.len().min(WORDS)];
    let decoder = recommended(report.outcome.decodings.iter().map(|decoding| decoding.name));
    let has_categories = shown.iter().any(|entry| entry.category.is_some());
    let has_shares = shown.iter().any(|entry| entry.share.is_some());
    html! {
        @if let (Some(decoder), false) = (decoder, shown.is_empty()) {
            h2 { "Words found" }
            p.quiet {
                "The most frequent of " (whole(entries.len() as f64)) " distinct segments by " code { (decoder) }
                ", the recommended decoder."
                @if has_shares { " The share is that of the samples that have the segment where it occurs, or its probability." }
                " All segments are in " code { "lexicon.tsv" } "."
            }
            div.scroll.long {
                table.words {
                    thead {
                        tr {
                            th { "word" } th { "count" }
                            @if has_shares { th { "share" } }
                            @if has_categories { th.left { "category" } }
                            th.left { "example" }
                        }
                    }
                    tbody {
                        @for entry in shown {
                            tr {
                                td { (entry.segment) }
                                td.main { (whole(entry.count as f64)) }
                                @if has_shares { td { (score_text(entry.share, 2)) } }
                                @if has_categories { td.left { (entry.category.as_deref().unwrap_or_default()) } }
                                td.left { (entry.examples.first().map_or("", String::as_str)) }
                            }
                        }
                    }
                }
            }
        }
    }
}
