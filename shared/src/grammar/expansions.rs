//! What the parameters of a grammar and its strings rewrite.

use rustc_hash::FxHashMap;

use super::lexicon::Lexicon;
use super::{Grammar, ParamId, ParamSpace, SymbolId};

/// Rules and strings, as parent and children.
pub struct Expansions<'a> {
    grammar: &'a Grammar,
    lexicon: &'a Lexicon,
    space: ParamSpace,
}

impl<'a> Expansions<'a> {
    /// The rules of `grammar` and the strings of `lexicon`.
    pub fn new(grammar: &'a Grammar, lexicon: &'a Lexicon) -> Expansions<'a> {
        Expansions { grammar, lexicon, space: lexicon.space(grammar) }
    }

    /// The grammar.
    pub fn grammar(&self) -> &'a Grammar {
        self.grammar
    }

    /// Number of parameters, with the constant one.
    pub fn n_params(&self) -> usize {
        self.space.n_params()
    }

    /// Parent and children that `param` rewrites; `None` for the constant parameter and those beyond the strings.
    pub fn get(&self, param: ParamId) -> Option<(SymbolId, &'a [SymbolId])> {
        match self.space.rule(param).map(|rule| self.grammar.rule(rule)) {
            Some(rule) => Some((rule.parent, &rule.children)),
            None => self.lexicon.string(self.grammar, param),
        }
    }

    /// The parameters by parent and children; the string's, where a rule and a string rewrite the same.
    pub fn params(&self) -> FxHashMap<(SymbolId, &'a [SymbolId]), ParamId> {
        let params = (0..self.n_params() as u32).map(ParamId);
        params.filter_map(|param| self.get(param).map(|expansion| (expansion, param))).collect()
    }

    /// The symbols by name.
    pub fn symbols(&self) -> FxHashMap<&'a str, SymbolId> {
        self.grammar.symbols.iter().map(String::as_str).zip((0..).map(SymbolId)).collect()
    }
}
