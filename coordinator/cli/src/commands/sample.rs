//! `grammaton sample`: draws sentences with gold analyses from a grammar.

use std::path::PathBuf;

use anyhow::{Result, bail};
use basics::nearest::nearest;
use basics::streams::{self, Stdout};
use grammaton::data::corpus::{Unit, write_line};
use grammaton::data::generate::{self, Options};
use grammaton::grammar::Grammar;
use grammaton::grammar::tree::Tree;
use training::input;

use super::Answer;

/// Arguments of `sample`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n\
    \x20 grammaton sample grammar.gr -n 1000 --seed 1\n\
    \x20 grammaton sample verbs.gr -n 500 --segments Prefix,Stem,Suffix")]
pub struct Args {
    /// The grammar file
    pub grammar: PathBuf,
    /// Number of sentences
    #[arg(short, long, value_name = "N")]
    pub n: usize,
    /// Seed; the same seed gives the same sentences on every machine
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub seed: u64,
    /// Output format
    #[arg(help_heading = "Output", long, value_enum, default_value = "segmented")]
    pub format: Format,
    /// Nonterminals whose constituents are the segments, separated by commas
    #[arg(
        help_heading = "Output",
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        default_value = "Word"
    )]
    pub segments: Vec<String>,
}

/// Output formats.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Format {
    /// Gold segments: spaces between words, or | if a symbol is longer than a letter
    Segmented,
    /// Symbols with spaces between them
    Tokens,
    /// Bracketed trees
    Brackets,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<Answer> {
    let name = args.grammar.display().to_string();
    let (grammar, notices) = input::grammar(&args.grammar)?;
    notices.iter().for_each(|notice| streams::tell(&format!("notice: {notice}")));
    if args.format == Format::Segmented {
        args.segments.iter().try_for_each(|segment| known(segment, &grammar, &name))?;
    }
    let unit = unit(&grammar);
    let mut out = Stdout::lock();
    for tree in generate::sample(&grammar, args.n, args.seed, &Options::default())? {
        out.line(&match args.format {
            Format::Segmented => segmented(&tree, &args.segments, unit),
            Format::Tokens => tree.terminals().collect::<Vec<_>>().join(" "),
            Format::Brackets => tree.to_string(),
        })?;
    }
    out.flush()?;
    Ok(Answer::Yes)
}

fn known(segment: &str, grammar: &Grammar, name: &str) -> Result<()> {
    let nonterminals = &grammar.symbols[..grammar.n_nonterminals as usize];
    if nonterminals.iter().any(|known| known == segment) {
        return Ok(());
    }
    let way_out = match nearest(segment, nonterminals.iter().map(String::as_str)) {
        Some(near) => format!("did you mean --segments {near}?"),
        None => format!("choose with --segments from: {}", nonterminals.join(", ")),
    };
    bail!("{name}: no nonterminal \"{segment}\" to take the segments from; {way_out}")
}

/// Format of the sentences of a grammar.
pub fn unit(grammar: &Grammar) -> Unit {
    let terminals = &grammar.symbols[grammar.n_nonterminals as usize..];
    let letters = terminals.iter().all(|name| name.chars().count() == 1);
    if letters { Unit::Char } else { Unit::Token }
}

/// The sentence of `tree`, with its segment boundaries.
pub fn segmented(tree: &Tree, segments: &[String], unit: Unit) -> String {
    let symbols: Vec<String> = tree.terminals().map(str::to_owned).collect();
    let sentence: Vec<u32> = (0..symbols.len() as u32).collect();
    let ends = tree.segment_ends(|label| segments.iter().any(|segment| segment == label));
    write_line(&symbols, &sentence, &ends, unit)
}
