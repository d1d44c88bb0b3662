//! `grammaton eval dependencies`: attachment accuracies of one output with 95 % intervals, or a comparison of two outputs.

use std::path::{Path, PathBuf};

use anyhow::Result;
use basics::streams;
use grammaton::data::dependency::{Punctuation, Sentence, Tags};
use grammaton::data::eval::Source;
use grammaton::data::eval::dependencies::{
    Attachment, ByLength, Comparison, Details, Group, Intervals, compare, details, intervals, score,
};
use grammaton::data::eval::significance::Interval;
use serde::Serialize;
use training::baselines;
use training::compare::scores::probability;
use training::input;
use training::metrics::score_text;

use super::check_standard_input;
use crate::commands::Answer;

/// Arguments of `eval dependencies`.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Files are CoNLL-U, or have one word per line with its tag and its head, separated by tabs, and a blank line \
    after each sentence; plain or compressed. Punctuation (UPOS PUNCT, or in the second format a punctuation tag of the Penn Treebank) \
    is not scored, and may be missing from PREDICTED.\n\n\
    Examples:\n\
    \x20 grammaton eval dependencies gold.conllu predicted.conllu\n\
    \x20 grammaton eval dependencies gold.conllu predicted.conllu --details\n\
    \x20 grammaton eval dependencies first.conllu second.conllu --against gold.conllu"
)]
pub struct Args {
    /// File of the gold trees; with --against, of the first output
    pub gold: PathBuf,
    /// File of the trees to score; with --against, of the second output; `-` for standard input
    pub predicted: PathBuf,
    /// Compare two outputs, both scored against the gold trees in this file
    #[arg(help_heading = "Comparison", long, value_name = "GOLD")]
    pub against: Option<PathBuf>,
    /// Also say what is right by tag, and by the side and the distance of heads, and the accuracy by neutral edge direction (NED)
    #[arg(long, conflicts_with = "against")]
    pub details: bool,
    /// Score punctuation like words
    #[arg(long)]
    pub keep_punctuation: bool,
    /// Number of bootstrap samples, of the intervals and of a comparison
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub resamples: u32,
    /// Seed of the bootstrap
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub seed: u64,
    /// Print one JSON object
    #[arg(help_heading = "Output", long)]
    pub json: bool,
}

/// Sentences and the name of their file.
struct File {
    name: String,
    sentences: Vec<Sentence>,
}

impl File {
    /// Reads a file. The column of tags does not matter, since only words and heads are compared.
    fn read(path: &Path) -> Result<File> {
        let (name, document) = input::dependencies(path, Tags::Upos)?;
        Ok(File { name, sentences: document.with_sound_heads()?.sentences })
    }

    fn source(&self) -> Source<'_, Sentence> {
        Source { name: &self.name, items: &self.sentences }
    }
}

/// Runs the command.
pub fn run(args: &Args) -> Result<Answer> {
    let paths = [Some(&args.gold), Some(&args.predicted), args.against.as_ref()];
    check_standard_input(paths.into_iter().flatten())?;
    let punctuation = if args.keep_punctuation { Punctuation::Kept } else { Punctuation::Removed };
    let (one, other) = (File::read(&args.gold)?, File::read(&args.predicted)?);
    let text = match &args.against {
        None => {
            let scores = score(one.source(), other.source(), punctuation)?;
            let intervals = intervals(one.source(), other.source(), punctuation, args.resamples, args.seed)?;
            let details =
                args.details.then(|| details(one.source(), other.source(), punctuation)).transpose()?;
            let in_detail = details.as_ref().map(details_table).unwrap_or_default();
            if args.json {
                serde_json::to_string(&Line { scores, intervals, details })? + "\n"
            } else {
                table(&scores, &intervals) + &in_detail
            }
        }
        Some(gold) => {
            let gold = File::read(gold)?;
            let outputs = [one.source(), other.source()];
            let found = compare(gold.source(), outputs, punctuation, args.resamples, args.seed)?;
            if args.json { serde_json::to_string(&found)? + "\n" } else { comparison_table(&found) }
        }
    };
    streams::print(&text)?;
    Ok(Answer::Yes)
}

/// The scores as a JSON object.
#[derive(Serialize)]
struct Line {
    #[serde(flatten)]
    scores: ByLength<Attachment>,
    intervals: ByLength<Intervals>,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<Details>,
}

fn details_table(details: &Details) -> String {
    let Details { ned, by_tag, by_arc } = details;
    let mut text = format!("\nneutral edge direction (NED): {}\n", score_text(*ned, 4));
    for (head, groups) in [("head", by_arc), ("tag", by_tag)] {
        text +=
            &format!("\n{head:<18}{:>10}{:>10}{:>10}{:>10}\n", "in gold", "predicted", "recall", "precision");
        for group in groups {
            let Group { name, gold, predicted, .. } = group;
            let [recall, precision] = [group.recall(), group.precision()].map(|score| score_text(score, 4));
            text += &format!("{name:<18}{gold:>10}{predicted:>10}{recall:>10}{precision:>10}\n");
        }
    }
    text
}

fn table(scores: &ByLength<Attachment>, intervals: &ByLength<Intervals>) -> String {
    let mut text = format!(
        "{:<12}{:>10}{:>12}{:>10}{:>14}{:>13}{:>10}{:>11}\n",
        "", "directed", "undirected", "exact", "attach-right", "attach-left", "words", "sentences"
    );
    for ((class, scores), (_, intervals)) in scores.classes().into_iter().zip(intervals.classes()) {
        let Attachment { directed, undirected, exact, attach_right, attach_left, words, sentences } = scores;
        let [directed, undirected, exact, attach_right, attach_left] =
            [directed, undirected, exact, attach_right, attach_left].map(|score| score_text(*score, 4));
        text.push_str(&format!(
            "{class:<12}{directed:>10}{undirected:>12}{exact:>10}{attach_right:>14}{attach_left:>13}{words:>10}{sentences:>11}\n"
        ));
        let Intervals { directed, undirected, exact } = intervals;
        let [directed, undirected, exact] = [directed, undirected, exact].map(|interval| between(*interval));
        text.push_str(&format!("{:<12}{directed:>10}{undirected:>12}{exact:>10}\n", "  95 %"));
    }
    text += &baselines::of_attachment(&[("", scores)]).map(|below| below + "\n").unwrap_or_default();
    text
}

/// The ends of an interval, as `.662–.686`.
fn between(interval: Option<Interval>) -> String {
    let end = |value: f64| {
        let text = format!("{value:.3}");
        text.strip_prefix('0').map_or("1.00".to_owned(), str::to_owned)
    };
    interval.map_or("–".to_owned(), |Interval { low, high, .. }| format!("{}–{}", end(low), end(high)))
}

fn comparison_table(found: &ByLength<Comparison>) -> String {
    let mut text = format!(
        "{:<12}{:>8}{:>8}{:>9}{:>20}{:>14}{:>8}{:>8}{:>11}\n",
        "", "A", "B", "A − B", "95 % interval", "A not better", "only A", "only B", "sign test"
    );
    for (class, found) in found.classes() {
        let Comparison { only_first, only_second, .. } = found;
        let [first, second] = [found.first, found.second].map(|score| score_text(score, 4));
        let (difference, interval, not_better) = match &found.bootstrap {
            Some(bootstrap) => (
                format!("{:+.4}", bootstrap.difference),
                format!("{:+.4} to {:+.4}", bootstrap.low, bootstrap.high),
                format!("{:.4}", bootstrap.not_better),
            ),
            None => ("–".to_owned(), "–".to_owned(), "–".to_owned()),
        };
        text.push_str(&format!(
            "{class:<12}{first:>8}{second:>8}{difference:>9}{interval:>20}{not_better:>14}{only_first:>8}{only_second:>8}{:>11}\n",
            probability(found.sign_test)
        ));
    }
    text + "Accuracies are directed. The interval and \"A not better\" are of a paired bootstrap over sentences; \
            the sign test is two-sided, over the words that only one output has right.\n"
}
