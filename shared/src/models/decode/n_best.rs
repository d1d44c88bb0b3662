//! The n best analyses of sentences, and the probability of a segmentation.
//!
//! - [`most_probable`]: the most probable trees, or the segmentations whose most probable trees are these. The probability is that of the tree: its share of
//!   the weight of all derivations of the sentence. As in Viterbi decoding a string is one piece, with its own best analysis, whose probability is not part of that.
//! - [`probabilities`]: of given segmentations, the sum over all derivations that have them, inside of strings too.

use rustc_hash::FxHashMap;

use super::{Decode, Decoder, Session};
use crate::data::TreeMarks;
use crate::forest::inside::{inside_values, real};
use crate::forest::k_best::{Analysis, EMPTY, Hypergraph, Lists, k_best};
use crate::forest::steps::{self, Step};
use crate::forest::{Edge, Forest, Label, Prepared, TooAmbiguous};
use crate::grammar::{ParamId, SymbolId};
use crate::num::Wide;

/// One of the n best analyses of a sentence.
#[derive(Clone, PartialEq, Debug)]
pub struct Ranked {
    /// Its probability, given the sentence.
    pub probability: f64,
    /// Ends of its segments: ascending, the last one the sentence's length.
    pub ends: Vec<u32>,
    /// Its bracketed tree, if trees are asked for.
    pub tree: Option<String>,
}

/// What no two of the n best have in common.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Distinct {
    /// The tree.
    Trees,
    /// The segmentation.
    Segmentations,
}

/// The `n` most probable analyses of every sentence in order; all if there are fewer, none without an analysis. The first is that of [`Decoder::Viterbi`].
///
/// # Errors
/// [`TooAmbiguous`] if a sentence has too many derivations.
pub fn most_probable<'s>(
    prepared: &Prepared,
    with: &Decode,
    sentences: impl Iterator<Item = (&'s [SymbolId], &'s TreeMarks)> + Clone,
    n: usize,
    distinct: Distinct,
) -> Result<Vec<Vec<Ranked>>, TooAmbiguous> {
    let real = real(&with.weights);
    let mut session = Session::new(prepared, with, &real, sentences.clone());
    sentences.map(|(tokens, marks)| session.most_probable(tokens, marks, n, distinct)).collect()
}

/// The probabilities of segmentations of every sentence, each the ends of its segments.
///
/// # Errors
/// [`TooAmbiguous`] if a sentence has too many derivations.
pub fn probabilities<'s>(
    prepared: &Prepared,
    with: &Decode,
    sentences: impl Iterator<Item = (&'s [SymbolId], &'s [Vec<u32>])>,
) -> Result<Vec<Vec<f64>>, TooAmbiguous> {
    let real = real(&with.weights);
    let session = Session::new(prepared, with, &real, std::iter::empty());
    let mut shares = Shares { session, inner: FxHashMap::default() };
    let of_sentence = |(tokens, segmentations): (&[SymbolId], &[Vec<u32>])| {
        let forest = shares.session.builder.build(0, tokens)?;
        let all = segmentations.iter().map(|ends| shares.of(forest.as_ref(), tokens, ends));
        all.collect()
    };
    sentences.map(of_sentence).collect()
}

impl Session<'_> {
    fn most_probable(
        &mut self,
        tokens: &[SymbolId],
        marks: &TreeMarks,
        n: usize,
        distinct: Distinct,
    ) -> Result<Vec<Ranked>, TooAmbiguous> {
        let Some(forest) = self.builder.build_within(0, tokens, &marks.brackets)?.cloned() else {
            return Ok(Vec::new());
        };
        let factored = match &mut self.factored {
            Some(factored) => {
                let Some((_, forest)) = factored.apply(&forest, tokens, marks) else { return Ok(Vec::new()) };
                Some((forest, factored.weights().wide.to_vec()))
            }
            None => None,
        };
        let (forest, weights) = factored.unwrap_or_else(|| (forest, self.weights.wide.to_vec()));
        let mut beta = Vec::new();
        let z = inside_values(&forest, forest.root(), &weights, 1..=forest.root(), &mut beta);
        let mut lists = Lists::default();
        let graph = &mut Graph {
            session: self,
            forest: &forest,
            weights: &weights,
            tokens,
            distinct,
            lists: &mut lists,
        };
        let found = k_best(graph, n)?;
        let ranked = |(weight, list): (Wide, Analysis)| {
            let items = lists.items(list);
            let probability = (weight / z).to_f64().min(1.0);
            if distinct == Distinct::Segmentations {
                let ends = items.into_iter().filter_map(Item::end).collect();
                return Ranked { probability, ends, tree: None };
            }
            let steps: Vec<Step> = items.into_iter().filter_map(Item::step).collect();
            let ends = steps::segment_ends(&steps, |symbol| self.with.segments.contains(&symbol));
            Ranked { probability, ends, tree: Some(self.brackets(&steps)) }
        };
        Ok(found.into_iter().map(ranked).collect())
    }

    /// Whether the constituent of a node is a segment, if no segment is around it.
    fn is_segment_node(&self, forest: &Forest, node: usize) -> bool {
        self.printed(forest, node).is_some_and(|symbol| self.with.segments.contains(&symbol))
    }
}

/// Part of an analysis: of a tree its steps, of a segmentation the ends of segments.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Item {
    Step(Step),
    End(u32),
}

impl Item {
    fn step(self) -> Option<Step> {
        if let Item::Step(step) = self { Some(step) } else { None }
    }

    fn end(self) -> Option<u32> {
        if let Item::End(end) = self { Some(end) } else { None }
    }
}

/// A forest as its derivations are distinguished.
struct Graph<'g, 'a> {
    session: &'g mut Session<'a>,
    forest: &'g Forest,
    weights: &'g [Wide],
    tokens: &'g [SymbolId],
    distinct: Distinct,
    lists: &'g mut Lists<Item>,
}

impl Graph<'_, '_> {
    /// The tokens from `start` to `end`, then the items of `rest`. Outside of all segments each is a segment by itself.
    fn tokens(&mut self, start: u32, end: u32, rest: Analysis) -> Analysis {
        let item = |at: u32| match self.distinct {
            Distinct::Trees => Item::Step(Step::Leaf(self.tokens[at as usize])),
            Distinct::Segmentations => Item::End(at + 1),
        };
        let items: Vec<Item> = (start..end).map(item).collect();
        self.lists.prepend_all(&items, rest)
    }

    /// The items of a string by its own best analysis, then those of `rest`.
    fn string(&mut self, edge: &Edge, label: Label, rest: Analysis) -> Result<Analysis, TooAmbiguous> {
        let string = &self.tokens[label.start as usize..label.end as usize];
        let steps = self.session.inside_string(ParamId(edge.param), string, Decoder::Viterbi)?;
        let items: Vec<Item> = match self.distinct {
            Distinct::Trees => steps.iter().copied().map(Item::Step).collect(),
            Distinct::Segmentations => {
                let segments = &self.session.with.segments;
                let ends = steps::segment_ends(&steps, |symbol| segments.contains(&symbol));
                ends.into_iter().map(|end| Item::End(label.start + end)).collect()
            }
        };
        Ok(self.lists.prepend_all(&items, rest))
    }
}

impl Hypergraph for Graph<'_, '_> {
    type Weight = Wide;
    type Edge = Edge;
    type Error = TooAmbiguous;

    fn n_nodes(&self) -> usize {
        self.forest.n_nodes()
    }

    fn edges(&self, node: usize, mut each: impl FnMut(Edge, [usize; 2])) {
        self.forest.edges_of(node).iter().for_each(|edge| each(*edge, edge.tails.map(|tail| tail as usize)));
    }

    fn weight(&self, edge: Edge, [left, right]: [Wide; 2]) -> Wide {
        self.weights[edge.param as usize] * left * right
    }

    fn analysis(&mut self, node: usize, edge: Edge, tails: [Analysis; 2]) -> Result<Analysis, TooAmbiguous> {
        let label = self.forest.labels[node];
        if self.has_one_analysis(node) {
            return Ok(self.lists.prepend(Item::End(label.end), EMPTY));
        }
        let printed = self.session.printed(self.forest, node).filter(|_| self.distinct == Distinct::Trees);
        let mut list = match printed {
            Some(_) => self.lists.prepend(Item::Step(Step::Close), EMPTY),
            None => EMPTY,
        };
        if self.session.is_string(&edge) {
            list = self.string(&edge, label, list)?;
        } else {
            let mut end = label.end;
            for (tail, below) in edge.tails.into_iter().zip(tails).rev().filter(|&(tail, _)| tail != 0) {
                let child = self.forest.labels[tail as usize];
                list = self.tokens(child.end, end, list);
                list = self.lists.concatenate(below, list);
                end = child.start;
            }
            list = self.tokens(label.start, end, list);
        }
        Ok(printed.map_or(list, |symbol| self.lists.prepend(Item::Step(Step::Open(symbol)), list)))
    }

    fn has_one_analysis(&self, node: usize) -> bool {
        self.distinct == Distinct::Segmentations && self.session.is_segment_node(self.forest, node)
    }
}

/// Shares that segmentations have of the weight of all derivations.
struct Shares<'a> {
    session: Session<'a>,
    /// By string and ends of the segments inside of it.
    inner: FxHashMap<(ParamId, Vec<u32>), f64>,
}

impl Shares<'_> {
    /// The share of the derivations in a forest whose segments end at `ends`. Without a forest, or if it weighs nothing, each token is a segment by itself.
    fn of(
        &mut self,
        forest: Option<&Forest>,
        tokens: &[SymbolId],
        ends: &[u32],
    ) -> Result<f64, TooAmbiguous> {
        let of_tokens = f64::from(u8::from(ends.len() == tokens.len()));
        let Some(forest) = forest else { return Ok(of_tokens) };
        let (root, weights) = (forest.root(), self.session.weights.wide);
        let mut beta = Vec::new();
        let z = inside_values(forest, root, weights, 1..=root, &mut beta);
        if z.is_zero() {
            return Ok(of_tokens);
        }
        let is_end = |at: u32| at == 0 || ends.binary_search(&at).is_ok();
        let are_alone = |start: u32, end: u32| (start..end).all(|at| is_end(at) && is_end(at + 1));
        let is_segment = |start: u32, end: u32| is_end(start) && is_end(end) && !(start + 1..end).any(is_end);
        // By node: the weight of its derivations whose segments these are.
        let mut agreeing = vec![Wide::ONE];
        for (node, &all) in beta.iter().enumerate().skip(1) {
            let Label { start, end, .. } = forest.labels[node];
            if self.session.is_segment_node(forest, node) {
                agreeing.push(if is_segment(start, end) { all } else { Wide::ZERO });
                continue;
            }
            let mut sum = Wide::ZERO;
            for edge in forest.edges_of(node).iter().filter(|_| is_end(start) && is_end(end)) {
                let weight = weights[edge.param as usize];
                if self.session.is_string(edge) {
                    let inner = ends.iter().filter(|&&at| start < at && at <= end).map(|at| at - start);
                    let string = &tokens[start as usize..end as usize];
                    let share = self.of_string(ParamId(edge.param), string, inner.collect())?;
                    sum = sum + weight * Wide::from_f64(share);
                    continue;
                }
                let (mut from, mut has_alone) = (start, true);
                for &tail in edge.tails.iter().filter(|&&tail| tail != 0) {
                    let child = forest.labels[tail as usize];
                    has_alone &= are_alone(from, child.start);
                    from = child.end;
                }
                if has_alone && are_alone(from, end) {
                    let [left, right] = edge.tails.map(|tail| agreeing[tail as usize]);
                    sum = sum + weight * left * right;
                }
            }
            agreeing.push(sum);
        }
        Ok((agreeing[root] / z).to_f64().min(1.0))
    }

    /// The share of the derivations of a string.
    fn of_string(
        &mut self,
        param: ParamId,
        string: &[SymbolId],
        ends: Vec<u32>,
    ) -> Result<f64, TooAmbiguous> {
        let key = (param, ends);
        if let Some(&known) = self.inner.get(&key) {
            return Ok(known);
        }
        let forest = self.session.grammaton(param, string)?;
        let share = self.of(forest.as_ref(), string, &key.1)?;
        self.inner.insert(key, share);
        Ok(share)
    }
}
