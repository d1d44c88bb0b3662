//! Best analyses of sentences, with recursion into the strings used (§3.4 of the paper).
//!
//! A sentence's forest ends at stick strings. Each string used is analysed in turn by its own grammaton, with the same
//! decoder, so that a tree reaches down to the tokens. The decoders:
//!
//! - *Viterbi*: the most probable derivation, at every level.
//! - *MBR*: the segmentation with the highest sum of posteriors of its segments, where a segment inside a string counts
//!   with the posterior of the string times its own inside the string, and a segment inside another one does not count,
//!   as in [`crate::grammar::tree::Tree::segment_ends`]. Equal sums: fewer segments.
//! - *MBR tree* (Goodman 1996): the tree with the highest sum of posteriors of its constituents, at every level.
//! - *MBR arcs*, of dependency grammars: see [`crate::models::dmv::nouns::mbr`].
//!
//! ```
//! use grammaton::forest::Prepared;
//! use grammaton::grammar::lexicon::Lexicon;
//! use grammaton::grammar::syntax;
//! use grammaton::models::decode::{Decode, Decoder, decode};
//! use grammaton::num::Wide;
//!
//! let text = "1 1 S --> W\n1 1 S --> W S\n1 1 W --> a\n1 1 W --> a b\n1 1 W --> b\n";
//! let (grammar, _) = syntax::parse(text, "words.gr").unwrap();
//! let (tokens, word) = (grammar.tokens("a b a").unwrap(), grammar.symbol("W").unwrap());
//! let prepared = Prepared::new(grammar, Lexicon::default());
//! let with = Decode {
//!     // The constant one, then the rules.
//!     weights: [1.0, 0.5, 0.5, 0.25, 0.5, 0.25].map(Wide::from_f64).to_vec(),
//!     segments: vec![word],
//!     decoders: vec![Decoder::Viterbi],
//!     trees: true,
//!     spans: true,
//!     open: false,
//! };
//! let decoded = decode(&prepared, &with, &[&tokens])?.remove(0);
//! assert_eq!(decoded.segmentations, [[2, 3]]);
//! assert_eq!(decoded.trees, ["(S (W a b) (S (W a)))"]);
//! // This tree has 16 of 17 parts of the probability; the other one has three words.
//! assert_eq!(decoded.spans.iter().map(|&(start, end, _)| (start, end)).collect::<Vec<_>>(), [(0, 1), (0, 2), (1, 2), (2, 3)]);
//! assert!((decoded.spans[1].2 - 16.0 / 17.0).abs() < 1e-12);
//! # Ok::<(), grammaton::forest::TooAmbiguous>(())
//! ```

pub mod n_best;

use std::convert::Infallible;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::data::TreeMarks;
use crate::forest::Prepared;
use crate::forest::TooAmbiguous;
use crate::forest::best::{self, Derivation};
use crate::forest::binary::Kind;
use crate::forest::build::Builder;
use crate::forest::inside::{Scratch, Weights, edge_posteriors, real, total_weight};
use crate::forest::steps::{self, Step};
use crate::forest::{Edge, Forest, Label};
use crate::grammar::ParamId;
use crate::grammar::SymbolId;
use crate::models::dmv::decode::mbr_derivation;
use crate::models::dmv::factors::{Factored, Factors};
use crate::models::dmv::nouns::mbr::Mbr;
use crate::models::segments::{Segments, Span};
use crate::num::Wide;

/// Parameters to decode with.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Decode {
    /// Weights of all parameters, by [`ParamId`], then the escape weights of the adapted nonterminals.
    pub weights: Vec<Wide>,
    /// The nonterminals whose constituents are the segments.
    pub segments: Vec<SymbolId>,
    /// In the order in which [`Decoded::segmentations`] answers.
    pub decoders: Vec<Decoder>,
    /// Whether to return the trees as well.
    pub trees: bool,
    /// Whether to return the probabilities of segments as well.
    pub spans: bool,
    /// Whether adapted nonterminals may also expand through their rules: for sentences never seen in training.
    pub open: bool,
}

/// How the best analysis is chosen (Cohen, Blei & Smith 2010, §3.4). With latent annotations all but [`Decoder::Viterbi`] give the tree of
/// the highest product of expected rule counts (max-rule; Petrov & Klein 2007).
///
/// ```
/// use grammaton::{Corpus, Decoder, Fit, Grammar, Method};
///
/// let grammar: Grammar = "1 1 S --> Word\n1 1 S --> Word S\nWord --> a\nWord --> a b\n".parse()?;
/// let corpus = Corpus::of_tokens("a b a\na a b\n")?;
/// let model = Fit::new(&grammar, Method::vb()).run(&corpus)?;
/// assert_eq!(model.parse(&corpus, Decoder::Viterbi)?[0].to_string(), "(S (Word a b) (S (Word a)))");
/// assert_eq!(model.parse(&corpus, Decoder::Mbr)?[0].to_string(), "a b | a");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Decoder {
    /// The most probable tree.
    Viterbi,
    /// The segmentation with the highest expected number of correct segments.
    Mbr,
    /// The tree with the highest expected number of correct constituents (Goodman 1996), string by string.
    MbrTree,
    /// The dependency tree with the highest expected number of words with the right head, of a dependency model
    /// alone.
    MbrArcs,
}

impl Decoder {
    /// Whether it gives a tree; else a segmentation alone.
    pub fn gives_trees(self) -> bool {
        self != Decoder::Mbr
    }
}

/// The best analyses of a sentence.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Decoded {
    /// Log probability mass of the sentence under the decoding weights; −∞ if it has no analysis.
    pub log_z: f64,
    /// End positions of the segments by each decoder asked for: ascending, the last one the sentence's length.
    pub segmentations: Vec<Vec<u32>>,
    /// Bracketed tree by each decoder that gives trees; empty if not asked for.
    pub trees: Vec<String>,
    /// Probability of each span that it is a segment, which is a sum over all derivations: sorted, each span once, without those of at most [`NEGLIGIBLE`]. Empty
    /// if not asked for, without an analysis, and of dependency grammars, which have no segments.
    pub spans: Vec<Span>,
}

/// Spans that are segments with no higher probability are not returned: an open grammar has all spans.
pub const NEGLIGIBLE: f64 = 1e-9;

/// Analyses every sentence.
///
/// # Errors
/// [`TooAmbiguous`] if a sentence has too many derivations.
pub fn decode(
    prepared: &Prepared,
    with: &Decode,
    sentences: &[&[SymbolId]],
) -> Result<Vec<Decoded>, TooAmbiguous> {
    let nothing = TreeMarks::default();
    decode_marked(prepared, with, sentences.iter().map(|&sentence| (sentence, &nothing)))
}

/// Analyses every sentence, with what is known of its tree.
///
/// # Errors
/// [`TooAmbiguous`] if a sentence has too many derivations.
pub fn decode_marked<'s>(
    prepared: &Prepared,
    with: &Decode,
    sentences: impl Iterator<Item = (&'s [SymbolId], &'s TreeMarks)> + Clone,
) -> Result<Vec<Decoded>, TooAmbiguous> {
    let real = real(&with.weights);
    let mut session = Session::new(prepared, with, &real, sentences.clone());
    sentences.map(|(tokens, marks)| session.sentence(tokens, marks)).collect()
}

struct Session<'a> {
    prepared: &'a Prepared,
    with: &'a Decode,
    weights: Weights<'a>,
    builder: Builder<'a>,
    scratch: Scratch,
    /// The decoder of dependency grammars.
    mbr: Option<Mbr<'a>>,
    /// What is known of arcs, perhaps nothing; `None` of other grammars.
    factored: Option<Factored<'a>>,
    /// Text below a string's nonterminal, by decoder.
    inner: FxHashMap<(Decoder, ParamId), Arc<Vec<Step>>>,
    /// The segments inside a string.
    inner_spans: FxHashMap<ParamId, Arc<Vec<Span>>>,
}

impl<'a> Session<'a> {
    /// Prepares to analyse these sentences. `real`: the weights in real space.
    fn new<'s>(
        prepared: &'a Prepared,
        with: &'a Decode,
        real: &'a [f64],
        sentences: impl Iterator<Item = (&'s [SymbolId], &'s TreeMarks)>,
    ) -> Session<'a> {
        let weights = || Weights { wide: &with.weights, real };
        let wants_arcs = with.decoders.contains(&Decoder::MbrArcs);
        let factors = Factors::new(&prepared.grammar, sentences.map(|(_, marks)| marks));
        // The forest of a grammar without adapted nonterminals has all trees, so that one forest does for the posteriors and for the tree.
        let factors = factors.or_else(|| if wants_arcs { Factors::ones(&prepared.grammar) } else { None });
        let mbr = || Mbr::new(prepared, weights(), with.open);
        Session {
            prepared,
            with,
            weights: weights(),
            builder: prepared.builder(with.open),
            scratch: Scratch::default(),
            mbr: (wants_arcs && factors.is_none()).then(mbr).flatten(),
            factored: factors.map(|factors| Factored::new(factors, &with.weights)),
            inner: FxHashMap::default(),
            inner_spans: FxHashMap::default(),
        }
    }

    fn sentence(&mut self, tokens: &[SymbolId], marks: &TreeMarks) -> Result<Decoded, TooAmbiguous> {
        let Some(forest) = self.builder.build_within(0, tokens, &marks.brackets)?.cloned() else {
            return Ok(self.without_analysis(tokens));
        };
        if self.factored.is_some() {
            return Ok(self.factored(&forest, tokens, marks));
        }
        let z = total_weight(&forest, &self.weights, &mut self.scratch);
        if z.is_zero() {
            return Ok(self.without_analysis(tokens));
        }
        let mut decoded =
            Decoded { log_z: z.ln(), segmentations: Vec::new(), trees: Vec::new(), spans: Vec::new() };
        let is_asked = self.with.spans || self.with.decoders.contains(&Decoder::Mbr);
        let spans = if is_asked { self.spans(&forest, tokens)? } else { Vec::new() };
        let segments = Segments::new(tokens.len() as u32, spans);
        for &decoder in &self.with.decoders {
            let ends = match decoder {
                Decoder::Mbr => segments.best(),
                Decoder::Viterbi | Decoder::MbrTree | Decoder::MbrArcs => {
                    let of_arcs = self.mbr.as_mut().filter(|_| decoder == Decoder::MbrArcs);
                    let of_arcs = of_arcs.map(|mbr| mbr.tree(tokens)).transpose()?.flatten();
                    if let Some(tree) = of_arcs {
                        decoded.trees.extend(self.with.trees.then(|| tree.to_string()));
                        tree.segment_ends(|label| self.is_segment(label))
                    } else {
                        let steps = self.steps(&forest, tokens, decoder, true)?;
                        decoded.trees.extend(self.with.trees.then(|| self.brackets(&steps)));
                        steps::segment_ends(&steps, |symbol| self.with.segments.contains(&symbol))
                    }
                }
            };
            decoded.segmentations.push(ends);
        }
        if self.with.spans {
            let likely = |&&(.., probability): &&Span| probability > NEGLIGIBLE;
            decoded.spans = segments.spans().iter().filter(likely).copied().collect();
        }
        Ok(decoded)
    }

    /// The analyses of a sentence of tags, of which arcs may be known, or have factors. Decoders other than MBR of arcs give the most probable tree.
    fn factored(&mut self, forest: &Forest, tokens: &[SymbolId], marks: &TreeMarks) -> Decoded {
        let factored = self.factored.as_mut().expect("the caller has looked");
        let Some((plain, forest)) = factored.apply(forest, tokens, marks) else {
            return self.without_analysis(tokens);
        };
        let z = total_weight(&forest, &factored.weights(), &mut self.scratch);
        if z.is_zero() {
            return self.without_analysis(tokens);
        }
        let mut decoded =
            Decoded { log_z: z.ln(), segmentations: Vec::new(), trees: Vec::new(), spans: Vec::new() };
        let layout = factored.layout();
        let derivations = self.with.decoders.iter().map(|decoder| match decoder {
            Decoder::MbrArcs => {
                let arcs = factored.arcs(&forest, &mut self.scratch);
                mbr_derivation(layout, &plain, &arcs)
            }
            _ => best::viterbi(&forest, factored.weights().wide).expect("its trees weigh something").1,
        });
        let derivations: Vec<Derivation> = derivations.collect();
        for (derivation, decoder) in derivations.iter().zip(&self.with.decoders) {
            let below = |_: &Edge, _: &[SymbolId]| Ok::<_, Infallible>(None);
            let Ok(steps) = steps::steps(&self.prepared.binary, &plain, derivation, tokens, true, below);
            if self.with.trees && decoder.gives_trees() {
                decoded.trees.push(self.brackets(&steps));
            }
            let is_segment = |symbol| self.with.segments.contains(&symbol);
            decoded.segmentations.push(steps::segment_ends(&steps, is_segment));
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
            trees: with_tree.filter(|_| self.with.trees).map(|_| self.brackets(&flat)).collect(),
            spans: Vec::new(),
        }
    }

    /// The best tree of a forest, strings expanded, as the steps of its leftmost derivation.
    fn steps(
        &mut self,
        forest: &Forest,
        tokens: &[SymbolId],
        decoder: Decoder,
        with_root: bool,
    ) -> Result<Vec<Step>, TooAmbiguous> {
        let derivation = match decoder {
            Decoder::MbrTree => {
                let mut posterior = vec![0.0; forest.n_nodes()];
                edge_posteriors(forest, &self.weights, &mut self.scratch, |node, _, p| posterior[node] += p);
                // Known constituents can give one constituent several nodes.
                let mut by_label: FxHashMap<(u32, u32, u32), f64> = FxHashMap::default();
                let name = |Label { symbol, start, end }: Label| (symbol, start, end);
                for (label, posterior) in forest.labels.iter().zip(&posterior) {
                    *by_label.entry(name(*label)).or_insert(0.0) += posterior;
                }
                let score = |node: usize| match self.printed(forest, node) {
                    Some(_) => by_label[&name(forest.labels[node])],
                    None => 0.0,
                };
                let alive = |param: u32| !self.weights.wide[param as usize].is_zero();
                best::max_sum(forest, score, alive).map(|(_, derivation)| derivation)
            }
            _ => best::viterbi(forest, self.weights.wide).map(|(_, derivation)| derivation),
        };
        match derivation {
            Some(derivation) => self.walk(forest, &derivation, tokens, decoder, with_root),
            None => Ok(tokens.iter().map(|&token| Step::Leaf(token)).collect()),
        }
    }

    fn walk(
        &mut self,
        forest: &Forest,
        derivation: &Derivation,
        tokens: &[SymbolId],
        decoder: Decoder,
        with_root: bool,
    ) -> Result<Vec<Step>, TooAmbiguous> {
        let prepared = self.prepared;
        let below = |edge: &Edge, string: &[SymbolId]| {
            let steps =
                self.is_string(edge).then(|| self.inside_string(ParamId(edge.param), string, decoder));
            steps.transpose()
        };
        steps::steps(&prepared.binary, forest, derivation, tokens, with_root, below)
    }

    /// The steps below the nonterminal of a string.
    fn inside_string(
        &mut self,
        param: ParamId,
        string: &[SymbolId],
        decoder: Decoder,
    ) -> Result<Arc<Vec<Step>>, TooAmbiguous> {
        if let Some(known) = self.inner.get(&(decoder, param)) {
            return Ok(known.clone());
        }
        let steps = match self.grammaton(param, string)? {
            Some(forest) => self.steps(&forest, string, decoder, false)?,
            None => string.iter().map(|&token| Step::Leaf(token)).collect(),
        };
        let steps = Arc::new(steps);
        self.inner.insert((decoder, param), steps.clone());
        Ok(steps)
    }

    /// The forest of a string from its nonterminal's rules.
    fn grammaton(&mut self, param: ParamId, string: &[SymbolId]) -> Result<Option<Forest>, TooAmbiguous> {
        let Some((symbol, _)) = self.prepared.lexicon.string(&self.prepared.grammar, param) else {
            return Ok(None);
        };
        match self.prepared.binary.kinds[symbol.index()] {
            Kind::Adapted(stick) => self.builder.build(self.prepared.binary.base[stick.index()], string),
            _ => Ok(None),
        }
    }

    fn is_string(&self, edge: &Edge) -> bool {
        self.prepared.space().strings().contains(&edge.param)
    }

    fn is_segment(&self, label: &str) -> bool {
        self.with.segments.iter().any(|&symbol| self.prepared.grammar.name(symbol) == label)
    }

    fn brackets(&self, steps: &[Step]) -> String {
        steps::brackets(&self.prepared.grammar, steps)
    }

    fn printed(&self, forest: &Forest, node: usize) -> Option<SymbolId> {
        steps::printed(&self.prepared.binary, forest, node)
    }

    /// Expected number of outermost segments on every span that can be one: sorted, each span once.
    fn spans(&mut self, forest: &Forest, tokens: &[SymbolId]) -> Result<Vec<Span>, TooAmbiguous> {
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
                self.spans_of_string(param, &tokens[start as usize..end as usize])?.iter()
            {
                *sums.entry((start + from, start + to)).or_insert(0.0) += posterior * inside;
            }
        }
        let mut spans: Vec<Span> = sums.into_iter().map(|((start, end), sum)| (start, end, sum)).collect();
        spans.sort_unstable_by_key(|&(start, end, _)| (start, end));
        Ok(spans)
    }

    fn spans_of_string(
        &mut self,
        param: ParamId,
        string: &[SymbolId],
    ) -> Result<Arc<Vec<Span>>, TooAmbiguous> {
        if let Some(known) = self.inner_spans.get(&param) {
            return Ok(known.clone());
        }
        let forest = self.grammaton(param, string)?;
        let spans = forest.map(|forest| self.spans(&forest, string)).transpose()?;
        let spans = Arc::new(spans.unwrap_or_default());
        self.inner_spans.insert(param, spans.clone());
        Ok(spans)
    }
}
