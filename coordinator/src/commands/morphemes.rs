//! `grammaton morphemes`: finds the morphemes of words, without a job file.
//!
//! In: words, and affixes if some are known. Out: the same lines with spaces between morphemes, as by [`super::segment`]. In a cascade a first
//! run finds the affixes that the second one knows (Eskander, Rambow & Yang 2016).

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, ensure};
use proto::log::Form;
use shared::models::{Model, Trained};

use super::Answer;
use super::eval::UnitName;
use super::segment::sampling::{self, Effort, Folder, ModelFile, Sampling};
use super::segment::text::Text;
use super::train::End;
use crate::clock;
use crate::input;
use crate::model::{SavedModel, top};

/// Arguments of `morphemes`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n\
    \x20 grammaton morphemes words.txt\n\
    \x20 grammaton morphemes words.txt --suffixes suffixes.txt --out morphemes\n\
    \x20 grammaton morphemes words.txt --cascade --out morphemes")]
pub struct Args {
    /// Words, one per line, plain or .gz; `-` for standard input. Spaces in a line are gold morpheme boundaries, which are scored against and
    /// otherwise ignored
    words: PathBuf,
    /// File of known prefixes, one per line
    #[arg(long, value_name = "FILE")]
    prefixes: Option<PathBuf>,
    /// File of known suffixes, one per line
    #[arg(long, value_name = "FILE")]
    suffixes: Option<PathBuf>,
    /// Run twice: the N prefixes and N suffixes that a first run with morph15 uses most are known to the second [without N: 40]
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true, default_missing_value = "40",
          conflicts_with_all = ["prefixes", "suffixes"], value_parser = clap::value_parser!(u32).range(1..=100_000))]
    cascade: Option<u32>,
    /// Unit of a symbol: char, with spaces between morphemes, or token, with | between morphemes
    #[arg(long, value_enum, default_value = "char")]
    unit: UnitName,
    /// Grammar: morph1, or another that `grammaton grammars` lists
    #[arg(long, value_name = "NAME", default_value = "morph1")]
    grammar: String,
    /// Chains and results
    #[command(flatten)]
    sampling: Sampling,
}

/// Runs the command.
pub fn run(args: &Args, log: Form) -> Result<Answer> {
    let text = Text::read(&args.words, args.unit.into())?;
    let grammar = sampling::grammar(&args.grammar)?;
    let model = |keys, files| ModelFile {
        grammar,
        voters: Vec::new(),
        effort: EFFORT,
        reason: None,
        spent: Duration::ZERO,
        keys,
        files,
    };
    if let Some(n) = args.cascade {
        ensure!(
            grammar.has_affixes(),
            "--cascade: {grammar} has no affixes; choose a grammar of morphemes, such as morph1"
        );
        return cascade(args, &text, n as usize, &model, log);
    }
    let (mut keys, mut files) = (Vec::new(), Vec::new());
    for (affixes, path) in [(PREFIXES, &args.prefixes), (SUFFIXES, &args.suffixes)] {
        if let Some(path) = path {
            keys.push((affixes.key, affixes.file.to_owned()));
            files.push((affixes.file, input::text(path, &path.display().to_string(), "affixes")?));
        }
    }
    args.sampling.segment(&text, &model(keys, files), log)
}

/// The keys of a model with their values, and the files that it needs with their names.
type ModelOf<'a> = dyn Fn(Vec<(&'static str, String)>, Vec<(&'static str, String)>) -> ModelFile + 'a;

/// Two runs. If a time is given, the first one has half of it for its sweeps, and the second one what is left. The results of the first one are
/// in the folder `first`.
fn cascade(args: &Args, text: &Text, n: usize, model: &ModelOf<'_>, log: Form) -> Result<Answer> {
    let sampling = &args.sampling;
    let of_first = Sampling { seconds: sampling.seconds.map(|seconds| seconds / 2), ..sampling.clone() };
    let folder: Folder = sampling.folder()?;
    let first = folder.path().join("first");
    let first_model =
        ModelFile { grammar: sampling::grammar(FIRST_GRAMMAR)?, ..model(Vec::new(), Vec::new()) };
    let begun = clock::now();
    if let End::Stopped(signal) = of_first.train(&first, text, &first_model, log)? {
        return Ok(Answer::Stopped(signal));
    }
    let saved = SavedModel::load(&first.join("model/model.bin"))?;
    let (mut keys, mut files) = (Vec::new(), Vec::new());
    for affixes in [PREFIXES, SUFFIXES] {
        let found = most_used(&saved, affixes.nonterminal, n);
        if !found.is_empty() {
            keys.push((affixes.key, affixes.file.to_owned()));
            files.push((affixes.file, found));
        }
    }
    let spent = clock::now().saturating_sub(begun);
    sampling.segment_in(&folder, text, &ModelFile { spent, ..model(keys, files) }, log)
}

/// The `n` strings of a nonterminal with the most expected uses, one per line.
fn most_used(saved: &SavedModel, nonterminal: &str, n: usize) -> String {
    let Trained::Grammar(Model { grammar, lexicon, .. }) = &saved.model else { return String::new() };
    let stick = lexicon.sticks.iter().position(|stick| grammar.name(stick.symbol) == nonterminal);
    let strings = stick.map(|at| top(saved, at, n)).unwrap_or_default();
    strings.into_iter().map(|entry| entry.string + "\n").collect()
}

/// One of the two kinds of affixes.
struct Affixes {
    nonterminal: &'static str,
    /// Key of the job file.
    key: &'static str,
    file: &'static str,
}

const PREFIXES: Affixes = Affixes { nonterminal: "PrefixMorph", key: "prefixes", file: "prefixes.txt" };
const SUFFIXES: Affixes = Affixes { nonterminal: "SuffixMorph", key: "suffixes", file: "suffixes.txt" };
/// Grammar of the first run of a cascade.
const FIRST_GRAMMAR: &str = "morph15";
/// Several short chains.
const EFFORT: Effort = Effort { chains: 4, voter_chains: None, sweeps: 50 };
