//! Scores of dependency trees against gold ones, and of two outputs against each other.
//!
//! In: gold and predicted sentences over the same words. Out, for the sentences of up to 10 and 20 words and for all
//! ([`ByLength`]), [`Attachment`] or [`Comparison`]:
//! - punctuation is removed first, if it is to be: where the predicted file has the same words as the gold, what the gold says is
//!   punctuation, else (the prediction may come without) what each says for itself; lengths are counted after that;
//! - a word is right if it has the head of the gold, the root being one like others; so *directed* accuracy is also that of edges;
//! - *undirected*, it is also right if the gold has the edge the other way round;
//! - by *neutral edge direction* (NED; Schwartz et al. 2011), also if the head is the gold head of its gold head;
//! - accuracies are counted over all words of all sentences (micro-averaged), with [`intervals()`] by a bootstrap over sentences.
//!
//! The *baselines* hang each word on its neighbour: attach-right on the next, the last being the root, attach-left on the one before.
//! A score whose denominator is 0 is `None`, never NaN. Relations have no labels.
//!
//! Klein & Manning (2004) for the two accuracies.

mod intervals;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Source;
use super::significance::{Bootstrap, Resamples, sign_test};
use crate::data::dependency::{Punctuation, Sentence, select};
pub use intervals::{Intervals, intervals};

/// Accuracies on a set of sentences.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Attachment {
    /// Share of the words that have the head of the gold.
    pub directed: Option<f64>,
    /// Share of the words that are joined to their head in the gold, whichever is the head there.
    pub undirected: Option<f64>,
    /// Share of the sentences in which all words are right.
    pub exact: Option<f64>,
    /// Directed accuracy of attach-right.
    pub attach_right: Option<f64>,
    /// Directed accuracy of attach-left.
    pub attach_left: Option<f64>,
    /// Number of words.
    pub words: u64,
    /// Number of sentences.
    pub sentences: u64,
}

/// Two outputs, both against gold, on a set of sentences.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Comparison {
    /// Directed accuracy of the first.
    pub first: Option<f64>,
    /// Directed accuracy of the second.
    pub second: Option<f64>,
    /// Words that the first alone has right.
    pub only_first: u64,
    /// Words that the second alone has right.
    pub only_second: u64,
    /// Two-sided sign test over the words that one of them alone has right.
    pub sign_test: f64,
    /// Paired bootstrap over sentences; `None` if there are none.
    pub bootstrap: Option<Bootstrap>,
}

/// A score of short sentences and of all.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct ByLength<T> {
    /// Value for sentences of up to 10 words.
    pub up_to_10: T,
    /// Value for sentences of up to 20 words.
    pub up_to_20: T,
    /// Value for all sentences.
    pub all: T,
}

/// Why sentences cannot be compared.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DependencyError {
    /// Different numbers of sentences.
    #[error(
        "{predicted_name} has {n_predicted} sentences, but {gold_name} has {n_gold}; expected the same ones, with punctuation or without"
    )]
    Number {
        /// Name of the prediction.
        predicted_name: String,
        /// Number of sentences that are not empty.
        n_predicted: usize,
        /// Name of the gold.
        gold_name: String,
        /// Number of sentences that are not empty.
        n_gold: usize,
    },
    /// A sentence of other words.
    #[error(
        "{predicted_name}:{predicted_line}: found {found} as word {place} of the sentence, but {gold_name}:{gold_line} has {expected}; \
         expected the same words, with punctuation or without"
    )]
    Words {
        /// Name of the prediction.
        predicted_name: String,
        /// Line of the sentence in it.
        predicted_line: u32,
        /// Name of the gold.
        gold_name: String,
        /// Line of the sentence in it.
        gold_line: u32,
        /// Position of the word among those that are left, from 1.
        place: usize,
        /// The predicted word.
        found: String,
        /// The word in the gold.
        expected: String,
    },
    /// A sentence without heads.
    #[error("{name}:{line}: the words of the sentence have no heads; expected one for each, 0 for the root")]
    NoHeads {
        /// Name of the file.
        name: String,
        /// Line of the sentence.
        line: u32,
    },
}

/// Gold heads and predicted ones of the same words, with their gold tags.
struct Pair {
    gold: Vec<u32>,
    predicted: Vec<u32>,
    tags: Vec<String>,
}

/// What is right of all sentences, in detail.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Details {
    /// Share of the words that are right by neutral edge direction.
    pub ned: Option<f64>,
    /// Words by their gold tag, the most frequent first.
    pub by_tag: Vec<Group>,
    /// Words by the side and the distance of their head, the last ones roots.
    pub by_arc: Vec<Group>,
}

/// Words of a kind.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Group {
    /// The kind.
    pub name: String,
    /// Number of them in the gold.
    pub gold: u64,
    /// Number of them in the prediction.
    pub predicted: u64,
    /// Number of them in the gold that have its head in the prediction.
    pub right: u64,
}

impl Group {
    /// Share of the gold ones that are right; `None` if there are none.
    pub fn recall(&self) -> Option<f64> {
        (self.gold > 0).then(|| self.right as f64 / self.gold as f64)
    }

    /// Share of the predicted ones that are right; `None` if there are none.
    pub fn precision(&self) -> Option<f64> {
        (self.predicted > 0).then(|| self.right as f64 / self.predicted as f64)
    }
}

/// Distances of heads from the shortest of each class on.
const DISTANCES: [(u32, &str); 4] = [(1, "1"), (2, "2"), (3, "3 to 6"), (7, "7 or more")];

/// Scores `predicted` against `gold`.
///
/// # Errors
/// [`DependencyError`] if they are not over the same words, or some have no heads.
pub fn score(
    gold: Source<Sentence>,
    predicted: Source<Sentence>,
    punctuation: Punctuation,
) -> Result<ByLength<Attachment>, DependencyError> {
    let pairs = align(gold, predicted, punctuation)?;
    Ok(ByLength::of(|max_length| attachment(short(&pairs, max_length))))
}

/// Says what is right in `predicted`, in detail.
///
/// # Errors
/// As by [`score`].
pub fn details(
    gold: Source<Sentence>,
    predicted: Source<Sentence>,
    punctuation: Punctuation,
) -> Result<Details, DependencyError> {
    Ok(detailed(&align(gold, predicted, punctuation)?))
}

fn detailed(pairs: &[Pair]) -> Details {
    let distance = |distance: u32| DISTANCES.iter().rposition(|&(shortest, _)| distance >= shortest);
    // Left heads of each distance, then right ones, then roots.
    let root = 2 * DISTANCES.len();
    let arc = |word: u32, head: u32| {
        let side = if head > word { DISTANCES.len() } else { 0 };
        if head == 0 { root } else { side + distance(head.abs_diff(word)).unwrap_or_default() }
    };
    let names = ["left", "right"].map(|side| DISTANCES.map(|(_, name)| format!("{side}, {name}")));
    let named = |name: String| Group { name, ..Group::default() };
    let names = names.into_iter().flatten().chain(["root".to_owned()]);
    let mut by_arc: Vec<Group> = names.map(named).collect();
    let mut by_tag: BTreeMap<&str, Group> = BTreeMap::new();
    let (mut ned, mut words) = (0, 0);
    for Pair { gold, predicted, tags } in pairs {
        let head_of = |word: u32| if word == 0 { None } else { Some(gold[word as usize - 1]) };
        for (((word, &expected), &found), tag) in (1..).zip(gold).zip(predicted).zip(tags) {
            let is_right = u64::from(expected == found);
            let of_tag = by_tag.entry(tag).or_insert_with(|| named(tag.clone()));
            (of_tag.gold, of_tag.predicted) = (of_tag.gold + 1, of_tag.predicted + 1);
            of_tag.right += is_right;
            by_arc[arc(word, expected)].gold += 1;
            by_arc[arc(word, expected)].right += is_right;
            by_arc[arc(word, found)].predicted += 1;
            let is_turned = found > 0 && head_of(found) == Some(word);
            ned += u64::from(expected == found || is_turned || head_of(expected) == Some(found));
            words += 1;
        }
    }
    let mut by_tag: Vec<Group> = by_tag.into_values().collect();
    by_tag.sort_by_key(|group| std::cmp::Reverse(group.gold));
    Details { ned: (words > 0).then(|| ned as f64 / f64::from(words)), by_tag, by_arc }
}

/// Compares two outputs, both scored against `gold`; the bootstrap draws `resamples` times, from streams of `seed`.
///
/// # Errors
/// Compares two predictions, each scored as by [`score`].
pub fn compare(
    gold: Source<Sentence>,
    outputs: [Source<Sentence>; 2],
    punctuation: Punctuation,
    resamples: u32,
    seed: u64,
) -> Result<ByLength<Comparison>, DependencyError> {
    let [first, second] = outputs.map(|output| align(gold, output, punctuation));
    let (first, second) = (first?, second?);
    Ok(ByLength::of(|max_length| {
        let pairs = short(&first, max_length).zip(short(&second, max_length));
        comparison(pairs, resamples, seed)
    }))
}

impl<T> ByLength<T> {
    /// Values of each class, given its maximum length.
    fn of(class: impl Fn(usize) -> T) -> ByLength<T> {
        ByLength { up_to_10: class(10), up_to_20: class(20), all: class(usize::MAX) }
    }

    /// Each class with its name.
    pub fn classes(&self) -> [(&'static str, &T); 3] {
        [("up to 10", &self.up_to_10), ("up to 20", &self.up_to_20), ("all", &self.all)]
    }
}

fn short(pairs: &[Pair], max_length: usize) -> impl Iterator<Item = &Pair> {
    pairs.iter().filter(move |pair| pair.gold.len() <= max_length)
}

/// Finds the heads of the same words, punctuation removed or not, and refuses other words.
fn align(
    gold: Source<Sentence>,
    predicted: Source<Sentence>,
    punctuation: Punctuation,
) -> Result<Vec<Pair>, DependencyError> {
    fn words(sentences: &[Sentence]) -> impl Iterator<Item = &Vec<String>> {
        sentences.iter().map(|sentence| &sentence.words)
    }
    let mut marked = predicted.items.to_vec();
    if words(gold.items).eq(words(&marked)) {
        for (sentence, gold) in marked.iter_mut().zip(gold.items) {
            sentence.punctuation.clone_from(&gold.punctuation);
        }
    }
    let gold_left = select(gold.items, punctuation, usize::MAX).sentences;
    let predicted_left = select(&marked, punctuation, usize::MAX).sentences;
    let mut pairs = Vec::new();
    for (in_gold, found) in gold_left.iter().zip(&predicted_left) {
        if let Some(at) = (0..)
            .take(in_gold.n_words().max(found.n_words()))
            .find(|&at| in_gold.words.get(at) != found.words.get(at))
        {
            let shown = |word: Option<&String>| word.map_or("no word".to_owned(), |word| format!("`{word}`"));
            return Err(DependencyError::Words {
                predicted_name: predicted.name.to_owned(),
                predicted_line: found.line,
                gold_name: gold.name.to_owned(),
                gold_line: in_gold.line,
                place: at + 1,
                found: shown(found.words.get(at)),
                expected: shown(in_gold.words.get(at)),
            });
        }
        let heads = |name: &str, sentence: &Sentence| {
            let missing = || DependencyError::NoHeads { name: name.to_owned(), line: sentence.line };
            sentence.heads.clone().ok_or_else(missing)
        };
        let tags = in_gold.tags.clone();
        pairs.push(Pair { gold: heads(gold.name, in_gold)?, predicted: heads(predicted.name, found)?, tags });
    }
    let (n_gold, n_predicted) = (gold_left.len(), predicted_left.len());
    if n_gold != n_predicted {
        let (predicted_name, gold_name) = (predicted.name.to_owned(), gold.name.to_owned());
        return Err(DependencyError::Number { predicted_name, n_predicted, gold_name, n_gold });
    }
    Ok(pairs)
}

/// Number of words with the head of the gold.
fn n_right(gold: &[u32], predicted: impl IntoIterator<Item = u32>) -> u64 {
    gold.iter().zip(predicted).filter(|&(&gold, predicted)| gold == predicted).count() as u64
}

/// Number of words whose head is a word that depends on them in the gold.
fn n_turned(gold: &[u32], predicted: &[u32]) -> u64 {
    let turned = |(word, &head): (u32, &u32)| head > 0 && gold[head as usize - 1] == word;
    (1..).zip(predicted).filter(|&edge| turned(edge)).count() as u64
}

fn attachment<'p>(pairs: impl Iterator<Item = &'p Pair>) -> Attachment {
    let (mut directed, mut undirected, mut exact, mut words, mut sentences) = (0, 0, 0, 0, 0);
    let (mut to_right, mut to_left) = (0, 0);
    for Pair { gold, predicted, .. } in pairs {
        let n = gold.len() as u32;
        let right = n_right(gold, predicted.iter().copied());
        directed += right;
        undirected += right + n_turned(gold, predicted);
        exact += u64::from(right == u64::from(n));
        to_right += n_right(gold, (1..=n).map(|word| if word == n { 0 } else { word + 1 }));
        to_left += n_right(gold, 0..n);
        words += u64::from(n);
        sentences += 1;
    }
    let share = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
    Attachment {
        directed: share(directed, words),
        undirected: share(undirected, words),
        exact: share(exact, sentences),
        attach_right: share(to_right, words),
        attach_left: share(to_left, words),
        words,
        sentences,
    }
}

fn comparison<'p>(
    pairs: impl Iterator<Item = (&'p Pair, &'p Pair)>,
    resamples: u32,
    seed: u64,
) -> Comparison {
    let (mut sentences, mut only) = (Vec::new(), [0, 0]);
    for (first, second) in pairs {
        let gold = &first.gold;
        for ((gold, first), second) in gold.iter().zip(&first.predicted).zip(&second.predicted) {
            only[0] += u64::from(gold == first && gold != second);
            only[1] += u64::from(gold == second && gold != first);
        }
        let right = [first, second].map(|pair| n_right(gold, pair.predicted.iter().copied()));
        sentences.push(vec![right[0], right[1], gold.len() as u64]);
    }
    let sum = |column: usize| sentences.iter().map(|sentence| sentence[column]).sum::<u64>();
    let share = |output: usize| (sum(2) > 0).then(|| sum(output) as f64 / sum(2) as f64);
    let resamples = Resamples::draw(&sentences, resamples, seed);
    let of = |output: usize| move |sums: &[u64]| (sums[output], sums[2]);
    Comparison {
        first: share(0),
        second: share(1),
        only_first: only[0],
        only_second: only[1],
        sign_test: sign_test(only[0], only[1]),
        bootstrap: resamples.and_then(|resamples| resamples.difference(of(0), of(1))),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::data::dependency::{Tags, read};

    /// Sentences of lines `word tag head` between spaces.
    fn sentences(text: &str, name: &str) -> Vec<Sentence> {
        read(text.replace(' ', "\t").as_bytes(), name, Tags::Upos).unwrap()
    }

    fn scored(gold: &str, predicted: &str) -> Result<ByLength<Attachment>, DependencyError> {
        let (gold, predicted) = (sentences(gold, "gold"), sentences(predicted, "predicted"));
        let source = |name, sentences| Source { name, items: sentences };
        score(source("gold", &gold), source("predicted", &predicted), Punctuation::Removed)
    }

    /// Sentences of words with these heads.
    fn of_heads(heads: &[&[u32]]) -> Vec<Sentence> {
        let lines = |heads: &&[u32]| heads.iter().map(|head| format!("w N {head}\n")).collect::<String>();
        sentences(&heads.iter().map(lines).collect::<Vec<_>>().join("\n"), "heads")
    }

    fn between(gold: &[&[u32]], predicted: &[&[u32]]) -> Attachment {
        let (gold, predicted) = (of_heads(gold), of_heads(predicted));
        let source = |sentences| Source { name: "heads", items: sentences };
        score(source(&gold), source(&predicted), Punctuation::Kept).unwrap().all
    }

    #[test]
    fn a_case_done_by_hand() {
        // the ← dog ← barks → loudly; predicted: the → dog, barks the root, loudly below dog.
        let found = between(&[&[2, 3, 0, 3], &[0]], &[&[3, 1, 0, 2], &[0]]);
        assert_eq!(found.directed, Some(2.0 / 5.0)); // barks, and the sentence of one word
        assert_eq!(found.undirected, Some(3.0 / 5.0)); // and the – dog
        assert_eq!(found.exact, Some(0.5));
        assert_eq!(found.attach_right, Some(3.0 / 5.0)); // the, dog, and the one word
        assert_eq!(found.attach_left, Some(2.0 / 5.0)); // loudly, and the one word
        assert_eq!((found.words, found.sentences), (5, 2));
    }

    #[test]
    fn details_done_by_hand() {
        // the ← dog ← barks → loudly → so; predicted: the → dog, the root; barks below dog; loudly below dog; so below barks.
        let gold = sentences("the D 2\ndog N 3\nbarks V 0\nloudly A 3\nso A 4", "gold");
        let predicted = sentences("the D 0\ndog N 1\nbarks V 2\nloudly A 2\nso A 3", "predicted");
        let source = |name, sentences| Source { name, items: sentences };
        let found =
            details(source("gold", &gold), source("predicted", &predicted), Punctuation::Kept).unwrap();
        // dog and barks have their edges turned, and so has the head of its head.
        assert_eq!(found.ned, Some(3.0 / 5.0));
        let groups = |groups: &[Group]| -> Vec<(String, u64, u64, u64)> {
            groups.iter().map(|it| (it.name.clone(), it.gold, it.predicted, it.right)).collect()
        };
        assert_eq!(groups(&found.by_tag[..2]), [("A".to_owned(), 2, 2, 0), ("D".to_owned(), 1, 1, 0)]);
        let arcs = groups(&found.by_arc);
        assert_eq!(arcs[0], ("left, 1".to_owned(), 2, 2, 0));
        assert_eq!(arcs[8], ("root".to_owned(), 1, 1, 0));
        assert_eq!((arcs[1].1, arcs[1].2, arcs[4].1, arcs[4].2), (0, 2, 2, 0));
    }

    #[test]
    fn lengths_are_classes_after_punctuation_is_removed() {
        let lines = |n: usize, last: &str| -> String {
            (0..n).map(|head| format!("w N {head}\n")).chain([format!("{last}\n\n")]).collect()
        };
        let gold = [lines(10, ". . 1"), lines(20, ", , 1"), lines(20, "w N 20")].concat();
        let found = scored(&gold, &gold).unwrap();
        assert_eq!(found.classes().map(|(_, scores)| scores.sentences), [1, 2, 3]);
        assert_eq!(found.classes().map(|(_, scores)| scores.words), [10, 30, 51]);
        assert_eq!(found.all.directed, Some(1.0));
    }

    #[test]
    fn the_gold_says_what_is_punctuation_or_the_prediction_comes_without() {
        let gold = "a N 2\n. . 3\nb V 0\n\n. . 0\n\nc N 0\n";
        let as_is = "a X 3\n. X 3\nb X 0\n\n. X 0\n\nc . 0\n";
        assert_eq!(scored(gold, as_is).unwrap().all.directed, Some(1.0));
        assert_eq!(scored(gold, "a X 2\nb X 0\n\nc X 0\n").unwrap().all.words, 3);
        assert_eq!(scored("c N\n\n. .", "c N 0"), Err(no_heads("gold", 1)));
        assert_eq!(scored("c N 0\n\n\nc N 0", "c N 0\n\nc N _"), Err(no_heads("predicted", 3)));
    }

    fn no_heads(name: &str, line: u32) -> DependencyError {
        DependencyError::NoHeads { name: name.to_owned(), line }
    }

    #[test]
    fn other_sentences_are_refused_by_line() {
        let error = |predicted| scored("a N 0\n\n\nb N 0\nc N 1", predicted).unwrap_err().to_string();
        let same = "expected the same words, with punctuation or without";
        assert_eq!(
            error("a N 0\n\nb N 0\nd N 1"),
            format!("predicted:3: found `d` as word 2 of the sentence, but gold:4 has `c`; {same}")
        );
        assert_eq!(
            error("a N 0\n\nb N 0"),
            format!("predicted:3: found no word as word 2 of the sentence, but gold:4 has `c`; {same}")
        );
        assert_eq!(
            error("a N 0"),
            "predicted has 1 sentences, but gold has 2; expected the same ones, with punctuation or without"
        );
    }

    #[test]
    fn outputs_are_compared_by_the_words_that_one_has_right() {
        let gold = of_heads(&[&[2, 0, 2], &[0, 1]]);
        let (first, second) = (of_heads(&[&[2, 0, 2], &[2, 0]]), of_heads(&[&[0, 1, 2], &[0, 1]]));
        let source = |name, sentences| Source { name, items: sentences };
        let outputs = [source("first", &first), source("second", &second)];
        let found = compare(source("gold", &gold), outputs, Punctuation::Kept, 500, 1).unwrap();
        assert_eq!(found.up_to_10, found.all);
        let found = found.all;
        assert_eq!((found.first, found.second), (Some(3.0 / 5.0), Some(3.0 / 5.0)));
        assert_eq!((found.only_first, found.only_second, found.sign_test), (2, 2, 1.0));
        let bootstrap = found.bootstrap.unwrap();
        // Ahead by 2 of 3 words, or behind by 2 of 2.
        assert_eq!((bootstrap.difference, bootstrap.low, bootstrap.high), (0.0, -1.0, 2.0 / 3.0));
        let reversed = [outputs[1], source("heads", &second[..1])];
        let error = compare(source("gold", &gold), reversed, Punctuation::Kept, 500, 1).unwrap_err();
        assert!(error.to_string().starts_with("heads has 1 sentences"), "{error}");
    }

    /// Trees over the same words.
    fn trees() -> impl Strategy<Value = [Vec<u32>; 2]> {
        let tree = |n: usize| {
            let places = prop::collection::vec(any::<prop::sample::Index>(), n);
            let order = Just((1..=n as u32).collect::<Vec<_>>()).prop_shuffle();
            (order, places).prop_map(|(order, places)| {
                let mut heads = vec![0; order.len()];
                for (at, &word) in order.iter().enumerate() {
                    let above = places[at].index(at + 1);
                    heads[word as usize - 1] = if above == 0 { 0 } else { order[above - 1] };
                }
                heads
            })
        };
        (1..8usize).prop_flat_map(move |n| [tree(n), tree(n)])
    }

    proptest! {
        #[test]
        fn scores_have_their_laws([gold, predicted] in trees()) {
            let there = between(&[&gold], &[&predicted]);
            let back = between(&[&predicted], &[&gold]);
            prop_assert_eq!((there.directed, there.undirected), (back.directed, back.undirected));
            prop_assert!(there.directed <= there.undirected && there.undirected <= Some(1.0));
            prop_assert_eq!(there.exact == Some(1.0), gold == predicted);
            let (one, other) = (of_heads(&[&gold]), of_heads(&[&predicted]));
            let source = |sentences| Source { name: "heads", items: sentences };
            let found = details(source(&one), source(&other), Punctuation::Kept).unwrap();
            prop_assert!(there.undirected <= found.ned && found.ned <= Some(1.0));
            let right: u64 = found.by_arc.iter().map(|group| group.right).sum();
            prop_assert_eq!(Some(right as f64 / gold.len() as f64), there.directed);
            prop_assert_eq!(found.by_tag.iter().map(|group| group.right).sum::<u64>(), right);
            let perfect = between(&[&gold], &[&gold]);
            prop_assert_eq!((perfect.directed, perfect.undirected, perfect.exact), (Some(1.0), Some(1.0), Some(1.0)));
        }

        #[test]
        fn baselines_are_the_scores_of_their_trees([gold, _] in trees()) {
            let n = gold.len() as u32;
            let right: Vec<u32> = (1..=n).map(|word| (word + 1) % (n + 1)).collect();
            let left: Vec<u32> = (0..n).collect();
            let found = between(&[&gold], &[&right]);
            prop_assert_eq!(found.attach_right, found.directed);
            prop_assert_eq!(found.attach_left, between(&[&gold], &[&left]).directed);
        }
    }
}
