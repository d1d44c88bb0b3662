//! Shards: the runs of items that travel to workers.
//!
//! In: sentences in corpus order. Out: shards of distinct sentences with their multiplicities, in order of first occurrence, and the way
//! back to the corpus ([`cut`]). A shard is cut by content, never by the number of workers, and named by the hash of its content.

use std::ops::Range;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::data::treebank::{Rhs, RuleId, Rules, Treebank};
use crate::data::{Sentence, TreeMarks};
use crate::grammar::SymbolId;
use crate::models::latent;

/// A run of items, the unit of work.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Shard {
    /// Sentences, parsed from the start symbol.
    Sentences(Vec<Sentence>),
    /// Stick strings by parameter, each parsed from its own nonterminal through that nonterminal's base rules.
    Strings(Range<u32>),
    /// Trees of a treebank, for work that annotates them. The rules that they are made of go with them, so that neither grammar nor
    /// lexicon is asked.
    Trees {
        /// The rules of the whole treebank.
        rules: Rules,
        /// The trees.
        trees: latent::Shard,
    },
}

impl Shard {
    /// The strings that it is of, if it is of strings.
    pub fn strings(&self) -> Option<&Range<u32>> {
        match self {
            Shard::Strings(strings) => Some(strings),
            Shard::Sentences(_) | Shard::Trees { .. } => None,
        }
    }

    /// Number of items.
    pub fn len(&self) -> usize {
        match self {
            Shard::Sentences(sentences) => sentences.len(),
            Shard::Strings(params) => params.len(),
            Shard::Trees { trees, .. } => trees.trees.len(),
        }
    }

    /// Whether it has no items.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The size that suits most: some tens of milliseconds of work, and enough shards to share out.
pub const DEFAULT_SHARD_SYMBOLS: u32 = 8192;

/// Symbols of a shard at most: a task reads all of them, and the tasks of others wait for its thread.
pub const MAX_SHARD_SYMBOLS: u32 = 1 << 22;

/// A shard, and where in the corpus its sentences come from.
#[derive(Clone, PartialEq, Debug)]
pub struct SentenceShard {
    /// [`Shard::Sentences`].
    pub shard: Shard,
    /// For every sentence of the shard, its positions in the corpus, ascending; as many as its multiplicity.
    pub positions: Vec<Vec<u32>>,
}

/// A block ends with the sentence that brings it to so many symbols, or to a shard's if that is more. Equal sentences of a block are
/// computed once.
pub const BLOCK_SYMBOLS: usize = 1 << 20;

/// [`cut_counted`] of each block of sentences by itself; positions are those in the whole corpus.
pub fn cut_blocks(
    sentences: &[Vec<SymbolId>],
    occurrences: &[u32],
    shard_symbols: u32,
) -> Vec<SentenceShard> {
    let block_symbols = BLOCK_SYMBOLS.max(shard_symbols as usize);
    let (mut shards, mut start) = (Vec::new(), 0);
    while start < sentences.len() {
        let (mut end, mut n_symbols) = (start, 0);
        while end < sentences.len() && n_symbols < block_symbols {
            n_symbols += sentences[end].len();
            end += 1;
        }
        let mut block =
            cut_counted(&sentences[start..end], occurrences.get(start..end).unwrap_or(&[]), shard_symbols);
        let positions = block.iter_mut().flat_map(|shard| shard.positions.iter_mut().flatten());
        positions.for_each(|position| *position += start as u32);
        shards.extend(block);
        start = end;
    }
    shards
}

/// The trees of a treebank in shards: one ends with the tree that brings it to `shard_words` words or more.
pub fn cut_trees(treebank: &Treebank, shard_words: u32) -> Vec<SentenceShard> {
    let Treebank { rules, derivations, .. } = treebank;
    let is_word = |rule: &&RuleId| matches!(rules.rules[rule.index()].right, Rhs::Lexical(_));
    let mut shards = Vec::new();
    let (mut trees, mut positions, mut n_words) = (Vec::new(), Vec::new(), 0);
    let close = |trees: &mut Vec<_>, positions: &mut Vec<_>| SentenceShard {
        shard: Shard::Trees { rules: rules.clone(), trees: latent::Shard { trees: std::mem::take(trees) } },
        positions: std::mem::take(positions),
    };
    for (position, tree) in (0..).zip(derivations) {
        trees.push(tree.clone());
        positions.push(vec![position]);
        n_words += tree.iter().filter(is_word).count();
        if n_words >= shard_words as usize {
            shards.push(close(&mut trees, &mut positions));
            n_words = 0;
        }
    }
    if !trees.is_empty() {
        shards.push(close(&mut trees, &mut positions));
    }
    shards
}

/// Merges equal sentences and cuts the rest into shards: one ends with the sentence that brings it to
/// `shard_symbols` symbols or more.
pub fn cut(sentences: &[Vec<SymbolId>], shard_symbols: u32) -> Vec<SentenceShard> {
    cut_counted(sentences, &[], shard_symbols)
}

/// [`cut`] of sentences of which each occurs so often; `occurrences` is empty if each occurs once. Positions are repeated, too.
pub fn cut_counted(
    sentences: &[Vec<SymbolId>],
    occurrences: &[u32],
    shard_symbols: u32,
) -> Vec<SentenceShard> {
    let nothing = TreeMarks::default();
    cut_each(sentences.iter().map(|tokens| (&tokens[..], &nothing)), occurrences, shard_symbols)
}

/// [`cut_counted`] of sentences of whose trees something may be known; equal ones are equal in that, too.
pub fn cut_marked(
    sentences: &[(Vec<SymbolId>, TreeMarks)],
    occurrences: &[u32],
    shard_symbols: u32,
) -> Vec<SentenceShard> {
    cut_each(sentences.iter().map(|(tokens, marks)| (&tokens[..], marks)), occurrences, shard_symbols)
}

/// A sentence, and what is known of its tree.
type Marked<'a> = (&'a [SymbolId], &'a TreeMarks);

fn cut_each<'a>(
    sentences: impl Iterator<Item = Marked<'a>>,
    occurrences: &[u32],
    shard_symbols: u32,
) -> Vec<SentenceShard> {
    let mut distinct: Vec<(Marked<'_>, Vec<u32>)> = Vec::new();
    let mut places: FxHashMap<Marked<'_>, usize> = FxHashMap::default();
    for (position, sentence) in sentences.enumerate() {
        let place = *places.entry(sentence).or_insert(distinct.len());
        if place == distinct.len() {
            distinct.push((sentence, Vec::new()));
        }
        let n = occurrences.get(position).copied().unwrap_or(1);
        distinct[place].1.extend(std::iter::repeat_n(position as u32, n as usize));
    }

    let mut shards = Vec::new();
    let (mut run, mut positions, mut n_symbols) = (Vec::new(), Vec::new(), 0);
    for ((tokens, marks), at) in distinct {
        n_symbols += tokens.len();
        run.push(Sentence::new(tokens.to_vec(), at.len() as u32).with_marks(marks.clone()));
        positions.push(at);
        if n_symbols >= shard_symbols as usize {
            let shard = Shard::Sentences(std::mem::take(&mut run));
            shards.push(SentenceShard { shard, positions: std::mem::take(&mut positions) });
            n_symbols = 0;
        }
    }
    if !run.is_empty() {
        shards.push(SentenceShard { shard: Shard::Sentences(run), positions });
    }
    shards
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> Vec<SymbolId> {
        text.bytes().map(|byte| SymbolId(u32::from(byte))).collect()
    }

    #[test]
    fn a_sentence_with_a_count_is_as_many_sentences() {
        let texts = ["ab", "c", "ab", "d"];
        let counts = [2, 1, 3, 1];
        let repeated: Vec<_> = texts
            .iter()
            .zip(counts)
            .flat_map(|(text, n)| std::iter::repeat_n(tokens(text), n as usize))
            .collect();
        let shards = |cut: Vec<SentenceShard>| cut.into_iter().map(|cut| cut.shard).collect::<Vec<_>>();
        let counted = cut_counted(&texts.map(tokens), &counts, 3);
        assert_eq!(counted[0].positions[0], [0, 0, 2, 2, 2]);
        assert_eq!(shards(counted), shards(cut(&repeated, 3)));
    }

    #[test]
    fn equal_sentences_are_merged_and_shards_end_when_full() {
        let sentences = ["ab", "c", "ab", "d", "ef", "c", "ab"].map(tokens);
        let shards = cut(&sentences, 3);
        let sentence = |text, multiplicity| Sentence::new(tokens(text), multiplicity);
        assert_eq!(
            shards,
            [
                SentenceShard {
                    shard: Shard::Sentences(vec![sentence("ab", 3), sentence("c", 2)]),
                    positions: vec![vec![0, 2, 6], vec![1, 5]],
                },
                SentenceShard {
                    shard: Shard::Sentences(vec![sentence("d", 1), sentence("ef", 1)]),
                    positions: vec![vec![3], vec![4]],
                },
            ]
        );
        assert_eq!(cut(&sentences, 4).len(), 2);
        assert_eq!(cut(&sentences, 1).len(), 4);
        assert!(cut(&[], 3).is_empty());
    }
}
