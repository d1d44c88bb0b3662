//! Boundaries by the edges of sentences: a word begins as sentences begin, and ends as they end.
//!
//! In: sentences, and the probabilities of their boundaries by models. Out: the same probabilities with what the edges say.
//!
//! A suffix, which models cut off where it is frequent, begins no sentence. With sᵢ the symbols after a position and tᵢ those before it, backwards, up to three of each, p becomes p′:
//!
//! ```text
//! log p′ / (1 − p′) = log p / (1 − p) + c (eᵢ − ē),    eᵢ = log P(sᵢ | a sentence begins) / P(sᵢ) + log P(tᵢ | a sentence ends) / P(tᵢ)
//! ```
//!
//! where ē is the mean of e over the boundaries that models expect, for many words begin no sentence by their syntax alone. Phrasal DiBS (Daland & Pierrehumbert 2011) takes as much from the edges, and
//! nothing from models.
//!
//! ```
//! use grammaton::models::edges::Edges;
//!
//! // No sentence begins with 9 or ends with 1: "9" is a suffix.
//! let sentences = vec![vec![1, 9, 2, 8], vec![2, 8, 1, 9], vec![1, 9], vec![2, 8]];
//! let edges = Edges::of(&sentences);
//! let found = vec![vec![0.8; 3], vec![0.8; 3], vec![0.8], vec![0.8]];
//! let corrected = edges.correct(&found);
//! assert!(corrected[0][0] < 0.8 && corrected[0][1] > 0.8);
//! ```

use rustc_hash::FxHashMap;

/// Symbols on each side of a position.
const LONGEST: usize = 3;
/// c, the weight of the edges beside models, who know some of the same. With .2 or .4 the F1 of single texts is up to .018 higher or lower (docs/results/segment.md, "Edges of sentences").
const WEIGHT: f64 = 0.3;
/// Probabilities of models are at least this far from 0 and 1.
const CERTAINTY: f64 = 1e-3;
/// A sentence may begin and end where both terms of e are above this.
const OPEN: f64 = -1.0;

/// What the edges of sentences say of each position between two symbols of these sentences.
pub struct Edges {
    /// The two terms of e: of the symbols after the position, and of those before it.
    evidence: Vec<Vec<[f64; 2]>>,
}

impl Edges {
    /// Those of these sentences, of any symbols.
    pub fn of(sentences: &[Vec<u32>]) -> Edges {
        let backwards: Vec<Vec<u32>> =
            sentences.iter().map(|sentence| sentence.iter().rev().copied().collect()).collect();
        let (begins, ends) = (Side::of(sentences), Side::of(&backwards));
        let of_sentence = |(forwards, backwards): (&Vec<u32>, &Vec<u32>)| {
            let n = forwards.len();
            let at = |at: usize| [begins.log_ratio(&forwards[at..]), ends.log_ratio(&backwards[n - at..])];
            (1..n).map(at).collect()
        };
        Edges { evidence: sentences.iter().zip(&backwards).map(of_sentence).collect() }
    }

    /// The mean probability of a boundary at the positions where a sentence may begin and end; 1 if there are none. `found`: of each sentence the probability at each position.
    pub fn share_of_open(&self, found: &[Vec<f64>]) -> f64 {
        let open = self.with(found).filter(|(_, evidence)| evidence.iter().all(|&term| term > OPEN));
        let (n, sum) = open.fold((0.0, 0.0), |(n, sum), (found, _)| (n + 1.0, sum + found));
        if n > 0.0 { sum / n } else { 1.0 }
    }

    /// The probabilities with what the edges say.
    pub fn correct(&self, found: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let (mut expected, mut of_boundaries) = (0.0, 0.0);
        for (found, [after, before]) in self.with(found) {
            expected += found;
            of_boundaries += found * (after + before);
        }
        let mean = if expected > 0.0 { of_boundaries / expected } else { 0.0 };
        let correct = |(found, [after, before]): (&f64, &[f64; 2])| {
            let found = found.clamp(CERTAINTY, 1.0 - CERTAINTY);
            let odds = found / (1.0 - found) * libm::exp(WEIGHT * (after + before - mean));
            odds / (1.0 + odds)
        };
        let of_sentences = found.iter().zip(&self.evidence);
        of_sentences.map(|(found, evidence)| found.iter().zip(evidence).map(correct).collect()).collect()
    }

    /// Each position's probability beside its evidence.
    fn with<'a>(&'a self, found: &'a [Vec<f64>]) -> impl Iterator<Item = (&'a f64, &'a [f64; 2])> {
        found.iter().flatten().zip(self.evidence.iter().flatten())
    }
}

/// The symbols that follow an edge of sentences, and those that follow any position inside of them.
struct Side<'a> {
    edge: Sequences<'a>,
    inside: Sequences<'a>,
    /// By symbol, its share of all.
    shares: Vec<f64>,
}

impl<'a> Side<'a> {
    fn of(sentences: &'a [Vec<u32>]) -> Side<'a> {
        let mut shares = vec![0.0; sentences.iter().flatten().max().map_or(0, |&last| last as usize + 1)];
        sentences.iter().flatten().for_each(|&symbol| shares[symbol as usize] += 1.0);
        let n: f64 = shares.iter().sum();
        shares.iter_mut().for_each(|share| *share /= n);
        let inside = sentences.iter().flat_map(|sentence| (1..sentence.len()).map(|at| &sentence[at..]));
        Side {
            edge: Sequences::of(sentences.iter().map(Vec::as_slice)),
            inside: Sequences::of(inside),
            shares,
        }
    }

    /// log P(symbols | edge) / P(symbols), of the first [`LONGEST`] ones.
    fn log_ratio(&self, symbols: &[u32]) -> f64 {
        self.edge.log_probability(symbols, &self.shares) - self.inside.log_probability(symbols, &self.shares)
    }
}

/// How often each sequence of up to [`LONGEST`] symbols was first, and how many different symbols followed it.
struct Sequences<'a>(FxHashMap<&'a [u32], (u32, u32)>);

impl<'a> Sequences<'a> {
    fn of(all: impl Iterator<Item = &'a [u32]>) -> Sequences<'a> {
        let mut counts: FxHashMap<&[u32], (u32, u32)> = FxHashMap::default();
        for symbols in all {
            for n in 0..=LONGEST.min(symbols.len()) {
                let (times, _) = counts.entry(&symbols[..n]).or_default();
                *times += 1;
                if *times == 1 && n > 0 {
                    counts.entry(&symbols[..n - 1]).or_default().1 += 1;
                }
            }
        }
        Sequences(counts)
    }

    /// A symbol has the probability of what followed the symbols before it, as smoothed by its `shares` among all (Witten & Bell 1991).
    fn log_probability(&self, symbols: &[u32], shares: &[f64]) -> f64 {
        let count = |symbols: &[u32]| self.0.get(symbols).copied().unwrap_or_default();
        let of_symbol = |n: usize| {
            let ((before, different), (times, _)) = (count(&symbols[..n - 1]), count(&symbols[..n]));
            let smoothed = f64::from(different + 1);
            let share = shares[symbols[n - 1] as usize];
            libm::log((f64::from(times) + smoothed * share) / (f64::from(before) + smoothed))
        };
        (1..=LONGEST.min(symbols.len())).map(of_symbol).sum()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sentences() -> impl Strategy<Value = Vec<Vec<u32>>> {
        prop::collection::vec(prop::collection::vec(0..4_u32, 1..8), 1..20)
    }

    proptest! {
        /// Law: the probabilities of what may follow a sequence sum to at most 1, as a sentence may end there; of what may be first, to 1.
        #[test]
        fn probabilities_sum_to_one(sentences in sentences()) {
            let side = Side::of(&sentences);
            for sequences in [&side.edge, &side.inside] {
                for before in [vec![], vec![0], vec![2, 1]] {
                    let symbols = 0..side.shares.len() as u32;
                    if before.iter().any(|&symbol| !side.shares.get(symbol as usize).is_some_and(|share| *share > 0.0)) {
                        continue;
                    }
                    let log = |after: &[u32]| sequences.log_probability(&[&before[..], after].concat(), &side.shares);
                    let sum: f64 = symbols.map(|symbol| libm::exp(log(&[symbol]) - log(&[]))).sum();
                    prop_assert!(sum < 1.0 + 1e-12, "{sum}");
                    prop_assert!(!before.is_empty() || (sum - 1.0).abs() < 1e-12, "{sum}");
                }
            }
        }

        /// Law: edges are the same read backwards; where models are more certain, the corrected probability is higher.
        #[test]
        fn both_directions_are_alike(sentences in sentences(), low in 0.1..0.5_f64, high in 0.5..0.9_f64) {
            let all = |found: f64| -> Vec<Vec<f64>> {
                sentences.iter().map(|sentence| vec![found; sentence.len() - 1]).collect()
            };
            let backwards: Vec<Vec<u32>> =
                sentences.iter().map(|sentence| sentence.iter().rev().copied().collect()).collect();
            let (one, other) = (Edges::of(&sentences), Edges::of(&backwards));
            prop_assert!((one.share_of_open(&all(low)) - other.share_of_open(&all(low))).abs() < 1e-9);
            for (one, other) in one.correct(&all(low)).iter().zip(other.correct(&all(low))) {
                for (one, other) in one.iter().zip(other.iter().rev()) {
                    prop_assert!((one - other).abs() < 1e-9, "{one} {other}");
                }
            }
            let (low, high) = (one.correct(&all(low)).concat(), one.correct(&all(high)).concat());
            for (low, high) in low.iter().zip(high) {
                prop_assert!(0.0 < *low && *low < high && high < 1.0);
            }
        }
    }

    #[test]
    fn sentences_without_positions_have_no_probabilities() {
        for sentences in [vec![], vec![vec![3], vec![]]] {
            let (edges, found) = (Edges::of(&sentences), vec![Vec::new(); sentences.len()]);
            assert_eq!(edges.correct(&found), found);
            assert_eq!(edges.share_of_open(&found), 1.0);
        }
    }

    #[test]
    fn open_is_where_sentences_begin_and_end() {
        // Only between 8 and 1 or 2 are both an end and a beginning.
        let sentences = vec![vec![1, 7, 8, 2, 7, 8], vec![1, 7, 8], vec![2, 7, 8]];
        let found = vec![vec![0.1, 0.1, 0.9, 0.1, 0.1], vec![0.1, 0.1], vec![0.1, 0.1]];
        assert_eq!(Edges::of(&sentences).share_of_open(&found), 0.9);
    }
}
