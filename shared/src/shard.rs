//! Shards: the runs of items that travel to workers, and the strings and parameters they refer to.
//!
//! A shard is cut by content, never by the number of workers, and named by the hash of its content.

mod strings;

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::grammar::{Grammar, SymbolId};
use crate::latent;
use crate::treebank::Rules;
pub use strings::Strings;

/// Index of a parameter of the whole model: 0 is the constant one, then the rules, then the stick strings.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct ParamId(pub u32);

impl ParamId {
    /// The weight that is always one.
    pub const ONE: ParamId = ParamId(0);

    /// As an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }

    /// The parameter of rule number `rule` of the grammar.
    pub fn of_rule(rule: usize) -> ParamId {
        ParamId(1 + rule as u32)
    }
}

/// The strings of one nonterminal: candidates for the stick of an adapted one, or all substrings of the corpus.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct StickStrings {
    /// The nonterminal.
    pub symbol: SymbolId,
    /// Distinct, non-empty; the order is that of the parameters, not that of the stick.
    pub strings: Strings,
}

/// All strings of the model: which string every string parameter stands for.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Lexicon {
    /// One per nonterminal that rewrites to strings ([`Grammar::with_strings`]), in symbol order.
    pub sticks: Vec<StickStrings>,
}

impl Lexicon {
    /// Every substring of up to `max_length` symbols of `sentences`, in lexicographic order, for each nonterminal of `grammar`
    /// that rewrites to substrings.
    pub fn substrings(grammar: &Grammar, sentences: &[Vec<SymbolId>], max_length: usize) -> Lexicon {
        let mut substrings = Substrings::new(max_length);
        substrings.add(sentences);
        substrings.lexicon(grammar)
    }

    /// Whether it belongs to `grammar`: a stick for each nonterminal that rewrites to strings, of strings that can be read; an error says what
    /// does not hold.
    pub fn check(&self, grammar: &Grammar) -> Result<(), String> {
        if !grammar.with_strings().eq(self.sticks.iter().map(|stick| stick.symbol)) {
            return Err("sticks and nonterminals with strings differ".to_owned());
        }
        let terminals = grammar.n_nonterminals..grammar.symbols.len() as u32;
        let is_terminal = |symbol: &SymbolId| terminals.contains(&symbol.0);
        let mut strings = self.sticks.iter().flat_map(|stick| &stick.strings);
        if !strings.all(|string| !string.is_empty() && string.iter().all(is_terminal)) {
            return Err("a string is empty, or not of the grammar's terminals".to_owned());
        }
        Ok(())
    }

    /// Parameters of the strings of stick number `stick` (position in [`Lexicon::sticks`]).
    pub fn params(&self, grammar: &Grammar, stick: usize) -> Range<u32> {
        let before: usize = self.sticks[..stick].iter().map(|s| s.strings.len()).sum();
        let first = (1 + grammar.rules.len() + before) as u32;
        first..first + self.sticks[stick].strings.len() as u32
    }

    /// Number of parameters in all: the constant one, the rules, the strings.
    pub fn n_params(&self, grammar: &Grammar) -> usize {
        1 + grammar.rules.len() + self.sticks.iter().map(|s| s.strings.len()).sum::<usize>()
    }

    /// The nonterminal and string that `param` stands for, if it is a string's.
    pub fn string(&self, grammar: &Grammar, param: ParamId) -> Option<(SymbolId, &[SymbolId])> {
        let mut at = param.index().checked_sub(1 + grammar.rules.len())?;
        for stick in &self.sticks {
            if at < stick.strings.len() {
                return Some((stick.symbol, &stick.strings[at]));
            }
            at -= stick.strings.len();
        }
        None
    }
}

/// Gathers the substrings of a corpus that is read in blocks.
pub struct Substrings {
    max_length: usize,
    /// Sorted, each once.
    found: Strings,
}

impl Substrings {
    /// None yet, of up to `max_length` symbols.
    pub fn new(max_length: usize) -> Substrings {
        Substrings { max_length, found: Strings::new() }
    }

    /// Adds those of `sentences`.
    pub fn add(&mut self, sentences: &[Vec<SymbolId>]) {
        let mut found: Vec<&[SymbolId]> = Vec::new();
        for sentence in sentences {
            for start in 0..sentence.len() {
                let ends = start + 1..=sentence.len().min(start.saturating_add(self.max_length));
                found.extend(ends.map(|end| &sentence[start..end]));
            }
        }
        found.sort_unstable();
        found.dedup();
        let known = std::mem::replace(&mut self.found, Strings::new());
        let (mut known, mut found) = (known.iter().peekable(), found.into_iter().peekable());
        while let Some(next) = known.peek().into_iter().chain(found.peek()).min().copied() {
            self.found.push(next);
            known.next_if_eq(&next);
            found.next_if_eq(&next);
        }
    }

    /// All of them for each nonterminal of `grammar` that rewrites to substrings.
    pub fn lexicon(self, grammar: &Grammar) -> Lexicon {
        let parents = grammar.substring_rules().map(|rule| grammar.rules[rule].parent);
        let strings = |symbol| StickStrings { symbol, strings: self.found.clone() };
        Lexicon { sticks: parents.map(strings).collect() }
    }
}

/// A distinct sentence and how often it occurs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Sentence {
    /// Terminals.
    pub tokens: Vec<SymbolId>,
    /// Occurrences in the corpus, ≥ 1.
    pub multiplicity: u32,
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn substrings_of_blocks_are_those_of_the_whole() {
        let sentence = |text: &str| text.bytes().map(|byte| SymbolId(u32::from(byte))).collect::<Vec<_>>();
        let of_blocks = |blocks: &[&[&str]]| {
            let mut substrings = Substrings::new(2);
            for block in blocks {
                substrings.add(&block.iter().map(|text| sentence(text)).collect::<Vec<_>>());
            }
            substrings.found
        };
        let found: Vec<Vec<SymbolId>> =
            ["a", "aa", "ab", "b", "ba", "c", "ca"].iter().map(|text| sentence(text)).collect();
        assert_eq!(of_blocks(&[&["baab", "ca"]]), found.iter().collect());
        assert_eq!(of_blocks(&[&["ca", "ab"], &[], &["baa", "ab"]]), found.iter().collect());
    }
}
