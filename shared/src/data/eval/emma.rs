//! EMMA-2: how well predicted morphemes correspond to gold morphemes, whatever they are called (Virpioja, Turunen, Spiegler, Kohonen & Kurimo 2011; after
//! EMMA, Spiegler & Monson 2010).
//!
//! In: for each word the morphemes of its gold analyses and of its prediction, as names. A word `w` has each morpheme `m` as often as `n_w(m)`, the gold ones on average
//! over its analyses. Two morphemes occur together `c(g, p) = Σ_w n_w(g) n_w(p)` times. For precision every predicted morpheme is assigned to the gold morpheme with which
//! it occurs most often, several of them perhaps to the same one; for recall every gold morpheme to a predicted one. Of equals the first one by name is taken. Of a word the share of its morphemes is right that
//! has a counterpart of its own after the assignment; that of the best analysis counts. Out: the averages over words.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::segmentation::Prf;

/// Scores the morphemes of words against those of their gold analyses. Words without a gold analysis are left out.
///
/// # Panics
/// If there are not as many predictions as words.
pub fn score(gold: &[Vec<Vec<String>>], predicted: &[Vec<String>]) -> Prf {
    assert_eq!(gold.len(), predicted.len(), "one prediction per word");
    let words: Vec<Word<'_>> = gold
        .iter()
        .zip(predicted)
        .filter(|(analyses, _)| !analyses.is_empty())
        .map(|(analyses, predicted)| Word {
            analyses: analyses.iter().map(|morphemes| counts(morphemes)).collect(),
            predicted: counts(predicted),
        })
        .collect();
    let mut together: BTreeMap<(&str, &str), f64> = BTreeMap::new();
    for Word { analyses, predicted } in &words {
        for (&gold, n_gold) in analyses.iter().flatten() {
            for (&predicted, n) in predicted {
                *together.entry((gold, predicted)).or_default() +=
                    f64::from(*n_gold) * f64::from(*n) / analyses.len() as f64;
            }
        }
    }
    let pairs = || together.iter().map(|(&(gold, predicted), &n)| (gold, predicted, n));
    let to_gold = assignment(pairs().map(|(gold, predicted, n)| (predicted, gold, n)));
    let to_predicted = assignment(pairs());
    let mean = |share: &dyn Fn(&Word<'_>) -> f64| {
        (!words.is_empty()).then(|| words.iter().map(share).sum::<f64>() / words.len() as f64)
    };
    let best = |word: &Word<'_>, share: &dyn Fn(&Counts<'_>) -> f64| {
        word.analyses.iter().map(share).fold(0.0, f64::max)
    };
    let precision = mean(&|word| best(word, &|gold| right(&word.predicted, gold, &to_gold)));
    let recall = mean(&|word| best(word, &|gold| right(gold, &word.predicted, &to_predicted)));
    let f1 = precision.zip(recall).map(|(p, r)| if p + r > 0.0 { 2.0 * p * r / (p + r) } else { 0.0 });
    Prf { precision, recall, f1 }
}

/// How often a word has each morpheme.
type Counts<'m> = BTreeMap<&'m str, u32>;

struct Word<'m> {
    analyses: Vec<Counts<'m>>,
    predicted: Counts<'m>,
}

fn counts(morphemes: &[String]) -> Counts<'_> {
    let mut counts = Counts::new();
    morphemes.iter().for_each(|morpheme| *counts.entry(morpheme).or_default() += 1);
    counts
}

/// For each first morpheme of the pairs the second one with which it occurs most often.
fn assignment<'m>(pairs: impl Iterator<Item = (&'m str, &'m str, f64)>) -> BTreeMap<&'m str, &'m str> {
    let mut best: BTreeMap<&str, (f64, Reverse<&str>)> = BTreeMap::new();
    for (one, other, n) in pairs {
        let found = best.entry(one).or_insert((n, Reverse(other)));
        if (n, Reverse(other)) > *found {
            *found = (n, Reverse(other));
        }
    }
    best.into_iter().map(|(one, (_, Reverse(other)))| (one, other)).collect()
}

/// The share of the morphemes `ours` that have a counterpart among `theirs`, each of which is one for a single morpheme; 1 if there are none.
fn right(ours: &Counts<'_>, theirs: &Counts<'_>, assigned: &BTreeMap<&str, &str>) -> f64 {
    let n: u32 = ours.values().sum();
    let mut mapped = Counts::new();
    for (morpheme, n) in ours {
        if let Some(&other) = assigned.get(morpheme) {
            *mapped.entry(other).or_default() += n;
        }
    }
    let n_right: u32 =
        mapped.iter().map(|(other, n)| (*n).min(theirs.get(other).copied().unwrap_or_default())).sum();
    if n == 0 { 1.0 } else { f64::from(n_right) / f64::from(n) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn words(lines: &[&str]) -> Vec<Vec<String>> {
        lines.iter().map(|line| line.split(' ').map(str::to_owned).collect()).collect()
    }

    fn scores(gold: &[&[&str]], predicted: &[&str]) -> [Option<f64>; 3] {
        let gold: Vec<_> = gold.iter().map(|analyses| words(analyses)).collect();
        let Prf { precision, recall, f1 } = score(&gold, &words(predicted));
        [precision, recall, f1]
    }

    #[test]
    fn names_do_not_matter_and_splits_cost_what_they_should() {
        let gold: [&[&str]; 4] = [&["cat_N"], &["cat_N PL"], &["dog_N"], &["dog_N PL"]];
        assert_eq!(scores(&gold, &["cat", "cat s", "dog", "dog s"]), [Some(1.0); 3]);
        // Of equals the first: `cats` and `dogs` go to PL, which goes to `cats`, and cat_N to `cat`, dog_N to `dog`. So `dogs` has no counterpart.
        let recall = (1.0 + 0.5 + 1.0 + 0.0) / 4.0;
        let f1 = 2.0 * recall / (1.0 + recall);
        assert_eq!(scores(&gold, &["cat", "cats", "dog", "dogs"]), [Some(1.0), Some(recall), Some(f1)]);
        // Both predicted parts of `cat` are assigned to cat_N, which is one: half of them are right.
        let [precision, recall, _] = scores(&gold, &["ca t", "ca t s", "dog", "dog s"]);
        assert_eq!((precision, recall), (Some((0.5 + 2.0 / 3.0 + 2.0) / 4.0), Some(1.0)));
    }

    #[test]
    fn the_best_analysis_counts() {
        let gold: [&[&str]; 4] = [&["glad ly", "gladly"], &["glad"], &["bad ly"], &["dad ly"]];
        assert_eq!(scores(&gold, &["glad ly", "glad", "bad ly", "dad ly"]), [Some(1.0); 3]);
        assert_eq!(scores(&gold, &["gladly", "glad", "bad ly", "dad ly"]), [Some(1.0); 3]);
        assert_eq!(scores(&[], &[]), [None; 3]);
    }

    proptest! {
        /// Law: scores are shares, and names do not matter.
        #[test]
        fn scores_do_not_depend_on_names(
            lines in proptest::collection::vec((proptest::collection::vec("[ab]", 1..4), proptest::collection::vec("[cd]", 1..4)), 1..12),
        ) {
            let (gold, predicted): (Vec<_>, Vec<_>) = lines.into_iter().unzip();
            let gold: Vec<_> = gold.into_iter().map(|morphemes| vec![morphemes]).collect();
            let found = score(&gold, &predicted);
            for share in [found.precision, found.recall, found.f1] {
                prop_assert!((0.0..=1.0).contains(&share.unwrap()));
            }
            // An order of names that is kept leaves even the choices among equals.
            let renamed: Vec<Vec<String>> = predicted.iter().map(|word| word.iter().map(|name| format!("x{name}")).collect()).collect();
            prop_assert_eq!(score(&gold, &renamed), found);
        }
    }
}
