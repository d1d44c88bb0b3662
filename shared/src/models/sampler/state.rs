//! The state of a chain: a tree for every occurrence of a sentence, and the tables of the adapted nonterminals.
//!
//! A tree is its leftmost derivation: parameters in order, and for an adapted nonterminal the table it sits at, whose label is in
//! turn a leftmost derivation, that of its base. The trees and labels determine the customers of each table. Several tables may have
//! the same label.
//!
//! Invariant: a table comes after those that its label sits at, and tables are numbered in the order in which the trees first
//! come to them; so equal states have equal forms.

use std::collections::BTreeMap;
use std::num::TryFromIntError;

use serde::{Deserialize, Serialize};

use super::items::Items;
use crate::grammar::expansions::Expansions;
use crate::grammar::tree::{Node, Tree};
use crate::grammar::{Grammar, ParamId, SymbolId};
use crate::limits::is_parameter;
use crate::num::pitman_yor::Hyper;
use crate::stop::checked;

/// A choice of a leftmost derivation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(into = "u64", try_from = "u64")]
pub enum Choice {
    /// Rewrites a nonterminal.
    Param(ParamId),
    /// Seats an adapted nonterminal.
    Table(TableId),
}

/// One number, 2p for parameter p and 2t + 1 for table t, so that most choices are a byte or three.
impl From<Choice> for u64 {
    fn from(choice: Choice) -> u64 {
        match choice {
            Choice::Param(param) => 2 * u64::from(param.0),
            Choice::Table(table) => 2 * u64::from(table.0) + 1,
        }
    }
}

impl TryFrom<u64> for Choice {
    type Error = TryFromIntError;

    fn try_from(number: u64) -> Result<Choice, TryFromIntError> {
        let id = u32::try_from(number / 2)?;
        Ok(if number.is_multiple_of(2) { Choice::Param(ParamId(id)) } else { Choice::Table(TableId(id)) })
    }
}

/// A table, of whichever adapted nonterminal.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct TableId(pub u32);

impl TableId {
    /// The number as an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A table and what it serves.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Table {
    /// The adapted nonterminal.
    pub symbol: SymbolId,
    /// How its base derives its string.
    pub label: Vec<Choice>,
}

/// Uses of a string in a state.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Uses {
    /// The adapted nonterminal.
    pub symbol: SymbolId,
    /// Its yield.
    pub string: Vec<SymbolId>,
    /// Nodes that have it, each subtree of a table counted once.
    pub customers: u32,
    /// Tables that they sit at.
    pub tables: u32,
}

/// See the module's documentation.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct State {
    /// `[n_occurrences]`; empty for sentences without a derivation.
    pub trees: Vec<Vec<Choice>>,
    /// Tables by [`TableId`].
    pub tables: Vec<Table>,
    /// Hyper-parameters of each adapted nonterminal, in symbol order.
    pub hyper: Vec<Hyper>,
}

/// Why a [`State`] does not fit some sentences.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct StateError(pub(super) &'static str);

/// A sentence that a tree has to derive.
#[derive(Clone, Copy, Debug)]
pub struct Derived<'a> {
    /// Its tokens.
    pub tokens: &'a [SymbolId],
    /// Whether the grammar derives it, if that is known. A sentence that it does not derive has an empty tree.
    pub is_derivable: Option<bool>,
}

impl State {
    /// The yield of every table; an error says why this is no state of `items`: every index has to point at something, and every tree to
    /// derive its sentence.
    pub fn check(&self, items: &Items) -> Result<Vec<Vec<SymbolId>>, StateError> {
        let occurrences: Vec<Derived<'_>> = items
            .occurrences()
            .iter()
            .map(|&item| &items.items()[item as usize])
            .map(|item| Derived { tokens: &item.tokens, is_derivable: Some(item.chart.is_some()) })
            .collect();
        self.yields(&items.expansions(), &occurrences)
    }

    /// The strings of the tables, which have these yields, sorted by nonterminal and string.
    pub fn uses(&self, yields: Vec<Vec<SymbolId>>) -> Vec<Uses> {
        let mut customers = vec![0; yields.len()];
        let labels = self.tables.iter().map(|table| &table.label);
        for choice in checked(self.trees.iter().chain(labels)).flatten() {
            if let Choice::Table(table) = choice {
                customers[table.index()] += 1;
            }
        }
        let mut uses: BTreeMap<(SymbolId, Vec<SymbolId>), (u32, u32)> = BTreeMap::new();
        for ((table, string), customers) in checked(self.tables.iter().zip(yields)).zip(customers) {
            let (all, tables) = uses.entry((table.symbol, string)).or_default();
            (*all, *tables) = (*all + customers, *tables + 1);
        }
        let of_string = |((symbol, string), (customers, tables))| Uses { symbol, string, customers, tables };
        uses.into_iter().map(of_string).collect()
    }

    /// The yield of every table; an error says why this is no state of these occurrences of sentences.
    pub fn yields(
        &self,
        expansions: &Expansions<'_>,
        occurrences: &[Derived<'_>],
    ) -> Result<Vec<Vec<SymbolId>>, StateError> {
        let holds = |condition: bool, otherwise| if condition { Ok(()) } else { Err(otherwise) };
        let grammar = expansions.grammar();
        holds(self.trees.len() == occurrences.len(), StateError("trees and sentences differ in number"))?;
        holds(
            self.hyper.len() == grammar.adapted().count(),
            StateError("processes and adapted nonterminals differ"),
        )?;
        let is_process = |h: &Hyper| (0.0..1.0).contains(&h.discount) && is_parameter(h.concentration);
        holds(self.hyper.iter().all(is_process), StateError("a process has no prior"))?;
        let max_tokens = occurrences.iter().map(|derived| derived.tokens.len()).max().unwrap_or(0);
        let mut yields: Vec<Vec<SymbolId>> = Vec::with_capacity(self.tables.len());
        let mut seated = vec![false; self.tables.len()];
        for table in checked(&self.tables) {
            holds(grammar.is_adapted(table.symbol), StateError("a table is of no adapted nonterminal"))?;
            let tokens =
                self.tokens(expansions, table.symbol, &table.label, &yields, max_tokens, &mut seated)?;
            yields.push(tokens);
        }
        for (tree, derived) in checked(self.trees.iter().zip(occurrences)) {
            if !derived.is_derivable.unwrap_or(!tree.is_empty()) {
                holds(tree.is_empty(), StateError("a sentence without a derivation has a tree"))?;
                continue;
            }
            let tokens = if grammar.is_adapted(Grammar::START) {
                match tree[..] {
                    [Choice::Table(table)] if self.symbol(table) == Some(Grammar::START) => {
                        seated[table.index()] = true;
                        yields[table.index()].clone()
                    }
                    _ => return Err(StateError("a tree is not that of a sentence")),
                }
            } else {
                self.tokens(expansions, Grammar::START, tree, &yields, max_tokens, &mut seated)?
            };
            holds(tokens == derived.tokens, StateError("a tree derives another sentence"))?;
        }
        holds(seated.iter().all(|&seated| seated), StateError("a table has no customers"))?;
        Ok(yields)
    }

    /// The tree of an occurrence of a sentence, with the subtrees of its tables; `None` for a sentence that has none.
    pub fn tree(&self, expansions: &Expansions<'_>, occurrence: usize) -> Option<Tree> {
        let label = |table: TableId| self.tables.get(table.index()).map_or(&[][..], |table| &table.label);
        tree(expansions, self.trees.get(occurrence)?, label)
    }

    fn symbol(&self, table: TableId) -> Option<SymbolId> {
        self.tables.get(table.index()).map(|table| table.symbol)
    }

    /// The yield of `choices`, which begin with a parameter of `symbol`, given those of earlier tables.
    fn tokens(
        &self,
        expansions: &Expansions<'_>,
        symbol: SymbolId,
        choices: &[Choice],
        yields: &[Vec<SymbolId>],
        max_tokens: usize,
        seated: &mut [bool],
    ) -> Result<Vec<SymbolId>, StateError> {
        let grammar = expansions.grammar();
        let (mut open, mut tokens) = (vec![symbol], Vec::new());
        let mut choices = choices.iter();
        let mut first = true;
        while let Some(symbol) = open.pop() {
            if !grammar.is_nonterminal(symbol) {
                tokens.push(symbol);
            } else {
                let adapted = grammar.is_adapted(symbol) && !std::mem::take(&mut first);
                match choices.next() {
                    Some(&Choice::Table(table)) if adapted && self.symbol(table) == Some(symbol) => {
                        let string =
                            yields.get(table.index()).ok_or(StateError("a table sits at a later one"))?;
                        tokens.extend_from_slice(string);
                        seated[table.index()] = true;
                    }
                    Some(&Choice::Param(param)) if !adapted => match expansions.get(param) {
                        Some((parent, children)) if parent == symbol => open.extend(children.iter().rev()),
                        _ => return Err(StateError("a derivation has a parameter of another nonterminal")),
                    },
                    _ => return Err(StateError("a derivation has a wrong choice, or ends early")),
                }
                first = false;
            }
            if tokens.len() + open.len() > max_tokens {
                return Err(StateError("a derivation is longer than any sentence"));
            }
        }
        if choices.next().is_some() {
            Err(StateError("a derivation goes on behind its end"))
        } else {
            Ok(tokens)
        }
    }
}

/// The tree of `choices`, with the subtrees of the tables it sits at; `None` for a sentence that has none.
pub(super) fn tree<'l>(
    expansions: &Expansions<'_>,
    choices: &'l [Choice],
    label: impl Fn(TableId) -> &'l [Choice],
) -> Option<Tree> {
    /// Remaining work, last first.
    enum Todo {
        Symbol(SymbolId),
        /// The label that is being read ends.
        Return,
    }
    let mut nodes = Vec::new();
    let mut reading = vec![choices.iter()];
    let mut todo = vec![Todo::Symbol(Grammar::START)];
    while let Some(next) = todo.pop() {
        let Todo::Symbol(symbol) = next else {
            reading.pop();
            continue;
        };
        let name = expansions.grammar().name(symbol).to_owned();
        if !expansions.grammar().is_nonterminal(symbol) {
            nodes.push(Node { label: name, n_children: 0 });
            continue;
        }
        let mut choice = *reading.last_mut()?.next()?;
        if let Choice::Table(table) = choice {
            let mut inner = label(table).iter();
            choice = *inner.next()?;
            reading.push(inner);
            todo.push(Todo::Return);
        }
        let Choice::Param(param) = choice else { return None };
        let (_, children) = expansions.get(param)?;
        nodes.push(Node { label: name, n_children: children.len() as u32 });
        todo.extend(children.iter().rev().map(|&child| Todo::Symbol(child)));
    }
    Tree::new(nodes).ok()
}
