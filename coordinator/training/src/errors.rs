//! The errors of a segmentation by kind: wrong cuts (`dog s` for `dogs`) and wrong joins (`thedog` for `the dog`), as pairs of segments.
//!
//! In: gold and found segmentation, sentence by sentence. Out: the number of errors of each kind, and its most frequent pairs with an example. Memory is
//! bounded: of more than `PAIRS` different pairs of a kind the rarest are dropped, and may be counted too low if they return.

use std::cmp::Reverse;

use grammaton::data::corpus::{Corpus, Unit};
use rustc_hash::FxHashMap;

use crate::lexicon::excerpt;

/// Pairs of each kind that are shown.
pub const SHOWN: usize = 20;
/// Different pairs of each kind that are counted at the same time.
const PAIRS: usize = 100_000;

/// Errors of a segmentation.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Errors {
    /// Boundaries where gold has none.
    pub cuts: OfKind,
    /// Boundaries of gold that were not found.
    pub joins: OfKind,
}

/// Errors of a kind.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct OfKind {
    /// Number of all of them.
    pub n: u64,
    /// The most frequent pairs of segments, at most [`SHOWN`].
    pub most: Vec<Pair>,
}

/// Two segments beside each other: of a wrong cut the ones that were found, of a wrong join those of gold.
#[derive(Clone, PartialEq, Debug)]
pub struct Pair {
    /// With a boundary between them.
    pub apart: String,
    /// Without it.
    pub joined: String,
    /// Number of errors.
    pub count: u64,
    /// A line with the error, as it was segmented; of a long line an excerpt.
    pub example: String,
}

/// Errors of the sentences so far.
#[derive(Debug)]
pub struct Counter {
    unit: Unit,
    cuts: Kind,
    joins: Kind,
}

#[derive(Default, Debug)]
struct Kind {
    n: u64,
    /// Number of errors, and an example.
    pairs: FxHashMap<[String; 2], (u64, String)>,
}

impl Counter {
    /// No sentences yet, of a corpus of this unit.
    pub fn new(unit: Unit) -> Counter {
        Counter { unit, cuts: Kind::default(), joins: Kind::default() }
    }

    /// Adds the sentence at a position of `corpus`, whose segments end at `gold` and were found to end at `found`.
    pub fn add(&mut self, corpus: &Corpus, at: usize, gold: &[u32], found: &[u32]) {
        if gold == found {
            return;
        }
        let [of_gold, of_found] = [gold, found].map(|ends| corpus.segments(at, ends));
        let line: Vec<&str> = of_found.iter().map(String::as_str).collect();
        let separator = self.unit.separators().1;
        for (ends, others, segments, kind) in
            [(found, gold, &of_found, &mut self.cuts), (gold, found, &of_gold, &mut self.joins)]
        {
            for (place, end) in ends[..ends.len().saturating_sub(1)].iter().enumerate() {
                if others.binary_search(end).is_err() {
                    let pair = [segments[place].clone(), segments[place + 1].clone()];
                    let of_line = found.partition_point(|found| found < end);
                    kind.add(pair, || excerpt(&line, of_line, separator));
                }
            }
        }
    }

    /// The errors of all sentences.
    pub fn finish(self) -> Errors {
        Errors { cuts: self.cuts.finish(self.unit), joins: self.joins.finish(self.unit) }
    }
}

impl Kind {
    fn add(&mut self, pair: [String; 2], example: impl FnOnce() -> String) {
        self.n += 1;
        self.pairs.entry(pair).or_insert_with(|| (0, example())).0 += 1;
        let mut least = 1;
        while self.pairs.len() > PAIRS {
            self.pairs.retain(|_, (count, _)| *count > least);
            least += 1;
        }
    }

    fn finish(self, unit: Unit) -> OfKind {
        let mut most: Vec<_> = self.pairs.into_iter().collect();
        most.sort_by(|(a, (n, _)), (b, (m, _))| Reverse(n).cmp(&Reverse(m)).then_with(|| a.cmp(b)));
        most.truncate(SHOWN);
        let (of_symbols, of_segments) = unit.separators();
        let pair = |(segments, (count, example)): ([String; 2], (u64, String))| Pair {
            apart: segments.join(of_segments),
            joined: segments.join(of_symbols),
            count,
            example,
        };
        OfKind { n: self.n, most: most.into_iter().map(pair).collect() }
    }
}

#[cfg(test)]
mod tests {
    use grammaton::data::corpus::Options;

    use super::*;

    /// A corpus of these lines, each of whose letters is a symbol.
    fn corpus(lines: &[&str]) -> Corpus {
        Corpus::read(lines.join("\n").as_bytes(), "text", &Options::default()).unwrap().0
    }

    /// All segmentations of five symbols, as ends.
    fn all() -> Vec<Vec<u32>> {
        let of = |set: u32| (1..=5).filter(|&end| end == 5 || set & (1 << (end - 1)) > 0).collect();
        (0..16).map(of).collect()
    }

    /// Law: a wrong cut is a boundary that only the found segmentation has, a wrong join one that only gold has. All pairs are counted.
    #[test]
    fn errors_are_the_boundaries_of_one_side() {
        let corpus = corpus(&["abcde"]);
        for (gold, found) in
            all().iter().flat_map(|gold| all().into_iter().map(move |found| (gold.clone(), found)))
        {
            let mut counter = Counter::new(Unit::Char);
            counter.add(&corpus, 0, &gold, &found);
            let only = |a: &[u32], b: &[u32]| a.iter().filter(|end| !b.contains(end)).count() as u64;
            let errors = counter.finish();
            for (kind, n) in [(&errors.cuts, only(&found, &gold)), (&errors.joins, only(&gold, &found))] {
                assert_eq!(
                    (kind.n, kind.most.iter().map(|pair| pair.count).sum()),
                    (n, n),
                    "{gold:?} {found:?}"
                );
                for pair in &kind.most {
                    assert_eq!(pair.apart.replace(' ', ""), pair.joined);
                    assert_eq!(pair.example, corpus.line(0, &found));
                }
            }
        }
    }

    #[test]
    fn the_most_frequent_pairs_come_first() {
        let corpus = corpus(&["thedogs", "thedogs", "ado"]);
        let mut counter = Counter::new(Unit::Char);
        counter.add(&corpus, 0, &[3, 7], &[6, 7]);
        counter.add(&corpus, 1, &[3, 7], &[6, 7]);
        counter.add(&corpus, 2, &[1, 3], &[1, 2, 3]);
        let Errors { cuts, joins } = counter.finish();
        let rows = |kind: &OfKind| -> Vec<(String, String, u64, String)> {
            let row =
                |pair: &Pair| (pair.apart.clone(), pair.joined.clone(), pair.count, pair.example.clone());
            kind.most.iter().map(row).collect()
        };
        let row = |apart: &str, joined: &str, count, example: &str| {
            (apart.to_owned(), joined.to_owned(), count, example.to_owned())
        };
        assert_eq!(rows(&cuts), [row("thedog s", "thedogs", 2, "thedog s"), row("d o", "do", 1, "a d o")]);
        assert_eq!(rows(&joins), [row("the dogs", "thedogs", 2, "thedog s")]);
    }

    #[test]
    fn segments_of_tokens_are_joined_by_spaces() {
        let corpus = Corpus::of_tokens("a b c\n").unwrap();
        let mut counter = Counter::new(Unit::Token);
        counter.add(&corpus, 0, &[3], &[1, 3]);
        let cut = &counter.finish().cuts.most[0];
        assert_eq!((&cut.apart[..], &cut.joined[..]), ("a | b c", "a b c"));
    }

    #[test]
    fn of_very_many_pairs_the_frequent_ones_stay() {
        let mut kind = Kind::default();
        for at in 0..3 * PAIRS {
            kind.add([format!("{at}"), String::new()], String::new);
            kind.add(["often".to_owned(), String::new()], String::new);
        }
        assert!(kind.pairs.len() <= PAIRS);
        let found = kind.finish(Unit::Char);
        assert_eq!(
            (found.n, &found.most[0].joined[..], found.most[0].count),
            (6 * PAIRS as u64, "often", 3 * PAIRS as u64)
        );
    }
}
