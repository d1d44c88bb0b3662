//! `grammaton grammars`: lists the grammars that are made from a corpus, and prints one as a file.

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use basics::human;
use basics::nearest::nearest;
use basics::streams;
use clap::Parser;
use grammaton::data::corpus::{Options, Unit};
use grammaton::grammar::auto::{Auto, FAMILY, NAMES};
use grammaton::grammar::syntax;
use training::job::STRESS_MARKS;
use training::train::auto_grammars::{Known, Strings, auto_grammar};
use training::train::text::Source;

use super::Answer;
use super::eval::unit_parser;

/// Arguments of `grammars`.
#[derive(Parser, Debug)]
#[command(after_help = "Examples:\n\
    \x20 grammaton grammars\n\
    \x20 grammaton grammars colloc3-syllable --corpus text.txt")]
pub struct Args {
    /// Grammar to print, as in colloc3-syllable [default: list all]
    #[arg(requires = "corpus")]
    name: Option<String>,
    /// Corpus to make the grammar from, with one sentence per line
    #[arg(long, value_name = "FILE", requires = "name")]
    corpus: Option<PathBuf>,
    /// Unit of a symbol
    #[arg(long, value_parser = unit_parser(), default_value = "char")]
    unit: Unit,
    /// Vowels, with spaces between them; if empty, they are found in the corpus
    #[arg(long, value_name = "SYMBOLS", default_value = "")]
    vowels: String,
    /// Let no word inside an utterance begin with a vowel that hardly an utterance begins with
    #[arg(long)]
    inner_vowels: bool,
    /// Symbols that mark stress, with spaces between them, for a grammar with stress
    #[arg(long, value_name = "SYMBOLS", default_value = STRESS_MARKS)]
    stress: String,
    /// Known prefixes, one per line, for a grammar of morphemes
    #[arg(help_heading = "Morphemes", long, value_name = "FILE")]
    prefixes: Option<PathBuf>,
    /// Known suffixes, one per line, for a grammar of morphemes
    #[arg(help_heading = "Morphemes", long, value_name = "FILE")]
    suffixes: Option<PathBuf>,
    /// Known stems, one per line, for a grammar of morphemes
    #[arg(help_heading = "Morphemes", long, value_name = "FILE")]
    stems: Option<PathBuf>,
    /// Known words, one per line, for a grammar of utterances
    #[arg(long, value_name = "FILE")]
    words: Option<PathBuf>,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<Answer> {
    let (Some(name), Some(corpus)) = (&args.name, &args.corpus) else {
        let rows: Vec<Vec<String>> =
            FAMILY.iter().map(|(name, auto)| vec![format!("auto:{name}"), auto.describe()]).collect();
        streams::print(&(human::table(&rows).join("\n") + "\n"))?;
        return Ok(Answer::Yes);
    };
    let short = name.strip_prefix("auto:").unwrap_or(name);
    let Ok(kind) = short.parse::<Auto>() else {
        match nearest(short, NAMES) {
            Some(near) => bail!("\"{name}\" is not a grammar; did you mean \"{near}\"?"),
            None => bail!("\"{name}\" is not a grammar; `grammaton grammars` lists them"),
        }
    };
    let options = Options { unit: args.unit, ..Options::default() };
    let source = Source::open(corpus, options, 0)?;
    let strings = |path: &Option<PathBuf>| {
        Ok::<_, anyhow::Error>(path.as_deref().map(Strings::read).transpose()?.flatten())
    };
    let known = Known {
        vowels: args.vowels.clone(),
        inner_vowels: args.inner_vowels,
        stress: args.stress.clone(),
        prefixes: strings(&args.prefixes)?,
        suffixes: strings(&args.suffixes)?,
        stems: strings(&args.stems)?,
        words: strings(&args.words)?,
        are_found: false,
    };
    let mut notices = Vec::new();
    let made = auto_grammar(kind, &source, &known, &mut notices).context(corpus.display().to_string())?;
    notices.iter().for_each(|notice| streams::tell(&format!("notice: {notice}")));
    let segments: Vec<&str> = made.segments.iter().map(|&segment| made.grammar.name(segment)).collect();
    let head = format!("# auto:{kind}: {}.\n# Segments: {}.\n", kind.describe(), segments.join(", "));
    streams::print(&(head + &syntax::print(&made.grammar)))?;
    Ok(Answer::Yes)
}
