//! Finds all stick strings in a sentence, in one walk from each token.

use rustc_hash::FxHashMap;

use crate::grammar::{Grammar, SymbolId};
use crate::shard::{Lexicon, ParamId};

/// A trie over the strings of all sticks.
pub struct StringIndex {
    /// (node, token) → node; the root is node 0.
    children: FxHashMap<(u32, SymbolId), u32>,
    /// `[n_nodes, n_sticks]`: the parameter of the string that ends here, 0 if none does.
    params: Vec<u32>,
    n_sticks: usize,
}

impl StringIndex {
    /// Indexes the strings of `lexicon`.
    pub fn new(grammar: &Grammar, lexicon: &Lexicon) -> StringIndex {
        let n_sticks = lexicon.sticks.len();
        let mut index = StringIndex { children: FxHashMap::default(), params: vec![0; n_sticks], n_sticks };
        for (number, stick) in lexicon.sticks.iter().enumerate() {
            for (param, string) in lexicon.params(grammar, number).zip(&stick.strings) {
                let mut node = 0;
                for &token in string {
                    let fresh = (index.params.len() / n_sticks) as u32;
                    node = *index.children.entry((node, token)).or_insert(fresh);
                    if node == fresh {
                        index.params.resize(index.params.len() + n_sticks, 0);
                    }
                }
                index.params[node as usize * n_sticks + number] = param;
            }
        }
        index
    }

    /// Calls `found(stick, end, param)` for every stick string that starts at `tokens[start]`, shortest first.
    pub fn matches(&self, tokens: &[SymbolId], start: usize, mut found: impl FnMut(usize, usize, ParamId)) {
        let mut node = 0;
        for (at, &token) in tokens.iter().enumerate().skip(start) {
            let Some(&next) = self.children.get(&(node, token)) else { return };
            node = next;
            let row = node as usize * self.n_sticks;
            for (stick, &param) in self.params[row..row + self.n_sticks].iter().enumerate() {
                if param != 0 {
                    found(stick, at + 1, ParamId(param));
                }
            }
        }
    }

    /// The parameter of `string` on stick number `stick`.
    pub fn param(&self, stick: usize, string: &[SymbolId]) -> Option<ParamId> {
        let mut node = 0;
        for &token in string {
            node = *self.children.get(&(node, token))?;
        }
        Some(self.params[node as usize * self.n_sticks + stick]).filter(|&param| param != 0).map(ParamId)
    }
}
