//! A grammar in the making: rules over names, without those that derive nothing.

use std::collections::BTreeSet;

use rustc_hash::{FxHashMap, FxHashSet};

use super::{AutoGrammar, BEGIN, END};
use crate::grammar::check::Defect;
use crate::grammar::{Adaptor, Grammar, Rule, SymbolId};

/// Rules over the names of nonterminals and the symbols of a corpus.
pub(super) struct Draft<'a> {
    symbols: &'a [String],
    /// Indices of [`BEGIN`] and [`END`], if the corpus has both.
    pub marks: Option<[usize; 2]>,
    rules: Vec<DraftRule>,
    adapted: FxHashSet<String>,
    segments: Vec<String>,
}

struct DraftRule {
    parent: String,
    children: Vec<Child>,
    alpha: f64,
}

/// A child of a rule.
enum Child {
    Nonterminal(String),
    /// Index into the symbols.
    Terminal(usize),
}

impl<'a> Draft<'a> {
    /// A draft without rules, whose terminals will be `symbols`.
    pub fn new(symbols: &'a [String]) -> Draft<'a> {
        let position = |name: &str| symbols.iter().position(|symbol| symbol == name);
        let marks = position(BEGIN).zip(position(END)).map(|(begin, end)| [begin, end]);
        Draft { symbols, marks, rules: Vec::new(), adapted: FxHashSet::default(), segments: Vec::new() }
    }

    /// Adds a rule for each of the `alternatives`: names of nonterminals or marks, with spaces between them. Marks that the corpus does not
    /// have are left out.
    pub fn rules(&mut self, parent: &str, alternatives: &[&str]) {
        let child = |name: &str| match name {
            BEGIN => self.marks.map(|[begin, _]| Child::Terminal(begin)),
            END => self.marks.map(|[_, end]| Child::Terminal(end)),
            name => Some(Child::Nonterminal(name.to_owned())),
        };
        for children in alternatives {
            let children = children.split_whitespace().filter_map(child).collect();
            self.rules.push(DraftRule { parent: parent.to_owned(), children, alpha: 1.0 });
        }
    }

    /// Adds the rules of an adapted nonterminal.
    pub fn adapted(&mut self, parent: &str, alternatives: &[&str]) {
        self.rules(parent, alternatives);
        self.adapted.insert(parent.to_owned());
    }

    /// Adds `list --> element | element list`, one or more elements.
    pub fn list(&mut self, list: &str, element: &str) {
        self.rules(list, &[element, &format!("{element} {list}")]);
    }

    /// Adds `parent --> symbol` for each symbol of the corpus that `takes` holds for, by its index.
    pub fn terminals(&mut self, parent: &str, takes: impl Fn(usize) -> bool) {
        self.weighted_terminals(1.0, parent, takes);
    }

    /// Adds rules of terminals with pseudo-count `alpha`.
    pub fn weighted_terminals(&mut self, alpha: f64, parent: &str, takes: impl Fn(usize) -> bool) {
        for at in (0..self.symbols.len()).filter(|&at| takes(at)) {
            let children = vec![Child::Terminal(at)];
            self.rules.push(DraftRule { parent: parent.to_owned(), children, alpha });
        }
    }

    /// Adds `parent --> symbols` for each of these strings of symbols, given by their indices.
    pub fn strings(&mut self, parent: &str, strings: &[Vec<usize>]) {
        let distinct: BTreeSet<&Vec<usize>> = strings.iter().collect();
        for string in distinct {
            let children = string.iter().map(|&at| Child::Terminal(at)).collect();
            self.rules.push(DraftRule { parent: parent.to_owned(), children, alpha: 1.0 });
        }
    }

    /// Makes the constituents of a nonterminal segments.
    pub fn segment(&mut self, name: &str) {
        self.segments.push(name.to_owned());
    }

    /// Numbers the symbols as [`Grammar`] wants them, in order of parents and of first use.
    pub fn finish(mut self) -> Result<AutoGrammar, Defect> {
        self.drop_unproductive();
        let known: FxHashSet<&str> = self.symbols.iter().map(String::as_str).collect();
        let mut ids: FxHashMap<&str, u32> = FxHashMap::default();
        let mut names = Vec::new();
        for DraftRule { parent, .. } in &self.rules {
            ids.entry(parent).or_insert_with(|| {
                let mut name = parent.clone();
                while known.contains(name.as_str()) {
                    name.push('_');
                }
                names.push(name);
                names.len() as u32 - 1
            });
        }
        let n_nonterminals = names.len() as u32;
        let mut terminals: Vec<Option<u32>> = vec![None; self.symbols.len()];
        let mut rules = Vec::with_capacity(self.rules.len());
        for DraftRule { parent, children, alpha } in &self.rules {
            let children = children.iter().map(|child| match child {
                Child::Nonterminal(name) => ids[name.as_str()],
                Child::Terminal(at) => *terminals[*at].get_or_insert_with(|| {
                    names.push(self.symbols[*at].clone());
                    names.len() as u32 - 1
                }),
            });
            let children = children.map(SymbolId).collect();
            rules.push(Rule { parent: SymbolId(ids[parent.as_str()]), children, alpha: *alpha });
        }
        // Grammars group rules by parent.
        rules.sort_by_key(|rule| rule.parent);
        let mut adaptors = vec![None; n_nonterminals as usize];
        for id in self.adapted.iter().filter_map(|name| ids.get(name.as_str())) {
            adaptors[*id as usize] = Some(Adaptor::default());
        }
        let mut segments: Vec<SymbolId> =
            self.segments.iter().filter_map(|name| ids.get(name.as_str())).map(|&id| SymbolId(id)).collect();
        segments.sort_unstable();
        Ok(AutoGrammar { grammar: Grammar::new(names, n_nonterminals, rules, adaptors)?, segments })
    }

    /// Drops rules with a nonterminal that derives nothing, such as onsets in a corpus without consonants, and those that are then out of
    /// reach of the first one.
    fn drop_unproductive(&mut self) {
        let mut productive: FxHashSet<String> = FxHashSet::default();
        let derives = |rule: &DraftRule, productive: &FxHashSet<String>| {
            rule.children.iter().all(|child| match child {
                Child::Nonterminal(name) => productive.contains(name),
                Child::Terminal(_) => true,
            })
        };
        loop {
            let before = productive.len();
            for rule in &self.rules {
                if derives(rule, &productive) {
                    productive.insert(rule.parent.clone());
                }
            }
            if productive.len() == before {
                break;
            }
        }
        self.rules.retain(|rule| derives(rule, &productive));
        let mut reached: FxHashSet<String> =
            self.rules.first().map(|rule| rule.parent.clone()).into_iter().collect();
        loop {
            let before = reached.len();
            for rule in self.rules.iter() {
                if reached.contains(&rule.parent) {
                    let named = rule.children.iter().filter_map(|child| match child {
                        Child::Nonterminal(name) => Some(name.clone()),
                        Child::Terminal(_) => None,
                    });
                    reached.extend(named);
                }
            }
            if reached.len() == before {
                break;
            }
        }
        self.rules.retain(|rule| reached.contains(&rule.parent));
    }
}
