//! Word classes: tags that are learned from the words of a text alone.
//!
//! In: sentences of words, without punctuation. Out: [`WordClasses`], which have a class for every word, those of other texts among them. What is clustered
//! is *types*: each frequent word, and each frequent ending of the other words, of at most two letters; rare words with a digit are one type. So a rare or
//! new word has the class of its ending. The exchange algorithm (Martin, Liermann & Ney 1998) looks for the classes with the highest likelihood of a class bigram
//! model, whose part that depends on them is
//!
//! ```text
//! F = Σ over classes c, d of N(c d) ln N(c d)  −  Σ over c of N(c ·) ln N(c ·)  −  Σ over d of N(· d) ln N(· d)
//! ```
//!
//! with N(c d) bigrams of classes; a boundary before and after each sentence has its own class. It moves one type at a time, the most frequent first, to the
//! class in which F is highest, so that F never falls. There is no chance in it: the start and ties are settled by frequency, then by the word.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use unicode_properties::{GeneralCategoryGroup, UnicodeGeneralCategory as _};

use crate::data::dependency::{Document, Sentence};
use crate::num::special;

/// Number of classes, at most.
pub const CLASSES: usize = 30;
/// A word that occurs less often is known by its ending.
const FREQUENT_WORD: u64 = 3;
/// An ending that fewer rare words have gives way to a shorter one.
const FREQUENT_ENDING: u64 = 5;
/// Letters of the longest ending.
const LONGEST_ENDING: usize = 2;
/// Passes over all types, at most.
const SWEEPS: usize = 10;
/// The type of rare words with a digit, among the endings.
const DIGITS: &str = "0";
/// What names of classes begin with.
const NAME: &str = "class";
/// Logarithms that are stored.
const TABLE: u64 = 1 << 16;

/// A class for every word.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WordClasses {
    /// Names of classes, by frequent word in lower case.
    words: BTreeMap<String, String>,
    /// Names of classes, by ending in lower case; the empty one is always there.
    endings: BTreeMap<String, String>,
}

/// A table of classes that cannot be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadTable {
    /// A line of another form.
    #[error(
        "line {0}: expected `word` or `ending`, a text and `{NAME}` with a number, with tabs between them"
    )]
    Line(usize),
    /// No class for new words.
    #[error("the class of the empty ending is missing; use the file as `grammaton dependencies` wrote it")]
    NoRest,
}

/// A type of word.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Type {
    Word(String),
    Ending(String),
}

/// Whether a word is punctuation: all of its characters are.
pub fn is_punctuation(word: &str) -> bool {
    word.chars().all(|letter| letter.general_category_group() == GeneralCategoryGroup::Punctuation)
}

/// Whether these tags are word classes.
pub fn are_classes(tags: &[String]) -> bool {
    tags.iter().all(|tag| is_class(tag))
}

fn is_class(tag: &str) -> bool {
    tag.strip_prefix(NAME).is_some_and(|number| number.parse::<usize>().is_ok())
}

/// Endings of a rare word, in lower case, the longest first; they leave at least one letter.
fn endings(word: &str) -> impl Iterator<Item = &str> {
    let has_digit = word.chars().any(char::is_numeric);
    let longest = if has_digit { 0 } else { LONGEST_ENDING };
    let starts = word.char_indices().rev().take(longest).map(|(at, _)| at).filter(|&at| at > 0);
    let ends: Vec<&str> = starts.map(|at| &word[at..]).collect();
    has_digit.then_some(DIGITS).into_iter().chain(ends.into_iter().rev()).chain([""])
}

impl WordClasses {
    /// The classes of the words of these sentences, in which punctuation does not count.
    ///
    /// ```
    /// use grammaton::data::{Tags, read_sentences};
    /// use grammaton::models::word_classes::WordClasses;
    ///
    /// let text = "the\t_\ndog\t_\nbarks\t_\n\nthe\t_\ncat\t_\nbarks\t_\n\n".repeat(3);
    /// let classes = WordClasses::induce(&read_sentences(text.as_bytes(), "text", Tags::Upos)?);
    /// assert_ne!(classes.of("The"), classes.of("dog"));
    /// # Ok::<(), grammaton::data::SentenceError>(())
    /// ```
    pub fn induce(sentences: &[Sentence]) -> WordClasses {
        let words = |sentence: &Sentence| -> Vec<String> {
            let words = sentence.words.iter().filter(|word| !is_punctuation(word));
            words.map(|word| word.to_lowercase()).collect()
        };
        let sentences: Vec<Vec<String>> = sentences.iter().map(words).collect();
        let types = Types::new(&sentences);
        let numbers: Vec<Vec<usize>> =
            sentences.iter().map(|words| words.iter().map(|word| types.number(word)).collect()).collect();
        let mut exchange = Exchange::new(&numbers, types.names.len(), CLASSES);
        for _ in 0..SWEEPS {
            if !exchange.sweep() {
                break;
            }
        }
        let mut classes = WordClasses { words: BTreeMap::new(), endings: BTreeMap::new() };
        let name = |class: usize| format!("{NAME}{}", class + 1);
        for (of, &class) in types.names.into_iter().zip(&exchange.class_of) {
            match of {
                Type::Word(word) => classes.words.insert(word, name(class)),
                Type::Ending(ending) => classes.endings.insert(ending, name(class)),
            };
        }
        // New words are most like rare ones.
        let rarest = exchange.order.last().map_or(0, |&rarest| exchange.class_of[rarest]);
        classes.endings.entry(String::new()).or_insert_with(|| name(rarest));
        classes
    }

    /// The name of the class of a word.
    pub fn of(&self, word: &str) -> &str {
        let word = word.to_lowercase();
        let of_ending = || endings(&word).find_map(|ending| self.endings.get(ending));
        self.words.get(&word).or_else(of_ending).expect("the empty ending has a class")
    }

    /// The file of these sentences with classes as tags.
    pub fn tag(&self, document: &Document) -> String {
        document.with_tags(|word| (!is_punctuation(word)).then(|| self.of(word)))
    }

    /// The classes as a table: kind, text and class.
    pub fn to_tsv(&self) -> String {
        let lines = |kind: &str, of: &BTreeMap<String, String>| -> String {
            of.iter().map(|(text, class)| format!("{kind}\t{text}\t{class}\n")).collect()
        };
        lines("word", &self.words) + &lines("ending", &self.endings)
    }

    /// Reads what [`WordClasses::to_tsv`] wrote.
    ///
    /// # Errors
    /// [`BadTable`] at the first line of another form, or if new words have no class.
    pub fn from_tsv(table: &str) -> Result<WordClasses, BadTable> {
        let mut classes = WordClasses { words: BTreeMap::new(), endings: BTreeMap::new() };
        for (line, number) in table.lines().zip(1..) {
            let columns: Vec<&str> = line.split('\t').collect();
            let [kind, text, class] = columns[..] else { return Err(BadTable::Line(number)) };
            let of = match kind {
                "word" => &mut classes.words,
                "ending" => &mut classes.endings,
                _ => return Err(BadTable::Line(number)),
            };
            if !is_class(class) {
                return Err(BadTable::Line(number));
            }
            of.insert(text.to_owned(), class.to_owned());
        }
        if classes.endings.contains_key("") { Ok(classes) } else { Err(BadTable::NoRest) }
    }
}

/// The types of a text.
struct Types {
    /// By number.
    names: Vec<Type>,
    numbers: BTreeMap<Type, usize>,
}

impl Types {
    fn new(sentences: &[Vec<String>]) -> Types {
        let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
        sentences.iter().flatten().for_each(|word| *counts.entry(word).or_default() += 1);
        let (frequent, rare): (Vec<_>, Vec<_>) =
            counts.into_iter().partition(|&(_, count)| count >= FREQUENT_WORD);
        let mut chosen: BTreeSet<&str> = BTreeSet::new();
        // Each rare word counts for its longest ending, and if that is rare, for the next one.
        for n_shorter in (0..=LONGEST_ENDING).rev() {
            let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
            for &(word, count) in &rare {
                let all: Vec<&str> = endings(word).collect();
                if all.len() > n_shorter && !all.iter().any(|ending| chosen.contains(ending)) {
                    *counts.entry(all[all.len() - 1 - n_shorter]).or_default() += count;
                }
            }
            let is_frequent = |&(_, count): &(&str, u64)| n_shorter == 0 || count >= FREQUENT_ENDING;
            chosen.extend(counts.into_iter().filter(is_frequent).map(|(ending, _)| ending));
        }
        let words = frequent.into_iter().map(|(word, _)| Type::Word(word.to_owned()));
        let endings = chosen.into_iter().map(|ending| Type::Ending(ending.to_owned()));
        let names: Vec<Type> = words.chain(endings).collect();
        let numbers = names.iter().cloned().zip(0..).collect();
        Types { names, numbers }
    }

    /// The number of the type of a word of the text, in lower case.
    fn number(&self, word: &str) -> usize {
        let number = |of: Type| self.numbers.get(&of).copied();
        let of_ending = || endings(word).find_map(|ending| number(Type::Ending(ending.to_owned())));
        number(Type::Word(word.to_owned())).or_else(of_ending).expect("each word of the text has a type")
    }
}

/// The state of the exchange algorithm.
#[derive(Clone)]
struct Exchange {
    /// Classes and the boundary, which is the last one.
    n_classes: usize,
    /// By type, the boundary last: the types that follow it, or precede it, and how often.
    following: Vec<Vec<(usize, u64)>>,
    preceding: Vec<Vec<(usize, u64)>>,
    /// Types, the most frequent first.
    order: Vec<usize>,
    /// The class of each type, the boundary last.
    class_of: Vec<usize>,
    /// N(c d), `[n_classes, n_classes]`.
    bigrams: Vec<u64>,
    /// N(c ·) and N(· d), `[n_classes]`.
    firsts: Vec<u64>,
    seconds: Vec<u64>,
    /// n ln n, by small n.
    table: Vec<f64>,
}

/// Bigrams of a type with the types of each class, but for those with itself.
struct Neighbours {
    after: Vec<u64>,
    before: Vec<u64>,
    itself: u64,
}

impl Exchange {
    /// The most frequent types begin with one class each, and all others share the last one.
    fn new(sentences: &[Vec<usize>], n_types: usize, classes: usize) -> Exchange {
        let (n_classes, boundary) = (classes + 1, n_types);
        let mut pairs: BTreeMap<(usize, usize), u64> = BTreeMap::new();
        let mut counts = vec![0u64; n_types];
        for types in sentences {
            types.iter().for_each(|&of| counts[of] += 1);
            let ends = [boundary];
            let all: Vec<usize> = ends.iter().chain(types).chain(&ends).copied().collect();
            all.windows(2).for_each(|pair| *pairs.entry((pair[0], pair[1])).or_default() += 1);
        }
        let mut order: Vec<usize> = (0..n_types).collect();
        order.sort_by_key(|&of| (Reverse(counts[of]), of));
        let mut class_of = vec![classes; n_types + 1];
        order.iter().zip(0..).for_each(|(&of, rank)| class_of[of] = classes.min(rank + 1) - 1);
        let (mut following, mut preceding) = (vec![Vec::new(); n_types + 1], vec![Vec::new(); n_types + 1]);
        let mut bigrams = vec![0; n_classes * n_classes];
        let (mut firsts, mut seconds) = (vec![0; n_classes], vec![0; n_classes]);
        for ((first, second), n) in pairs {
            following[first].push((second, n));
            preceding[second].push((first, n));
            let (c, d) = (class_of[first], class_of[second]);
            bigrams[c * n_classes + d] += n;
            firsts[c] += n;
            seconds[d] += n;
        }
        let n_bigrams: u64 = firsts.iter().sum();
        let table = (0..=n_bigrams.min(TABLE)).map(n_ln_n).collect();
        Exchange { n_classes, following, preceding, order, class_of, bigrams, firsts, seconds, table }
    }

    /// Moves each type to its best class; whether any moved.
    fn sweep(&mut self) -> bool {
        let mut moved = false;
        for at in 0..self.order.len() {
            let of = self.order[at];
            let (best, old) = (self.best(of), self.class_of[of]);
            self.class_of[of] = best;
            moved |= best != old;
        }
        moved
    }

    /// Removes a type from the counts, returns the class in which F is highest, and adds it there. The present class wins ties, then the first one.
    fn best(&mut self, of: usize) -> usize {
        let neighbours = self.neighbours(of);
        let old = self.class_of[of];
        self.count(&neighbours, old, u64::wrapping_sub);
        let mut best = (old, self.gain(&neighbours, old));
        for class in 0..self.n_classes - 1 {
            let gain = self.gain(&neighbours, class);
            // More than rounding.
            if gain > best.1 + 1e-9 {
                best = (class, gain);
            }
        }
        self.count(&neighbours, best.0, u64::wrapping_add);
        best.0
    }

    fn neighbours(&self, of: usize) -> Neighbours {
        let by_class = |types: &[(usize, u64)]| {
            let mut counts = vec![0; self.n_classes];
            types
                .iter()
                .filter(|&&(other, _)| other != of)
                .for_each(|&(other, n)| counts[self.class_of[other]] += n);
            counts
        };
        let itself = self.following[of].iter().find(|&&(other, _)| other == of).map_or(0, |&(_, n)| n);
        Neighbours { after: by_class(&self.following[of]), before: by_class(&self.preceding[of]), itself }
    }

    /// Adds the bigrams of a type to those of a class, or subtracts them.
    fn count(&mut self, of: &Neighbours, class: usize, change: fn(u64, u64) -> u64) {
        let n = self.n_classes;
        for other in 0..n {
            self.bigrams[class * n + other] = change(self.bigrams[class * n + other], of.after[other]);
            self.bigrams[other * n + class] = change(self.bigrams[other * n + class], of.before[other]);
        }
        self.bigrams[class * n + class] = change(self.bigrams[class * n + class], of.itself);
        self.firsts[class] = change(self.firsts[class], of.n_after());
        self.seconds[class] = change(self.seconds[class], of.n_before());
    }

    /// What F gains if a type that is not counted joins a class.
    fn gain(&self, of: &Neighbours, class: usize) -> f64 {
        let n = self.n_classes;
        let growth = |count: u64, more: u64| {
            if more == 0 { 0.0 } else { self.n_ln_n(count + more) - self.n_ln_n(count) }
        };
        let mut gain =
            growth(self.bigrams[class * n + class], of.after[class] + of.before[class] + of.itself);
        for other in (0..n).filter(|&other| other != class) {
            gain += growth(self.bigrams[class * n + other], of.after[other]);
            gain += growth(self.bigrams[other * n + class], of.before[other]);
        }
        gain - growth(self.firsts[class], of.n_after()) - growth(self.seconds[class], of.n_before())
    }

    fn n_ln_n(&self, n: u64) -> f64 {
        self.table.get(n as usize).copied().unwrap_or_else(|| n_ln_n(n))
    }
}

impl Neighbours {
    fn n_after(&self) -> u64 {
        self.after.iter().sum::<u64>() + self.itself
    }

    fn n_before(&self) -> u64 {
        self.before.iter().sum::<u64>() + self.itself
    }
}

fn n_ln_n(n: u64) -> f64 {
    if n == 0 { 0.0 } else { n as f64 * special::ln(n as f64) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::data::dependency::{Tags, read};

    /// F, from its definition.
    fn likelihood(sentences: &[Vec<usize>], class_of: &[usize]) -> f64 {
        let boundary = class_of.len() - 1;
        let (mut pairs, mut firsts, mut seconds) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        for types in sentences {
            let ends = [boundary];
            let classes: Vec<usize> = ends.iter().chain(types).chain(&ends).map(|&of| class_of[of]).collect();
            for pair in classes.windows(2) {
                *pairs.entry((pair[0], pair[1])).or_insert(0) += 1;
                *firsts.entry(pair[0]).or_insert(0) += 1;
                *seconds.entry(pair[1]).or_insert(0) += 1;
            }
        }
        let sum = |counts: Vec<u64>| counts.into_iter().map(n_ln_n).sum::<f64>();
        sum(pairs.into_values().collect())
            - sum(firsts.into_values().collect())
            - sum(seconds.into_values().collect())
    }

    fn texts() -> impl Strategy<Value = Vec<Vec<usize>>> {
        prop::collection::vec(prop::collection::vec(0..7usize, 1..6), 1..12)
    }

    proptest! {
        #[test]
        fn each_move_is_the_best_and_the_likelihood_never_falls(sentences in texts()) {
            let mut exchange = Exchange::new(&sentences, 7, 3);
            for of in exchange.order.clone() {
                let with = |class: usize| {
                    let mut class_of = exchange.class_of.clone();
                    class_of[of] = class;
                    likelihood(&sentences, &class_of)
                };
                let highest = (0..3).map(with).fold(f64::NEG_INFINITY, f64::max);
                let before = likelihood(&sentences, &exchange.class_of);
                exchange.class_of[of] = exchange.best(of);
                let after = likelihood(&sentences, &exchange.class_of);
                prop_assert!(after >= before - 1e-9 && (after - highest).abs() < 1e-8, "{before} {after} {highest}");
                // The counts are still those of the classes.
                let counted = |counts: &[u64]| counts.iter().map(|&n| n_ln_n(n)).sum::<f64>();
                let kept = counted(&exchange.bigrams) - counted(&exchange.firsts) - counted(&exchange.seconds);
                prop_assert!((kept - after).abs() < 1e-8, "{kept} {after}");
            }
        }

        #[test]
        fn each_word_has_a_class_and_the_table_keeps_it(
            words in prop::collection::vec("[a-cA-C0é]{1,4}|[.,]", 1..60), new in "\\PC{1,5}",
        ) {
            let lines: String = words.chunks(4).map(|words| words.iter().map(|word| format!("{word}\t_\n")).collect::<String>() + "\n").collect();
            let sentences = read(lines.as_bytes(), "s", Tags::Upos).unwrap();
            let classes = WordClasses::induce(&sentences);
            let from_table = WordClasses::from_tsv(&classes.to_tsv()).unwrap();
            prop_assert_eq!(&from_table, &classes);
            prop_assert_eq!(&WordClasses::induce(&sentences), &classes);
            for word in words.iter().chain([&new]) {
                prop_assert!(is_class(classes.of(word)));
                prop_assert_eq!(classes.of(word), classes.of(&word.to_uppercase().to_lowercase()));
            }
        }
    }

    #[test]
    fn words_in_the_same_places_are_one_class() {
        let line = |words: [&str; 3]| words.map(|word| format!("{word}\t_\n")).concat() + "\n";
        let (nouns, verbs) = (["dog", "cat", "hen", "cow"], ["sees", "bites", "eats", "loses"]);
        let sentences = nouns.iter().flat_map(|noun| verbs.iter().map(move |verb| line(["the", noun, verb])));
        let sentences = read(sentences.collect::<String>().as_bytes(), "s", Tags::Upos).unwrap();
        let numbers: Vec<Vec<usize>> = {
            let words: Vec<Vec<String>> = sentences.iter().map(|sentence| sentence.words.clone()).collect();
            let types = Types::new(&words);
            words.iter().map(|words| words.iter().map(|word| types.number(word)).collect()).collect()
        };
        let mut exchange = Exchange::new(&numbers, 9, 3);
        while exchange.sweep() {}
        for sentence in &numbers {
            let classes = sentence.iter().map(|&of| exchange.class_of[of]).collect::<Vec<_>>();
            assert_eq!(classes, numbers[0].iter().map(|&of| exchange.class_of[of]).collect::<Vec<_>>());
        }
    }

    #[test]
    fn rare_words_are_known_by_the_longest_frequent_ending() {
        assert_eq!(endings("barking").collect::<Vec<_>>(), ["ng", "g", ""]);
        assert_eq!(endings("a").collect::<Vec<_>>(), [""]);
        assert_eq!(endings("né").collect::<Vec<_>>(), ["é", ""]);
        assert_eq!(endings("1990s").collect::<Vec<_>>(), ["0", ""]);
        let words = ["xing", "ying", "zing", "king", "ring", "xog", "xa", "1"].map(str::to_owned).to_vec();
        let types = Types::new(&[words]);
        let ending = |ending: &str| Type::Ending(ending.to_owned());
        assert_eq!(types.names, [ending(""), ending("ng")]);
    }

    #[test]
    fn a_faulty_table_is_refused() {
        for (table, error) in [
            ("word\tthe\tclass1\n", BadTable::NoRest),
            ("word\tthe\n", BadTable::Line(1)),
            ("ending\t\tclass1\nending\ted\tDET\n", BadTable::Line(2)),
            ("verb\tsee\tclass1\n", BadTable::Line(1)),
        ] {
            assert_eq!(WordClasses::from_tsv(table), Err(error), "{table}");
        }
    }
}
