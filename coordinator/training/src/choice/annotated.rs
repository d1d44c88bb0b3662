//! The choice of a grammar by annotated sentences.
//!
//! In: a corpus, what is known of some of its sentences, and grammars, the first of which is the default. Out: the grammar whose short chain finds boundaries best
//! at positions that are known, if it is better than the default by more than chance. The chains do not know the annotations, so that these are a test
//! (Eskander, Rambow & Yang 2016 choose so).
//!
//! Law: a position of which nothing is known does not count; a grammar that finds what the default finds is not chosen.

use std::fmt::Write as _;

use anyhow::Result;
use grammaton::data::corpus::Corpus;
use grammaton::grammar::auto::Auto;

use super::{Trials, part};
use crate::input::segmented_file::Annotated;

/// Differences of the numbers of better and worse lines that chance hardly makes, in standard deviations of the sign test: one of twenty, on one side.
const SURE: f64 = 1.645;

/// Right, wrong and missed boundaries of a sentence at known positions.
type Errors = [u32; 3];

/// One of `grammars`, and the reason.
///
/// # Errors
/// Those of trials.
pub fn best(
    corpus: &Corpus,
    annotated: &Annotated,
    grammars: &[Auto],
    trials: &mut Trials<'_>,
) -> Result<(Auto, String)> {
    let (part, positions) = part(corpus, trials.share, annotated);
    let known: Vec<&[Option<bool>]> = positions
        .iter()
        .map(|&at| annotated.get(&corpus.sentences[at]).map_or(&[][..], |known| &known[..]))
        .collect();
    let mut of_grammars = Vec::with_capacity(grammars.len());
    for &grammar in grammars {
        of_grammars.push(errors(&known, &trials.segment(&part, grammar)?));
    }
    let scores: Vec<f64> = of_grammars.iter().map(|errors| f1(errors)).collect();
    let better = (1..grammars.len()).filter(|&at| is_better(&of_grammars[at], &of_grammars[0]));
    // Of equal ones the first.
    let best = better.rev().max_by(|&one, &other| scores[one].total_cmp(&scores[other])).unwrap_or(0);
    let n = annotated.len();
    let mut reason = format!("trials find the known boundaries of {n} annotated lines with an F1 of");
    for (at, (grammar, f1)) in grammars.iter().zip(&scores).enumerate() {
        write!(reason, "{} {f1:.2} ({grammar})", if at == 0 { "" } else { "," })?;
    }
    write!(reason, ": {}", grammars[best])?;
    if best == 0 && scores.iter().any(|&other| other > scores[0]) {
        reason += ", since the others are not better by more than chance";
    }
    Ok((grammars[best], reason))
}

/// The errors of `found` in each sentence. Where nothing is known, there may be fewer positions than the sentence has; sentences may be cut.
fn errors(known: &[&[Option<bool>]], found: &Corpus) -> Vec<Errors> {
    let sentences = known.iter().zip(&found.sentences).zip(found.segmentation());
    sentences
        .map(|((known, sentence), ends)| {
            let mut errors = [0; 3];
            for (known, position) in known.iter().zip(1..sentence.len() as u32) {
                match (known, ends.binary_search(&position).is_ok()) {
                    (Some(true), true) => errors[0] += 1,
                    (Some(false), true) => errors[1] += 1,
                    (Some(true), false) => errors[2] += 1,
                    (Some(false), false) | (None, _) => {}
                }
            }
            errors
        })
        .collect()
}

/// F1 of boundaries, in all sentences together.
fn f1(errors: &[Errors]) -> f64 {
    let [right, wrong, missed] =
        errors.iter().fold([0; 3], |sums, of| std::array::from_fn(|at| sums[at] + of[at]));
    let total = 2 * right + wrong + missed;
    if total == 0 { 1.0 } else { f64::from(2 * right) / f64::from(total) }
}

/// Whether `one` has a higher F1, and fewer errors than `other` in more sentences than chance explains (a sign test).
fn is_better(one: &[Errors], other: &[Errors]) -> bool {
    let n_errors = |[_, wrong, missed]: &Errors| wrong + missed;
    let n_of = |better: &[Errors], worse: &[Errors]| {
        better.iter().zip(worse).filter(|(better, worse)| n_errors(better) < n_errors(worse)).count() as f64
    };
    let (better, worse) = (n_of(one, other), n_of(other, one));
    f1(one) > f1(other) && better - worse >= SURE * libm::sqrt(better + worse)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What is known of a position, and whether two outputs have a boundary there.
    type Position = (Option<bool>, bool, bool);

    proptest! {
        /// Law: the errors are those of the positions that are known, one by one; no output is better than itself, and of two one at most is better.
        #[test]
        fn known_positions_count(
            sentences in prop::collection::vec(prop::collection::vec((prop::option::of(any::<bool>()), any::<bool>(), any::<bool>()), 0..6), 1..40),
        ) {
            let corpus = |of: &dyn Fn(&Position) -> bool| {
                let line = |sentence: &Vec<Position>| {
                    let cuts = sentence.iter().map(|position| if of(position) { " a" } else { "a" });
                    "a".to_owned() + &cuts.collect::<String>()
                };
                let lines: Vec<String> = sentences.iter().map(line).collect();
                Corpus::read(lines.join("\n").as_bytes(), "text", &Default::default()).unwrap().0
            };
            let known: Vec<Vec<Option<bool>>> = sentences.iter().map(|of| of.iter().map(|position| position.0).collect()).collect();
            let known: Vec<&[Option<bool>]> = known.iter().map(Vec::as_slice).collect();
            let [one, other] = [errors(&known, &corpus(&|of| of.1)), errors(&known, &corpus(&|of| of.2))];
            for (sentence, errors) in sentences.iter().zip(&one) {
                let n = |is: [bool; 2]| sentence.iter().filter(|(known, found, _)| known.map(|known| [known, *found]) == Some(is)).count() as u32;
                prop_assert_eq!(*errors, [n([true, true]), n([false, true]), n([true, false])]);
            }
            prop_assert!(!is_better(&one, &one));
            prop_assert!(!(is_better(&one, &other) && is_better(&other, &one)));
        }
    }

    #[test]
    fn a_few_lines_are_chance_and_many_are_not() {
        let (right, wrong): (Errors, Errors) = ([1, 0, 0], [0, 1, 1]);
        let outputs = |better: usize, worse: usize| {
            let one = [vec![right; better], vec![wrong; worse]].concat();
            let other = [vec![wrong; better], vec![right; worse]].concat();
            is_better(&one, &other)
        };
        for (better, worse, expected) in [(2, 0, false), (3, 0, true), (6, 4, false), (60, 40, true)] {
            assert_eq!(outputs(better, worse), expected, "{better} {worse}");
        }
    }
}
