//! Segmentations without a grammar: floors for a score, in one pass over the text.
//!
//! - *Transitional probabilities* (Saffran, Newport & Aslin 1996): p(y | x) of neighbours xy; a boundary where it is lower than at both
//!   neighbouring positions.
//! - *Mutual information* (Swingley 2005): the same with ln p(xy) / p(x) p(y).
//! - *Phrasal DiBS* (Daland & Pierrehumbert 2011): a boundary in xy where its probability is above one half, by Bayes' rule from
//!   how often sentences end with x and begin with y: p(# | xy) = p(x | end) p(#) p(y | begin) / p(xy).
//! - *PUDDLE* (Monaghan & Christiansen 2010): a lexicon that grows sentence by sentence. The most frequent known word in a sentence is cut
//!   out, if what is left before it ends as some word ends, and what is left behind it begins as some word begins; what has no known
//!   word is a new word.
//!
//! In: sentences of symbols. Out: of each the ends of its segments, ascending, the last one its length, and [what was learned](Learned), which
//! segments new sentences. Nothing is drawn: results depend on the text and its order alone.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize, Serializer};

/// A way to segment a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Baseline {
    /// Local minima of transitional probabilities.
    #[serde(rename = "tp")]
    Transitions,
    /// Local minima of mutual information.
    #[serde(rename = "mi")]
    MutualInformation,
    /// Phrasal DiBS.
    Dibs,
    /// PUDDLE.
    Puddle,
}

/// p(#) of [`Baseline::Dibs`], which the text does not give: that of words of four symbols.
const BOUNDARY: f64 = 0.25;

/// Symbols that [`Baseline::Puddle`] compares at the edges of words.
const EDGE: usize = 2;

impl Baseline {
    /// All of them.
    pub const ALL: [Baseline; 4] =
        [Baseline::Transitions, Baseline::MutualInformation, Baseline::Dibs, Baseline::Puddle];

    /// The name, as in commands.
    pub fn name(self) -> &'static str {
        match self {
            Baseline::Transitions => "tp",
            Baseline::MutualInformation => "mi",
            Baseline::Dibs => "dibs",
            Baseline::Puddle => "puddle",
        }
    }

    /// What it is, in words.
    pub fn about(self) -> &'static str {
        match self {
            Baseline::Transitions => "local minima of transitional probabilities",
            Baseline::MutualInformation => "local minima of mutual information",
            Baseline::Dibs => "phrasal DiBS",
            Baseline::Puddle => "PUDDLE",
        }
    }

    /// The ends of the segments of each sentence: by PUDDLE as it meets them, by the others with what they have learned of all.
    ///
    /// ```
    /// use grammaton::models::baselines::Baseline;
    ///
    /// // "thedog", "thecat", "the": PUDDLE cuts out what it has met as a sentence.
    /// let sentences = [vec![0, 1, 2], vec![0, 1, 2, 3, 4, 5], vec![0, 1, 2, 6, 7, 8]];
    /// assert_eq!(Baseline::Puddle.segment(&sentences)[0], [3]);
    /// // "dogthe" is new.
    /// assert_eq!(Baseline::Puddle.learn(&sentences).segment(&[3, 4, 5, 0, 1, 2]), [3, 6]);
    /// ```
    pub fn segment(self, sentences: &[Vec<u32>]) -> Vec<Vec<u32>> {
        if let Baseline::Puddle = self {
            let mut words = Words::default();
            return sentences.iter().map(|sentence| words.learn(sentence)).collect();
        }
        let learned = self.learn(sentences);
        sentences.iter().map(|sentence| learned.segment(sentence)).collect()
    }

    /// What it learns of sentences.
    pub fn learn(self, sentences: &[Vec<u32>]) -> Learned {
        match self {
            Baseline::Transitions => Learned::Transitions(Counts::of(sentences)),
            Baseline::MutualInformation => Learned::MutualInformation(Counts::of(sentences)),
            Baseline::Dibs => Learned::Dibs(Counts::of(sentences)),
            Baseline::Puddle => {
                let mut words = Words::default();
                sentences.iter().for_each(|sentence| drop(words.learn(sentence)));
                Learned::Puddle(words)
            }
        }
    }
}

/// What a baseline has learned of a text.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Learned {
    /// [`Baseline::Transitions`].
    Transitions(Counts),
    /// [`Baseline::MutualInformation`].
    MutualInformation(Counts),
    /// [`Baseline::Dibs`].
    Dibs(Counts),
    /// [`Baseline::Puddle`].
    Puddle(Words),
}

impl Learned {
    /// The baseline.
    pub fn baseline(&self) -> Baseline {
        match self {
            Learned::Transitions(_) => Baseline::Transitions,
            Learned::MutualInformation(_) => Baseline::MutualInformation,
            Learned::Dibs(_) => Baseline::Dibs,
            Learned::Puddle(_) => Baseline::Puddle,
        }
    }

    /// The ends of the segments of a sentence, which may have symbols and pairs that the text lacks. Nothing is learned from it.
    pub fn segment(&self, sentence: &[u32]) -> Vec<u32> {
        match self {
            Learned::Transitions(counts) => minima(sentence, |x, y| counts.transition(x, y)),
            Learned::MutualInformation(counts) => minima(sentence, |x, y| counts.association(x, y)),
            Learned::Dibs(counts) => dibs(sentence, counts),
            Learned::Puddle(words) => words.read(sentence),
        }
    }
}

/// Counts of symbols and of pairs of neighbours.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Counts {
    /// Number of sentences.
    n_sentences: f64,
    /// Number of pairs.
    n: f64,
    #[serde(serialize_with = "sorted")]
    pairs: FxHashMap<(u32, u32), f64>,
    /// Pairs that begin with a symbol.
    #[serde(serialize_with = "sorted")]
    first: FxHashMap<u32, f64>,
    /// Pairs that end with a symbol.
    #[serde(serialize_with = "sorted")]
    second: FxHashMap<u32, f64>,
    /// Sentences that begin with a symbol.
    #[serde(serialize_with = "sorted")]
    begins: FxHashMap<u32, f64>,
    /// Sentences that end with it.
    #[serde(serialize_with = "sorted")]
    ends: FxHashMap<u32, f64>,
}

/// A map in the order of its keys.
fn sorted<K: Ord + Serialize, V: Serialize, S: Serializer>(
    map: &FxHashMap<K, V>,
    out: S,
) -> Result<S::Ok, S::Error> {
    map.iter().collect::<BTreeMap<_, _>>().serialize(out)
}

/// A count, 0 of what was not met.
fn count<K: Eq + std::hash::Hash>(counts: &FxHashMap<K, f64>, of: &K) -> f64 {
    counts.get(of).copied().unwrap_or(0.0)
}

/// A share of a count, 0 of nothing.
fn share(part: f64, of: f64) -> f64 {
    if of > 0.0 { part / of } else { 0.0 }
}

impl Counts {
    fn of(sentences: &[Vec<u32>]) -> Counts {
        let mut counts = Counts { n_sentences: sentences.len() as f64, ..Counts::default() };
        for sentence in sentences {
            for pair in sentence.windows(2) {
                counts.n += 1.0;
                *counts.pairs.entry((pair[0], pair[1])).or_default() += 1.0;
                *counts.first.entry(pair[0]).or_default() += 1.0;
                *counts.second.entry(pair[1]).or_default() += 1.0;
            }
            if let [first, ..] = sentence[..] {
                *counts.begins.entry(first).or_default() += 1.0;
            }
            if let [.., last] = sentence[..] {
                *counts.ends.entry(last).or_default() += 1.0;
            }
        }
        counts
    }

    /// p(y | x) of neighbours xy.
    fn transition(&self, x: u32, y: u32) -> f64 {
        share(count(&self.pairs, &(x, y)), count(&self.first, &x))
    }

    /// p(xy) / p(x) p(y), of the same order as the mutual information.
    fn association(&self, x: u32, y: u32) -> f64 {
        share(self.n * count(&self.pairs, &(x, y)), count(&self.first, &x) * count(&self.second, &y))
    }
}

/// Boundaries where `value` of two neighbours is lower than at both neighbouring positions.
fn minima(sentence: &[u32], value: impl Fn(u32, u32) -> f64) -> Vec<u32> {
    let values: Vec<f64> = sentence.windows(2).map(|pair| value(pair[0], pair[1])).collect();
    let is_minimum = |at: &usize| values[at - 1] > values[*at] && values[*at] < values[at + 1];
    let inner = (1..values.len().saturating_sub(1)).filter(is_minimum).map(|at| at as u32 + 1);
    inner.chain([sentence.len() as u32]).collect()
}

fn dibs(sentence: &[u32], counts: &Counts) -> Vec<u32> {
    let Counts { n_sentences, n, pairs, begins, ends, .. } = counts;
    let is_boundary = |x: u32, y: u32| {
        let of_sentences = |counts, symbol| share(count(counts, &symbol), *n_sentences);
        of_sentences(ends, x) * BOUNDARY * of_sentences(begins, y) > 0.5 * share(count(pairs, &(x, y)), *n)
    };
    let positions = 1..sentence.len();
    let inner = positions.filter(|&at| is_boundary(sentence[at - 1], sentence[at])).map(|at| at as u32);
    inner.chain([sentence.len() as u32]).collect()
}

/// The lexicon of PUDDLE.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Words {
    /// Uses of each word.
    #[serde(serialize_with = "sorted")]
    uses: FxHashMap<Vec<u32>, u32>,
    /// Symbols of the longest one.
    longest: u32,
    /// The first symbols of words, and the last ones.
    #[serde(serialize_with = "sorted")]
    begins: FxHashMap<Vec<u32>, u32>,
    #[serde(serialize_with = "sorted")]
    ends: FxHashMap<Vec<u32>, u32>,
}

impl Words {
    /// Segments a sentence, and adds its segments.
    fn learn(&mut self, sentence: &[u32]) -> Vec<u32> {
        let ends = self.read(sentence);
        let mut start = 0;
        for &end in &ends {
            self.add(&sentence[start as usize..end as usize]);
            start = end;
        }
        ends
    }

    /// Segments a sentence.
    fn read(&self, sentence: &[u32]) -> Vec<u32> {
        let mut ends = Vec::new();
        self.segment(sentence, 0..sentence.len(), &mut ends);
        ends.into_iter().map(|end| end as u32).collect()
    }

    /// Adds the ends of the segments of a part of a sentence.
    fn segment(&self, sentence: &[u32], part: std::ops::Range<usize>, ends: &mut Vec<usize>) {
        let Some(word) = self.most_frequent(sentence, &part) else {
            ends.extend((!part.is_empty()).then_some(part.end));
            return;
        };
        self.segment(sentence, part.start..word.start, ends);
        ends.push(word.end);
        self.segment(sentence, word.end..part.end, ends);
    }

    /// The most frequent known word in a part of a sentence; of equally frequent ones the longest, then the first.
    fn most_frequent(
        &self,
        sentence: &[u32],
        part: &std::ops::Range<usize>,
    ) -> Option<std::ops::Range<usize>> {
        let mut best: Option<((u32, usize), std::ops::Range<usize>)> = None;
        for start in part.clone() {
            let before = &sentence[part.start..start];
            if !before.is_empty() && !self.ends.contains_key(last(before)) {
                continue;
            }
            for end in start + 1..=part.end.min(start.saturating_add(self.longest as usize)) {
                let behind = &sentence[end..part.end];
                let rank = self.uses.get(&sentence[start..end]).map(|&uses| (uses, end - start));
                if let Some(rank) = rank
                    && best.as_ref().is_none_or(|(known, _)| rank > *known)
                    && (behind.is_empty() || self.begins.contains_key(first(behind)))
                {
                    best = Some((rank, start..end));
                }
            }
        }
        best.map(|(_, word)| word)
    }

    fn add(&mut self, word: &[u32]) {
        *self.uses.entry(word.to_vec()).or_default() += 1;
        self.longest = self.longest.max(word.len() as u32);
        *self.begins.entry(first(word).to_vec()).or_default() += 1;
        *self.ends.entry(last(word).to_vec()).or_default() += 1;
    }
}

fn first(word: &[u32]) -> &[u32] {
    &word[..word.len().min(EDGE)]
}

fn last(word: &[u32]) -> &[u32] {
    &word[word.len().saturating_sub(EDGE)..]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Sentences of letters, and the segmentation as text.
    fn segmented(baseline: Baseline, lines: &[&str]) -> Vec<String> {
        let sentences: Vec<Vec<u32>> =
            lines.iter().map(|line| line.bytes().map(u32::from).collect()).collect();
        let ends = baseline.segment(&sentences);
        let text = |(line, ends): (&&str, Vec<u32>)| {
            let mut start = 0;
            let mut words = Vec::new();
            for end in ends {
                words.push(&line[start..end as usize]);
                start = end as usize;
            }
            words.join(" ")
        };
        lines.iter().zip(ends).map(text).collect()
    }

    #[test]
    fn puddle_cuts_out_known_words_at_known_edges() {
        let lines = ["the", "kitty", "thekitty", "thedog", "dogthe", "akitty"];
        // No word begins as "dog" does, so that "thedog" is new; then one ends as it does. None ends with "a".
        let expected = ["the", "kitty", "the kitty", "thedog", "dog the", "akitty"];
        assert_eq!(segmented(Baseline::Puddle, &lines), expected);
        let lines = ["the", "do", "dog", "thedog"];
        assert_eq!(segmented(Baseline::Puddle, &lines)[3], "the dog");
    }

    #[test]
    fn boundaries_are_minima_of_transitional_probabilities() {
        // Within words the next letter is certain; at boundaries it is one of three.
        let lines = ["abccdeabc", "cdefghabc", "fghcdefgh", "abcfghcde"];
        let found = segmented(Baseline::Transitions, &lines);
        assert_eq!(found[1], "cde fgh abc");
        assert_eq!(segmented(Baseline::MutualInformation, &lines)[1], "cde fgh abc");
    }

    #[test]
    fn dibs_cuts_where_sentences_end_and_begin() {
        let mut lines = vec!["ab", "cd", "ef", "gh"];
        lines.push("abcd");
        let found = segmented(Baseline::Dibs, &lines);
        // p(b | end) p(#) p(c | begin) = 1/5 · 1/4 · 1/5 = .01 and p(bc) = 1/7: no boundary in so small a text.
        assert_eq!(found[4], "abcd");
        lines.splice(0..4, ["ab", "ab", "ab", "cd", "cd", "cd"].repeat(8));
        assert_eq!(segmented(Baseline::Dibs, &lines)[48], "ab cd");
    }

    proptest! {
        /// Law: of every sentence, known or new, the segments are not empty and are all of it. What was learned is what is read from a file.
        #[test]
        fn segments_are_all_of_a_sentence(
            sentences in prop::collection::vec(prop::collection::vec(0..4u32, 1..12), 0..12),
            new in prop::collection::vec(prop::collection::vec(0..6u32, 1..12), 0..4),
        ) {
            for baseline in Baseline::ALL {
                let (mut ends, learned) = (baseline.segment(&sentences), baseline.learn(&sentences));
                prop_assert_eq!((ends.len(), learned.baseline()), (sentences.len(), baseline));
                ends.extend(new.iter().map(|sentence| learned.segment(sentence)));
                let bytes = bincode::serde::encode_to_vec(&learned, bincode::config::legacy()).unwrap();
                let (read, _): (Learned, usize) = bincode::serde::decode_from_slice(&bytes, bincode::config::legacy()).unwrap();
                prop_assert_eq!(&read, &learned);
                for (ends, sentence) in ends.iter().zip(sentences.iter().chain(&new)) {
                    prop_assert!(ends.windows(2).all(|pair| pair[0] < pair[1]) && ends[0] > 0, "{:?}", baseline);
                    prop_assert_eq!(ends.last(), Some(&(sentence.len() as u32)));
                }
            }
        }
    }
}
