//! Strings that sentences have in several places.
//!
//! All suffixes of all sentences are sorted; the longest prefix that one shares with any other it shares with a neighbour.

use crate::data::Sentence;
use crate::grammar::SymbolId;
use crate::stop::Meter;

/// Longer strings are not compared.
const LONGEST: usize = 128;

/// By sentence and position, the length of the longest string that begins there and that is in another place too, or in another occurrence
/// of the sentence; from [`LONGEST`] on, [`u32::MAX`].
pub(super) fn longest_repeats(sentences: &[Sentence]) -> Vec<Vec<u32>> {
    let mut meter = Meter::default();
    let suffix = |(sentence, start): (u32, u32)| {
        let tokens: &[SymbolId] = &sentences[sentence as usize].tokens[start as usize..];
        &tokens[..tokens.len().min(LONGEST)]
    };
    let places = |(number, sentence): (u32, &Sentence)| {
        (0..sentence.tokens.len() as u32).map(move |start| (number, start))
    };
    let mut suffixes: Vec<(u32, u32)> = (0..).zip(sentences).flat_map(places).collect();
    suffixes.sort_unstable_by(|&a, &b| {
        meter.add(LONGEST / 8);
        suffix(a).cmp(suffix(b))
    });
    let once = |sentence: &Sentence| {
        let length = if sentence.multiplicity > 1 { u32::MAX } else { 0 };
        vec![length; sentence.tokens.len()]
    };
    let mut longest: Vec<Vec<u32>> = sentences.iter().map(once).collect();
    for pair in suffixes.windows(2) {
        meter.add(LONGEST / 8);
        let [left, right] = [suffix(pair[0]), suffix(pair[1])];
        let shared = match left.iter().zip(right).take_while(|(a, b)| a == b).count() {
            LONGEST.. => u32::MAX,
            shared => shared as u32,
        };
        for &(sentence, start) in pair {
            let known = &mut longest[sentence as usize][start as usize];
            *known = shared.max(*known);
        }
    }
    longest
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        /// Law: a string is no longer than the longest repeat at its place if and only if it is in another place, or its sentence occurs again.
        #[test]
        fn repeats_are_those_that_a_search_finds(
            texts in prop::collection::vec((prop::collection::vec(0..3_u32, 0..9), 1..3_u32), 0..6),
            n_equal in prop_oneof![0..9_usize, LONGEST - 1..LONGEST + 2],
        ) {
            let sentence = |tokens: Vec<u32>, multiplicity| Sentence::new(tokens.into_iter().map(SymbolId).collect(), multiplicity);
            let mut sentences: Vec<Sentence> = texts.into_iter().map(|(tokens, n)| sentence(tokens, n)).collect();
            sentences.push(sentence(vec![0; n_equal], 1));
            let places = |string: &[SymbolId]| -> u32 {
                let windows = |sentence: &Sentence| sentence.tokens.windows(string.len()).filter(|&found| found == string).count();
                sentences.iter().map(|sentence| windows(sentence) as u32 * sentence.multiplicity).sum()
            };
            for (sentence, longest) in sentences.iter().zip(longest_repeats(&sentences)) {
                for (start, longest) in longest.into_iter().enumerate() {
                    for end in start + 1..=sentence.tokens.len() {
                        let is_repeated = places(&sentence.tokens[start..end]) > 1;
                        let is_short = (end - start) as u32 <= longest;
                        prop_assert!(is_short == is_repeated || end - start > LONGEST && is_short);
                    }
                }
            }
        }
    }
}
