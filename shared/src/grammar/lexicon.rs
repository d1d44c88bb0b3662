//! The strings that nonterminals rewrite to, and the numbers of their parameters.

mod strings;

use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};

use super::{Grammar, ParamId, ParamSpace, SymbolId};
use crate::limits::{MAX_SUBSTRING_SYMBOLS, MAX_SUBSTRINGS};
pub use strings::Strings;

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

/// Why a [`Lexicon`] is not one of a grammar.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct LexiconError(&'static str);

impl Lexicon {
    /// Every substring of up to `max_length` symbols of `sentences`, in lexicographic order, for each nonterminal of `grammar`
    /// that rewrites to substrings.
    ///
    /// # Errors
    /// See [`Substrings::add`].
    pub fn substrings(
        grammar: &Grammar,
        sentences: &[Vec<SymbolId>],
        max_length: usize,
    ) -> Result<Lexicon, TooManySubstrings> {
        let mut substrings = Substrings::new(max_length);
        substrings.add(sentences)?;
        Ok(substrings.lexicon(grammar))
    }

    /// Checks that it belongs to `grammar`: a stick for each nonterminal that rewrites to strings, of strings of terminals.
    pub fn check(&self, grammar: &Grammar) -> Result<(), LexiconError> {
        if !grammar.with_strings().eq(self.sticks.iter().map(|stick| stick.symbol)) {
            return Err(LexiconError("sticks and nonterminals with strings differ"));
        }
        let terminals = grammar.n_nonterminals..grammar.symbols.len() as u32;
        let is_terminal = |symbol: &SymbolId| terminals.contains(&symbol.0);
        let mut strings = self.sticks.iter().flat_map(|stick| &stick.strings);
        if !strings.all(|string| !string.is_empty() && string.iter().all(is_terminal)) {
            return Err(LexiconError("a string is empty, or not of the grammar's terminals"));
        }
        let is_distinct = |stick: &StickStrings| {
            let mut seen = FxHashSet::default();
            stick.strings.iter().all(|string| seen.insert(string))
        };
        if !self.sticks.iter().all(is_distinct) {
            return Err(LexiconError("a stick has a string twice"));
        }
        Ok(())
    }

    /// The parameters of `grammar` and of these strings.
    pub fn space(&self, grammar: &Grammar) -> ParamSpace {
        ParamSpace::new(grammar.rules.len(), self.sticks.iter().map(|stick| stick.strings.len()))
    }

    /// The nonterminal and string that `param` stands for, if it is a string's.
    pub fn string(&self, grammar: &Grammar, param: ParamId) -> Option<(SymbolId, &[SymbolId])> {
        let mut at = param.0.checked_sub(grammar.space().first_string().0)? as usize;
        for stick in &self.sticks {
            if at < stick.strings.len() {
                return Some((stick.symbol, &stick.strings[at]));
            }
            at -= stick.strings.len();
        }
        None
    }
}

/// Too many substrings.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TooManySubstrings {
    /// Too many substrings in a sentence.
    #[error(
        "a sentence of {n_symbols} symbols has substrings of up to {max_length} symbols of {found} symbols together, expected at \
         most {MAX_SUBSTRING_SYMBOLS}; lower inference.max_string, or split the sentence"
    )]
    InSentence {
        /// Length of the sentence.
        n_symbols: usize,
        /// Length of the longest substring.
        max_length: usize,
        /// Symbols of all its substrings.
        found: u64,
    },
    /// Too many substrings in all sentences so far.
    #[error(
        "{found} different substrings of up to {max_length} symbols, of {n_symbols} symbols together, expected at most \
         {MAX_SUBSTRINGS} of {MAX_SUBSTRING_SYMBOLS} symbols; lower inference.max_string, or train on fewer sentences"
    )]
    InAll {
        /// Different substrings.
        found: usize,
        /// Length of the longest.
        max_length: usize,
        /// Symbols of all.
        n_symbols: usize,
    },
}

/// Gathers the substrings of a corpus that is read in blocks.
pub struct Substrings {
    max_length: usize,
    /// Sorted, each once.
    found: Strings,
}

impl Substrings {
    /// Creates an empty set of substrings of up to `max_length` symbols.
    pub fn new(max_length: usize) -> Substrings {
        Substrings { max_length, found: Strings::new() }
    }

    /// Adds the strings of `sentences`.
    ///
    /// # Errors
    /// [`TooManySubstrings`] beyond [`MAX_SUBSTRINGS`] and [`MAX_SUBSTRING_SYMBOLS`], before they are in memory.
    pub fn add(&mut self, sentences: &[Vec<SymbolId>]) -> Result<(), TooManySubstrings> {
        let (mut first, mut n_symbols) = (0, 0);
        for (at, sentence) in sentences.iter().enumerate() {
            let found = self.n_symbols_of(sentence.len() as u64);
            if found > MAX_SUBSTRING_SYMBOLS as u64 {
                let (n_symbols, max_length) = (sentence.len(), self.max_length);
                return Err(TooManySubstrings::InSentence { n_symbols, max_length, found });
            }
            if n_symbols + found > MAX_SUBSTRING_SYMBOLS as u64 {
                self.merge(&sentences[first..at])?;
                (first, n_symbols) = (at, 0);
            }
            n_symbols += found;
        }
        self.merge(&sentences[first..])
    }

    /// Symbols of all substrings of a sentence of `n` symbols: Σ (n − l + 1) · l over their lengths l.
    fn n_symbols_of(&self, n: u64) -> u64 {
        let longest = n.min(self.max_length as u64);
        let (n, l) = (u128::from(n), u128::from(longest));
        let sum = (n + 1) * (l * (l + 1) / 2) - l * (l + 1) * (2 * l + 1) / 6;
        u64::try_from(sum).unwrap_or(u64::MAX)
    }

    fn merge(&mut self, sentences: &[Vec<SymbolId>]) -> Result<(), TooManySubstrings> {
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
        let (found, n_symbols) = (self.found.len(), self.found.n_symbols());
        if found > MAX_SUBSTRINGS || n_symbols > MAX_SUBSTRING_SYMBOLS {
            return Err(TooManySubstrings::InAll { found, max_length: self.max_length, n_symbols });
        }
        Ok(())
    }

    /// All of them for each nonterminal of `grammar` that rewrites to substrings.
    pub fn lexicon(self, grammar: &Grammar) -> Lexicon {
        let parents = grammar.substring_rules().map(|rule| grammar.rule(rule).parent);
        let strings = |symbol| StickStrings { symbol, strings: self.found.clone() };
        Lexicon { sticks: parents.map(strings).collect() }
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
                substrings.add(&block.iter().map(|text| sentence(text)).collect::<Vec<_>>()).unwrap();
            }
            substrings.found
        };
        let found: Vec<Vec<SymbolId>> =
            ["a", "aa", "ab", "b", "ba", "c", "ca"].iter().map(|text| sentence(text)).collect();
        assert_eq!(of_blocks(&[&["baab", "ca"]]), found.iter().collect());
        assert_eq!(of_blocks(&[&["ca", "ab"], &[], &["baa", "ab"]]), found.iter().collect());
    }

    /// Law: substrings are counted before they are in memory.
    #[test]
    fn symbols_of_substrings_are_counted_without_them() {
        for n in 0..8 {
            for max_length in 1..10 {
                let spans = (0..n)
                    .flat_map(|start| (start + 1..=n.min(start + max_length)).map(move |end| end - start));
                assert_eq!(Substrings::new(max_length).n_symbols_of(n as u64), spans.sum::<usize>() as u64);
            }
        }
        let long = vec![SymbolId(0); 100_000];
        let error = Substrings::new(usize::MAX).add(&[long]).unwrap_err().to_string();
        assert!(
            error.contains("a sentence of 100000 symbols") && error.contains("at most 268435456"),
            "{error}"
        );
    }
}
