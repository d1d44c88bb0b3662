//! Inside, outside and expected counts without forests, for grammars in which nearly every A → B C is a rule.
//!
//! A forest has an edge per rule and split, which under such a grammar is all there is: 30 nonterminals and 45 preterminals
//! make six million edges of a sentence of ten words. Here the rules are a tensor that stays in cache while the spans of
//! many sentences go through it (`dense/passes.rs`), and nothing is kept from round to round.
//!
//! In: a [`BinaryGrammar`], the sentences of a shard, weights in the order of its index. Out: total weights and counts as
//! inside–outside over forests gives them, up to rounding. Cost: see `benches/dense.rs`.
//!
//! All passes run in `f64`; an item whose total weight leaves its range is done again in [`Wide`], by the same code, about a
//! hundred times slower. To make that rare, the weights of a word are divided by a power of two that brings the largest close
//! to one. That divides every derivation of a sentence alike, so only what tells derivations apart uses up the range.
//!
//! What is lost below the range: in a round without annealing, the binary weights of a nonterminal sum to at most one. With
//! words at most one below preterminals that have no other rules, no outside value exceeds one. Elsewhere words are made at
//! most 1/4, so that an inside value x = x² + 1/4 stays below 1/2, and outside values below one. So of a total above 2^−900, a
//! value below 2^−980 is a share under 2^−80.
//!
//! Invariant: the answer has the same bits on every machine, see `dense/passes.rs`.
//!
//! Deliberately absent: single precision. It takes a fifth to a quarter off the time, and the likelihood then falls, by up to
//! 10⁻⁸ of itself, in rounds of EM that are near convergence.

mod passes;

use std::collections::BTreeMap;
use std::ops::Range;

use pulp::{Arch, NullaryFnOnce};

use self::passes::{Chart, Item, Lane, Totals, Weights};
use super::binary::{BinaryGrammar, Kind, Production};
use crate::data::Sentence;
use crate::grammar::ParamId;
use crate::grammar::SymbolId;
use crate::num::Wide;
use crate::stop;

/// Minimum number of binary rules; with fewer, forests are small.
const MIN_RULES: usize = 250;
/// Share of the tensor that has to be rules. At a tenth these passes take half the time of those over forests that have been
/// built already, at a twentieth the same.
const MIN_DENSITY: f64 = 0.1;
/// Sentences of a group: the registers hold a tile of rows of them.
const LANES: usize = 8;
/// Cells of the chart of a batch: enough to have the rules read once for many.
const BATCH_CELLS: usize = 512;

/// The sentences of a shard under a dense grammar.
pub struct Dense {
    rules: Rules,
    sentences: Vec<Words>,
    /// The parameters that the sentences touch, sorted: the order of weights and counts.
    params: Vec<ParamId>,
}

/// A sentence in words of the lexicon.
struct Words {
    words: Vec<u32>,
    multiplicity: f64,
}

/// A dense grammar without its weights. Symbols are numbered from 0; the last one has no rules, so that it is always zero, and
/// fills up lists.
struct Rules {
    /// The last one included.
    n_symbols: usize,
    start: u32,
    /// Parents A of binary rules; as many as make whole tiles.
    parents: Vec<u32>,
    /// All A → B C.
    blocks: Vec<Block>,
    /// All A → B, children before parents.
    unaries: Vec<Unary>,
    /// By word, each A with the position of A → word in the index.
    lexicon: Vec<Vec<(u32, u32)>>,
    /// Whether some parent of words has other rules as well.
    has_mixed: bool,
}

/// Binary rules whose left children are of one kind, and whose right children are.
struct Block {
    /// Whether left children are over one token, or over more.
    left_is_token: bool,
    /// Whether right children are tokens.
    right_is_token: bool,
    /// Left children B.
    left: Vec<u32>,
    /// Right children C; as many as make whole tiles.
    right: Vec<u32>,
    /// By rule: its cell in the tensor `[n_left, n_parents, n_right]`, and its position in the index.
    rules: Vec<(u32, u32)>,
}

/// A → B.
struct Unary {
    parent: u32,
    child: u32,
    /// Position in the index.
    param: u32,
}

/// Result of a shard of sentences.
pub struct Expected {
    /// By position in the index: expected uses, multiplicities counted.
    pub counts: Vec<f64>,
    /// By sentence: its total weight.
    pub totals: Vec<Wide>,
}

impl Dense {
    /// Whether inside–outside under that grammar is better done here than over forests.
    pub fn fits(binary: &BinaryGrammar) -> bool {
        let is_plain = |symbol: u32| binary.kinds[symbol as usize] == Kind::Plain;
        if binary.kinds.iter().any(|kind| matches!(kind, Kind::Adapted(_) | Kind::Substrings(_))) {
            return false;
        }
        let rules = binary.productions.iter().flatten().filter(|production| production.right.is_some());
        let mut children =
            rules.clone().flat_map(|production| [Some(production.left), production.right]).flatten();
        if rules.count() < MIN_RULES || !children.all(is_plain) {
            return false;
        }
        let rules = Rules::new(binary, |_| Some(0), &[]);
        let filled: usize = rules.blocks.iter().map(|block| block.rules.len()).sum();
        let cells: usize = rules.blocks.iter().map(|block| block.n_cells(rules.parents.len())).sum();
        filled as f64 >= MIN_DENSITY * cells as f64
    }

    /// Prepares the sentences of a shard; the grammar fits.
    pub fn new(binary: &BinaryGrammar, sentences: &[Sentence]) -> Dense {
        let mut numbers: BTreeMap<SymbolId, u32> = BTreeMap::new();
        for token in sentences.iter().flat_map(|sentence| &sentence.tokens) {
            numbers.insert(*token, 0);
        }
        numbers.values_mut().zip(0..).for_each(|(number, at)| *number = at);
        let words: Vec<SymbolId> = numbers.keys().copied().collect();
        let mut params = vec![ParamId::ONE];
        for production in binary.productions.iter().flatten() {
            let is_terminal = binary.kinds[production.left as usize] == Kind::Terminal;
            if !is_terminal || numbers.contains_key(&SymbolId(production.left)) {
                params.push(production.param);
            }
        }
        params.sort_unstable();
        params.dedup();
        let position = |param| params.binary_search(&param).ok().map(|at| at as u32);
        let rules = Rules::new(binary, position, &words);
        let sentences = sentences
            .iter()
            .map(|sentence| Words {
                words: sentence.tokens.iter().map(|token| numbers[token]).collect(),
                multiplicity: f64::from(sentence.multiplicity),
            })
            .collect();
        Dense { rules, sentences, params }
    }

    /// The parameters that the sentences touch, sorted: the order of weights and counts.
    pub fn params(&self) -> &[ParamId] {
        &self.params
    }

    /// Numbers of occurrences of the sentences.
    pub fn multiplicities(&self) -> impl Iterator<Item = f64> + '_ {
        self.sentences.iter().map(|sentence| sentence.multiplicity)
    }

    /// Bytes held.
    pub fn size(&self) -> usize {
        let rules: usize = self.rules.blocks.iter().map(|block| 8 * block.rules.len()).sum();
        let words: usize = self.sentences.iter().map(|sentence| 4 * sentence.words.len()).sum();
        rules + words + 4 * self.params.len() + 8 * self.rules.lexicon.iter().map(Vec::len).sum::<usize>()
    }

    /// Whether each of the sentences has a derivation.
    pub fn parsable(&self) -> Vec<bool> {
        // Weights that keep the totals near one: those of a uniform grammar.
        let most = self.params.len().max(1) as f64;
        let weights = vec![Wide::from_f64(1.0 / most); self.params.len()];
        self.run(&weights, false).totals.iter().map(|total| !total.is_zero()).collect()
    }

    /// Inside–outside over all sentences.
    pub fn expect(&self, weights: &[Wide]) -> Expected {
        self.run(weights, true)
    }

    fn run(&self, weights: &[Wide], with_counts: bool) -> Expected {
        let n = self.params.len();
        let mut expected = Expected { counts: vec![0.0; n], totals: vec![Wide::ZERO; self.sentences.len()] };
        // Neighbours in a batch should be of one length.
        let is_empty = |&sentence: &usize| self.sentences[sentence].words.is_empty();
        let mut order: Vec<usize> =
            (0..self.sentences.len()).filter(|sentence| !is_empty(sentence)).collect();
        order.sort_by_key(|&sentence| self.sentences[sentence].words.len());
        let arch = Arch::new();
        let left = self.pass::<f64, LANES>(arch, weights, &order, with_counts, &mut expected);
        self.pass::<Wide, 1>(arch, weights, &left, with_counts, &mut expected);
        expected
    }

    /// Adds what `sentences` yield; gives those that left the range.
    fn pass<T: Lane, const L: usize>(
        &self,
        arch: Arch,
        weights: &[Wide],
        sentences: &[usize],
        with_counts: bool,
        expected: &mut Expected,
    ) -> Vec<usize> {
        if sentences.is_empty() {
            return Vec::new();
        }
        let (weights, scales) = self.rules.weights::<T>(weights);
        let sizes = weights.blocks.iter().map(Vec::len);
        let blocks = sizes.map(|size| vec![T::ZERO; if with_counts { size } else { 0 }]).collect();
        let mut totals = Totals { blocks, params: vec![0.0; self.params.len()] };
        let mut failed = Vec::new();
        for batch in self.batches(sentences, L) {
            stop::check();
            let item = |&sentence: &usize| {
                let Words { words, multiplicity } = &self.sentences[sentence];
                Item { words, multiplicity: *multiplicity }
            };
            let items: Vec<Item> = batch.iter().map(item).collect();
            let chart = Chart::<T, L>::new(&self.rules, &weights, &items);
            let counts = with_counts.then_some(&mut totals);
            for (&sentence, total) in batch.iter().zip(arch.dispatch(Passes { chart, counts })) {
                let Some(total) = total else {
                    failed.push(sentence);
                    continue;
                };
                let scale: i64 =
                    self.sentences[sentence].words.iter().map(|&word| scales[word as usize]).sum();
                expected.totals[sentence] = Wide { exponent: total.exponent + scale, ..total };
            }
        }
        if with_counts {
            self.rules.add_counts(&weights, &totals, &mut expected.counts);
        }
        failed
    }

    /// Cuts sentences, which are in order of length, into batches of whole groups of `lanes`.
    fn batches<'a>(&self, sentences: &'a [usize], lanes: usize) -> Vec<&'a [usize]> {
        let mut batches = Vec::new();
        let (mut first, mut end, mut cells) = (0, 0, 0);
        for group in sentences.chunks(lanes) {
            let longest = self.sentences[group[group.len() - 1]].words.len();
            if cells > 0 && cells + longest * (longest + 1) / 2 > BATCH_CELLS {
                batches.push(&sentences[first..end]);
                (first, cells) = (end, 0);
            }
            end += group.len();
            cells += longest * (longest + 1) / 2;
        }
        batches.push(&sentences[first..end]);
        batches
    }
}

/// The passes over a batch, as what is run with the vectors of the machine.
struct Passes<'a, 'b, T: Lane, const L: usize> {
    chart: Chart<'a, T, L>,
    counts: Option<&'b mut Totals<T>>,
}

impl<T: Lane, const L: usize> NullaryFnOnce for Passes<'_, '_, T, L> {
    type Output = Vec<Option<Wide>>;

    #[inline(always)]
    fn call(self) -> Vec<Option<Wide>> {
        let Passes { mut chart, counts } = self;
        let totals = chart.inside();
        if let Some(counts) = counts {
            chart.outside(&totals);
            chart.count(counts);
        }
        totals
    }
}

impl Rules {
    /// The rules of `binary` and of `words`, where `position` says where in the index a parameter is.
    fn new(binary: &BinaryGrammar, position: impl Fn(ParamId) -> Option<u32>, words: &[SymbolId]) -> Rules {
        stop::check();
        let mut number = vec![u32::MAX; binary.n_symbols()];
        let plain: Vec<usize> =
            (0..binary.n_symbols()).filter(|&symbol| binary.kinds[symbol] == Kind::Plain).collect();
        plain.iter().zip(0..).for_each(|(&symbol, at)| number[symbol] = at);
        let nothing = plain.len() as u32;
        let whole_tiles = |mut symbols: Vec<u32>| {
            symbols.resize(symbols.len().next_multiple_of(passes::TILE), nothing);
            symbols
        };
        let is_binary = |&&symbol: &&usize| {
            binary.productions[symbol].iter().any(|production| production.right.is_some())
        };
        let parents = whole_tiles(plain.iter().filter(is_binary).map(|&symbol| number[symbol]).collect());
        let mut rules = Rules {
            n_symbols: plain.len() + 1,
            start: number[0],
            parents,
            blocks: Vec::new(),
            unaries: Vec::new(),
            lexicon: vec![Vec::new(); words.len()],
            has_mixed: plain.iter().any(|&symbol| {
                let is_lexical =
                    |production: &Production| binary.kinds[production.left as usize] == Kind::Terminal;
                let lexical = binary.productions[symbol].iter().filter(|production| is_lexical(production));
                (1..binary.productions[symbol].len()).contains(&lexical.count())
            }),
        };
        let all = || {
            plain.iter().flat_map(|&symbol| {
                binary.productions[symbol].iter().map(move |production| (symbol, production))
            })
        };
        for (left_is_token, right_is_token) in [(true, true), (true, false), (false, true), (false, false)] {
            let is_child = |symbol: u32, is_token| {
                if is_token {
                    binary.min_length[symbol as usize] == 1
                } else {
                    binary.max_length[symbol as usize] > 1
                }
            };
            let mut found = Vec::new();
            for (parent, production) in all() {
                if let Some(right) = production.right
                    && is_child(production.left, left_is_token)
                    && is_child(right, right_is_token)
                    && let Some(at) = position(production.param)
                {
                    found.push((
                        [parent as u32, production.left, right].map(|symbol| number[symbol as usize]),
                        at,
                    ));
                }
            }
            let distinct = |child: usize| {
                let mut symbols: Vec<u32> = found.iter().map(|(symbols, _)| symbols[child]).collect();
                symbols.sort_unstable();
                symbols.dedup();
                symbols
            };
            let (left, right) = (distinct(1), whole_tiles(distinct(2)));
            let cell = |&([a, b, c], at): &([u32; 3], u32)| {
                let place = |symbols: &[u32], symbol| symbols.binary_search(&symbol).expect("listed above");
                let row = place(&left, b) * rules.parents.len() + place(&rules.parents, a);
                ((row * right.len() + place(&right, c)) as u32, at)
            };
            let mut cells: Vec<(u32, u32)> = found.iter().map(cell).collect();
            cells.sort_unstable();
            if !cells.is_empty() {
                rules.blocks.push(Block { left_is_token, right_is_token, left, right, rules: cells });
            }
        }
        for (parent, production) in all().filter(|(_, production)| production.right.is_none()) {
            let Some(param) = position(production.param) else { continue };
            let parent = number[parent];
            if binary.kinds[production.left as usize] == Kind::Plain {
                rules.unaries.push(Unary { parent, child: number[production.left as usize], param });
            } else if let Ok(word) = words.binary_search(&SymbolId(production.left)) {
                rules.lexicon[word].push((parent, param));
            }
        }
        rules.unaries.sort_by_key(|unary| binary.rank[plain[unary.parent as usize]]);
        rules
    }

    /// The weights of the rules, and by word the exponent that its weights were divided by.
    fn weights<T: Lane>(&self, weights: &[Wide]) -> (Weights<T>, Vec<i64>) {
        let weight = |param: u32| weights[param as usize];
        let blocks = self.blocks.iter().map(|block| {
            let mut tensor = vec![T::ZERO; block.n_cells(self.parents.len())];
            block.rules.iter().for_each(|&(cell, param)| tensor[cell as usize] = T::from_wide(weight(param)));
            tensor
        });
        let unaries = self.unaries.iter().map(|unary| T::from_wide(weight(unary.param)));
        let room = if self.has_mixed { 3 } else { 1 };
        let scale = |rules: &Vec<(u32, u32)>| {
            let weights = rules.iter().map(|&(_, param)| weight(param)).filter(|weight| !weight.is_zero());
            weights.map(|weight| weight.exponent + room).max().unwrap_or(0)
        };
        let scales: Vec<i64> = self.lexicon.iter().map(scale).collect();
        let scaled = |(rules, &scale): (&Vec<(u32, u32)>, &i64)| {
            let scaled = |&(_, param): &(u32, u32)| match weight(param) {
                zero if zero.is_zero() => T::ZERO,
                Wide { mantissa, exponent } => T::from_wide(Wide { mantissa, exponent: exponent - scale }),
            };
            rules.iter().map(scaled).collect()
        };
        let lexicon = self.lexicon.iter().zip(&scales).map(scaled).collect();
        (Weights { blocks: blocks.collect(), unaries: unaries.collect(), lexicon }, scales)
    }

    /// Adds what was gathered to the counts by position in the index.
    fn add_counts<T: Lane>(&self, weights: &Weights<T>, totals: &Totals<T>, counts: &mut [f64]) {
        for ((block, weights), totals) in self.blocks.iter().zip(&weights.blocks).zip(&totals.blocks) {
            for &(cell, param) in &block.rules {
                let uses = weights[cell as usize] * totals[cell as usize];
                counts[param as usize] += uses.to_f64();
            }
        }
        counts.iter_mut().zip(&totals.params).for_each(|(count, uses)| *count += uses);
    }
}

impl Block {
    /// The splits of `[start, end)` into children of these kinds.
    fn splits(&self, start: usize, end: usize) -> Range<usize> {
        match (self.left_is_token, self.right_is_token, end - start) {
            (true, true, 2) | (true, false, 3..) => start + 1..start + 2,
            (false, true, 3..) => end - 1..end,
            (false, false, 4..) => start + 2..end - 1,
            _ => 0..0,
        }
    }

    /// Size of the tensor.
    fn n_cells(&self, n_parents: usize) -> usize {
        self.left.len() * n_parents * self.right.len()
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use super::*;
    use crate::grammar::syntax;

    /// All A → B C over `n` nonterminals, which are preterminals of two words as well.
    fn full(n: usize) -> BinaryGrammar {
        let mut text = String::new();
        for parent in 0..n {
            for child in 0..n * n {
                writeln!(text, "1 1 N{parent} --> N{} N{}", child / n, child % n).expect("strings take all");
            }
            writeln!(text, "1 1 N{parent} --> a\n1 1 N{parent} --> b").expect("strings take all");
        }
        BinaryGrammar::new(&syntax::parse(&text, "g").expect("the grammar is in order").0)
    }

    fn dense(n: usize, lengths: &[usize]) -> Dense {
        let sentence = |&length: &usize| {
            Sentence::new(
                (0..length).map(|at| SymbolId((n + (at * at + length) % 3 / 2) as u32)).collect(),
                1 + length as u32 % 2,
            )
        };
        Dense::new(&full(n), &lengths.iter().map(sentence).collect::<Vec<_>>())
    }

    fn weights(dense: &Dense, ln: f64) -> Vec<Wide> {
        (0..dense.params.len()).map(|at| Wide::from_ln((at as f64 * 1.7).sin() + ln)).collect()
    }

    fn bits(expected: &Expected) -> (Vec<u64>, Vec<(u64, i64)>) {
        let wide = |total: &Wide| (total.mantissa.to_bits(), total.exponent);
        (expected.counts.iter().map(|x| x.to_bits()).collect(), expected.totals.iter().map(wide).collect())
    }

    fn passed<T: Lane, const L: usize>(
        dense: &Dense,
        arch: Arch,
        weights: &[Wide],
    ) -> (Expected, Vec<usize>) {
        let (counts, totals) = (vec![0.0; weights.len()], vec![Wide::ZERO; dense.sentences.len()]);
        let mut expected = Expected { counts, totals };
        let all: Vec<usize> = (0..dense.sentences.len()).collect();
        let failed = dense.pass::<T, L>(arch, weights, &all, true, &mut expected);
        (expected, failed)
    }

    #[test]
    fn wide_vectors_and_none_give_the_same_bits() {
        let dense = dense(7, &(1..=20).collect::<Vec<_>>());
        let weights = weights(&dense, -4.0);
        let [best, scalar] =
            [Arch::new(), Arch::Scalar].map(|arch| passed::<f64, LANES>(&dense, arch, &weights));
        assert!(best.1.is_empty() && best.0.counts.iter().sum::<f64>() > 100.0);
        assert_eq!(bits(&best.0), bits(&scalar.0));
    }

    #[test]
    fn the_passes_that_have_no_range_agree() {
        let dense = dense(4, &[1, 2, 3, 5, 9, 9, 9, 30]);
        let weights = weights(&dense, -3.0);
        let (real, failed) = passed::<f64, LANES>(&dense, Arch::new(), &weights);
        let (wide, _) = passed::<Wide, 1>(&dense, Arch::new(), &weights);
        assert!(failed.is_empty());
        for (real, wide) in real.counts.iter().zip(&wide.counts) {
            assert!((real - wide).abs() < 1e-12 * wide.max(1.0), "{real} and {wide}");
        }
        for (real, wide) in real.totals.iter().zip(&wide.totals) {
            assert!((real.ln() - wide.ln()).abs() < 1e-12 * wide.ln().abs().max(1.0));
        }
    }

    #[test]
    fn sentences_beyond_the_range_are_counted_once() {
        // e^−40 per rule: the sentence of 60 tokens is at e^−2400, far below what an f64 holds.
        let dense = dense(3, &[60, 2, 3, 60]);
        let near = weights(&dense, -1.0);
        let far = weights(&dense, -40.0);
        let (_, failed) = passed::<f64, LANES>(&dense, Arch::new(), &far);
        assert_eq!(failed, [0, 3]);
        // Every derivation of n tokens has 2n − 1 rules.
        let (near, far) = (dense.expect(&near), dense.expect(&far));
        for (near, far) in near.counts.iter().zip(&far.counts) {
            assert!((near - far).abs() < 1e-9 * near.max(1.0), "{near} and {far}");
        }
        for ((near, far), words) in near.totals.iter().zip(&far.totals).zip(&dense.sentences) {
            let rules = 2.0 * words.words.len() as f64 - 1.0;
            assert!((near.ln() - 39.0 * rules - far.ln()).abs() < 1e-9 * far.ln().abs());
        }
    }

    #[test]
    fn small_thin_and_other_grammars_keep_their_forests() {
        assert!(Dense::fits(&full(7)));
        assert!(!Dense::fits(&full(6)), "216 rules");
        let fits =
            |text: &str| Dense::fits(&BinaryGrammar::new(&syntax::parse(text, "g").expect("in order").0));
        let mut rules: Vec<String> = Vec::new();
        for rule in 0..40 * 40 {
            let (parent, left) = (rule / 40, rule % 40);
            rules.push(format!("1 1 N{parent} --> N{left} N{}", (parent + left) % 40));
        }
        (0..40).for_each(|symbol| rules.push(format!("1 1 N{symbol} --> a")));
        assert!(!fits(&rules.join("\n")), "1,600 of 64,000 rules");
        let mut rules: Vec<String> = Vec::new();
        for rule in 0..10 * 10 * 10 {
            rules.push(format!("1 1 N{} --> N{} N{}", rule / 100, rule / 10 % 10, rule % 10));
        }
        (0..10).for_each(|symbol| rules.push(format!("1 1 N{symbol} --> a")));
        assert!(fits(&rules.join("\n")));
        assert!(
            !fits(&[rules.join("\n").as_str(), "1 1 N0 --> N1 a"].join("\n")),
            "a terminal in a binary rule"
        );
        assert!(
            !fits(&[rules.join("\n").as_str(), "1 1 N0 --> X", "X --> N1 N2"].join("\n")),
            "an adapted symbol"
        );
    }
}
