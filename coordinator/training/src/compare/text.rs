//! A comparison as text for a terminal.

use basics::human::{self, duration, number};

use super::scores::{self, label};
use super::{Comparison, Line, Run};
use crate::metrics::score_text;

/// Facts of a run beside its scores, by name.
pub fn facts(run: &Run) -> Vec<(&'static str, String)> {
    let Run { decoder, summary, n_tokens, n_types, .. } = run;
    let timings = summary.timings;
    vec![
        ("decoder", (*decoder).to_owned()),
        ("words", human::whole(*n_tokens as f64)),
        ("distinct words", human::whole(*n_types as f64)),
        ("objective", summary.result.bound.map_or("–".to_owned(), |bound| number(bound, &[]))),
        ("R-hat", score_text(summary.result.r_hat, 3)),
        ("rounds", summary.result.rounds_run.to_string()),
        ("time", duration(timings.preprocess + timings.rounds + timings.decode)),
    ]
}

/// The first `n` lines that differ, the first `n` words gained and lost, and all of the rest.
pub fn render(found: &Comparison, n: usize) -> String {
    let mut text = String::new();
    let mut add = |lines: &[String]| {
        lines.iter().for_each(|line| text += &format!("{line}\n"));
        text.push('\n');
    };
    let letters = || (0..found.runs.len()).map(|at| label(at).to_string());
    let row = |name: &str, values: &mut dyn Iterator<Item = String>| -> Vec<String> {
        [name.to_owned()].into_iter().chain(values).collect()
    };
    let names = |(run, letter): (&Run, String)| format!("{letter}  {}", run.folder);
    add(&found.runs.iter().zip(letters()).map(names).collect::<Vec<_>>());
    add(&found.verdicts());
    let of_runs: Vec<Vec<(&str, String)>> = found.runs.iter().map(facts).collect();
    let mut rows = vec![row("", &mut letters())];
    for (at, (name, _)) in of_runs[0].iter().enumerate() {
        rows.push(row(name, &mut of_runs.iter().map(|facts| facts[at].1.clone())));
    }
    for setting in &found.settings {
        let value = |value: &Option<String>| value.clone().unwrap_or("–".to_owned());
        rows.push(row(&setting.key, &mut setting.values.iter().map(value)));
    }
    add(&human::table(&rows));
    if let Some(scored) = &found.scored {
        add(&[format!("Scores of {} sentences against gold", scored.outputs[0].scores.sentences)]);
        add(&[scores::text(scored).trim_end().to_owned()]);
    }
    add(&[format!("{} of {} lines differ", found.lines.len(), found.n_lines)]);
    for line in found.lines.iter().take(n) {
        add(&self::line(line));
    }
    for run in 1..found.runs.len() {
        for lost in [false, true] {
            let [has, lacks] = if lost { [0, run] } else { [run, 0] };
            let words = found.changed_words(run, lost);
            let shown = words.iter().take(n).map(|(word, count)| format!("{} {count}", word.word));
            let shown: Vec<String> = shown.chain((words.len() > n).then(|| "…".to_owned())).collect();
            let (has, lacks) = (label(has), label(lacks));
            let listed = if shown.is_empty() { String::new() } else { format!(": {}", shown.join(", ")) };
            add(&[format!("{} words that {has} has and {lacks} lacks{listed}", words.len())]);
        }
    }
    text.trim_end().to_owned() + "\n"
}

fn line(line: &Line) -> Vec<String> {
    let gold = line.gold.iter().map(|gold| format!("  gold  {}", gold.line));
    let segmentations = line.segmentations.iter().enumerate();
    let of_runs = segmentations.map(|(at, segments)| format!("  {}     {}", label(at), segments.line));
    let positions = if line.differing == 1 { "position" } else { "positions" };
    let head = format!("line {}, {} {positions}", line.line, line.differing);
    [head].into_iter().chain(gold).chain(of_runs).collect()
}
