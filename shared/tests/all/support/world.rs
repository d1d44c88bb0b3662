//! What the tests of the sampler share: states enumerated from the rules as they are written.

use std::sync::Arc;

use grammaton::data::Sentence;
use grammaton::forest::Prepared;
use grammaton::grammar::ParamId;
use grammaton::grammar::{Grammar, RuleId, SymbolId};
use grammaton::models::sampler::state::{Choice, Table, TableId};
use grammaton::models::sampler::{Hyper, Items, start};

use super::tokens;

pub fn items(grammar: &Grammar, sentences: &[&str]) -> Items {
    let sentences: Vec<_> = sentences.iter().map(|text| tokens(grammar, text)).collect();
    items_of(grammar, &sentences)
}

pub fn items_of(grammar: &Grammar, sentences: &[Vec<SymbolId>]) -> Items {
    let lexicon = super::lexicon(grammar, &[]);
    let prepared = Arc::new(Prepared::new(Arc::new(grammar.clone()), Arc::new(lexicon)));
    let sentence = |tokens: &Vec<SymbolId>| Sentence::new(tokens.clone(), 1);
    Items::new(prepared, &sentences.iter().map(sentence).collect::<Vec<_>>()).unwrap()
}

pub fn hyper(grammar: &Grammar) -> Vec<Hyper> {
    start::hyper(grammar, Hyper { discount: 0.5, concentration: 1.0 })
}

/// Trees and tables as they are written, from the rules alone.
#[derive(Clone, Debug, Default)]
pub struct World {
    pub trees: Vec<Vec<Choice>>,
    pub tables: Vec<Table>,
    pub yields: Vec<Vec<SymbolId>>,
}

/// A derivation on its way.
#[derive(Clone)]
struct Search {
    world: World,
    read: usize,
    /// What is to come, last first.
    todo: Vec<Todo>,
    /// The derivation, and within it the labels that are being written.
    written: Vec<Vec<Choice>>,
}

#[derive(Clone, Copy)]
enum Todo {
    Symbol(SymbolId),
    Close { symbol: SymbolId, start: usize },
}

impl World {
    /// All worlds with a tree for `sentence` added.
    pub fn extended(&self, grammar: &Grammar, sentence: &[SymbolId]) -> Vec<World> {
        let first = Search {
            world: self.clone(),
            read: 0,
            todo: vec![Todo::Symbol(Grammar::START)],
            written: vec![Vec::new()],
        };
        let (mut open, mut found) = (vec![first], Vec::new());
        while let Some(mut search) = open.pop() {
            let symbols = search.todo.iter().filter(|todo| matches!(todo, Todo::Symbol(_))).count();
            if search.read + symbols > sentence.len() {
                continue;
            }
            match search.todo.pop() {
                None if search.read == sentence.len() => {
                    search.world.trees.push(search.written.pop().unwrap());
                    found.push(search.world);
                }
                None => {}
                Some(Todo::Close { symbol, start }) => {
                    let label = search.written.pop().unwrap();
                    let table = TableId(search.world.tables.len() as u32);
                    search.world.tables.push(Table { symbol, label });
                    search.world.yields.push(sentence[start..search.read].to_vec());
                    search.written.last_mut().unwrap().push(Choice::Table(table));
                    open.push(search);
                }
                Some(Todo::Symbol(symbol)) if !grammar.is_nonterminal(symbol) => {
                    search.read += 1;
                    open.extend((sentence[search.read - 1] == symbol).then_some(search));
                }
                Some(Todo::Symbol(symbol)) => {
                    if grammar.is_adapted(symbol) {
                        for (at, table) in search.world.tables.iter().enumerate() {
                            let string = &search.world.yields[at];
                            if table.symbol == symbol && sentence[search.read..].starts_with(string) {
                                let mut joined = search.clone();
                                joined.read += string.len();
                                joined.written.last_mut().unwrap().push(Choice::Table(TableId(at as u32)));
                                open.push(joined);
                            }
                        }
                        search.todo.push(Todo::Close { symbol, start: search.read });
                        search.written.push(Vec::new());
                    }
                    for (number, rule) in grammar.rules.iter().enumerate() {
                        if rule.parent == symbol {
                            let mut expanded = search.clone();
                            let written = expanded.written.last_mut().unwrap();
                            written.push(Choice::Param(ParamId::of_rule(RuleId::at(number))));
                            expanded
                                .todo
                                .extend(rule.children.iter().rev().map(|&child| Todo::Symbol(child)));
                            open.push(expanded);
                        }
                    }
                }
            }
        }
        found
    }

    pub fn customers(&self) -> Vec<u32> {
        let mut customers = vec![0; self.tables.len()];
        for choice in self.trees.iter().chain(self.tables.iter().map(|table| &table.label)).flatten() {
            if let Choice::Table(table) = choice {
                customers[table.index()] += 1;
            }
        }
        customers
    }

    /// ln of the joint probability, factor by factor.
    pub fn ln_joint(&self, grammar: &Grammar, hyper: &[Hyper]) -> f64 {
        let mut ln_joint = 0.0;
        let mut uses = vec![0.0; grammar.rules.len()];
        let mut totals = vec![0.0; grammar.n_nonterminals as usize];
        let alphas =
            |parent| grammar.rules.iter().filter(move |rule| rule.parent == parent).map(|rule| rule.alpha);
        for choice in self.trees.iter().chain(self.tables.iter().map(|table| &table.label)).flatten() {
            if let Choice::Param(param) = choice {
                let rule = &grammar.rules[param.index() - 1];
                let (uses, total) = (&mut uses[param.index() - 1], &mut totals[rule.parent.index()]);
                ln_joint += f64::ln((rule.alpha + *uses) / (alphas(rule.parent).sum::<f64>() + *total));
                *uses += 1.0;
                *total += 1.0;
            }
        }
        for (symbol, hyper) in grammar.adapted().zip(hyper) {
            let (mut n, mut m) = (0.0, 0.0);
            for (table, customers) in self.tables.iter().zip(self.customers()) {
                for k in (0..customers).filter(|_| table.symbol == symbol) {
                    let seat = if k == 0 {
                        m * hyper.discount + hyper.concentration
                    } else {
                        f64::from(k) - hyper.discount
                    };
                    ln_joint += f64::ln(seat / (n + hyper.concentration));
                    (n, m) = (n + 1.0, if k == 0 { m + 1.0 } else { m });
                }
            }
        }
        ln_joint
    }
}
