//! Statistics of a text: utterances, symbols, and, if it marks them, words.
//!
//! In: a corpus, of whose gold analyses the first one counts. Out: [`Statistics`]. What the program `wordseg-stats` has is under its names; entropies are in bits.
//!
//! `entropy` is wordseg's, Σ −p log₂ p / (N − 1) over all word tokens, N being the number of symbols of the text. The entropy that it is named after is `nse`: of an
//! utterance of N symbols, Σ −P log₂ P / (N − 1) over all of its segmentations into words of the text, with probabilities P in proportion to the product of the relative frequencies
//! of their words; and of a text its mean over utterances of two symbols or more (Fourtassi, Börschinger, Johnson & Dupoux 2013). It says how ambiguous a text remains
//! to those who know all of its words.

use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;

use super::corpus::{Corpus, write_line};
use crate::num::special::{exp, ln};

/// Statistics of a text.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Statistics {
    /// Number of utterances, empty lines left out.
    pub nutts: u64,
    /// Number of symbols.
    pub nsymbol_tokens: u64,
    /// Number of distinct symbols.
    pub nsymbol_types: u64,
    /// Number of symbols that occur once.
    pub nsymbol_hapax: u64,
    /// Entropy of a symbol.
    pub symbol_entropy: f64,
    /// Symbols per utterance.
    pub symbols_per_utterance: Lengths,
    /// Statistics of words; `None` if the text marks none.
    #[serde(flatten)]
    pub words: Option<WordStatistics>,
}

/// Statistics of the words of a text.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct WordStatistics {
    /// Number of utterances of a single word.
    pub nutts_single_word: u64,
    /// Number of words.
    pub nword_tokens: u64,
    /// Number of distinct words.
    pub nword_types: u64,
    /// Number of words that occur once.
    pub nword_hapax: u64,
    /// `nword_types / nword_tokens`.
    pub type_token_ratio: f64,
    /// Mean share of distinct words in ten successive words; `None` of fewer than ten.
    pub mattr: Option<f64>,
    /// Entropy of a word.
    pub word_entropy: f64,
    /// The normalised segmentation entropy of wordseg; `None` of a single symbol.
    pub entropy: Option<f64>,
    /// The normalised segmentation entropy of the paper; `None` if no utterance has two symbols.
    pub nse: Option<f64>,
    /// Words per utterance.
    pub words_per_utterance: Lengths,
    /// Symbols per word.
    pub symbols_per_word: Lengths,
    /// Words with their numbers of occurrences, the most frequent first, those of equal numbers in the order of their code points.
    pub most_frequent: Vec<Word>,
}

/// A distinct word.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Word {
    /// As it is printed.
    pub word: String,
    /// Number of its occurrences.
    pub count: u64,
}

/// Mean and median of lengths.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Lengths {
    /// Their mean.
    pub mean: f64,
    /// Their median.
    pub median: f64,
}

impl Lengths {
    /// Of at least one length.
    fn of(lengths: impl Iterator<Item = usize>) -> Lengths {
        let mut lengths: Vec<usize> = lengths.collect();
        lengths.sort_unstable();
        let n = lengths.len();
        let median = (lengths[(n - 1) / 2] + lengths[n / 2]) as f64 / 2.0;
        Lengths { mean: lengths.iter().sum::<usize>() as f64 / n as f64, median }
    }
}

/// Number of words in a window of `mattr`.
const WINDOW: usize = 10;

impl Statistics {
    /// Of a corpus, with its `n` most frequent words.
    pub fn of(corpus: &Corpus, n: usize) -> Statistics {
        let sentences = &corpus.sentences;
        let mut uses = vec![0; corpus.symbols.len()];
        sentences.iter().flatten().for_each(|&symbol| uses[symbol as usize] += 1);
        uses.retain(|&uses| uses > 0);
        Statistics {
            nutts: sentences.len() as u64,
            nsymbol_tokens: uses.iter().sum(),
            nsymbol_types: uses.len() as u64,
            nsymbol_hapax: n_once(&uses),
            symbol_entropy: entropy(&uses),
            symbols_per_utterance: Lengths::of(sentences.iter().map(Vec::len)),
            words: corpus.gold.as_ref().map(|_| WordStatistics::of(corpus, n)),
        }
    }
}

impl WordStatistics {
    fn of(corpus: &Corpus, n: usize) -> WordStatistics {
        let ends = corpus.segmentation();
        let utterances: Vec<Vec<&[u32]>> =
            corpus.sentences.iter().zip(&ends).map(|(sentence, ends)| words(sentence, ends)).collect();
        let tokens: Vec<&[u32]> = utterances.iter().flatten().copied().collect();
        let mut counts: FxHashMap<&[u32], u64> = FxHashMap::default();
        tokens.iter().for_each(|word| *counts.entry(word).or_default() += 1);
        let uses = sorted(counts.values().copied());
        let (n_tokens, n_symbols) = (tokens.len() as f64, corpus.n_symbols());
        let p_log_p =
            |&uses: &u64| uses as f64 * (uses as f64 / n_tokens) * libm::log2(uses as f64 / n_tokens);
        let printed =
            |word: &[u32]| write_line(&corpus.symbols, word, &[word.len() as u32], corpus.effective_unit());
        let mut words: Vec<Word> =
            counts.iter().map(|(word, &count)| Word { word: printed(word), count }).collect();
        words.sort_unstable_by(|a, b| b.count.cmp(&a.count).then_with(|| a.word.cmp(&b.word)));
        words.truncate(n);
        WordStatistics {
            nutts_single_word: utterances.iter().filter(|words| words.len() == 1).count() as u64,
            nword_tokens: tokens.len() as u64,
            nword_types: counts.len() as u64,
            nword_hapax: n_once(&uses),
            type_token_ratio: counts.len() as f64 / n_tokens,
            mattr: mattr(&tokens),
            word_entropy: entropy(&uses),
            entropy: (n_symbols > 1).then(|| -uses.iter().map(p_log_p).sum::<f64>() / (n_symbols - 1) as f64),
            nse: nse(&corpus.sentences, &counts, n_tokens),
            words_per_utterance: Lengths::of(utterances.iter().map(Vec::len)),
            symbols_per_word: Lengths::of(tokens.iter().map(|word| word.len())),
            most_frequent: words,
        }
    }
}

fn words<'a>(sentence: &'a [u32], ends: &[u32]) -> Vec<&'a [u32]> {
    let starts = [0].into_iter().chain(ends.iter().copied());
    starts.zip(ends).map(|(start, &end)| &sentence[start as usize..end as usize]).collect()
}

/// Ascending, so that sums do not depend on the order of a hash map.
fn sorted(counts: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut counts: Vec<u64> = counts.collect();
    counts.sort_unstable();
    counts
}

fn n_once(uses: &[u64]) -> u64 {
    uses.iter().filter(|&&uses| uses == 1).count() as u64
}

/// Entropy of the relative frequencies of items with these counts, all above 0.
fn entropy(uses: &[u64]) -> f64 {
    let n = uses.iter().sum::<u64>() as f64;
    let sum: f64 = uses.iter().map(|&uses| uses as f64 / n * libm::log2(n / uses as f64)).sum();
    sum.max(0.0)
}

fn mattr(tokens: &[&[u32]]) -> Option<f64> {
    let windows = tokens.windows(WINDOW);
    let n = windows.len();
    let distinct: usize = windows.map(|window| window.iter().collect::<FxHashSet<_>>().len()).sum();
    (n > 0).then(|| distinct as f64 / (n * WINDOW) as f64)
}

/// The mean of the normalised segmentation entropies of utterances of two symbols or more.
fn nse(sentences: &[Vec<u32>], counts: &FxHashMap<&[u32], u64>, n_tokens: f64) -> Option<f64> {
    let longest = counts.keys().map(|word| word.len()).max().unwrap_or_default();
    let long = sentences.iter().filter(|sentence| sentence.len() > 1);
    let (mut sum, mut n) = (0.0, 0);
    for sentence in long {
        let ln_probability = |word: &[u32]| counts.get(word).map(|&count| ln(count as f64 / n_tokens));
        sum += segmentation_entropy(sentence, longest, ln_probability) / (sentence.len() - 1) as f64;
        n += 1;
    }
    (n > 0).then(|| sum / f64::from(n))
}

/// Entropy of the segmentations of a sentence into words of at most `longest` symbols, in bits.
///
/// Of a prefix, the segmentations whose last word begins at j have the share wⱼ = α(j) p(word) / α, and H = Σ wⱼ (H(j) − log₂ wⱼ).
fn segmentation_entropy(
    sentence: &[u32],
    longest: usize,
    ln_probability: impl Fn(&[u32]) -> Option<f64>,
) -> f64 {
    // By prefix: ln α, and H; α = 0 if it has no segmentation.
    let mut prefixes: Vec<(f64, f64)> = vec![(0.0, 0.0)];
    for end in 1..=sentence.len() {
        let last = |start: usize| Some((start, prefixes[start].0 + ln_probability(&sentence[start..end])?));
        let words: Vec<(usize, f64)> = (end.saturating_sub(longest)..end).filter_map(last).collect();
        let most = words.iter().map(|word| word.1).fold(f64::NEG_INFINITY, f64::max);
        if most == f64::NEG_INFINITY {
            prefixes.push((most, 0.0));
            continue;
        }
        let alpha = most + ln(words.iter().map(|word| exp(word.1 - most)).sum());
        let of = |&(start, ln_weight): &(usize, f64)| {
            let ln_share = ln_weight - alpha;
            exp(ln_share) * (prefixes[start].1 - ln_share.min(0.0) / std::f64::consts::LN_2)
        };
        let of_positive = words.iter().filter(|word| word.1 > f64::NEG_INFINITY).map(of);
        let entropy = of_positive.sum();
        prefixes.push((alpha, entropy));
    }
    prefixes[sentence.len()].1
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::data::corpus::Options;

    fn of(text: &str) -> Statistics {
        let (corpus, _) = Corpus::read(text.as_bytes(), "text", &Options::default()).unwrap();
        Statistics::of(&corpus, 3)
    }

    #[test]
    fn a_case_done_by_hand() {
        let found = of("a b a\n\nab\n");
        assert_eq!(
            (found.nutts, found.nsymbol_tokens, found.nsymbol_types, found.nsymbol_hapax),
            (2, 5, 2, 0)
        );
        assert_eq!(found.symbols_per_utterance, Lengths { mean: 2.5, median: 2.5 });
        let words = found.words.unwrap();
        assert_eq!((words.nutts_single_word, words.nword_tokens), (1, 4));
        assert_eq!((words.nword_types, words.nword_hapax, words.type_token_ratio), (3, 2, 0.75));
        assert_eq!((words.word_entropy, words.mattr), (1.5, None));
        assert_eq!(words.words_per_utterance, Lengths { mean: 2.0, median: 2.0 });
        assert_eq!(words.symbols_per_word, Lengths { mean: 1.25, median: 1.0 });
        // Tokens a, b, a, ab: two halves of one bit each, two quarters of two bits.
        assert_eq!(words.entropy, Some((2.0 * 0.5 + 2.0 * 0.25 * 2.0) / 4.0));
        // aba: a b a and ab a, 1/16 and 1/8; ab: a b and ab, 1/8 and 1/4. Both in the ratio of one to two.
        let third = (libm::log2(3.0) + 2.0 * libm::log2(1.5)) / 3.0;
        assert!((words.nse.unwrap() - (third / 2.0 + third) / 2.0).abs() < 1e-12, "{words:?}");
        let word = |word: &str, count| Word { word: word.to_owned(), count };
        assert_eq!(words.most_frequent, [word("a", 2), word("ab", 1), word("b", 1)]);
    }

    #[test]
    fn a_text_without_boundaries_has_no_words() {
        let found = of("ab\nc\n");
        assert_eq!(found.words, None);
        assert!((found.symbol_entropy - libm::log2(3.0)).abs() < 1e-12);
    }

    /// −log₂ and the entropy of all segmentations of a word, by enumeration.
    fn enumerated(symbols: &[char], counts: &BTreeMap<String, u64>, n: f64) -> f64 {
        let n_inner = symbols.len() - 1;
        let weights: Vec<f64> = (0..1_u32 << n_inner)
            .map(|set| {
                let mut weight = 1.0;
                let mut word = String::new();
                for (at, symbol) in symbols.iter().enumerate() {
                    word.push(*symbol);
                    if at == n_inner || set >> at & 1 == 1 {
                        weight *=
                            counts.get(&std::mem::take(&mut word)).map_or(0.0, |&count| count as f64 / n);
                    }
                }
                weight
            })
            .collect();
        let z: f64 = weights.iter().sum();
        weights.iter().filter(|w| **w > 0.0).map(|w| -(w / z) * libm::log2(w / z)).sum::<f64>()
            / n_inner as f64
    }

    proptest! {
        /// Statistics equal counts by hand.
        #[test]
        fn statistics_are_counts(lines in prop::collection::vec(prop::collection::vec("[ab]{1,3}", 1..8), 2..12)) {
            let text: String = lines.iter().map(|line| line.join(" ") + "\n").collect();
            let found = of(&text);
            let tokens: Vec<&String> = lines.iter().flatten().collect();
            let mut counts: BTreeMap<String, u64> = BTreeMap::new();
            tokens.iter().for_each(|word| *counts.entry(word.to_string()).or_default() += 1);
            let n_symbols = tokens.iter().map(|word| word.len()).sum::<usize>();
            prop_assert_eq!(found.nsymbol_tokens, n_symbols as u64);
            prop_assert_eq!(found.words.is_some(), lines.iter().any(|line| line.len() > 1));
            let Some(words) = found.words else { return Ok(()) };
            prop_assert_eq!(words.nword_tokens, tokens.len() as u64);
            prop_assert_eq!(words.nword_types, counts.len() as u64);
            prop_assert_eq!(words.nword_hapax, counts.values().filter(|n| **n == 1).count() as u64);
            prop_assert_eq!(words.nutts_single_word, lines.iter().filter(|line| line.len() == 1).count() as u64);
            let most = counts.iter().max_by(|a, b| a.1.cmp(b.1).then(b.0.cmp(a.0))).unwrap();
            prop_assert_eq!((&words.most_frequent[0].word, words.most_frequent[0].count), (most.0, *most.1));
            let n = tokens.len() as f64;
            let entropy: f64 = counts.values().map(|&c| -(c as f64 / n) * libm::log2(c as f64 / n)).sum();
            prop_assert!((words.word_entropy - entropy).abs() < 1e-9);
            let of_wordseg: f64 = tokens.iter().map(|word| counts[*word] as f64 / n).map(|p| -p * libm::log2(p)).sum();
            prop_assert!((words.entropy.unwrap() - of_wordseg / (n_symbols - 1) as f64).abs() < 1e-9);
            let windows: Vec<f64> = tokens.windows(10).map(|window| {
                let mut distinct = window.to_vec();
                distinct.sort();
                distinct.dedup();
                distinct.len() as f64 / 10.0
            }).collect();
            let mean = windows.iter().sum::<f64>() / windows.len() as f64;
            prop_assert!(words.mattr.map_or(windows.is_empty(), |mattr| (mattr - mean).abs() < 1e-9));
            let utterances: Vec<Vec<char>> = lines.iter().map(|line| line.concat().chars().collect()).collect();
            let short: Vec<&Vec<char>> = utterances.iter().filter(|symbols| (2..12).contains(&symbols.len())).collect();
            if short.len() == utterances.iter().filter(|symbols| symbols.len() > 1).count() && !short.is_empty() {
                let sum: f64 = short.iter().map(|symbols| enumerated(symbols, &counts, n)).sum();
                prop_assert!((words.nse.unwrap() - sum / short.len() as f64).abs() < 1e-9);
            }
        }
    }
}
