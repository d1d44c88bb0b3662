//! Starts of a chain.

use rand_pcg::Pcg64Mcg;
use rustc_hash::FxHashMap;

use super::Chain;
use super::items::{Item, Items};
use super::packed::Seat;
use super::prior::Prior;
use super::proposal::{Proposer, Target};
use super::seating::Seating;
use super::state::{Choice, TableId};
use crate::forest::build::{LONG_SENTENCE, LONG_YIELD};
use crate::grammar::ParamId;
use crate::grammar::tree::Tree;
use crate::grammar::{Grammar, StickId, SymbolId};
use crate::num::pitman_yor::Hyper;
use crate::num::random::permutation;
use crate::stop;

/// Sources of the first trees.
#[derive(Clone, Copy, Debug)]
pub enum Start<'t> {
    /// All drawn from the prior, as if there were no others. Nodes of adapted nonterminals with the same subtree share a table.
    Batch,
    /// Each drawn given those before it, in random order.
    Incremental,
    /// Given, one per occurrence. Nodes of adapted nonterminals with the same subtree share a table.
    Trees(&'t [Tree]),
}

/// Why trees are no start.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum StartError {
    /// Too many or too few.
    #[error("there are {found} trees for {expected} sentences")]
    Number {
        /// Number of trees.
        found: usize,
        /// Occurrences of sentences.
        expected: usize,
    },
    /// A node that no rule of the grammar makes.
    #[error("tree {tree}: no rule rewrites `{parent}` as `{children}`")]
    NoRule {
        /// Position of the tree.
        tree: usize,
        /// The label of the node.
        parent: String,
        /// The labels of its children.
        children: String,
    },
    /// An adapted constituent that is too long for a sentence as long as this one.
    #[error(
        "tree {tree}: `{symbol}` has {found} symbols; in sentences of more than {LONG_SENTENCE} symbols it has at most {LONG_YIELD}"
    )]
    LongYield {
        /// Position of the tree.
        tree: usize,
        /// The adapted nonterminal.
        symbol: String,
        /// Number of symbols.
        found: usize,
    },
    /// A tree of something else.
    #[error("tree {tree} is not of its sentence")]
    OtherSentence {
        /// Position of the tree.
        tree: usize,
    },
}

/// Processes as the grammar gives them, or as `default` where it does not.
pub fn hyper(grammar: &Grammar, default: Hyper) -> Vec<Hyper> {
    let adaptors = grammar.adaptors.iter().flatten();
    let hyper = adaptors.map(|adaptor| Hyper {
        discount: adaptor.discount.unwrap_or(default.discount),
        concentration: adaptor.concentration.unwrap_or(default.concentration),
    });
    hyper.collect()
}

impl<'a> Chain<'a> {
    /// Starts a chain.
    ///
    /// # Errors
    /// [`StartError`] if the given trees are not those of the sentences; else there is none.
    pub fn start(
        items: &'a Items,
        prior: &'a Prior,
        hyper: &[Hyper],
        start: Start,
        random: &mut Pcg64Mcg,
    ) -> Result<Chain<'a>, StartError> {
        let mut seating = Seating::new(items, prior, hyper);
        let mut trees = vec![Vec::new(); items.occurrences().len()];
        let mut proposer = Proposer::new(items);
        let has_chart = |item: u32| items.items()[item as usize].chart.is_some();
        let mut labels = Labels::default();
        match start {
            Start::Batch => {
                proposer.set_mean_rules(&seating);
                for (tree, &item) in trees.iter_mut().zip(items.occurrences()) {
                    if has_chart(item) {
                        let mut join = |seating: &mut Seating, seat, label| labels.join(seating, seat, label);
                        *tree = proposer.draw_with(&mut seating, Target::Tree(item), random, &mut join);
                    }
                }
            }
            Start::Incremental => {
                let mut n_known = 0;
                for (n, occurrence) in permutation(trees.len(), random).into_iter().enumerate() {
                    let item = items.occurrences()[occurrence as usize];
                    // Weights of rules are computed again whenever the number of trees has grown by half.
                    if n >= n_known {
                        proposer.set_mean_rules(&seating);
                        n_known = n + 1 + n / 2;
                    }
                    if has_chart(item) {
                        let tree = proposer.draw(&mut seating, Target::Tree(item), random);
                        seating.seat(&tree);
                        trees[occurrence as usize] = tree;
                    }
                }
            }
            Start::Trees(given) => {
                if given.len() != trees.len() {
                    return Err(StartError::Number { found: given.len(), expected: trees.len() });
                }
                let mut reader = Reader::new(items);
                for (number, tree) in trees.iter_mut().enumerate() {
                    stop::check();
                    let item = &items.items()[items.occurrences()[number] as usize];
                    if item.chart.is_some() {
                        *tree = reader.read(&mut seating, &mut labels, number, &given[number], item)?;
                    }
                }
            }
        }
        if !matches!(start, Start::Incremental) {
            for tree in stop::checked(&trees) {
                seating.seat(tree);
            }
        }
        seating.renumber(&mut trees);
        Ok(Chain { seating, proposer, trees })
    }
}

/// The tables so far, by their strings and labels.
#[derive(Default)]
struct Labels(FxHashMap<(Seat, Vec<Choice>), TableId>);

impl Labels {
    fn join(&mut self, seating: &mut Seating, seat: Seat, label: Vec<Choice>) -> TableId {
        *self.0.entry((seat, label.clone())).or_insert_with(|| seating.prepare(seat, label))
    }
}

/// Makes derivations of trees.
struct Reader<'a> {
    items: &'a Items,
    symbols: FxHashMap<&'a str, SymbolId>,
    params: FxHashMap<(SymbolId, &'a [SymbolId]), ParamId>,
}

impl<'a> Reader<'a> {
    fn new(items: &'a Items) -> Reader<'a> {
        let expansions = items.expansions();
        let (symbols, params) = (expansions.symbols(), expansions.params());
        Reader { items, symbols, params }
    }

    fn read(
        &mut self,
        seating: &mut Seating,
        labels: &mut Labels,
        number: usize,
        tree: &Tree,
        item: &Item,
    ) -> Result<Vec<Choice>, StartError> {
        let nodes = tree.nodes();
        let other = StartError::OtherSentence { tree: number };
        let symbols: Option<Vec<SymbolId>> =
            nodes.iter().map(|node| self.symbols.get(node.label.as_str()).copied()).collect();
        let symbols = symbols.ok_or(other.clone())?;
        // Backwards, so that the children of a node are known before it: where they are, and where it ends.
        let mut ends = vec![0; nodes.len()];
        let mut children: Vec<Vec<SymbolId>> = vec![Vec::new(); nodes.len()];
        let mut following: Vec<usize> = Vec::new();
        for at in (0..nodes.len()).rev() {
            ends[at] = at + 1;
            for _ in 0..nodes[at].n_children {
                let child = following.pop().expect("a tree has the children that its nodes announce");
                children[at].push(symbols[child]);
                ends[at] = ends[child];
            }
            following.push(at);
        }
        let mut read = Vec::new();
        let mut choices = Vec::new();
        // Nodes whose labels are being written: where they end, the tokens before, and what was written around them.
        let mut around: Vec<(usize, usize, StickId, Vec<Choice>)> = Vec::new();
        for at in 0..=nodes.len() {
            while let Some((_, first, adapted, outer)) = around.pop_if(|(end, ..)| *end == at) {
                let found = read.len() - first;
                if found > item.longest {
                    return Err(if item.tokens.len() > LONG_SENTENCE && found > LONG_YIELD as usize {
                        let symbol = self.items.adapted()[adapted.index()];
                        let symbol = self.items.grammar().name(symbol).to_owned();
                        StartError::LongYield { tree: number, symbol, found }
                    } else {
                        other
                    });
                }
                let seat =
                    Seat { string: self.items.string(adapted, &read[first..]), adapted: adapted.0 + 1 };
                let label = std::mem::replace(&mut choices, outer);
                let n_labels = labels.0.len();
                choices.push(Choice::Table(labels.join(seating, seat, label)));
                if seat.string == 0 && labels.0.len() == n_labels {
                    return Err(other);
                }
            }
            if at == nodes.len() {
                break;
            }
            let symbol = symbols[at];
            if nodes[at].n_children == 0 {
                read.push(symbol);
                continue;
            }
            if let Some(adapted) = self.items.number(symbol) {
                around.push((ends[at], read.len(), adapted, std::mem::take(&mut choices)));
            }
            let Some(&param) = self.params.get(&(symbol, children[at].as_slice())) else {
                let names: Vec<&str> =
                    children[at].iter().map(|&child| self.items.grammar().name(child)).collect();
                let parent = nodes[at].label.clone();
                return Err(StartError::NoRule { tree: number, parent, children: names.join(" ") });
            };
            choices.push(Choice::Param(param));
        }
        if symbols[0] == Grammar::START && read == item.tokens { Ok(choices) } else { Err(other) }
    }
}
