//! Biases: rules that are counted in the sentences to parse, without knowledge of what their tags mean.
//!
//! In: sentences of words and tags, without heads. Out: [`Rule`]s, one per tag and one for punctuation:
//!
//! ```text
//! weight of an arc from a head with tag t  =  − FREQUENCY · z(t)  +  EVENNESS · e(t)
//! z(t) = (mean of ln count(word) over the words of tag t  −  the mean over all words) / the standard deviation over all words
//! e(t) = − ln (½ + Σₛ (nₛ(t) − p(t) nₛ)²) / (½ + Σₛ p(t) (1 − p(t)) nₛ),   at most 1 away from 0
//! weight of an arc across removed punctuation  =  − PUNCTUATION
//! ```
//!
//! with nₛ words in sentence s, nₛ(t) of them of tag t, and p(t) the share of t in all. Frequent words govern little: they are function words
//! (Mareček & Žabokrtský 2012 give them few children). Heads of clauses are spread evenly: a clause has a verb, and hardly ever two, so that the number of
//! verbs varies less between sentences than it would if tags were drawn independently, and that of names, which come together, varies more. Clauses end
//! at punctuation (Spitkovsky, Alshawi & Jurafsky 2011).
//!
//! The first of these holds where content words are the heads of function words, as in Universal Dependencies. Where prepositions and
//! auxiliaries are heads, as in the usual conversions of the Penn Treebank, it misleads.

use std::collections::BTreeMap;

use super::rules::{Rule, RuleOf};
use crate::data::dependency::Sentence;
use crate::data::tags::Tagged;
use crate::num::special;

/// Weight of one standard deviation of the logarithm of a word's count.
pub const FREQUENCY: f64 = 0.5;
/// Weight of the evenness of a tag.
pub const EVENNESS: f64 = 0.5;
/// Weight against an arc across punctuation.
pub const PUNCTUATION: f64 = 1.0;
/// Largest absolute evenness.
const MOST_EVEN: f64 = 1.0;
/// Added to observed and expected variances, so that rare tags have little evenness or unevenness.
const SMOOTHING: f64 = 0.5;

/// The biases of these sentences, for [`super::rules::RuleSet::Own`] with strength 1; weights have three decimals.
///
/// ```
/// use grammaton::data::{Tags, read_sentences};
/// use grammaton::models::dmv::biases;
///
/// let text = "the\tDET\ndog\tNOUN\nbarks\tVERB\n\nthe\tDET\ncat\tNOUN\nsleeps\tVERB\n\n";
/// let rules = biases::of_sentences(&read_sentences(text.as_bytes(), "text", Tags::Upos)?);
/// let weights: Vec<f64> = rules.iter().map(|rule| rule.weight).collect();
/// assert!(weights[0] < weights[1] && weights[1] == weights[2], "`the` is frequent: {weights:?}");
/// # Ok::<(), grammaton::data::SentenceError>(())
/// ```
pub fn of_sentences(sentences: &[Sentence]) -> Vec<Rule> {
    let Tagged { tags, sentences: numbers } = Tagged::new(sentences);
    let frequency = frequency(sentences, &numbers, tags.names.len());
    let evenness = evenness(&numbers, tags.names.len());
    let of_tag = |(tag, (z, e)): (String, (f64, f64))| Rule {
        of: RuleOf::Leaf(vec![tag]),
        weight: rounded(EVENNESS * e - FREQUENCY * z),
    };
    let across = Rule { of: RuleOf::AcrossPunctuation, weight: -PUNCTUATION };
    tags.names.into_iter().zip(frequency.into_iter().zip(evenness)).map(of_tag).chain([across]).collect()
}

fn rounded(weight: f64) -> f64 {
    // Not −0, which would be written as such.
    (weight * 1000.0).round() / 1000.0 + 0.0
}

/// z by tag, `[n_tags]`; 0 if all words are equally frequent.
fn frequency(sentences: &[Sentence], numbers: &[Vec<u32>], n_tags: usize) -> Vec<f64> {
    let words = || sentences.iter().flat_map(|sentence| &sentence.words).map(|word| word.to_lowercase());
    let mut counts = BTreeMap::new();
    words().for_each(|word| *counts.entry(word).or_insert(0.0) += 1.0);
    let logs: Vec<f64> = words().map(|word| special::ln(counts[&word])).collect();
    let n = logs.len() as f64;
    let mean = logs.iter().sum::<f64>() / n;
    let deviation = (logs.iter().map(|log| (log - mean) * (log - mean)).sum::<f64>() / n).sqrt();
    let (mut sums, mut n_of_tag) = (vec![0.0; n_tags], vec![0.0; n_tags]);
    for (log, &tag) in logs.iter().zip(numbers.iter().flatten()) {
        sums[tag as usize] += log - mean;
        n_of_tag[tag as usize] += 1.0;
    }
    let z = |(sum, n): (f64, f64)| if deviation > 0.0 { sum / n / deviation } else { 0.0 };
    sums.into_iter().zip(n_of_tag).map(z).collect()
}

/// e by tag, `[n_tags]`.
fn evenness(numbers: &[Vec<u32>], n_tags: usize) -> Vec<f64> {
    let counts = |sentence: &[u32]| {
        let mut counts = vec![0.0; n_tags];
        sentence.iter().for_each(|&tag| counts[tag as usize] += 1.0);
        counts
    };
    let n: f64 = numbers.iter().map(|sentence| sentence.len() as f64).sum();
    let shares: Vec<f64> = counts(&numbers.concat()).into_iter().map(|count| count / n).collect();
    let (mut observed, mut expected) = (vec![SMOOTHING; n_tags], vec![SMOOTHING; n_tags]);
    for sentence in numbers {
        let n = sentence.len() as f64;
        for (tag, count) in counts(sentence).into_iter().enumerate() {
            let share = shares[tag];
            observed[tag] += (count - share * n) * (count - share * n);
            expected[tag] += share * (1.0 - share) * n;
        }
    }
    let e = |(observed, expected): (f64, f64)| special::ln(expected / observed).clamp(-MOST_EVEN, MOST_EVEN);
    observed.into_iter().zip(expected).map(e).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::dependency::{Tags, read};

    fn weights(text: &str) -> Vec<(String, f64)> {
        let sentences = read(text.replace(' ', "\n").replace('/', "\t").as_bytes(), "s", Tags::Upos).unwrap();
        let of_tag = |rule: Rule| match rule.of {
            RuleOf::Leaf(tags) => (tags.concat(), rule.weight),
            of => {
                assert_eq!((of, rule.weight), (RuleOf::AcrossPunctuation, -PUNCTUATION));
                ("across".to_owned(), rule.weight)
            }
        };
        of_sentences(&sentences).into_iter().map(of_tag).collect()
    }

    #[test]
    fn weights_are_those_of_the_formula() {
        // Counts 2, 1, 1: logarithms ln 2, 0, ln 2, 0. One A and one B per sentence: no variance, where ¼ per word is expected.
        let e = (1.5f64 / 0.5).ln().min(1.0);
        assert_eq!(
            weights("a/A b/B\n\nA/A c/B\n"),
            [
                ("A".to_owned(), rounded(0.5 * e - 0.5)),
                ("B".to_owned(), rounded(0.5 * e + 0.5)),
                ("across".to_owned(), -1.0)
            ]
        );
    }

    #[test]
    fn words_that_are_all_alike_say_nothing() {
        let found = weights("_/A _/B\n\n_/B _/B\n");
        assert!(found.iter().all(|(_, weight)| weight.is_finite()), "{found:?}");
        assert_eq!(weights("_/A\n")[0].1, 0.0);
    }

    #[test]
    fn tags_that_come_together_are_uneven() {
        let found = weights("a/A b/B c/B\n\nd/A e/C f/C\n\ng/A h/B i/B\n\n");
        assert!(found[0].1 > found[1].1 && found[1].1 < 0.0, "{found:?}");
    }
}
