//! The lexicon of a segmentation (`lexicon.tsv`): its distinct segments, with their counts and what the model says of each.
//!
//! In: the segments of every line that has an analysis, line by line. Out: an entry per distinct segment, the most frequent first. In memory are
//! the distinct segments, each with two excerpts of bounded length, and those of the gold segmentation; not the lines.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;

use grammaton::num::Wide;
use rustc_hash::{FxHashMap, FxHashSet};

/// A distinct segment.
#[derive(Clone, PartialEq, Debug)]
pub struct Entry {
    /// The segment, as it is printed.
    pub segment: String,
    /// The nonterminal of most of its constituents, if the decoder gives trees.
    pub category: Option<String>,
    /// Number of its occurrences in the segmentation.
    pub count: u64,
    /// Mean probability of the segment where it occurs.
    pub share: Option<f64>,
    /// Natural logarithm of its mean weight among the strings of its nonterminal, if it is one of them.
    pub log_probability: Option<f64>,
    /// Whether the gold segmentation has the segment anywhere, if there is one.
    pub in_gold: Option<bool>,
    /// One or two different lines with the segment, segmented; of long lines an excerpt.
    pub examples: Vec<String>,
}

impl Entry {
    /// Names of the columns.
    pub const HEADER: &'static str =
        "segment\tcategory\tcount\tshare\tlog_probability\tin_gold\texample_1\texample_2";
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Entry { segment, category, count, share, log_probability, in_gold, examples } = self;
        let number = |number: &Option<f64>| number.map_or(String::new(), |number| format!("{number:.4}"));
        let in_gold = in_gold.map_or("", |is_in| if is_in { "yes" } else { "no" });
        let example = |at: usize| examples.get(at).map_or("", String::as_str);
        write!(
            f,
            "{segment}\t{}\t{count}\t{}\t{}\t{in_gold}\t{}\t{}",
            category.as_deref().unwrap_or_default(),
            number(share),
            number(log_probability),
            example(0),
            example(1)
        )
    }
}

/// A segment of a line.
#[derive(Clone, Debug)]
pub struct Segment<'a> {
    /// As it is printed.
    pub text: String,
    /// The nonterminal of its constituent, if there is a tree.
    pub category: Option<&'a str>,
    /// Probability of the segment at this place, if it is known.
    pub share: Option<f64>,
}

/// Distinct segments of the lines so far.
#[derive(Debug)]
pub struct Lexicon {
    /// Separator of segments in a line.
    separator: &'static str,
    segments: FxHashMap<String, Uses>,
    /// Distinct segments of the gold segmentation, if there is one.
    gold: Option<FxHashSet<String>>,
}

/// The occurrences of a segment.
#[derive(Default, Debug)]
struct Uses {
    count: u64,
    /// Sum of the probabilities.
    shares: Option<f64>,
    /// Number of constituents by nonterminal.
    categories: BTreeMap<String, u64>,
    examples: Vec<String>,
}

/// Number of examples of a segment.
const EXAMPLES: usize = 2;
/// Characters of an example, unless the segment itself is longer.
const EXAMPLE_LENGTH: usize = 80;

impl Lexicon {
    /// No segments yet, of lines whose segments have this separator; with gold or without.
    pub fn new(separator: &'static str, has_gold: bool) -> Lexicon {
        Lexicon { separator, segments: FxHashMap::default(), gold: has_gold.then(FxHashSet::default) }
    }

    /// Counts the segments of a line.
    pub fn add(&mut self, line: &[Segment<'_>]) {
        let texts: Vec<&str> = line.iter().map(|segment| &segment.text[..]).collect();
        for (at, Segment { text, category, share }) in line.iter().enumerate() {
            if !self.segments.contains_key(text) {
                self.segments.insert(text.clone(), Uses::default());
            }
            let uses = self.segments.get_mut(text).expect("it was inserted if it was not there");
            uses.count += 1;
            uses.shares = share.map(|share| uses.shares.unwrap_or_default() + share);
            match category.map(|category| (category, uses.categories.get_mut(category))) {
                Some((_, Some(count))) => *count += 1,
                Some((category, None)) => drop(uses.categories.insert(category.to_owned(), 1)),
                None => {}
            }
            if uses.examples.len() < EXAMPLES {
                let example = excerpt(&texts, at, self.separator);
                if !uses.examples.contains(&example) {
                    uses.examples.push(example);
                }
            }
        }
    }

    /// Adds segments of the gold segmentation.
    pub fn add_gold(&mut self, segments: Vec<String>) {
        if let Some(gold) = &mut self.gold {
            gold.extend(segments);
        }
    }

    /// The entries, by count, then by segment. `weights`: nonterminals with their strings, as they are printed, and the mean weights of these.
    pub fn entries<'a>(self, weights: impl Iterator<Item = (&'a str, String, f64)>) -> Vec<Entry> {
        let Lexicon { segments, gold, .. } = self;
        let entry = |(segment, uses): (String, Uses)| {
            let Uses { count, shares, categories, examples } = uses;
            let most = categories.into_iter().max_by_key(|(name, n)| (*n, Reverse(name.clone())));
            let in_gold = gold.as_ref().map(|gold| gold.contains(&segment));
            let share = shares.map(|sum| sum / count as f64);
            let category = most.map(|(name, _)| name);
            Entry { segment, category, count, share, log_probability: None, in_gold, examples }
        };
        let mut entries: Vec<Entry> = segments.into_iter().map(entry).collect();
        entries.sort_unstable_by(|a, b| b.count.cmp(&a.count).then_with(|| a.segment.cmp(&b.segment)));
        let places: FxHashMap<String, usize> =
            entries.iter().enumerate().map(|(at, entry)| (entry.segment.clone(), at)).collect();
        for (nonterminal, string, weight) in weights.filter(|(.., weight)| *weight > 0.0) {
            let Some(&at) = places.get(&string) else { continue };
            let Entry { category, log_probability, .. } = &mut entries[at];
            if category.as_ref().is_none_or(|category| category == nonterminal) {
                let log = Wide::from_f64(weight).ln();
                *log_probability = Some(log_probability.map_or(log, |known| known.max(log)));
            }
        }
        entries
    }
}

/// The line of these segments, or of a long one the segment at position `at` with neighbours on both sides.
pub fn excerpt(line: &[&str], at: usize, separator: &str) -> String {
    let length = |at: usize| line[at].chars().count() + separator.len();
    let (mut start, mut end, mut n) = (at, at + 1, length(at));
    loop {
        let before = (start > 0).then(|| length(start - 1)).filter(|more| n + more <= EXAMPLE_LENGTH);
        n += before.unwrap_or_default();
        start -= usize::from(before.is_some());
        let after = (end < line.len()).then(|| length(end)).filter(|more| n + more <= EXAMPLE_LENGTH);
        n += after.unwrap_or_default();
        end += usize::from(after.is_some());
        if before.is_none() && after.is_none() {
            break;
        }
    }
    let segments = line[start..end].iter().copied();
    let cut = |is_cut: bool| is_cut.then_some("…");
    let parts: Vec<&str> = cut(start > 0).into_iter().chain(segments).chain(cut(end < line.len())).collect();
    parts.join(separator)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Vec<Segment<'_>> {
        text.split(' ').map(|text| Segment { text: text.to_owned(), category: None, share: None }).collect()
    }

    fn printed(entries: &[Entry]) -> Vec<String> {
        entries.iter().map(Entry::to_string).collect()
    }

    #[test]
    fn segments_are_sorted_by_count_then_by_themselves() {
        let mut lexicon = Lexicon::new(" ", false);
        ["a b a", "b c", "a b a"].into_iter().for_each(|text| lexicon.add(&line(text)));
        let weights = [("Word", "a", 0.5), ("Other", "a", 0.25), ("Word", "x", 0.1), ("Word", "b", 0.0)];
        let weights = weights.map(|(name, string, weight)| (name, string.to_owned(), weight));
        let found = lexicon.entries(weights.into_iter());
        let rows = ["a\t\t4\t\t-0.6931\t\ta b a\t", "b\t\t3\t\t\t\ta b a\tb c", "c\t\t1\t\t\t\tb c\t"];
        assert_eq!(printed(&found), rows);
        assert!(rows.iter().all(|row| row.split('\t').count() == Entry::HEADER.split('\t').count()));
    }

    #[test]
    fn shares_are_means_and_the_most_frequent_category_counts() {
        let mut lexicon = Lexicon::new(" ", true);
        let of =
            |category, share| Segment { text: "a".to_owned(), category: Some(category), share: Some(share) };
        lexicon.add(&[of("Stem", 1.0), of("Prefix", 0.5), of("Prefix", 0.0)]);
        lexicon.add(&[of("Stem", 0.5)]);
        lexicon.add_gold(vec!["a".to_owned()]);
        let weights = [("Stem", "a".to_owned(), 0.5), ("Prefix", "a".to_owned(), 0.25)];
        let found = lexicon.entries(weights.into_iter());
        assert_eq!(printed(&found), ["a\tPrefix\t4\t0.5000\t-1.3863\tyes\ta a a\ta"]);
    }

    #[test]
    fn examples_of_long_lines_are_excerpts() {
        let text = (0..60).map(|at| format!("w{at}")).collect::<Vec<_>>().join(" ");
        let segments: Vec<&str> = text.split(' ').collect();
        for at in 0..60 {
            let example = excerpt(&segments, at, " ");
            let has_segment = example.split(' ').any(|part| part == segments[at]);
            assert!(has_segment && example.chars().count() <= EXAMPLE_LENGTH + 3, "{example}");
            assert!(example.contains('…') && text.contains(example.trim_matches(['…', ' '])), "{example}");
        }
        let long = "x".repeat(200);
        assert_eq!(excerpt(&[&long], 0, " "), long);
        assert_eq!(excerpt(&["a", "b"], 1, " "), "a b");
    }
}
