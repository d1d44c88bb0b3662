//! Data of a model with latent annotations: a treebank, and trees to score it with.
//!
//! In: trees in brackets of the Penn Treebank. Out: the treebank in shards, its words as a corpus, and, after training, how well a
//! model finds the held-out trees.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use fleet::Map;
use grammaton::data::corpus::{Corpus, Format, Unit};
use grammaton::data::eval::Source;
use grammaton::data::eval::brackets::{ByLength, score};
use grammaton::data::treebank::Treebank;
use grammaton::data::treebank::brackets::{Entry, line};
use grammaton::data::treebank::clean::clean;
use grammaton::grammar::tree::Tree;
use grammaton::models::latent::Layout;
use grammaton::models::latent::parse::{Decoder, Model, Parser, THRESHOLD};
use rayon::prelude::*;

use super::held_out::split;
use crate::input;
use crate::job::{CorpusTable, Job};
use crate::metrics::BracketsByDecoder;
use crate::outcome::{Decoding, Lines};

/// Trees to train on, and trees to find.
pub struct Trees {
    /// Training trees.
    pub treebank: Arc<Treebank>,
    /// Held-out trees, possibly none.
    pub held_out: ToFind,
    /// Trees of `corpus.test`, if the job has it.
    pub test: Option<ToFind>,
}

/// Gold trees to parse and score.
#[derive(Clone)]
pub struct ToFind {
    trees: Vec<Tree>,
    /// Length of the longest sentence in words.
    max_length: u32,
}

/// Trees that a thread parses between two checks for cancellation.
const BETWEEN_CHECKS: usize = 8;

/// The decoders of a model with latent annotations, and their names.
pub const DECODERS: [(Decoder, &str); 2] = [(Decoder::MaxRule, "max-rule"), (Decoder::Viterbi, "viterbi")];

impl Trees {
    /// Reads the treebank of `job`, its words as a corpus, and what the user should know.
    pub fn load(job: &Job) -> Result<(Trees, Corpus, Vec<String>)> {
        let CorpusTable {
            path, held_out, held_out_share, test, max_length, unknown, unknown_threshold, ..
        } = &job.corpus;
        let mut notices = Vec::new();
        let mut trees = read(&job.corpus, path, &mut notices)?;
        let mut held_out_trees = Vec::new();
        if !held_out.as_os_str().is_empty() {
            held_out_trees = read(&job.corpus, held_out, &mut notices)?;
        } else if *held_out_share > 0.0 {
            (trees, held_out_trees) = split(trees, *held_out_share, job.corpus.held_out_seed, "trees")?;
        }
        let plain: Vec<Tree> = trees.iter().map(|(_, tree)| tree.clone()).collect();
        let treebank = Arc::new(Treebank::new(&plain, *unknown_threshold, *unknown));
        for point in &job.points {
            let weights = Layout::check(&treebank.rules, point.inference.subtypes);
            weights.with_context(|| path.display().to_string())?;
        }
        let corpus = words(&trees, path);
        let to_find = |trees: Vec<(u32, Tree)>| ToFind {
            trees: trees.into_iter().map(|(_, tree)| tree).collect(),
            max_length: *max_length,
        };
        let test = if test.as_os_str().is_empty() {
            None
        } else {
            Some(to_find(read(&job.corpus, test, &mut notices)?))
        };
        Ok((Trees { treebank, held_out: to_find(held_out_trees), test }, corpus, notices))
    }
}

impl ToFind {
    /// Parses the sentences of the trees by every decoder, on all cores of this machine, until the job of `fleet` is cancelled.
    pub fn find(&self, fleet: &dyn Map, model: &Model) -> Result<(Vec<Decoding>, BracketsByDecoder)> {
        let (mut decodings, mut scores) = (Vec::new(), BTreeMap::new());
        if self.trees.is_empty() {
            return Ok((decodings, scores));
        }
        let parser = Parser::new(model, THRESHOLD);
        let entries = |trees: Vec<Tree>| -> Vec<Entry> {
            trees.into_iter().zip(1..).map(|(tree, line)| Entry { line, tree: Some(tree) }).collect()
        };
        let gold = entries(self.trees.clone());
        for (decoder, name) in DECODERS {
            let parse = |tree: &Tree| parser.parse(&tree.terminals().collect::<Vec<_>>(), decoder).tree;
            let mut found: Vec<Tree> = Vec::with_capacity(self.trees.len());
            for trees in self.trees.chunks(BETWEEN_CHECKS * rayon::current_num_threads()) {
                fleet.check()?;
                found.par_extend(trees.par_iter().map(parse));
            }
            let mut trees = Lines::default();
            found.iter().try_for_each(|tree| trees.push(&line(tree)))?;
            let found = entries(found);
            let scored: ByLength = score(
                Source { name: "the trees", items: &gold },
                Source { name: "their parses", items: &found },
                self.max_length as usize,
            )?;
            let (segmentations, table) = (Lines::default(), Lines::default());
            decodings.push(Decoding { name, segmentations, table, trees });
            scores.insert(name.to_owned(), scored.all);
        }
        Ok((decodings, scores))
    }
}

/// The trees of a file with up to `corpus.max_length` words, cleaned, each with its line.
fn read(corpus: &CorpusTable, path: &Path, notices: &mut Vec<String>) -> Result<Vec<(u32, Tree)>> {
    let name = path.display();
    let max_length = corpus.max_length;
    let (entries, faults) = input::sound_trees(path)?;
    corpus.leave_out(faults, "trees", notices)?;
    let n_entries = entries.len();
    let (mut found, mut empty) = (Vec::new(), Vec::new());
    for Entry { line, tree } in entries {
        match tree.and_then(|tree| clean(&tree)) {
            Some(tree) => found.push((line, tree)),
            None => empty.push(line),
        }
    }
    let (short, long): (Vec<_>, Vec<_>) =
        found.into_iter().partition(|(_, tree)| tree.terminals().count() <= max_length as usize);
    if let Some(line) = empty.first() {
        notices.push(format!(
            "{name}:{line}: left out {} trees without words, this being the first",
            empty.len()
        ));
    }
    if let Some((line, _)) = long.first() {
        let n_long = long.len();
        notices.push(format!(
            "{name}:{line}: left out {n_long} trees of more than {max_length} words, this being the first; \
             corpus.max_length sets the limit"
        ));
    }
    if short.is_empty() {
        bail!(
            "{name}: no trees are left of {n_entries}; give trees in brackets of the Penn Treebank, as in `(S (NP (N x)) (V y))`"
        );
    }
    Ok(short)
}

/// The words of trees.
fn words(trees: &[(u32, Tree)], path: &Path) -> Corpus {
    let mut symbols: Vec<String> = Vec::new();
    let mut ids: BTreeMap<String, u32> = BTreeMap::new();
    let mut id = |word: &str| {
        *ids.entry(word.to_owned()).or_insert_with(|| {
            symbols.push(word.to_owned());
            symbols.len() as u32 - 1
        })
    };
    let sentences = trees.iter().map(|(_, tree)| tree.terminals().map(&mut id).collect()).collect();
    Corpus {
        symbols,
        sentences,
        gold: None,
        lines: trees.iter().map(|&(line, _)| line).collect(),
        occurrences: Vec::new(),
        beside: Vec::new(),
        source_name: path.display().to_string(),
        format: Format::Tokens,
        unit: Unit::Token,
    }
}
