//! `grammaton treebank`: extracts a grammar from trees; writes the grammar, the sentences, and the trees of the grammar.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use shared::data::treebank::clean::clean;
use shared::data::treebank::pcfg::{Terminals, grammar, trees};
use shared::grammar::syntax;
use shared::grammar::tree::Tree;

use super::Answer;
use crate::input;
use crate::streams;

/// Arguments of `treebank`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n\
    \x20 grammaton treebank trees.mrg --out extracted --tags")]
pub struct Args {
    /// File of trees in Penn Treebank brackets; `-` for standard input
    pub trees: PathBuf,
    /// Folder for grammar.gr, corpus.txt and trees.txt
    #[arg(help_heading = "Output", long, value_name = "DIR")]
    pub out: PathBuf,
    /// Maximum number of words of a tree; longer trees are skipped
    #[arg(long, value_name = "N", default_value_t = 40)]
    pub max_length: usize,
    /// Use tags instead of words
    #[arg(long)]
    pub tags: bool,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<Answer> {
    let (name, entries) = input::trees(&args.trees)?;
    let n_entries = entries.len();
    let is_short = |tree: &Tree| tree.terminals().count() <= args.max_length;
    let cleaned = entries.iter().filter_map(|entry| entry.tree.as_ref().and_then(clean));
    let cleaned: Vec<_> = cleaned.filter(is_short).collect();
    if cleaned.is_empty() {
        bail!(
            "{name}: none of {n_entries} trees has 1 to {} words; choose another --max-length",
            args.max_length
        );
    }
    let trees = trees(&cleaned, if args.tags { Terminals::Tags } else { Terminals::Words });
    let grammar = grammar(&trees).with_context(|| format!("{name}: cannot extract a grammar"))?;
    let corpus = trees.iter().map(|tree| tree.terminals().collect::<Vec<_>>().join(" "));
    let text = |lines: Vec<String>| lines.join("\n") + "\n";
    fs::create_dir_all(&args.out).with_context(|| format!("{}: cannot be created", args.out.display()))?;
    for (file, text) in [
        ("grammar.gr", syntax::print(&grammar)),
        ("corpus.txt", text(corpus.collect())),
        ("trees.txt", text(trees.iter().map(ToString::to_string).collect())),
    ] {
        let path = args.out.join(file);
        fs::write(&path, text).with_context(|| format!("{}: cannot be written", path.display()))?;
    }
    streams::tell(&format!(
        "{}: {} rules of {} trees; left out {}",
        args.out.display(),
        grammar.rules.len(),
        trees.len(),
        n_entries - trees.len()
    ));
    Ok(Answer::Yes)
}
