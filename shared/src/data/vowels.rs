//! Vowels of a corpus, by its letters and by their neighbours (Sukhotin 1962; Guy 1991).
//!
//! In: sentences as indices of symbols, and the symbols. Out: which symbols are vowels.
//!
//! Some letters are vowels or consonants in whatever is written with them ([`by_letters`]). A symbol next to which vowels stand is a
//! consonant and vice versa: with symmetric counts of neighbours over distinct sentences, diagonal zero, the known vowels count first; then
//! the symbol that is not known with the greatest positive sum is a vowel, and twice the counts of each vowel are subtracted from the sums of
//! the others, until no sum is positive.
//!
//! Transcriptions may use letters as they like. So letters are believed if vowels and consonants alternate nearly as often as with classes
//! that are found by neighbours alone (`BELIEVED`). In a language with many clusters of consonants they do so less often, and vowels have few clusters. Those of the
//! International Phonetic Alphabet ([`is_ipa`]) are believed, and nearly all of them tell.
//!
//! The second letter of a digraph (h of th and sh, y of gy and ny, ъ of къ) is next to consonants as a vowel is, but on one side only. So where letters are
//! believed, a symbol that they do not tell is no vowel if most of its neighbours on one side are vowels.
//!
//! By neighbours alone the two classes come out exchanged where the most frequent symbols are consonants. Clusters, the longest runs of symbols of a class, are
//! few of vowels: they are the class with less than a third of the distinct clusters of the other. Else, as sentences need a nucleus but no margin, they are the
//! class that fewer distinct sentences lack; if as many lack one as the other, the class with fewer distinct clusters, and if these are as many too, the class as
//! found.
//!
//! ```
//! use grammaton::data::vowels::Sentences;
//!
//! let mut sentences = Sentences::default();
//! // t ? n ?, n ? t ?, ?: t is 0, ? is 1, n is 2.
//! sentences.add(&[vec![0, 1, 2, 1], vec![2, 1, 0, 1], vec![1]]);
//! assert_eq!(sentences.vowels(&["t".into(), "?".into(), "n".into()]), [false, true, false]);
//! ```

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::ipa::{is_ipa, is_vowel};
use super::letters::by_letters;

/// The share of the alternations of classes found by neighbours alone that classes by letters must have to be believed, as a fraction.
/// In 28 texts they had .98 at least; where the symbols of these were exchanged at random, less than .95 in 557 of 560 trials
/// (docs/results/segment.md).
const BELIEVED: (i64, i64) = (95, 100);

/// The same where vowels by letters are those by their clusters as well ([`FEW`]). Made-up languages with many clusters had .82 to .93 times; of 760 texts whose symbols were
/// exchanged at random 45 are believed in all, 23 of them by [`BELIEVED`].
const WITH_FEW_CLUSTERS: (i64, i64) = (80, 100);

/// The class with so many times as many distinct clusters as the other is that of the consonants: of vowels there are at most twice as many (German, phonemic),
/// and mostly a half to a twentieth. In a long list of words more words lack a vowel than a consonant, as abbreviations do.
const FEW: usize = 3;

/// Number of syllables of a word: its longest runs of vowels.
///
/// ```
/// use grammaton::data::vowels::n_nuclei;
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

/// Sentences that would begin with a vowel if they began with any symbol, from which on one that begins none of them tells something: where two of ten
/// words with it begin with it, a tenth of such vowels begin no sentence.
const FEWEST: f64 = 10.0;
/// The share of these sentences that may still begin with it, as words of other languages do.
const RARELY: f64 = 0.01;

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

    /// Whether each of the symbols is a vowel.
    pub fn vowels(&self, symbols: &[String]) -> Vec<bool> {
        let neighbours = self.neighbours(symbols.len());
        let found = sukhotin(&neighbours, &vec![None; symbols.len()]);
        let is_ipa = is_ipa(symbols);
        let class = |symbol: &String| if is_ipa { is_vowel(symbol) } else { by_letters(symbol) };
        let known: Vec<Option<bool>> = symbols.iter().map(class).collect();
        if known.contains(&Some(true)) {
            let by_letters = sukhotin(&neighbours, &known);
            if is_ipa {
                return by_letters;
            }
            let both = [&by_letters, &found].map(|classes| alternations(&neighbours, classes));
            let alternate = |(least, of): (i64, i64)| of * both[0] >= least * both[1];
            if alternate(BELIEVED) || alternate(WITH_FEW_CLUSTERS) && self.has_few_clusters(&by_letters) {
                let beside_vowels = self.beside_vowels(&by_letters);
                let is_vowel = |at: usize| by_letters[at] && (known[at] == Some(true) || !beside_vowels[at]);
                return (0..symbols.len()).map(is_vowel).collect();
            }
        }
        let exchanged = found.contains(&true) && found.contains(&false) && self.is_exchanged(&found);
        found.into_iter().map(|is_vowel| is_vowel != exchanged).collect()
    }

    /// Whether most of the neighbours of each symbol on one side are vowels, `[n_symbols]`; the symbol itself is no neighbour.
    fn beside_vowels(&self, is_vowel: &[bool]) -> Vec<bool> {
        let mut sides = vec![[(0_u64, 0_u64); 2]; is_vowel.len()];
        for pair in self.distinct.iter().flat_map(|sentence| sentence.windows(2)) {
            let &[one, other] = pair else { continue };
            for (symbol, side, neighbour) in [(one, 1, other), (other, 0, one)] {
                let (vowels, all) = &mut sides[symbol as usize][side];
                let counts = u64::from(one != other);
                *vowels += counts * u64::from(is_vowel[neighbour as usize]);
                *all += counts;
            }
        }
        sides.into_iter().map(|of| of.iter().any(|(vowels, all)| 2 * vowels > *all)).collect()
    }

    /// Whether each of the vowels is an inner one, `[n_symbols]`: hardly a sentence begins with it ([`RARELY`]), although at least [`FEWEST`] would if they
    /// began with any symbol.
    pub fn inner(&self, is_vowel: &[bool]) -> Vec<bool> {
        let (mut begins, mut occurs) = (vec![0.0; is_vowel.len()], vec![0.0; is_vowel.len()]);
        let sentences = || self.distinct.iter().filter(|sentence| !sentence.is_empty());
        for sentence in sentences() {
            begins[sentence[0] as usize] += 1.0;
            sentence.iter().for_each(|&symbol| occurs[symbol as usize] += 1.0);
        }
        let a_symbol = sentences().count() as f64 / occurs.iter().sum::<f64>();
        let is_inner = |at: usize| {
            let expected = a_symbol * occurs[at];
            is_vowel[at] && expected >= FEWEST && begins[at] <= RARELY * expected
        };
        (0..is_vowel.len()).map(is_inner).collect()
    }

    /// Whether the vowels have few clusters beside those of the consonants.
    fn has_few_clusters(&self, is_vowel: &[bool]) -> bool {
        let [(_, of_vowels), (_, of_consonants)] = [true, false].map(|class| self.evidence(is_vowel, class));
        FEW * of_vowels < of_consonants
    }

    /// Whether those found to be vowels are the consonants.
    fn is_exchanged(&self, found: &[bool]) -> bool {
        let [vowels, consonants] = [true, false].map(|class| self.evidence(found, class));
        match (FEW * consonants.1 < vowels.1, FEW * vowels.1 < consonants.1) {
            (false, false) => consonants < vowels,
            (exchanged, _) => exchanged,
        }
    }

    /// Numbers of distinct sentences without symbols of a class, and of its distinct clusters: the vowels have less of both.
    fn evidence(&self, found: &[bool], class: bool) -> (usize, usize) {
        let is_of = |symbol: &u32| found[*symbol as usize] == class;
        let lacking = self.distinct.iter().filter(|sentence| !sentence.iter().any(is_of)).count();
        let runs = self.distinct.iter().flat_map(|sentence| sentence.split(|symbol| !is_of(symbol)));
        let clusters: BTreeSet<&[u32]> = runs.filter(|run| !run.is_empty()).collect();
        (lacking, clusters.len())
    }

    fn neighbours(&self, n_symbols: usize) -> Neighbours {
        let mut neighbours = vec![BTreeMap::new(); n_symbols];
        for pair in self.distinct.iter().flat_map(|sentence| sentence.windows(2)) {
            let &[one, other] = pair else { continue };
            if one != other {
                *neighbours[one as usize].entry(other).or_default() += 1;
                *neighbours[other as usize].entry(one).or_default() += 1;
            }
        }
        neighbours
    }
}

/// For each symbol, how often each other symbol is next to it.
type Neighbours = Vec<BTreeMap<u32, i64>>;

/// Sukhotin's classes, with the symbols whose class is known in it.
fn sukhotin(neighbours: &Neighbours, known: &[Option<bool>]) -> Vec<bool> {
    let mut sums: Vec<i64> = neighbours.iter().map(|counts| counts.values().sum()).collect();
    let mut is_vowel = vec![false; neighbours.len()];
    loop {
        let left = (0..known.len())
            .filter(|&symbol| !is_vowel[symbol] && known[symbol].unwrap_or_else(|| sums[symbol] > 0));
        // Known vowels are first; of equal sums the first symbol.
        let next = left.max_by_key(|&symbol| (known[symbol], sums[symbol], Reverse(symbol)));
        let Some(vowel) = next else { return is_vowel };
        is_vowel[vowel] = true;
        neighbours[vowel].iter().for_each(|(&other, count)| sums[other as usize] -= 2 * count);
    }
}

/// How often symbols of different classes are next to each other, twice.
fn alternations(neighbours: &Neighbours, is_vowel: &[bool]) -> i64 {
    let of = |(symbol, counts): (usize, &BTreeMap<u32, i64>)| -> i64 {
        counts
            .iter()
            .filter(|(other, _)| is_vowel[**other as usize] != is_vowel[symbol])
            .map(|(_, count)| count)
            .sum()
    };
    neighbours.iter().enumerate().map(of).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYLLABLES: [&str; 7] = ["banana", "tomato", "potato", "kilimanjaro", "salami", "tulip", "minute"];

    /// The vowels of lines, a symbol a character.
    fn vowels(lines: &[&str]) -> String {
        let symbols: BTreeSet<char> = lines.iter().flat_map(|line| line.chars()).collect();
        let symbols: Vec<char> = symbols.into_iter().collect();
        let id = |symbol| symbols.binary_search(&symbol).unwrap() as u32;
        let mut sentences = Sentences::default();
        for line in lines {
            sentences.add(&[line.chars().map(id).collect()]);
        }
        let names: Vec<String> = symbols.iter().map(char::to_string).collect();
        let is_vowel = sentences.vowels(&names);
        symbols.iter().zip(is_vowel).filter(|(_, is_vowel)| *is_vowel).map(|(symbol, _)| *symbol).collect()
    }

    /// As [`vowels`] of letters whose vowels and consonants are not known: those of the Georgian alphabet in place of the Latin ones.
    fn by_neighbours(lines: &[&str]) -> String {
        let of = |letter: char| char::from_u32(letter as u32 - 'a' as u32 + 'ა' as u32).unwrap();
        let back = |letter: char| char::from_u32(letter as u32 - 'ა' as u32 + 'a' as u32).unwrap();
        let lines: Vec<String> = lines.iter().map(|line| line.chars().map(of).collect()).collect();
        vowels(&lines.iter().map(String::as_str).collect::<Vec<_>>()).chars().map(back).collect()
    }

    #[test]
    fn vowels_alternate_with_consonants() {
        assert_eq!(by_neighbours(&["saguntum"]), "au", "the example of Guy (1991)");
        let lines = SYLLABLES;
        assert_eq!(by_neighbours(&lines), "aeiou");
    }

    #[test]
    fn known_letters_put_right_what_neighbours_would_not_tell() {
        // è is next to vowels alone, as in a language whose words end in vowels. y is not known, and found by its neighbours.
        let lines =
            ["tanaèana", "tomato", "potato", "kilimanjaro", "salami", "minute", "tulip", "tyna", "nytula"];
        assert_eq!(vowels(&lines), "aeiouyè");
    }

    /// Law: a vowel is an inner one if ten sentences or more would begin with it and not a hundredth of these does; how often a sentence occurs is the same.
    #[test]
    fn vowels_that_begin_no_sentence_are_inner_ones() {
        // a is 0, e is 1, t is 2: n distinct sentences t e t e … of four symbols and more, and others with a.
        let inner = |n: u32, begun_by_e: u32| {
            let mut sentences = Sentences::default();
            for at in 0..n {
                let tail: Vec<u32> = (0..12).map(|bit| 2 - (at >> bit) % 2).collect();
                let head = if at < begun_by_e { [1, 2] } else { [2, 1] };
                let sentence = [&head[..], &tail].concat();
                sentences.add(&[sentence.clone(), sentence]);
            }
            sentences.add(&[vec![0], Vec::new()]);
            sentences.inner(&[true, true, false])
        };
        assert_eq!(inner(10, 0), [false; 3], "five would begin with e");
        assert_eq!(inner(400, 0), [false, true, false]);
        assert_eq!(inner(400, 1), [false, true, false], "one of some hundred");
        assert_eq!(inner(400, 4), [false; 3]);
        assert_eq!(Sentences::default().inner(&[true]), [false]);
    }

    #[test]
    fn letters_that_stand_for_other_sounds_are_not_believed() {
        // The same with the letters of vowels and consonants exchanged.
        let lines = ["banana", "tomato", "potato", "kilimanaro", "salami", "tulip", "minute", "u", "a", "i"];
        let exchanged = |letter| match letter {
            'a' => 't',
            't' => 'a',
            'o' => 'n',
            'n' => 'o',
            'i' => 'm',
            'm' => 'i',
            'u' => 'p',
            'p' => 'u',
            'e' => 's',
            's' => 'e',
            other => other,
        };
        let cipher: Vec<String> = lines.iter().map(|line| line.chars().map(exchanged).collect()).collect();
        let found = vowels(&cipher.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(found, "mnpst");
    }

    #[test]
    fn exchanged_classes_are_put_right() {
        // t is next to everything, so it is found first; a alone is a sentence, t alone is not.
        let lines = ["ta", "te", "ti", "to", "tu", "ata", "ete", "iti", "ap", "a", "e", "o"];
        assert_eq!(by_neighbours(&lines), "aeiou");
    }

    #[test]
    fn the_second_letter_of_a_digraph_is_no_vowel() {
        // h follows t and s alone, and a vowel mostly follows it; y is between consonants.
        let others = "shona tutha mosh neth lath kosh pith athle oshma sheta tyna nytula salyp";
        let lines: Vec<&str> = SYLLABLES.iter().copied().chain(others.split(' ')).collect();
        assert_eq!(vowels(&lines), "aeiouy");
    }

    #[test]
    fn abbreviations_do_not_exchange_the_classes() {
        // Two words lack a vowel and no word lacks a consonant, but vowels have five clusters and consonants nineteen.
        let others = "vegetable gorila domino fizuka zebra paleta gavoti kodaku rusola fogadu bezoti tv km";
        let lines: Vec<&str> = SYLLABLES.iter().copied().chain(others.split(' ')).collect();
        assert_eq!(by_neighbours(&lines), "aeiou");
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
        assert_eq!(by_neighbours(&["a", "aa", "aaa"]), "");
        assert!(Sentences::default().vowels(&[]).is_empty());
    }
}
