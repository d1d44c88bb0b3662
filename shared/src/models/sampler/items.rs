//! The sentences of a shard, ready for sampling: their forests, and the strings that adapted nonterminals may have.
//!
//! In a forest here, a node of an adapted A over a string has one edge that stands for all tables with that string, if any, and one
//! to A°, which opens a table. Edges hold positions in the weights of their item, a short list that is computed anew for every
//! draw: the constant one, the parameters that the item uses, "opens a table" by adapted nonterminal, the item's strings.
//!
//! A *string* is a pair (adapted nonterminal, yield), numbered by shard.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::data::Sentence;
use crate::forest::Prepared;
use crate::forest::TooAmbiguous;
use crate::forest::binary::{Adapted, Kind};
use crate::forest::build::Builder;
use crate::forest::{Edge, Forest};
use crate::grammar::ParamId;
use crate::grammar::lexicon::Lexicon;
use crate::grammar::{Grammar, ParamSpace, StickId, SymbolId};

/// Forests and strings of a shard. Built once, read by every sweep of every chain.
pub struct Items {
    prepared: Arc<Prepared>,
    /// The adapted nonterminals, in symbol order.
    adapted: Vec<SymbolId>,
    items: Vec<Item>,
    /// `[n_occurrences]`: the item of each occurrence; those of an item stand together.
    occurrences: Vec<u32>,
    strings: Vec<StringOf>,
    index: StringIndex,
    unparsable: Vec<u32>,
}

/// A distinct sentence.
pub(super) struct Item {
    pub tokens: Vec<SymbolId>,
    /// `None` if the grammar cannot derive it.
    pub forest: Option<Forest>,
    /// The parameters at positions 1, 2, … of the weights.
    pub params: Vec<ParamId>,
    /// The strings at the positions behind those of the adapted nonterminals, and the numbers of theirs.
    pub strings: Vec<(u32, StickId)>,
}

/// A string of the shard.
pub(super) struct StringOf {
    /// The number of its adapted nonterminal.
    pub adapted: StickId,
    /// The shortest item it occurs in.
    pub item: u32,
    /// The node of A° over it there.
    pub node: u32,
}

/// What a position in the weights of an item stands for.
pub(super) enum WeightSlot {
    One,
    Param(ParamId),
    /// The adapted nonterminal of that number opens a table.
    Opens,
    /// Any of the tables with that string.
    Joins(u32),
}

impl Items {
    /// Builds the forests of `sentences`. The lexicon of `prepared` has no strings of adapted nonterminals: here they come from
    /// the sentences. It may have those of nonterminals that rewrite to substrings.
    ///
    /// # Errors
    /// [`TooAmbiguous`] if a sentence has too many derivations.
    pub fn new(prepared: Arc<Prepared>, sentences: &[Sentence]) -> Result<Items, TooAmbiguous> {
        let grammar = prepared.grammar.clone();
        let mut items = Items {
            adapted: grammar.adapted().collect(),
            items: Vec::with_capacity(sentences.len()),
            occurrences: Vec::new(),
            strings: Vec::new(),
            index: StringIndex::default(),
            unparsable: Vec::new(),
            prepared: prepared.clone(),
        };
        let mut builder = if items.adapted.is_empty() {
            Builder::new(&prepared.binary, &prepared.strings, Adapted::Rules)
        } else {
            Builder::open(&prepared.binary, &prepared.strings)
        };
        let mut local = FxHashMap::default();
        for (at, sentence) in (0..).zip(sentences) {
            let forest = builder.build(Grammar::START.0, &sentence.tokens)?;
            if forest.is_none() {
                items.unparsable.push(at);
            }
            let mut item = Item {
                tokens: sentence.tokens.clone(),
                forest: None,
                params: Vec::new(),
                strings: Vec::new(),
            };
            if let Some(forest) = forest {
                items.adopt(&mut item, forest, &mut local);
            }
            items.items.push(item);
            items.occurrences.extend((0..sentence.multiplicity).map(|_| at));
        }
        Ok(items)
    }

    /// Gives `item` its forest, with edges by position in its weights and edges for tables.
    fn adopt(&mut self, item: &mut Item, mut forest: Forest, local: &mut FxHashMap<u32, u32>) {
        let strings = self.find_strings(item, &forest);
        local.clear();
        local.insert(ParamId::ONE.0, 0);
        for param in forest.params().filter(|&param| self.space().escape_of(param).is_none()) {
            local.entry(param.0).or_insert_with(|| {
                item.params.push(param);
                item.params.len() as u32
            });
        }
        let first_opens = 1 + item.params.len() as u32;
        let first_string = first_opens + self.adapted.len() as u32;
        let (mut edges, mut first_edge) =
            (Vec::with_capacity(forest.edges.len() + strings.len()), vec![0, 0]);
        for (node, string) in (1..forest.n_nodes()).zip(strings) {
            if let Some(string) = string {
                let param = first_string + item.strings.len() as u32;
                item.strings.push((string, self.strings[string as usize].adapted));
                edges.push(Edge { param, tails: [0; 2] });
            }
            for edge in forest.edges_of(node) {
                let opens = self.space().escape_of(ParamId(edge.param));
                let param = opens.map_or_else(|| local[&edge.param], |adapted| first_opens + adapted.0);
                edges.push(Edge { param, tails: edge.tails });
            }
            first_edge.push(edges.len() as u32);
        }
        edges.shrink_to_fit();
        (forest.edges, forest.first_edge) = (edges, first_edge);
        item.forest = Some(forest);
    }

    /// The string of every node but the empty one, `None` for those that are not of an adapted nonterminal.
    fn find_strings(&mut self, item: &Item, forest: &Forest) -> Vec<Option<u32>> {
        let mut spans = Vec::new();
        for node in 1..forest.n_nodes() {
            let label = forest.labels[node];
            if let Kind::Adapted(adapted) = self.prepared.binary.kinds[label.symbol as usize] {
                spans.push((label.start, label.end, adapted, node));
            }
        }
        spans.sort_unstable();
        let mut found = vec![None; forest.n_nodes() - 1];
        let (mut begun, mut read, mut yielded) = (u32::MAX, 0, 0);
        for (start, end, adapted, node) in spans {
            if start != begun {
                (begun, read, yielded) = (start, start, 0);
            }
            while read < end {
                yielded = self.index.child(yielded, item.tokens[read as usize]);
                read += 1;
            }
            let fresh = self.strings.len() as u32;
            let string = *self.index.strings.entry((yielded, adapted)).or_insert(fresh);
            let [Edge { tails: [base, _], .. }] = forest.edges_of(node) else {
                unreachable!("an adapted node expands to its base alone")
            };
            let home = StringOf { adapted, item: self.items.len() as u32, node: *base };
            match self.strings.get_mut(string as usize) {
                None => self.strings.push(home),
                Some(known) => {
                    let shortest = self.items.get(known.item as usize).map_or(0, |item| item.tokens.len());
                    if item.tokens.len() < shortest {
                        *known = home;
                    }
                }
            }
            found[node - 1] = Some(string);
        }
        found
    }

    /// Positions of the sentences that the grammar cannot derive: they have no trees.
    pub fn unparsable(&self) -> &[u32] {
        &self.unparsable
    }

    /// The item, a position in the shard, of every occurrence of a sentence: a sentence of multiplicity m has m trees.
    pub fn occurrences(&self) -> &[u32] {
        &self.occurrences
    }

    /// Bytes held.
    pub fn size(&self) -> usize {
        let forests =
            self.items.iter().filter_map(|item| item.forest.as_ref()).map(Forest::size).sum::<usize>();
        let lists: usize = self
            .items
            .iter()
            .map(|item| item.tokens.len() + item.params.len() + 2 * item.strings.len())
            .sum();
        forests
            + 4 * (lists + self.occurrences.len())
            + 12 * (2 * self.strings.len() + self.index.children.len())
    }

    /// The strings of nonterminals that rewrite to substrings.
    pub fn lexicon(&self) -> &Lexicon {
        &self.prepared.lexicon
    }

    pub(super) fn grammar(&self) -> &Grammar {
        &self.prepared.grammar
    }

    pub(super) fn adapted(&self) -> &[SymbolId] {
        &self.adapted
    }

    /// The number of an adapted nonterminal, `None` for others.
    pub(super) fn number(&self, symbol: SymbolId) -> Option<StickId> {
        match *self.prepared.binary.kinds.get(symbol.index())? {
            Kind::Adapted(number) => Some(number),
            _ => None,
        }
    }

    pub(super) fn items(&self) -> &[Item] {
        &self.items
    }

    pub(super) fn strings(&self) -> &[StringOf] {
        &self.strings
    }

    /// The parameters of the model.
    pub(super) fn space(&self) -> &ParamSpace {
        self.prepared.space()
    }

    /// What `param` rewrites to what.
    pub(super) fn expansion(&self, param: ParamId) -> Option<(SymbolId, &[SymbolId])> {
        let grammar = &self.prepared.grammar;
        match self.space().rule(param).map(|rule| grammar.rule(rule)) {
            Some(rule) => Some((rule.parent, &rule.children)),
            None => self.prepared.lexicon.string(grammar, param),
        }
    }

    /// The string of adapted nonterminal number `adapted` with that yield, if it occurs.
    pub(super) fn string(&self, adapted: StickId, tokens: &[SymbolId]) -> Option<u32> {
        let mut yielded = 0;
        for &token in tokens {
            yielded = *self.index.children.get(&(yielded, token))?;
        }
        self.index.strings.get(&(yielded, adapted)).copied()
    }

    /// The yield of `string`.
    pub(super) fn tokens(&self, string: u32) -> &[SymbolId] {
        let StringOf { item, node, .. } = self.strings[string as usize];
        let item = &self.items[item as usize];
        let label = item.forest.as_ref().expect("a string has a node").labels[node as usize];
        &item.tokens[label.start as usize..label.end as usize]
    }
}

impl Item {
    /// What stands at `position` of the weights.
    pub fn weighed(&self, position: u32, n_adapted: usize) -> WeightSlot {
        let position = position as usize;
        if position == 0 {
            return WeightSlot::One;
        }
        if let Some(&param) = self.params.get(position - 1) {
            return WeightSlot::Param(param);
        }
        let behind = position - 1 - self.params.len();
        behind.checked_sub(n_adapted).map_or(WeightSlot::Opens, |at| WeightSlot::Joins(self.strings[at].0))
    }
}

/// A trie of yields, and the strings at its nodes.
#[derive(Default)]
struct StringIndex {
    /// (node, token) → node; the root is node 0.
    children: FxHashMap<(u32, SymbolId), u32>,
    /// (node, number of the adapted nonterminal) → string.
    strings: FxHashMap<(u32, StickId), u32>,
}

impl StringIndex {
    fn child(&mut self, node: u32, token: SymbolId) -> u32 {
        let fresh = 1 + self.children.len() as u32;
        *self.children.entry((node, token)).or_insert(fresh)
    }
}
