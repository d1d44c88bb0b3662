//! Finds all stick strings in a sentence, in one walk from each token.
//!
//! In: a [`Lexicon`]. Out: a trie over the strings of all sticks, in arrays: level by level, the children of a node beside each other in
//! order of their symbols, so that a node says with one number where they begin and the next node where they end. Where one string alone
//! goes on, it is read in the lexicon. A node takes twelve bytes and a string four. Strings are sorted from level to level by their next
//! symbol, so that the cost of building is near-linear.
//!
//! Deliberately absent: the failure links of Aho & Corasick (1975). One pass over a sentence by a double array that has them takes a third of
//! the time, six times the memory and twenty times as long to build (`docs/results/left-out.md`); finding strings is a tenth of building a forest.

use std::ops::Range;
use std::sync::Arc;

use crate::grammar::ParamId;
use crate::grammar::lexicon::Lexicon;
use crate::grammar::{Grammar, ParamSpace, StickId, SymbolId};
use crate::stop::{self, Meter};

/// A trie over the strings of all sticks.
pub struct StringIndex {
    /// `[n_nodes + 1]`: the root, and then level by level; the last one ends the lists of the one before.
    nodes: Vec<Node>,
    /// Parameters of the strings that end at a node, by node, then by stick.
    params: Vec<ParamId>,
    /// `[n_symbols]`: the root's child by that symbol; the root itself where there is none.
    first: Vec<u32>,
    space: ParamSpace,
    lexicon: Arc<Lexicon>,
}

/// First position of the node; it ends where the next node begins.
#[derive(Clone, Copy)]
struct Node {
    /// Symbol on the edge from the parent.
    symbol: SymbolId,
    first_child: u32,
    first_param: u32,
}

const ROOT: u32 = 0;

impl StringIndex {
    /// Indexes the strings of `lexicon`.
    ///
    /// # Panics
    ///
    /// If they have 2³² prefixes or more.
    pub fn new(grammar: &Grammar, lexicon: Arc<Lexicon>) -> StringIndex {
        let mut index = StringIndex {
            nodes: vec![Node::below(SymbolId(0))],
            params: Vec::new(),
            first: vec![ROOT; grammar.symbols.len()],
            space: lexicon.space(grammar),
            lexicon,
        };
        // The strings that go on below the nodes of a level, by node, each list in order of parameters.
        let mut level: Vec<ParamId> = index.space.strings().map(ParamId).collect();
        let mut level_ends = vec![level.len()];
        let (mut node, mut depth) = (ROOT as usize, 0);
        let mut by_symbol: Vec<(SymbolId, ParamId)> = Vec::new();
        let mut meter = Meter::default();
        while !level_ends.is_empty() {
            let (mut next, mut next_ends) = (Vec::new(), Vec::new());
            let mut start = 0;
            for end in level_ends {
                meter.add(1 + end - start);
                index.nodes[node].first_child = index.nodes.len() as u32;
                index.nodes[node].first_param = index.params.len() as u32;
                by_symbol.clear();
                match level[start..end] {
                    [only] if depth > 0 => index.params.push(only),
                    ref strings => {
                        for &param in strings {
                            match index.string(param).1.get(depth) {
                                Some(&symbol) => by_symbol.push((symbol, param)),
                                None => index.end_at(node, param),
                            }
                        }
                    }
                }
                stop::sort(&mut by_symbol);
                for strings in by_symbol.chunk_by(|(a, _), (b, _)| a == b) {
                    index.nodes.push(Node::below(strings[0].0));
                    next.extend(strings.iter().map(|&(_, param)| param));
                    next_ends.push(next.len());
                }
                (start, node) = (end, node + 1);
            }
            (level, level_ends, depth) = (next, next_ends, depth + 1);
        }
        let n_nodes = u32::try_from(index.nodes.len()).expect("strings have fewer than 2^32 prefixes");
        let end = Node { symbol: SymbolId(0), first_child: n_nodes, first_param: index.params.len() as u32 };
        index.nodes.push(end);
        for child in index.children(ROOT) {
            index.first[index.nodes[child].symbol.index()] = child as u32;
        }
        index.nodes.shrink_to_fit();
        index.params.shrink_to_fit();
        index
    }

    /// The parameters of the grammar and of these strings.
    pub fn space(&self) -> &ParamSpace {
        &self.space
    }

    /// The string of `param` ends at `node`, the last one so far. Of equal strings on a stick the last counts.
    fn end_at(&mut self, node: usize, param: ParamId) {
        let here = &self.params[self.nodes[node].first_param as usize..];
        if here.last().is_some_and(|&before| self.stick(before) == self.stick(param)) {
            self.params.pop();
        }
        self.params.push(param);
    }

    fn stick(&self, param: ParamId) -> StickId {
        self.space.stick_of(param).expect("the index is of strings")
    }

    /// The stick of a parameter, and its string.
    fn string(&self, param: ParamId) -> (StickId, &[SymbolId]) {
        let stick = self.stick(param);
        let at = param.0 - self.space.stick(stick).start;
        (stick, &self.lexicon.sticks[stick.index()].strings[at as usize])
    }

    fn children(&self, node: u32) -> Range<usize> {
        let [node, next] = [node, node + 1].map(|node| &self.nodes[node as usize]);
        node.first_child as usize..next.first_child as usize
    }

    fn child(&self, node: u32, symbol: SymbolId) -> Option<u32> {
        if node == ROOT {
            return self.first.get(symbol.index()).copied().filter(|&child| child != ROOT);
        }
        let children = self.children(node);
        let at = self.nodes[children.clone()].binary_search_by_key(&symbol, |child| child.symbol);
        at.ok().map(|at| (children.start + at) as u32)
    }

    fn params(&self, node: u32) -> &[ParamId] {
        let [node, next] = [node, node + 1].map(|node| &self.nodes[node as usize]);
        &self.params[node.first_param as usize..next.first_param as usize]
    }

    /// Calls `found(stick, end, param)` for every stick string that starts at `tokens[start]`, shortest first.
    pub fn matches(&self, tokens: &[SymbolId], start: usize, mut found: impl FnMut(StickId, usize, ParamId)) {
        let mut node = ROOT;
        for (at, &token) in tokens.iter().enumerate().skip(start) {
            let Some(next) = self.child(node, token) else { return };
            node = next;
            let params = self.params(node);
            if let [only] = *params
                && self.children(node).is_empty()
            {
                let (stick, string) = self.string(only);
                let end = start + string.len();
                if tokens.get(at + 1..end) == Some(&string[at + 1 - start..]) {
                    found(stick, end, only);
                }
                return;
            }
            params.iter().for_each(|&param| found(self.stick(param), at + 1, param));
        }
    }

    /// The parameter of `string` on `stick`.
    pub fn param(&self, stick: StickId, string: &[SymbolId]) -> Option<ParamId> {
        let mut param = None;
        self.matches(string, 0, |on, end, found| {
            if (on, end) == (stick, string.len()) {
                param = Some(found);
            }
        });
        param
    }

    /// Bytes held, the lexicon not counted.
    pub fn size(&self) -> usize {
        size_of::<Node>() * self.nodes.len() + 4 * (self.params.len() + self.first.len())
    }
}

impl Node {
    /// The node that `symbol` leads to; its lists are yet to begin.
    fn below(symbol: SymbolId) -> Node {
        Node { symbol, first_child: 0, first_param: 0 }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::grammar::lexicon::StickStrings;
    use crate::grammar::syntax;

    /// An index of strings on the sticks of A and B, over the letters a, b and c.
    fn index(sticks: [&[Vec<u32>]; 2]) -> (StringIndex, Arc<Lexicon>) {
        let text = "1 1 S --> A B\nA --> a\nA --> b\nB --> c\n";
        let grammar = syntax::parse(text, "g").unwrap().0;
        let letter = |&number: &u32| SymbolId(grammar.n_nonterminals + number);
        let stick = |(symbol, strings): (SymbolId, &[Vec<u32>])| StickStrings {
            symbol,
            strings: strings.iter().map(|string| string.iter().map(letter).collect::<Vec<_>>()).collect(),
        };
        let lexicon = Arc::new(Lexicon { sticks: grammar.adapted().zip(sticks).map(stick).collect() });
        (StringIndex::new(&grammar, lexicon.clone()), lexicon)
    }

    proptest! {
        #[test]
        fn finds_what_a_look_at_every_string_finds(
            one in proptest::collection::vec(proptest::collection::vec(0u32..3, 1..7), 0..30),
            two in proptest::collection::vec(proptest::collection::vec(0u32..3, 1..4), 0..10),
            tokens in proptest::collection::vec(0u32..4, 0..12),
        ) {
            let (index, lexicon) = index([&one, &two]);
            // One that the grammar does not have among them.
            let tokens: Vec<SymbolId> = tokens.into_iter().map(|token| SymbolId(3 + token)).collect();
            for start in 0..tokens.len() {
                let mut expected = Vec::new();
                for end in start + 1..=tokens.len() {
                    for (number, stick) in (0..).map(StickId).zip(&lexicon.sticks) {
                        // Of equal strings the last.
                        if let Some(at) = (0..stick.strings.len()).rfind(|&at| stick.strings[at] == tokens[start..end]) {
                            expected.push((number, end, ParamId(index.space.stick(number).start + at as u32)));
                        }
                    }
                }
                let mut found = Vec::new();
                index.matches(&tokens, start, |stick, end, param| found.push((stick, end, param)));
                prop_assert_eq!(found, expected);
            }
            for (number, stick) in (0..).map(StickId).zip(&lexicon.sticks) {
                for string in &stick.strings {
                    let longer = [string, &[SymbolId(3)]].concat();
                    for string in [string, &longer, &string[1..]] {
                        let last = (0..stick.strings.len()).rfind(|&at| stick.strings[at] == *string);
                        let param = last.map(|at| ParamId(index.space.stick(number).start + at as u32));
                        prop_assert_eq!(index.param(number, string), param);
                    }
                }
            }
        }
    }

    #[test]
    fn suffixes_of_a_single_string_take_no_nodes() {
        let (index, _) = index([&[vec![0, 1, 2, 0, 1, 2], vec![0, 2]], &[]]);
        assert_eq!(index.nodes.len(), 1 + 3 + 1, "the root, `a`, `ab`, `ac`, and the end");
    }
}
