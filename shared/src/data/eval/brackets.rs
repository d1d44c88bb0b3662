//! Scores of trees against gold ones: labelled brackets, as EVALB counts them with its `COLLINS.prm`.
//!
//! In: gold and predicted trees, in the same order. Out: [`BracketScores`], of all sentences and of the short ones:
//! - trees are cleaned first ([`clean`]), so functions, traces and what they leave empty do not count;
//! - words with a tag of punctuation (`, : `` '' .`) are deleted, in both trees as the gold's tags say, and spans counted without
//!   them; a bracket left empty is left out;
//! - the top (ROOT, TOP, S1) is no bracket, nor are tags; ADVP and PRT are the same label;
//! - brackets are a multiset: NP over NP over the same words are two, and one of them can be missed;
//! - *unlabelled* brackets are the same multiset without labels; the right-branching tree over n words has a bracket from each word but the
//!   last to the end, and its unlabelled F1 is the baseline of grammars that were induced, not read off trees;
//! - scores are counted over the whole corpus; a sentence is exact if all its brackets are right, and none is missed;
//! - a sentence is as long as it has words, punctuation included.
//!
//! A sentence without a parse counts as one without brackets, whereas EVALB leaves it out; how many there were is said.
//! Does not count crossing brackets. A score whose denominator is 0 is `None`, never NaN.
//!
//! Black et al. (1991); Sekine & Collins, the EVALB program; Collins (1997) for the labels; Klein & Manning (2002) for the baseline.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Source;
use super::segmentation::Prf;
use crate::data::treebank::brackets::Entry;
use crate::data::treebank::clean::{TOPS, clean};
use crate::grammar::tree::Tree;

/// Tags of words that are deleted.
const PUNCTUATION: [&str; 5] = [",", ":", "``", "''", "."];

/// Scores of a set of sentences.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct BracketScores {
    /// Labelled brackets.
    pub labelled: Prf,
    /// Brackets without their labels.
    #[serde(default)]
    pub unlabelled: Prf,
    /// Unlabelled F1 of right-branching trees.
    #[serde(default)]
    pub right_branching: Option<f64>,
    /// Share of the words left whose tag is right; `None` if there are no words.
    pub tagging: Option<f64>,
    /// Share of the sentences whose brackets are exactly those of the gold; `None` if there are no sentences.
    pub exact: Option<f64>,
    /// Sentences scored: all whose gold has words.
    pub sentences: u64,
    /// Sentences without a parse: no tree, or one without a bracket where the gold has some.
    pub unparsed: u64,
}

/// Scores of all sentences, and of those up to a length.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct ByLength {
    /// Scores of all sentences.
    pub all: BracketScores,
    /// Maximum length of a short sentence, in words.
    pub max_length: usize,
    /// Scores of the short sentences.
    pub short: BracketScores,
}

/// Why trees cannot be compared.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BracketError {
    /// Different numbers of trees.
    #[error(
        "{predicted_name} has {n_predicted} trees, but {gold_name} has {n_gold}; expected one for each, \
         and `(())` where there is no parse"
    )]
    Number {
        /// Name of the prediction.
        predicted_name: String,
        /// Number of trees.
        n_predicted: usize,
        /// Name of the gold.
        gold_name: String,
        /// Number of trees.
        n_gold: usize,
    },
    /// A tree over other words.
    #[error(
        "{predicted_name}:{predicted_line}: found {found} as word {place} of the tree, but {gold_name}:{gold_line} has {expected}; \
         expected trees over the same words"
    )]
    Words {
        /// Name of the prediction.
        predicted_name: String,
        /// Line of the tree in it.
        predicted_line: u32,
        /// Name of the gold.
        gold_name: String,
        /// Line of the tree in it.
        gold_line: u32,
        /// Position of the word, from 1.
        place: usize,
        /// The predicted word.
        found: String,
        /// The word in the gold.
        expected: String,
    },
}

/// Scores `predicted` against `gold`; sentences of up to `max_length` words are short.
///
/// # Errors
/// [`BracketError`] if the trees are not over the same sentences.
pub fn score(
    gold: Source<Entry>,
    predicted: Source<Entry>,
    max_length: usize,
) -> Result<ByLength, BracketError> {
    let (n_gold, n_predicted) = (gold.items.len(), predicted.items.len());
    if n_gold != n_predicted {
        let (predicted_name, gold_name) = (predicted.name.to_owned(), gold.name.to_owned());
        return Err(BracketError::Number { predicted_name, n_predicted, gold_name, n_gold });
    }
    let (mut all, mut short) = (Counts::default(), Counts::default());
    for (gold_entry, predicted_entry) in gold.items.iter().zip(predicted.items) {
        let cleaned = |entry: &Entry| entry.tree.as_ref().and_then(clean).map(|tree| Spans::of(&tree));
        let Some(gold_spans) = cleaned(gold_entry) else { continue };
        let predicted_spans = cleaned(predicted_entry);
        if let Some(spans) = &predicted_spans
            && let Some((place, found, expected)) = first_difference(&spans.words, &gold_spans.words)
        {
            return Err(BracketError::Words {
                predicted_name: predicted.name.to_owned(),
                predicted_line: predicted_entry.line,
                gold_name: gold.name.to_owned(),
                gold_line: gold_entry.line,
                place,
                found,
                expected,
            });
        }
        let counts = Counts::of(&gold_spans, predicted_spans.as_ref());
        all.add(&counts);
        if gold_spans.words.len() <= max_length {
            short.add(&counts);
        }
    }
    Ok(ByLength { all: all.scores(), max_length, short: short.scores() })
}

/// The first place, from 1, at which two sentences differ, and what they have there. Backslashes do not count: the treebank puts
/// them before `/` and `*`, and raw text has none.
fn first_difference(found: &[String], expected: &[String]) -> Option<(usize, String, String)> {
    let plain = |word: Option<&String>| word.map(|word| word.replace('\\', ""));
    let shown = |word: Option<&String>| word.map_or("no word".to_owned(), |word| format!("`{word}`"));
    let length = found.len().max(expected.len());
    let differs = |&place: &usize| plain(found.get(place)) != plain(expected.get(place));
    let place = (0..length).find(differs)?;
    Some((place + 1, shown(found.get(place)), shown(expected.get(place))))
}

/// A tree as words, tags and labelled spans.
struct Spans {
    words: Vec<String>,
    /// Tag of each word.
    tags: Vec<String>,
    /// Labels over words [i, j), top and tags left out.
    brackets: Vec<(String, usize, usize)>,
}

impl Spans {
    /// Takes a cleaned tree apart.
    fn of(tree: &Tree) -> Spans {
        let mut spans = Spans { words: Vec::new(), tags: Vec::new(), brackets: Vec::new() };
        let nodes = tree.nodes();
        // Of each node that is open: its label, where it begins, and its children still to come.
        let mut open: Vec<(&str, usize, u32)> = Vec::new();
        for (at, node) in nodes.iter().enumerate() {
            if node.n_children > 0 {
                open.push((&node.label, spans.words.len(), node.n_children));
                continue;
            }
            spans.words.push(node.label.clone());
            spans.tags.push(nodes[at - 1].label.clone());
            // The tag of the word.
            open.pop();
            while let Some((label, begin, left)) = open.last_mut() {
                *left -= 1;
                if *left > 0 {
                    break;
                }
                if !TOPS.contains(label) {
                    let label = if *label == "PRT" { "ADVP" } else { label };
                    spans.brackets.push((label.to_owned(), *begin, spans.words.len()));
                }
                open.pop();
            }
        }
        spans
    }

    /// Brackets by how often they occur, without the words that are not `kept`.
    fn multiset(&self, kept: &[bool]) -> BTreeMap<(&str, usize, usize), u64> {
        let mut before = vec![0];
        before.extend(kept.iter().scan(0, |n, &kept| {
            *n += usize::from(kept);
            Some(*n)
        }));
        let mut multiset = BTreeMap::new();
        for (label, begin, end) in &self.brackets {
            let (begin, end) = (before[*begin], before[*end]);
            if begin < end {
                *multiset.entry((label.as_str(), begin, end)).or_default() += 1;
            }
        }
        multiset
    }
}

/// A multiset of brackets without their labels.
fn unlabelled(brackets: &BTreeMap<(&str, usize, usize), u64>) -> BTreeMap<(usize, usize), u64> {
    let mut spans = BTreeMap::new();
    for (&(_, begin, end), n) in brackets {
        *spans.entry((begin, end)).or_default() += n;
    }
    spans
}

/// Size of the intersection of two multisets.
fn n_common<K: Ord>(one: &BTreeMap<K, u64>, other: &BTreeMap<K, u64>) -> u64 {
    one.iter().map(|(key, n)| other.get(key).map_or(0, |m| *m.min(n))).sum()
}

#[derive(Default)]
struct Counts {
    right: u64,
    /// Brackets that are right without their labels.
    right_unlabelled: u64,
    gold: u64,
    predicted: u64,
    /// Brackets of right-branching trees, and those of them that are right without labels.
    branching: u64,
    right_branching: u64,
    right_tags: u64,
    words: u64,
    exact: u64,
    sentences: u64,
    unparsed: u64,
}

impl Counts {
    /// The counts of one sentence.
    fn of(gold: &Spans, predicted: Option<&Spans>) -> Counts {
        let kept: Vec<bool> = gold.tags.iter().map(|tag| !PUNCTUATION.contains(&tag.as_str())).collect();
        let gold_brackets = gold.multiset(&kept);
        let predicted_brackets = predicted.map(|spans| spans.multiset(&kept)).unwrap_or_default();
        let n_words = kept.iter().filter(|&&kept| kept).count();
        let branching: BTreeMap<_, _> =
            (0..n_words.saturating_sub(1)).map(|begin| ((begin, n_words), 1)).collect();
        let gold_spans = unlabelled(&gold_brackets);
        let no_bracket = predicted.is_none_or(|spans| spans.brackets.is_empty());
        let right_tag =
            |&at: &usize| kept[at] && predicted.is_some_and(|spans| spans.tags[at] == gold.tags[at]);
        Counts {
            right: n_common(&gold_brackets, &predicted_brackets),
            right_unlabelled: n_common(&gold_spans, &unlabelled(&predicted_brackets)),
            gold: gold_brackets.values().sum(),
            predicted: predicted_brackets.values().sum(),
            branching: branching.values().sum(),
            right_branching: n_common(&gold_spans, &branching),
            right_tags: (0..kept.len()).filter(right_tag).count() as u64,
            words: n_words as u64,
            exact: u64::from(predicted.is_some() && gold_brackets == predicted_brackets),
            sentences: 1,
            unparsed: u64::from(predicted.is_none() || no_bracket && !gold.brackets.is_empty()),
        }
    }

    fn add(&mut self, other: &Counts) {
        self.right += other.right;
        self.right_unlabelled += other.right_unlabelled;
        self.gold += other.gold;
        self.predicted += other.predicted;
        self.branching += other.branching;
        self.right_branching += other.right_branching;
        self.right_tags += other.right_tags;
        self.words += other.words;
        self.exact += other.exact;
        self.sentences += other.sentences;
        self.unparsed += other.unparsed;
    }

    fn scores(&self) -> BracketScores {
        let ratio = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
        let prf = |right, predicted| Prf {
            precision: ratio(right, predicted),
            recall: ratio(right, self.gold),
            f1: ratio(2 * right, predicted + self.gold),
        };
        BracketScores {
            labelled: prf(self.right, self.predicted),
            unlabelled: prf(self.right_unlabelled, self.predicted),
            right_branching: prf(self.right_branching, self.branching).f1,
            tagging: ratio(self.right_tags, self.words),
            exact: ratio(self.exact, self.sentences),
            sentences: self.sentences,
            unparsed: self.unparsed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::treebank::brackets::read;

    fn compared(gold: &str, predicted: &str, max_length: usize) -> Result<ByLength, BracketError> {
        let (gold, predicted) = (read(gold, "gold").unwrap(), read(predicted, "predicted").unwrap());
        let source = |name, entries| Source { name, items: entries };
        score(source("gold", &gold), source("predicted", &predicted), max_length)
    }

    fn scores(gold: &str, predicted: &str) -> BracketScores {
        compared(gold, predicted, 40).unwrap().all
    }

    fn prf(right: f64, predicted: f64, gold: f64) -> Prf {
        Prf {
            precision: Some(right / predicted),
            recall: Some(right / gold),
            f1: Some(2.0 * right / (predicted + gold)),
        }
    }

    #[test]
    fn a_case_done_by_hand() {
        // Gold: S 0-4, NP 0-1, VP 1-4, NP 2-4. Predicted: S 0-4, NP 0-1, VP 1-3, NP 2-3, NP 3-4.
        let gold = "( (S (NP-SBJ (PRP I)) (VP (VBP saw) (NP (DT the) (NN man))) (. .)))";
        let predicted = "(ROOT (S (NP (PRP I)) (VP (VBP saw) (NP (NN the))) (NP (NN man)) (. .)))";
        let scores = scores(gold, predicted);
        assert_eq!(scores.labelled, prf(2.0, 5.0, 4.0));
        // Without labels NP 2-3 is wrong still, and of right-branching 0-4, 1-4, 2-4 all are right.
        assert_eq!(scores.unlabelled, prf(2.0, 5.0, 4.0));
        assert_eq!(scores.right_branching, Some(2.0 * 3.0 / (3.0 + 4.0)));
        assert_eq!(scores.tagging, Some(0.75));
        assert_eq!((scores.exact, scores.sentences, scores.unparsed), (Some(0.0), 1, 0));
    }

    #[test]
    fn brackets_are_multisets() {
        // The same NP three times in the gold and twice predicted: two are right.
        let scores = scores("(TOP (NP (NP (NP (NN x)))))", "(S1 (NP (NP (NN x))))");
        assert_eq!(scores.labelled, prf(2.0, 2.0, 3.0));
        assert_eq!(scores.exact, Some(0.0));
    }

    #[test]
    fn right_branching_trees_score_as_the_baseline() {
        let gold = "(S (NP (D a) (N b)) (VP (V c) (NP (D d) (N e))) (. .))\n(FRAG (NP (N x)) (. .))";
        let branching = "(X (A a) (X (A b) (X (A c) (X (A d) (A e)))) (A .))\n(())";
        let scores = scores(gold, branching);
        assert_eq!(scores.right_branching, scores.unlabelled.f1);
        assert_eq!(scores.unlabelled, prf(3.0, 4.0, 6.0));
    }

    #[test]
    fn removed_punctuation_leaves_no_trace() {
        let gold = "(ROOT (S (NP (NN x)) (, ,) (VP (VB y) (`` ``) (X ('' ''))) (. .)))";
        let predicted = "(ROOT (S (NP (NN x) (NN ,)) (VP (VB y) (: ``) ('' '') (. .))))";
        let scores = scores(gold, predicted);
        assert_eq!(scores.labelled, prf(3.0, 3.0, 3.0));
        assert_eq!((scores.exact, scores.tagging), (Some(1.0), Some(1.0)));
    }

    #[test]
    fn particles_are_adverbs_and_labels_count() {
        assert_eq!(
            scores("(VP (V a) (PRT (RP b)))", "(VP (V a) (ADVP (RP b)))").labelled,
            prf(2.0, 2.0, 2.0)
        );
        let found = scores("(VP (V a) (PP (RP b)))", "(VP (V a) (NP (RP b)))");
        assert_eq!((found.labelled, found.unlabelled), (prf(1.0, 2.0, 2.0), prf(2.0, 2.0, 2.0)));
    }

    #[test]
    fn sentences_without_a_parse_are_missed_and_reported() {
        let gold = "(S (A x))\n(S (A y))\n(S (A z))\n(A u)\n(S (-NONE- *))";
        let predicted = "(S (A x))\n(())\n(ROOT (B z))\n(A u)\n(())";
        let scores = scores(gold, predicted);
        assert_eq!(scores.labelled, prf(1.0, 1.0, 3.0));
        assert_eq!((scores.unparsed, scores.sentences), (2, 4));
        assert_eq!((scores.exact, scores.tagging), (Some(0.5), Some(0.5)));
    }

    #[test]
    fn short_sentences_are_those_of_so_many_words() {
        let trees = "(S (A x) (. .))\n(S (A x) (B y) (. .))";
        let by_length = compared(trees, "(S (A x) (. .))\n(S (NP (A x)) (B y) (. .))", 2).unwrap();
        assert_eq!((by_length.short.sentences, by_length.all.sentences), (1, 2));
        assert_eq!(by_length.short.labelled, prf(1.0, 1.0, 1.0));
        assert_eq!(by_length.all.labelled, prf(2.0, 3.0, 2.0));
    }

    #[test]
    fn nothing_has_no_scores() {
        assert_eq!(scores("", ""), BracketScores::default());
        assert_eq!(scores("(A x)", "(A x)").labelled, Prf::default());
    }

    #[test]
    fn other_sentences_are_refused_by_line() {
        let error =
            |predicted| compared("(S (A x))\n(S (A y) (B z))", predicted, 40).unwrap_err().to_string();
        assert_eq!(
            error("(S (A x))"),
            "predicted has 1 trees, but gold has 2; expected one for each, and `(())` where there is no parse"
        );
        assert_eq!(
            error("(S (A x))\n\n(S (A y) (B u))"),
            "predicted:3: found `u` as word 2 of the tree, but gold:2 has `z`; expected trees over the same words"
        );
        assert_eq!(
            error("(S (A x))\n(S (A y))"),
            "predicted:2: found no word as word 2 of the tree, but gold:2 has `z`; expected trees over the same words"
        );
        assert!(compared("(S (A 1\\/2))", "(S (A 1/2))", 40).is_ok());
    }
}
