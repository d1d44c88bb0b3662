//! The sentences of a shard, ready for sampling: their charts, and the strings that adapted nonterminals may have.
//!
//! A *string* is a pair (adapted nonterminal, yield). Those that a shard has in several places are numbered from 1 on. One that it has in one
//! place only has number 0: no table has it when that place is drawn, so none can be joined. Nine of ten strings are such.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::charts::{AnyChart, Charts, Place};
use super::fixed::Fixed;
use super::layout::Layout;
use super::repeats::longest_repeats;
use crate::data::Sentence;
use crate::forest::Forest;
use crate::forest::Prepared;
use crate::forest::TooAmbiguous;
use crate::forest::binary::{Adapted, Kind};
use crate::forest::build::Builder;
use crate::grammar::ParamId;
use crate::grammar::expansions::Expansions;
use crate::grammar::lexicon::Lexicon;
use crate::grammar::{Grammar, ParamSpace, StickId, SymbolId};
use crate::stop::{self, checked};

/// Charts and strings of a shard. Built once, read by every sweep of every chain.
pub struct Items {
    prepared: Arc<Prepared>,
    /// The adapted nonterminals, in symbol order.
    adapted: Vec<SymbolId>,
    items: Vec<Item>,
    charts: Charts,
    fixed: Fixed,
    /// `[n_occurrences]`: the item of each occurrence; those of an item stand together.
    occurrences: Vec<u32>,
    /// `[n_strings + 1]`: those in several places.
    strings: Vec<StringOf>,
    index: StringIndex,
    unparsable: Vec<u32>,
}

/// A distinct sentence.
pub(super) struct Item {
    pub tokens: Vec<SymbolId>,
    /// `None` if the grammar cannot derive it.
    pub chart: Option<Place>,
    /// Symbols of the longest adapted constituent of its chart.
    pub longest: usize,
    /// The value of the whole sentence.
    pub root: usize,
    /// Numbers of the parameters of its edges, of a grammar without adapted nonterminals.
    pub params: Vec<u32>,
}

/// A string that is in several places.
#[derive(Clone, Copy)]
pub(super) struct StringOf {
    /// The number of its adapted nonterminal.
    pub adapted: StickId,
    /// The shortest item it occurs in.
    pub item: u32,
    /// Its value there.
    pub value: u32,
    /// Whether its label can be another one.
    has_choice: bool,
}

impl Items {
    /// Builds the forests of `sentences`. The lexicon of `prepared` has no strings of adapted nonterminals: here they come from
    /// the sentences. It may have those of nonterminals that rewrite to substrings.
    ///
    /// # Errors
    /// [`TooAmbiguous`] if a sentence has too many derivations.
    pub fn new(prepared: Arc<Prepared>, sentences: &[Sentence]) -> Result<Items, TooAmbiguous> {
        let mut items = Items {
            adapted: prepared.grammar.adapted().collect(),
            items: Vec::with_capacity(sentences.len()),
            charts: Charts::default(),
            fixed: Fixed::default(),
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
        // By string, in the order in which they are found: in how many places of how many trees.
        let mut places = vec![0];
        let mut layout = Layout::default();
        let longest_repeats = longest_repeats(sentences);
        for ((at, sentence), repeats) in (0..).zip(sentences).zip(longest_repeats) {
            let tokens = sentence.tokens.clone();
            let mut item = Item { tokens, chart: None, root: 0, longest: 0, params: Vec::new() };
            match builder.build_for_chain(Grammar::START.0, &sentence.tokens, &sentence.marks.brackets)? {
                None => items.unparsable.push(at),
                Some(forest) => {
                    items.adopt(&mut item, forest, &repeats, &mut layout);
                    places.resize(1 + items.index.strings.len(), 0);
                    layout
                        .strings()
                        .for_each(|string| places[string as usize] += sentence.multiplicity.min(2));
                }
            }
            items.items.push(item);
            items.occurrences.extend((0..sentence.multiplicity).map(|_| at));
        }
        items.fixed.close();
        items.number_strings(&places);
        Ok(items)
    }

    /// Gives `item` the chart of its forest.
    fn adopt(&mut self, item: &mut Item, forest: &Forest, repeats: &[u32], layout: &mut Layout) {
        let strings = self.find_strings(item, forest, repeats);
        let fixed = (!self.adapted.is_empty()).then_some(&mut self.fixed);
        layout.read(forest, &self.prepared.binary, &strings, fixed, &mut self.charts);
        if self.adapted.is_empty() {
            let params = forest.params().filter(|&param| param != ParamId::ONE);
            item.params = params.map(|param| self.charts.number(param)).collect();
            item.params.sort_unstable();
            item.params.dedup();
        }
        item.root = layout.root();
        item.chart = Some(layout.add_to(&mut self.charts));
    }

    /// The string of every node, 0 for those that are not of an adapted nonterminal, or longer than what is repeated. `[n_nodes]`
    fn find_strings(&mut self, item: &mut Item, forest: &Forest, repeats: &[u32]) -> Vec<u32> {
        let mut spans = Vec::new();
        for node in checked(1..forest.n_nodes()) {
            let label = forest.labels[node];
            if let Kind::Adapted(adapted) = self.prepared.binary.kinds[label.symbol as usize] {
                let length = label.end - label.start;
                item.longest = item.longest.max(length as usize);
                if length <= repeats[label.start as usize] {
                    spans.push((label.start, label.end, adapted, node));
                }
            }
        }
        stop::sort(&mut spans);
        let mut found = vec![0; forest.n_nodes()];
        let (mut begun, mut read, mut yielded) = (u32::MAX, 0, 0);
        for (start, end, adapted, node) in checked(spans) {
            if start != begun {
                (begun, read, yielded) = (start, start, 0);
            }
            while read < end {
                yielded = self.index.child(yielded, item.tokens[read as usize]);
                read += 1;
            }
            let fresh = 1 + self.index.strings.len() as u32;
            found[node] = *self.index.strings.entry((yielded, adapted)).or_insert(fresh);
        }
        found
    }

    /// Numbers the strings that are in several places, in the order in which they were found, and forgets the others.
    fn number_strings(&mut self, places: &[u32]) {
        let mut names = vec![0; places.len()];
        let mut n_strings = 0;
        for (name, _) in names.iter_mut().zip(places).filter(|&(_, &places)| places > 1) {
            n_strings += 1;
            *name = n_strings;
        }
        self.charts.rename(&names);
        self.index.rename(&names);
        let unknown = StringOf { adapted: StickId(0), item: u32::MAX, value: 0, has_choice: false };
        self.strings = vec![unknown; 1 + n_strings as usize];
        for (number, item) in (0..).zip(checked(&self.items)) {
            let Some(chart) = item.chart.map(|place| self.charts.get(place)) else { continue };
            for (value, seat) in checked(chart.seats()) {
                let known = &mut self.strings[seat.string as usize];
                let shortest = self.items.get(known.item as usize).map(|item| item.tokens.len());
                if shortest.is_none_or(|shortest| item.tokens.len() < shortest) {
                    *known = StringOf {
                        adapted: StickId(seat.adapted - 1),
                        item: number,
                        value: value as u32,
                        has_choice: !chart.is_unique(value, &self.fixed),
                    };
                }
            }
        }
    }

    /// Positions of the sentences that the grammar cannot derive: they have no trees.
    pub fn unparsable(&self) -> &[u32] {
        &self.unparsable
    }

    /// The item, a position in the shard, of every occurrence of a sentence: a sentence of multiplicity m has m trees.
    pub fn occurrences(&self) -> &[u32] {
        &self.occurrences
    }

    /// Steps of a sweep: a step reads an edge of a chart.
    pub fn n_steps(&self) -> u64 {
        /// Steps that take as long as what a draw does besides,
        const DRAW: u64 = 256;
        /// and what a sweep does besides.
        const SWEEP: u64 = 4096;
        let of_item = |&item: &u32| {
            self.chart(&self.items[item as usize]).map_or(0, |chart| DRAW + chart.n_edges() as u64)
        };
        SWEEP + self.occurrences.iter().map(of_item).sum::<u64>() + self.space().n_params() as u64
    }

    /// Bytes held.
    pub fn size(&self) -> usize {
        let item = |item: &Item| size_of::<Item>() + 4 * (item.tokens.len() + item.params.len());
        let items = self.items.iter().map(item).sum::<usize>() + self.charts.size();
        let strings = size_of_val(&*self.strings) + 16 * (self.strings.len() + self.index.children.len());
        items + self.fixed.size() + strings + 4 * self.occurrences.len()
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

    /// The chart of an item; `None` if the grammar cannot derive it.
    pub(super) fn chart(&self, item: &Item) -> Option<AnyChart<'_>> {
        item.chart.map(|place| self.charts.get(place))
    }

    /// The parameters of the edges of charts, by number.
    pub(super) fn params_of_edges(&self) -> &[ParamId] {
        self.charts.params()
    }

    /// Strings by number; the first one is unused.
    pub(super) fn strings(&self) -> &[StringOf] {
        &self.strings
    }

    /// Whether the label of `string` can be another one.
    pub(super) fn has_choice(&self, string: u32) -> bool {
        self.strings[string as usize].has_choice
    }

    pub(super) fn fixed(&self) -> &Fixed {
        &self.fixed
    }

    /// The parameters of the model.
    pub(super) fn space(&self) -> &ParamSpace {
        self.prepared.space()
    }

    /// The rules and strings by parameter.
    pub(super) fn expansions(&self) -> Expansions<'_> {
        Expansions::new(&self.prepared.grammar, &self.prepared.lexicon)
    }

    /// The number of the string of adapted nonterminal number `adapted` with that yield; 0 if it is not in several places.
    pub(super) fn string(&self, adapted: StickId, tokens: &[SymbolId]) -> u32 {
        let child = |node, token: &SymbolId| self.index.children.get(&(node, *token)).copied();
        let yielded = tokens.iter().try_fold(0, child);
        yielded.and_then(|yielded| self.index.strings.get(&(yielded, adapted)).copied()).unwrap_or(0)
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

    /// Replaces the numbers of strings by their `names`, and forgets those that have none.
    fn rename(&mut self, names: &[u32]) {
        self.strings.retain(|_, string| {
            *string = names[*string as usize];
            *string > 0
        });
        self.strings.shrink_to_fit();
        self.children.shrink_to_fit();
    }
}
