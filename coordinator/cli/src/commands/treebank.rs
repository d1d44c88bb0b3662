//! `grammaton treebank`: extracts a grammar from trees; writes the grammar, the sentences, and the trees of the grammar.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, anyhow, bail};
use basics::streams;
use grammaton::data::treebank::clean::clean;
use grammaton::data::treebank::pcfg::{Terminals, grammar, trees};
use grammaton::grammar::check::Defect;
use grammaton::grammar::syntax;
use grammaton::grammar::tree::Tree;
use training::input;

use super::Answer;

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
    let cleaned = entries.iter().filter_map(|entry| Some((entry.line, clean(entry.tree.as_ref()?)?)));
    let (lines, cleaned): (Vec<u32>, Vec<Tree>) = cleaned.filter(|(_, tree)| is_short(tree)).unzip();
    if cleaned.is_empty() {
        bail!(
            "{name}: none of {n_entries} trees has 1 to {} words; choose another --max-length",
            args.max_length
        );
    }
    let trees = trees(&cleaned, if args.tags { Terminals::Tags } else { Terminals::Words });
    let grammar = grammar(&trees).map_err(|defect| match &defect {
        Defect::UnaryCycle { path, .. } => {
            let at = trees.iter().position(|tree| has_step(tree, &path[0], &path[1]));
            let line = at.map_or(String::new(), |at| format!("{}:", lines[at]));
            let path = path.join(" → ");
            anyhow!(
                "{name}:{line} the trees have {path}, each label alone below the one before it, so that sentences have endless derivations; \
                 rename one of the labels, this tree having the first step"
            )
        }
        _ => anyhow!("{name}: cannot extract a grammar: {defect}"),
    })?;
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

/// Whether `child` is alone below `parent` anywhere in the tree.
fn has_step(tree: &Tree, parent: &str, child: &str) -> bool {
    let pairs = tree.nodes().windows(2);
    pairs.into_iter().any(|pair| pair[0].n_children == 1 && pair[0].label == parent && pair[1].label == child)
}
