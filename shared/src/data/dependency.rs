//! Sentences with dependency trees: words, their tags, and for each word its head.
//!
//! In: CoNLL-U, or a word, its tag and its head a line ([`read()`]). Out: [`Sentence`]s, freed of punctuation and of a limited length
//! ([`select`]), and the file as it came, with other heads ([`Document::with_heads`]).
//!
//! A head is the number of a word of the sentence, from 1, or 0 for the root. A tree may have several words under the root, as
//! one has whose root was punctuation, and edges that cross. Relations have no labels here.

mod read;
mod write;

pub use read::{Problem, SentenceError, read};
pub use write::of_text;

use std::ops::Range;

use serde::{Deserialize, Serialize};

/// The column of tags in a CoNLL-U file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tags {
    /// The universal ones, column 4.
    #[default]
    Upos,
    /// Tags of the language, column 5.
    Xpos,
}

/// A sentence; words, tags and all other columns have the same length.
///
/// ```
/// use grammaton::data::{Tags, read_sentences};
///
/// // A word, its tag and its head a line; or CoNLL-U.
/// let text = "the\tDET\t2\ndog\tNOUN\t3\nbarks\tVERB\t0\n";
/// let sentences = read_sentences(text.as_bytes(), "text", Tags::Upos)?;
/// assert_eq!(sentences[0].tags, ["DET", "NOUN", "VERB"]);
/// assert_eq!(sentences[0].heads, Some(vec![2, 3, 0]));
/// # Ok::<(), grammaton::data::SentenceError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sentence {
    /// The words.
    pub words: Vec<String>,
    /// A tag for each; `_` where the file has none.
    pub tags: Vec<String>,
    /// The head of each, from 1, 0 for the root, without a cycle; none if the file does not say.
    pub heads: Option<Vec<u32>>,
    /// The head of each as the file gives it, a tree or not; `None` where it says `_`. `[n_words]`
    pub given: Vec<Option<u32>>,
    /// Whether each is punctuation.
    pub punctuation: Vec<bool>,
    /// The numbers of words before each place inside the sentence where punctuation was removed, ascending.
    pub breaks: Vec<u32>,
    /// The line of its first word, from 1.
    pub line: u32,
}

/// A file of sentences, which can be written again with other heads.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Document {
    /// The sentences, in the order of the file.
    pub sentences: Vec<Sentence>,
    /// Why some sentences have no heads although the file gives them: these are no tree. In the order of the file.
    pub faults: Vec<SentenceError>,
    /// What is wrong with the sentences that could not be read, which are not among [`Self::sentences`]. In the order of the file.
    pub unread: Vec<SentenceError>,
    /// The file, decompressed.
    text: String,
    /// By sentence and word: the bytes of its head in `text`; empty, at the end of a line, where the file has no column of heads.
    head_columns: Vec<Vec<Range<usize>>>,
}

impl Sentence {
    /// Number of words.
    pub fn n_words(&self) -> usize {
        self.words.len()
    }

    /// The sentence without its punctuation, possibly empty. What depended on a word that goes depends on the nearest ancestor
    /// that stays, or on the root.
    pub fn without_punctuation(&self) -> Sentence {
        let kept: Vec<usize> = (0..self.n_words()).filter(|&at| !self.punctuation[at]).collect();
        // The new number of each word that stays, by its old one; the root keeps its 0.
        let mut numbers = vec![0; self.n_words() + 1];
        for (before, &at) in kept.iter().enumerate() {
            numbers[at + 1] = before as u32 + 1;
        }
        let head = |heads: &[u32], at: usize| {
            let mut head = heads[at] as usize;
            while head > 0 && self.punctuation[head - 1] {
                head = heads[head - 1] as usize;
            }
            numbers[head]
        };
        let given = |at: usize| {
            let mut head = self.given[at]? as usize;
            // Those that are no tree may lead in a circle.
            for _ in 0..self.n_words() {
                if head == 0 || head > self.n_words() || !self.punctuation[head - 1] {
                    break;
                }
                head = self.given[head - 1]? as usize;
            }
            // One beyond the sentence stays beyond it.
            Some(numbers.get(head).copied().unwrap_or(u32::MAX))
        };
        let n_before = |at: usize| kept.partition_point(|&kept| kept < at) as u32;
        let marks = (0..self.n_words()).filter(|&at| self.punctuation[at]);
        let mut breaks: Vec<u32> =
            marks.chain(self.breaks.iter().map(|&at| at as usize)).map(n_before).collect();
        breaks.sort_unstable();
        breaks.dedup();
        breaks.retain(|&at| at > 0 && (at as usize) < kept.len());
        let of_kept = |all: &[String]| kept.iter().map(|&at| all[at].clone()).collect();
        Sentence {
            words: of_kept(&self.words),
            tags: of_kept(&self.tags),
            heads: self.heads.as_ref().map(|heads| kept.iter().map(|&at| head(heads, at)).collect()),
            given: kept.iter().map(|&at| given(at)).collect(),
            punctuation: vec![false; kept.len()],
            breaks,
            line: self.line,
        }
    }

    /// Heads of all words, given those of [`Sentence::without_punctuation`]. Punctuation depends on the nearest other word before it,
    /// or if there is none, on the first one after it; so it has no dependents, and the tree keeps its roots. In a sentence of
    /// punctuation alone the first mark is the root, on which the others depend.
    pub fn with_punctuation(&self, heads: &[u32]) -> Vec<u32> {
        let others: Vec<u32> =
            (1..).zip(&self.punctuation).filter(|(_, mark)| !**mark).map(|(at, _)| at).collect();
        let Some(&first) = others.first() else {
            return (0..self.n_words()).map(|at| u32::from(at > 0)).collect();
        };
        let (mut before, mut heads) = (first, heads.iter());
        let head = |(at, &is_punctuation): (u32, &bool)| {
            if is_punctuation {
                return before;
            }
            before = at;
            match heads.next() {
                Some(0) | None => 0,
                Some(&head) => others[head as usize - 1],
            }
        };
        (1..).zip(&self.punctuation).map(head).collect()
    }
}

/// Treatment of punctuation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Punctuation {
    /// Punctuation is removed ([`Sentence::without_punctuation`]).
    Removed,
    /// Punctuation marks are words.
    Kept,
}

/// Result of [`select`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Selection {
    /// The sentences left, in their order.
    pub sentences: Vec<Sentence>,
    /// Number of sentences left out because all of their words were punctuation.
    pub n_empty: usize,
    /// Number of sentences left out because they were too long.
    pub n_long: usize,
}

/// Removes punctuation, or does not; then leaves out the sentences that are empty or have more than `max_length` words.
pub fn select(sentences: &[Sentence], punctuation: Punctuation, max_length: usize) -> Selection {
    let mut selection = Selection { sentences: Vec::new(), n_empty: 0, n_long: 0 };
    for sentence in sentences {
        let sentence = match punctuation {
            Punctuation::Removed => sentence.without_punctuation(),
            Punctuation::Kept => sentence.clone(),
        };
        match sentence.n_words() {
            0 => selection.n_empty += 1,
            n if n > max_length => selection.n_long += 1,
            _ => selection.sentences.push(sentence),
        }
    }
    selection
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words with these tags and heads.
    fn sentence(tags: &[&str], heads: &[u32]) -> Sentence {
        let lines: Vec<String> =
            tags.iter().zip(heads).map(|(tag, head)| format!("w\t{tag}\t{head}")).collect();
        read(lines.join("\n").as_bytes(), "s", Tags::Upos).unwrap().remove(0)
    }

    fn heads_left(tags: &[&str], heads: &[u32]) -> Vec<u32> {
        sentence(tags, heads).without_punctuation().heads.unwrap()
    }

    #[test]
    fn dependents_of_punctuation_go_to_the_nearest_word_above() {
        // 4 hangs on a comma, that on a colon, that on 1.
        assert_eq!(heads_left(&["V", ",", ":", "N", "N"], &[0, 3, 1, 2, 4]), [0, 1, 2]);
        // The root itself is punctuation: two words are under the root.
        assert_eq!(heads_left(&["N", "-LRB-", "V"], &[2, 0, 2]), [0, 0]);
        assert_eq!(heads_left(&["N", "V", "."], &[2, 0, 2]), [2, 0]);
    }

    #[test]
    fn punctuation_is_removed_from_sentences_without_heads() {
        let mut without = sentence(&["N", "$", "PUNCT", "V"], &[0, 1, 1, 1]);
        without.heads = None;
        let left = without.without_punctuation();
        assert_eq!((left.tags, left.heads, left.line), (vec!["N".to_owned(), "V".to_owned()], None, 1));
    }

    #[test]
    fn places_of_punctuation_are_kept() {
        let all = sentence(&[",", "N", ",", ".", "V", "N", ".", "N", "."], &[2, 0, 2, 2, 2, 2, 2, 2, 2]);
        let without = all.without_punctuation();
        assert_eq!(without.breaks, [1, 3]);
        assert_eq!(without.without_punctuation().breaks, [1, 3]);
        assert!(all.breaks.is_empty());
    }

    #[test]
    fn given_heads_pass_over_punctuation() {
        let mut all = sentence(&["V", ",", "N", "N"], &[0, 1, 2, 3]);
        all.given = vec![None, Some(1), Some(2), None];
        assert_eq!(all.without_punctuation().given, [None, Some(1), None]);
        all.given = vec![Some(2), Some(2), Some(9), Some(0)];
        assert_eq!(all.without_punctuation().given[1..], [Some(u32::MAX), Some(0)]);
    }

    #[test]
    fn length_is_counted_after_removal() {
        let sentences = [
            sentence(&["N", "V", "."], &[2, 0, 2]),
            sentence(&[".", "."], &[0, 1]),
            sentence(&["N", "V", "N"], &[2, 0, 2]),
        ];
        let removed = select(&sentences, Punctuation::Removed, 2);
        assert_eq!(removed.sentences, [sentences[0].without_punctuation()]);
        assert_eq!((removed.n_empty, removed.n_long), (1, 1));
        let kept = select(&sentences, Punctuation::Kept, 2);
        assert_eq!(kept.sentences, [sentences[1].clone()]);
        assert_eq!((kept.n_empty, kept.n_long), (0, 2));
    }
}
