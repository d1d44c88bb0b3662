//! Scores of several outputs with intervals, and their differences, as lines of text.

use basics::human;
use grammaton::data::eval::comparison::{Comparison, MEASURES, Output};
use grammaton::data::eval::significance::{Bootstrap, Interval};

use crate::metrics::score_text;

/// The letter that stands for an output or a run: A for the first.
pub fn label(at: usize) -> char {
    char::from(b'A' + (at % 26) as u8)
}

/// A measure in words.
pub fn measure(name: &str) -> String {
    name.replace('_', " ").replace(" f1", " F1").replace("exact share", "exact sentences")
}

/// A score with its interval.
pub fn with_interval(found: Option<&Interval>) -> String {
    found.map_or("–".to_owned(), |found| {
        let Interval { score, low, high } = found;
        format!("{score:.4} ({low:.4}–{high:.4})")
    })
}

/// The ends of the interval of a difference.
pub fn interval(found: &Bootstrap) -> String {
    format!("{:+.4} to {:+.4}", found.low, found.high)
}

/// A probability; a small one in scientific notation.
pub fn probability(p: f64) -> String {
    if p < 0.001 { format!("{p:.1e}") } else { format!("{p:.4}") }
}

/// A p-value of a bootstrap, which is at least two in the number of resamples.
fn p_value(p: f64) -> String {
    if p < 0.0001 { format!("{p:.0e}") } else { format!("{p:.4}") }
}

/// A sentence on the difference of the first output and the one at position `other`.
pub fn verdict(what: &str, other: usize, found: &Bootstrap) -> String {
    let (a, b) = (label(0), label(other));
    let (low, high, p) = (found.low, found.high, p_value(found.p));
    let by = |low: f64, high: f64| {
        format!("{:.4} (95 % interval {low:.4} to {high:.4}, p = {p})", found.difference.abs())
    };
    if (found.difference, low, high) == (0.0, 0.0, 0.0) {
        format!("{what} of {a} and {b} is the same.")
    } else if low > 0.0 {
        format!("{what} of {a} is higher than that of {b} by {}.", by(low, high))
    } else if high < 0.0 {
        format!("{what} of {b} is higher than that of {a} by {}.", by(-high, -low))
    } else {
        let difference = found.difference;
        format!(
            "{what} of {a} less that of {b} is {difference:.4} (95 % interval {low:.4} to {high:.4}, p = {p}), which may be chance."
        )
    }
}

/// Scores of all outputs, lexicon F1 without intervals, and the differences of the first from each other one; each row has the same number of cells.
pub fn tables(found: &Comparison) -> [Vec<Vec<String>>; 2] {
    let letters = (0..found.outputs.len()).map(|at| label(at).to_string());
    let mut scores = vec![[String::new()].into_iter().chain(letters).collect::<Vec<_>>()];
    for name in MEASURES {
        let of = |output: &Output| with_interval(output.intervals.get(name));
        scores.push([measure(name)].into_iter().chain(found.outputs.iter().map(of)).collect());
    }
    let lexicon = found.outputs.iter().map(|output| score_text(output.scores.lexicon.f1, 4));
    scores.push(["lexicon F1".to_owned()].into_iter().chain(lexicon).collect());
    let head = ["", "difference", "95 % interval", "p"];
    let mut differences = vec![head.map(str::to_owned).to_vec()];
    for (difference, other) in found.differences.iter().zip(1..) {
        for name in ["token_f1", "boundary_f1", "exact_share"] {
            let Some(found) = difference.measures.get(name) else { continue };
            differences.push(vec![
                format!("{} − {}, {}", label(0), label(other), measure(name)),
                format!("{:+.4}", found.difference),
                interval(found),
                p_value(found.p),
            ]);
        }
    }
    [scores, differences]
}

/// The tables as lines, with what they are.
pub fn text(found: &Comparison) -> String {
    let mut text = String::new();
    for table in tables(found).iter().filter(|table| table.len() > 1) {
        human::table(table).iter().for_each(|line| text += &format!("{line}\n"));
        text.push('\n');
    }
    for (difference, other) in found.differences.iter().zip(1..) {
        text += &format!(
            "Positions that {} alone has right: {}; {} alone: {}; sign test {}\n",
            label(0),
            difference.only_first,
            label(other),
            difference.only_second,
            probability(difference.sign_test)
        );
    }
    text + "Intervals and p-values, which are two-sided, are of a paired bootstrap over sentences. Believe them rather than the sign test.\n"
}
