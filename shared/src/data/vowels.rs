//! Vowels of an unknown script, found in a corpus (Sukhotin 1962; Guy 1991).
//!
//! In: sentences as indices of symbols. Out: which symbols are vowels. A symbol next to which vowels stand is a consonant and vice versa:
//! with symmetric counts of neighbours over distinct sentences, diagonal zero, the symbol with the greatest positive sum is a vowel, and
//! twice its counts are subtracted from the sums of the others, until no sum is positive.
//!
//! In some transcriptions the most frequent symbols are consonants, and the two classes come out exchanged. Sentences need a nucleus but no
//! margin, so the vowels are the class that fewer distinct sentences lack; if as many lack one as the other, the class with fewer distinct
//! clusters (longest runs of its symbols), and if these are as many too, the class as found.
//!
//! ```
//! use shared::data::vowels::Sentences;
//!
//! let mut sentences = Sentences::default();
//! // t a n a, n a t a, a: t is 0, a is 1, n is 2.
//! sentences.add(&[vec![0, 1, 2, 1], vec![2, 1, 0, 1], vec![1]]);
//! assert_eq!(sentences.vowels(3), [false, true, false]);
//! ```

use std::collections::{BTreeMap, BTreeSet};

/// Number of syllables of a word: its longest runs of vowels.
///
/// ```
/// use shared::data::vowels::n_nuclei;
///
/// let is_vowel = [false, true, true]; // t, a, i
/// assert_eq!(n_nuclei(&[0, 1, 2, 0, 1], &is_vowel), 2); // t ai t a
/// assert_eq!(n_nuclei(&[0], &is_vowel), 0);
/// ```
pub fn n_nuclei(word: &[u32], is_vowel: &[bool]) -> usize {
    word.chunk_by(|&a, &b| is_vowel[a as usize] == is_vowel[b as usize])
        .filter(|run| is_vowel[run[0] as usize])
        .count()
}

/// Number of symbols after which further sentences are not read: counts of neighbours do not change the classes any more.
const MAX_SYMBOLS: usize = 1 << 22;

/// The distinct sentences of a corpus, or of its first four million symbols.
#[derive(Clone, Default, Debug)]
pub struct Sentences {
    distinct: BTreeSet<Vec<u32>>,
    n_symbols: usize,
}

impl Sentences {
    /// Adds sentences, as indices of symbols.
    pub fn add(&mut self, sentences: &[Vec<u32>]) {
        for sentence in sentences {
            if self.n_symbols < MAX_SYMBOLS && self.distinct.insert(sentence.clone()) {
                self.n_symbols += sentence.len();
            }
        }
    }

    /// Whether each of `n_symbols` symbols is a vowel.
    pub fn vowels(&self, n_symbols: usize) -> Vec<bool> {
        let found = self.sukhotin(n_symbols);
        let both = found.contains(&true) && found.contains(&false);
        let exchanged = both && self.evidence(&found, false) < self.evidence(&found, true);
        found.into_iter().map(|is_vowel| is_vowel != exchanged).collect()
    }

    /// Numbers of distinct sentences without symbols of a class, and of its distinct clusters: the vowels have less of both.
    fn evidence(&self, found: &[bool], class: bool) -> (usize, usize) {
        let is_of = |symbol: &u32| found[*symbol as usize] == class;
        let lacking = self.distinct.iter().filter(|sentence| !sentence.iter().any(is_of)).count();
        let runs = self.distinct.iter().flat_map(|sentence| sentence.split(|symbol| !is_of(symbol)));
        let clusters: BTreeSet<&[u32]> = runs.filter(|run| !run.is_empty()).collect();
        (lacking, clusters.len())
    }

    fn sukhotin(&self, n_symbols: usize) -> Vec<bool> {
        let mut neighbours: Vec<BTreeMap<u32, i64>> = vec![BTreeMap::new(); n_symbols];
        for pair in self.distinct.iter().flat_map(|sentence| sentence.windows(2)) {
            let &[one, other] = pair else { continue };
            if one != other {
                *neighbours[one as usize].entry(other).or_default() += 1;
                *neighbours[other as usize].entry(one).or_default() += 1;
            }
        }
        let mut sums: Vec<i64> = neighbours.iter().map(|counts| counts.values().sum()).collect();
        let mut is_vowel = vec![false; n_symbols];
        loop {
            let left = (0..n_symbols).filter(|&symbol| !is_vowel[symbol] && sums[symbol] > 0);
            // Of equal sums the first symbol.
            let Some(vowel) = left.max_by_key(|&symbol| (sums[symbol], std::cmp::Reverse(symbol))) else {
                return is_vowel;
            };
            is_vowel[vowel] = true;
            neighbours[vowel].iter().for_each(|(&other, count)| sums[other as usize] -= 2 * count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The vowels of lines of letters, in alphabetical order.
    fn vowels(lines: &[&str]) -> String {
        let letters: BTreeSet<char> = lines.iter().flat_map(|line| line.chars()).collect();
        let letters: Vec<char> = letters.into_iter().collect();
        let symbol = |letter| letters.binary_search(&letter).unwrap() as u32;
        let mut sentences = Sentences::default();
        for line in lines {
            sentences.add(&[line.chars().map(symbol).collect()]);
        }
        let is_vowel = sentences.vowels(letters.len());
        letters.iter().zip(is_vowel).filter(|(_, is_vowel)| *is_vowel).map(|(letter, _)| *letter).collect()
    }

    #[test]
    fn vowels_alternate_with_consonants() {
        assert_eq!(vowels(&["saguntum"]), "au", "the example of Guy (1991)");
        let lines = ["banana", "tomato", "potato", "kilimanjaro", "salami", "tulip", "minute"];
        assert_eq!(vowels(&lines), "aeiou");
    }

    #[test]
    fn exchanged_classes_are_put_right() {
        // t is next to everything, so it is found first; a alone is a sentence, t alone is none.
        let lines = ["ta", "te", "ti", "to", "tu", "ata", "ete", "iti", "ap", "a", "e", "o"];
        assert_eq!(vowels(&lines), "aeiou");
    }

    #[test]
    fn repeated_sentences_count_once() {
        let lines = ["tana", "nata", "a", "pi", "ip"];
        let often: Vec<&str> = lines.iter().copied().chain(std::iter::repeat_n("pn", 1)).collect();
        let more: Vec<&str> = lines.iter().copied().chain(std::iter::repeat_n("pn", 50)).collect();
        assert_eq!(vowels(&often), vowels(&more));
    }

    #[test]
    fn one_symbol_has_no_class_to_alternate_with() {
        assert_eq!(vowels(&["a", "aa", "aaa"]), "");
        assert!(Sentences::default().vowels(0).is_empty());
    }
}
