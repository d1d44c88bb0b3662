//! Confidence intervals of the scores of one output, by a bootstrap over its sentences.

use serde::Serialize;

use super::{ByLength, DependencyError, Pair, align, n_right, n_turned, short};
use crate::data::dependency::{Punctuation, Sentence};
use crate::data::eval::Source;
use crate::data::eval::significance::{Interval, Resamples};

/// Intervals of the scores of [`super::Attachment`]; `None` where a score is.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Intervals {
    /// That of directed accuracy.
    pub directed: Option<Interval>,
    /// That of undirected accuracy.
    pub undirected: Option<Interval>,
    /// That of the share of sentences in which all words are right.
    pub exact: Option<Interval>,
}

/// The intervals of the scores of `predicted`; the bootstrap draws `resamples` times, from streams of `seed`.
///
/// ```
/// use grammaton::data::dependency::Punctuation;
/// use grammaton::data::eval::{Source, dependencies::intervals};
/// use grammaton::data::{Tags, read_sentences};
///
/// let gold = read_sentences(b"a\tN\t2\nb\tV\t0\n\nc\tV\t0\nd\tN\t1\n", "gold", Tags::Upos)?;
/// let found = read_sentences(b"a\tN\t2\nb\tV\t0\n\nc\tV\t2\nd\tN\t0\n", "found", Tags::Upos)?;
/// let [gold, found] = [&gold, &found].map(|items| Source { name: "text", items });
/// let all = intervals(gold, found, Punctuation::Removed, 1000, 1)?.all;
/// let directed = all.directed.expect("there are words");
/// assert_eq!((directed.score, directed.low, directed.high), (0.5, 0.0, 1.0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// As by [`super::score`].
pub fn intervals(
    gold: Source<Sentence>,
    predicted: Source<Sentence>,
    punctuation: Punctuation,
    resamples: u32,
    seed: u64,
) -> Result<ByLength<Intervals>, DependencyError> {
    let pairs = align(gold, predicted, punctuation)?;
    Ok(ByLength::of(|max_length| {
        let rows: Vec<Vec<u64>> = short(&pairs, max_length).map(row).collect();
        let Some(drawn) = Resamples::draw(&rows, resamples, seed) else { return Intervals::default() };
        let share = |right: usize, of: usize| drawn.interval(|sums| (sums[right], sums[of]));
        Intervals { directed: share(0, 3), undirected: share(1, 3), exact: share(2, 4) }
    }))
}

/// Right words, words that are joined to their head, whether all are right, words, sentences.
fn row(pair: &Pair) -> Vec<u64> {
    let Pair { gold, predicted, .. } = pair;
    let (right, words) = (n_right(gold, predicted.iter().copied()), gold.len() as u64);
    vec![right, right + n_turned(gold, predicted), u64::from(right == words), words, 1]
}
