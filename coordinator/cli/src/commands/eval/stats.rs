//! `grammaton eval stats`: statistics of texts, beside each other.

use std::path::PathBuf;

use anyhow::Result;
use basics::{human, streams};
use grammaton::data::corpus::{Options, Unit};
use grammaton::data::statistics::{Lengths, Statistics, WordStatistics};
use serde::Serialize;
use training::input;

use super::{check_standard_input, unit_parser};
use crate::commands::Answer;

/// Arguments of `eval stats`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n\
    \x20 grammaton eval stats text.txt\n\
    \x20 grammaton eval stats gold.txt results/segmentation.mbr.txt --top 20")]
pub struct Args {
    /// Texts, with words or without; `-` for standard input
    #[arg(required = true)]
    pub texts: Vec<PathBuf>,
    /// Number of frequent words to print
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub top: usize,
    /// Print a JSON array with an object for each text
    #[arg(help_heading = "Output", long)]
    pub json: bool,
    /// Unit of a symbol
    #[arg(long, value_parser = unit_parser(), default_value = "char")]
    pub unit: Unit,
}

/// A text as a JSON object.
#[derive(Serialize)]
struct Text {
    text: String,
    #[serde(flatten)]
    statistics: Statistics,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<Answer> {
    check_standard_input(&args.texts)?;
    let options = Options { unit: args.unit, max_symbols: u32::MAX, ..Options::default() };
    let of = |path: &PathBuf| -> Result<Text> {
        let (corpus, _) = input::corpus(path, &options)?;
        Ok(Text { statistics: Statistics::of(&corpus, args.top), text: corpus.source_name })
    };
    let texts: Vec<Text> = args.texts.iter().map(of).collect::<Result<_>>()?;
    let text = if args.json { serde_json::to_string(&texts)? + "\n" } else { table(&texts, args.top) };
    streams::print(&text)?;
    Ok(Answer::Yes)
}

/// A row: what it is called, and its value for a text.
type Row = (&'static str, fn(&Statistics) -> Option<String>);

fn table(texts: &[Text], top: usize) -> String {
    fn whole(number: u64) -> Option<String> {
        Some(human::whole(number as f64))
    }
    fn of_words(statistics: &Statistics, value: fn(&WordStatistics) -> Option<String>) -> Option<String> {
        statistics.words.as_ref().and_then(value)
    }
    fn decimals(value: f64) -> Option<String> {
        Some(format!("{value:.4}"))
    }
    fn lengths(Lengths { mean, median }: Lengths) -> Option<String> {
        Some(format!("{mean:.2} ({median})"))
    }
    let rows: [Row; 18] = [
        ("utterances", |it| whole(it.nutts)),
        ("utterances of one word", |it| of_words(it, |words| whole(words.nutts_single_word))),
        ("words (tokens)", |it| of_words(it, |words| whole(words.nword_tokens))),
        ("distinct words (types)", |it| of_words(it, |words| whole(words.nword_types))),
        ("words that occur once (hapaxes)", |it| of_words(it, |words| whole(words.nword_hapax))),
        ("types / tokens", |it| of_words(it, |words| decimals(words.type_token_ratio))),
        ("types / tokens in ten words (mattr)", |it| of_words(it, |words| decimals(words.mattr?))),
        ("words per utterance, mean (median)", |it| of_words(it, |words| lengths(words.words_per_utterance))),
        ("symbols per word, mean (median)", |it| of_words(it, |words| lengths(words.symbols_per_word))),
        ("symbols per utterance, mean (median)", |it| lengths(it.symbols_per_utterance)),
        ("symbols", |it| whole(it.nsymbol_tokens)),
        ("distinct symbols", |it| whole(it.nsymbol_types)),
        ("symbols that occur once", |it| whole(it.nsymbol_hapax)),
        ("entropy of a word, bits", |it| of_words(it, |words| decimals(words.word_entropy))),
        ("entropy of a symbol, bits", |it| decimals(it.symbol_entropy)),
        ("normalised segmentation entropy (nse)", |it| of_words(it, |words| decimals(words.nse?))),
        ("the same as of wordseg (entropy)", |it| of_words(it, |words| decimals(words.entropy?))),
        ("", |_| Some(String::new())),
    ];
    let head = texts.iter().map(|text| human::visible(&text.text).into_owned());
    let mut lines = vec![[String::new()].into_iter().chain(head).collect::<Vec<_>>()];
    for (name, value) in rows {
        let cells = texts.iter().map(|text| value(&text.statistics).unwrap_or("–".to_owned()));
        lines.push([name.to_owned()].into_iter().chain(cells).collect());
    }
    for rank in 0..top {
        let word = |text: &Text| text.statistics.words.as_ref()?.most_frequent.get(rank).cloned();
        let words: Vec<_> = texts.iter().map(word).collect();
        if words.iter().all(Option::is_none) {
            break;
        }
        let cells = words.into_iter().map(|word| {
            word.map_or("–".to_owned(), |word| format!("{} {}", word.word, human::whole(word.count as f64)))
        });
        lines.push([format!("word {}", rank + 1)].into_iter().chain(cells).collect());
    }
    let lines = human::table(&lines);
    lines.join("\n").trim_end().to_owned() + "\n"
}
