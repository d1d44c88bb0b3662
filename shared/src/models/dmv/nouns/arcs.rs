//! Posteriors of arcs under adapted noun constituents, arcs inside of strings among them.
//!
//! In: weights by parameter, and tokens. Out: [`Arcs`], with which [`crate::models::dmv::decode::mbr`] finds the best tree in the forest of the
//! model without phrases, which has all trees.
//!
//! A phrase does not tell its head, so who governs it is handed down to where its head is seen: to its two halves, or, for a
//! string, to what is known of the string's own derivations, in which the string's head has head 0.

use std::rc::Rc;

use rustc_hash::FxHashMap;

use crate::forest::Forest;
use crate::forest::Prepared;
use crate::forest::TooAmbiguous;
use crate::forest::binary::Kind;
use crate::forest::build::Builder;
use crate::forest::inside::{Scratch, Weights, edge_posteriors};
use crate::grammar::ParamId;
use crate::grammar::SymbolId;
use crate::models::dmv::decode::Arcs;
use crate::models::dmv::layout::Layout;
use crate::num::Wide;

/// Reads the arcs of sentences, with what is known of strings by now.
pub struct Reader<'a> {
    prepared: &'a Prepared,
    weights: Weights<'a>,
    layout: Layout,
    builder: Builder<'a>,
    scratch: Scratch,
    strings: FxHashMap<ParamId, Option<Rc<Arcs>>>,
}

/// A string's parameter, the words before it, and by the head of the string's head, how often it is used.
type StringUse = (ParamId, usize, Vec<(usize, f64)>);

impl<'a> Reader<'a> {
    /// A reader for a grammar of [`super::grammar()`]. If it is `open`, phrases may also be none of the strings, and weights are those for decoding.
    pub fn new(prepared: &'a Prepared, weights: Weights<'a>, open: bool) -> Reader<'a> {
        let grammar = &prepared.grammar;
        let n_tags = (grammar.symbols.len() - grammar.n_nonterminals as usize) / 2;
        Reader {
            prepared,
            weights,
            layout: Layout::new(n_tags),
            builder: prepared.builder(open),
            scratch: Scratch::default(),
            strings: FxHashMap::default(),
        }
    }

    /// The total weight of the trees of a sentence and the posteriors of their arcs; `None` if no tree weighs more than zero.
    ///
    /// # Errors
    /// [`TooAmbiguous`] if it has too many.
    pub fn arcs(&mut self, tokens: &[SymbolId]) -> Result<Option<(Wide, Arcs)>, TooAmbiguous> {
        let Some(forest) = self.builder.build(0, tokens)? else { return Ok(None) };
        self.read(&forest, vec![Vec::new(); forest.n_nodes()])
    }

    /// Returns the arcs of a string below its nonterminal.
    fn string(&mut self, param: ParamId) -> Result<Option<Rc<Arcs>>, TooAmbiguous> {
        if let Some(known) = self.strings.get(&param) {
            return Ok(known.clone());
        }
        let found = self.read_string(param)?.map(Rc::new);
        self.strings.insert(param, found.clone());
        Ok(found)
    }

    fn read_string(&mut self, param: ParamId) -> Result<Option<Arcs>, TooAmbiguous> {
        let prepared = self.prepared;
        let Some((symbol, string)) = prepared.lexicon.string(&prepared.grammar, param) else {
            return Ok(None);
        };
        let Kind::Adapted(stick) = prepared.binary.kinds[symbol.index()] else { return Ok(None) };
        let forest = self.builder.build(prepared.binary.base[stick.index()], string)?;
        let Some(forest) = forest else { return Ok(None) };
        let mut governed = vec![Vec::new(); forest.n_nodes()];
        governed[forest.root()].push((0, 1.0));
        Ok(self.read(&forest, governed)?.map(|(_, arcs)| arcs))
    }

    /// By node of a phrase, `governed` has the heads of its head, and how often each is; all but the root's are found here.
    fn read(
        &mut self,
        forest: &Forest,
        mut governed: Vec<Vec<(usize, f64)>>,
    ) -> Result<Option<(Wide, Arcs)>, TooAmbiguous> {
        let label = |node: u32| forest.labels[node as usize];
        let is_phrase = |node: &u32| {
            *node != 0 && matches!(self.prepared.binary.kinds[label(*node).symbol as usize], Kind::Adapted(_))
        };
        let word = |node: u32| label(node).start as usize / 2 + 1;
        let mut arcs = Arcs::new(label(forest.root() as u32).end as usize / 2);
        let mut strings: Vec<StringUse> = Vec::new();
        let layout = self.layout;
        let z = edge_posteriors(forest, &self.weights, &mut self.scratch, |node, edge, posterior| {
            if posterior == 0.0 {
                return;
            }
            if !governed[node].is_empty() {
                let all: f64 = governed[node].iter().map(|(_, uses)| uses).sum();
                let share = |&(head, uses): &(usize, f64)| (head, uses * (posterior / all));
                let heads: Vec<(usize, f64)> = governed[node].iter().map(share).collect();
                match edge.tails {
                    [0, 0] => strings.push((ParamId(edge.param), word(node as u32) - 1, heads)),
                    [base, 0] => governed[base as usize].extend(heads),
                    [_, right] => heads.iter().for_each(|&(head, uses)| arcs.add(head, word(right), uses)),
                }
            } else if (edge.param as usize) < layout.n_params()
                && let Some((head, child)) = layout.arc(forest, node, edge)
            {
                match edge.tails.iter().find(|tail| is_phrase(tail)) {
                    Some(&phrase) => governed[phrase as usize].push((head, posterior)),
                    None => arcs.add(head, child, posterior),
                }
            }
        });
        if z.is_zero() {
            return Ok(None);
        }
        for (param, before, heads) in strings {
            let Some(inner) = self.string(param)? else { continue };
            let all: f64 = heads.iter().map(|(_, uses)| uses).sum();
            for child in 1..=inner.n() {
                heads.iter().for_each(|&(head, uses)| {
                    arcs.add(head, before + child, uses * inner.posterior(0, child));
                });
                for head in 1..=inner.n() {
                    arcs.add(before + head, before + child, all * inner.posterior(head, child));
                }
            }
        }
        Ok(Some((z, arcs)))
    }
}
