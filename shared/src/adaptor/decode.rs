//! Best analyses of sentences, with recursion into the strings used (§3.4 of the paper).
//!
//! A sentence's forest ends at stick strings. Each string used is analysed in turn by its own grammaton, with the same
//! decoder, so that a tree reaches down to the tokens. The decoders:
//!
//! - *Viterbi*: the most probable derivation, at every level.
//! - *MBR*: the segmentation with the highest sum of posteriors of its segments, where a segment inside a string counts
//!   with the posterior of the string times its own inside the string, and a segment inside another one does not count,
//!   as in [`Tree::segment_ends`]. Equal sums: fewer segments.
//! - *MBR tree* (Goodman 1996): the tree with the highest sum of posteriors of its constituents, at every level.
//! - *MBR arcs*, of dependency grammars: see [`crate::dmv::nouns::mbr`].

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::compute::Prepared;
use crate::dmv::nouns::mbr::Mbr;
use crate::forest::best::{self, Derivation};
use crate::forest::binary::{Adapted, Kind};
use crate::forest::build::Builder;
use crate::forest::inside::{Scratch, Weights, edge_posteriors, real};
use crate::forest::steps::{self, Step};
use crate::forest::{Edge, Forest};
use crate::grammar::SymbolId;
use crate::shard::ParamId;
use crate::task::{Decode, Decoded, Decoder};
use crate::tree::Tree;

/// Analyses every sentence.
pub fn decode(prepared: &Prepared, with: &Decode, sentences: &[&[SymbolId]]) -> Vec<Decoded> {
    let real = real(&with.weights);
    let weights = || Weights { wide: &with.weights, real: &real };
    let mbr = || Mbr::new(prepared, weights(), with.open);
    let mut session = Session {
        prepared,
        with,
        weights: weights(),
        builder: builder(prepared, with.open),
        first_escape: first_escape(prepared),
        scratch: Scratch::default(),
        mbr: with.decoders.contains(&Decoder::MbrArcs).then(mbr).flatten(),
        inner: FxHashMap::default(),
        inner_spans: FxHashMap::default(),
    };
    sentences.iter().map(|sentence| session.sentence(sentence)).collect()
}

/// Builds the forests that are decoded.
pub(crate) fn builder(prepared: &Prepared, open: bool) -> Builder<'_> {
    let (binary, strings) = (&prepared.binary, &prepared.strings);
    match open {
        true => {
            Builder::open(binary, strings, first_escape(prepared)).with_max_yield(longest_string(prepared))
        }
        false => Builder::new(binary, strings, Adapted::Strings),
    }
}

fn first_escape(prepared: &Prepared) -> ParamId {
    ParamId(prepared.lexicon.n_params(&prepared.grammar) as u32)
}

/// New strings are no longer than this, or than the longest learned one.
const MAX_NEW_STRING: u32 = 64;

fn longest_string(prepared: &Prepared) -> u32 {
    let strings = prepared.lexicon.sticks.iter().flat_map(|stick| &stick.strings);
    strings.map(|string| string.len() as u32).fold(MAX_NEW_STRING, u32::max)
}

/// A span of tokens and the expected number of outermost segments on it.
type Span = (u32, u32, f64);

struct Session<'a> {
    prepared: &'a Prepared,
    with: &'a Decode,
    weights: Weights<'a>,
    builder: Builder<'a>,
    first_escape: ParamId,
    scratch: Scratch,
    /// Of a dependency grammar, for its own decoder.
    mbr: Option<Mbr<'a>>,
    /// What is below a string's nonterminal, by decoder.
    inner: FxHashMap<(Decoder, ParamId), Arc<Vec<Step>>>,
    /// The segments inside a string.
    inner_spans: FxHashMap<ParamId, Arc<Vec<Span>>>,
}

impl Session<'_> {
    fn sentence(&mut self, tokens: &[SymbolId]) -> Decoded {
        let Some(forest) = self.builder.build(0, tokens) else { return self.without_analysis(tokens) };
        let z = edge_posteriors(&forest, &self.weights, &mut self.scratch, |_, _, _| {});
        if z.is_zero() {
            return self.without_analysis(tokens);
        }
        let mut decoded = Decoded { log_z: z.ln(), segmentations: Vec::new(), trees: Vec::new() };
        for &decoder in &self.with.decoders {
            let ends = match decoder {
                Decoder::Mbr => self.best_segmentation(&forest, tokens),
                Decoder::Viterbi | Decoder::MbrTree | Decoder::MbrArcs => {
                    let of_arcs = self.mbr.as_mut().filter(|_| decoder == Decoder::MbrArcs);
                    let tree = of_arcs.and_then(|mbr| mbr.tree(tokens)).unwrap_or_else(|| {
                        let steps = self.steps(&forest, tokens, decoder, true);
                        self.tree(&steps)
                    });
                    if self.with.trees {
                        decoded.trees.push(tree.to_string());
                    }
                    tree.segment_ends(|label| self.is_segment(label))
                }
            };
            decoded.segmentations.push(ends);
        }
        decoded
    }

    /// One segment, and a flat tree.
    fn without_analysis(&self, tokens: &[SymbolId]) -> Decoded {
        let start = crate::grammar::Grammar::START;
        let leaves = tokens.iter().map(|&token| Step::Leaf(token));
        let flat: Vec<Step> = std::iter::once(Step::Open(start)).chain(leaves).chain([Step::Close]).collect();
        let with_tree = self.with.decoders.iter().filter(|&&decoder| decoder.gives_trees());
        Decoded {
            log_z: f64::NEG_INFINITY,
            segmentations: vec![vec![tokens.len() as u32]; self.with.decoders.len()],
            trees: with_tree.filter(|_| self.with.trees).map(|_| self.tree(&flat).to_string()).collect(),
        }
    }

    /// The best tree of a forest, strings expanded; `None` cannot happen, since the forest has weight.
    fn steps(
        &mut self,
        forest: &Forest,
        tokens: &[SymbolId],
        decoder: Decoder,
        with_root: bool,
    ) -> Vec<Step> {
        let derivation = match decoder {
            Decoder::MbrTree => {
                let mut posterior = vec![0.0; forest.n_nodes()];
                edge_posteriors(forest, &self.weights, &mut self.scratch, |node, _, p| posterior[node] += p);
                let score =
                    |node: usize| if self.printed(forest, node).is_some() { posterior[node] } else { 0.0 };
                let alive = |param: u32| !self.weights.wide[param as usize].is_zero();
                best::max_sum(forest, score, alive).map(|(_, derivation)| derivation)
            }
            _ => best::viterbi(forest, self.weights.wide).map(|(_, derivation)| derivation),
        };
        match derivation {
            Some(derivation) => self.walk(forest, &derivation, tokens, decoder, with_root),
            None => tokens.iter().map(|&token| Step::Leaf(token)).collect(),
        }
    }

    fn walk(
        &mut self,
        forest: &Forest,
        derivation: &Derivation,
        tokens: &[SymbolId],
        decoder: Decoder,
        with_root: bool,
    ) -> Vec<Step> {
        let prepared = self.prepared;
        let below = |edge: &Edge, string: &[SymbolId]| {
            self.is_string(edge).then(|| self.inside_string(ParamId(edge.param), string, decoder))
        };
        steps::steps(&prepared.binary, forest, derivation, tokens, with_root, below)
    }

    /// The steps below the nonterminal of a string.
    fn inside_string(&mut self, param: ParamId, string: &[SymbolId], decoder: Decoder) -> Arc<Vec<Step>> {
        if let Some(known) = self.inner.get(&(decoder, param)) {
            return known.clone();
        }
        let steps = match self.grammaton(param, string) {
            Some(forest) => self.steps(&forest, string, decoder, false),
            None => string.iter().map(|&token| Step::Leaf(token)).collect(),
        };
        let steps = Arc::new(steps);
        self.inner.insert((decoder, param), steps.clone());
        steps
    }

    /// The forest of a string from its nonterminal's rules.
    fn grammaton(&mut self, param: ParamId, string: &[SymbolId]) -> Option<Forest> {
        let (symbol, _) = self.prepared.lexicon.string(&self.prepared.grammar, param)?;
        match self.prepared.binary.kinds[symbol.index()] {
            Kind::Adapted(stick) => self.builder.build(self.prepared.binary.base[stick as usize], string),
            _ => None,
        }
    }

    fn is_string(&self, edge: &Edge) -> bool {
        edge.param as usize > self.prepared.grammar.rules.len() && edge.param < self.first_escape.0
    }

    fn is_segment(&self, label: &str) -> bool {
        self.with.segments.iter().any(|&symbol| self.prepared.grammar.name(symbol) == label)
    }

    fn tree(&self, steps: &[Step]) -> Tree {
        steps::tree(&self.prepared.grammar, steps)
    }

    fn printed(&self, forest: &Forest, node: usize) -> Option<SymbolId> {
        steps::printed(&self.prepared.binary, forest, node)
    }

    fn best_segmentation(&mut self, forest: &Forest, tokens: &[SymbolId]) -> Vec<u32> {
        let n = tokens.len();
        let mut by_end: Vec<Vec<(u32, f64)>> = vec![Vec::new(); n + 1];
        for (start, end, posterior) in self.spans(forest, tokens) {
            by_end[end as usize].push((start, posterior));
        }
        // A tiny price per segment decides ties for fewer; tokens on no segment go one by one, at a higher price.
        let mut best: Vec<(f64, u32)> = vec![(0.0, 0)];
        for end in 1..=n {
            let mut choice = (best[end - 1].0 - 1e-6, end as u32 - 1);
            for &(start, posterior) in &by_end[end] {
                let value = best[start as usize].0 + posterior - 1e-9;
                if value > choice.0 {
                    choice = (value, start);
                }
            }
            best.push(choice);
        }
        let mut ends = Vec::new();
        let mut end = n;
        while end > 0 {
            ends.push(end as u32);
            end = best[end].1 as usize;
        }
        ends.reverse();
        ends
    }

    /// Expected number of outermost segments on every span that can be one: sorted, each span once.
    fn spans(&mut self, forest: &Forest, tokens: &[SymbolId]) -> Vec<Span> {
        let mut sums: FxHashMap<(u32, u32), f64> = FxHashMap::default();
        let mut strings: Vec<(ParamId, u32, u32, f64)> = Vec::new();
        // By node: its posterior, and that of it with no segment above.
        let (mut reached, mut outside) = (vec![0.0; forest.n_nodes()], vec![0.0; forest.n_nodes()]);
        (reached[forest.root()], outside[forest.root()]) = (1.0, 1.0);
        let mut scratch = std::mem::take(&mut self.scratch);
        edge_posteriors(forest, &self.weights, &mut scratch, |node, edge, posterior| {
            if posterior == 0.0 || reached[node] == 0.0 {
                return;
            }
            let label = forest.labels[node];
            let printed = self.printed(forest, node);
            // What is below a node does not depend on what is above it.
            let not_nested = posterior * (outside[node] / reached[node]);
            let is_segment = printed.is_some_and(|symbol| self.with.segments.contains(&symbol));
            if is_segment {
                *sums.entry((label.start, label.end)).or_insert(0.0) += not_nested;
            } else if self.is_string(edge) && not_nested > 1e-12 {
                strings.push((ParamId(edge.param), label.start, label.end, not_nested));
            }
            for tail in edge.tails.map(|tail| tail as usize) {
                reached[tail] += posterior;
                outside[tail] += if is_segment { 0.0 } else { not_nested };
            }
        });
        self.scratch = scratch;
        for (param, start, end, posterior) in strings {
            for &(from, to, inside) in
                self.spans_of_string(param, &tokens[start as usize..end as usize]).iter()
            {
                *sums.entry((start + from, start + to)).or_insert(0.0) += posterior * inside;
            }
        }
        let mut spans: Vec<Span> = sums.into_iter().map(|((start, end), sum)| (start, end, sum)).collect();
        spans.sort_unstable_by_key(|&(start, end, _)| (start, end));
        spans
    }

    fn spans_of_string(&mut self, param: ParamId, string: &[SymbolId]) -> Arc<Vec<Span>> {
        if let Some(known) = self.inner_spans.get(&param) {
            return known.clone();
        }
        let spans = self.grammaton(param, string).map(|forest| self.spans(&forest, string));
        let spans = Arc::new(spans.unwrap_or_default());
        self.inner_spans.insert(param, spans.clone());
        spans
    }
}
