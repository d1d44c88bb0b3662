//! The vote of models, of baselines and of the symbols around boundaries on the segments of a corpus.
//!
//! In: for every sentence the mean over the models of the posterior probabilities of its segments. Out: the segmentation of the corpus with the highest expected F1 of
//! its segments, and the price of a segment at which it is the best one, by which new sentences are segmented one by one.
//!
//! ```
//! use grammaton::models::segments::Segments;
//! use grammaton::models::vote::vote;
//!
//! // Two of three models cut a sentence of four symbols in the middle, and are certain.
//! let [cut, whole] = [vec![2, 4], vec![4]].map(|ends| Segments::certain(&ends));
//! let (winners, price) = vote(&[Segments::mean(&[cut.clone(), whole, cut])]);
//! assert_eq!(winners, [[2, 4]]);
//! // Of 4/3 expected right segments, two found and 5/3 expected true ones, F1 is 8/11.
//! assert!((price - 4.0 / 11.0).abs() < 1e-12);
//! ```

use super::baselines::{Baseline, Learned};
use super::crf::contexts::Contexts;
use super::edges::Edges;
use super::segments::Segments;
use crate::data::eval::segmentation::score;

/// The most weight of a baseline, times the share of its segments that models do not have, beside the share of their own segments that these expect to be wrong. With 2 a
/// made-up language of which models expect .98 loses .010 in the place of .027, and whole texts of which they expect .90 to .92 nothing (docs/results/segment.md).
const MOST: f64 = 2.0;
/// Contexts that know the edges of sentences decide alone if less is the mean of the F1 that all who vote expect and the share of the places where a sentence may begin and end that have a boundary. It is
/// at most .744 in sixteen languages, most of them with many affixes, and at least .763 in texts of five languages with short words (docs/results/segment.md, "Edges of sentences").
const SURE: f64 = 0.755;

/// What models and baselines vote for.
#[derive(Clone, PartialEq, Debug)]
pub struct Vote {
    /// The ends of the segments of each sentence.
    pub winners: Vec<Vec<u32>>,
    /// The price of a segment: half of the expected F1.
    pub price: f64,
    /// What each baseline has learned, and its weight beside all models together.
    pub learned: Vec<(Learned, f64)>,
    /// What was learned of the symbols around boundaries, if it votes.
    pub contexts: Option<Contexts>,
    /// What was learned with the edges of sentences, where those that vote are unsure: it decides in the place of the vote, and `contexts` has none.
    pub in_place: Option<Contexts>,
    /// Of each sentence, the mean over all that vote of the probabilities of its segments.
    pub means: Vec<Segments>,
}

/// The vote of models, of whose probabilities `of_models` are the means, and of `baselines`, which are segmentations of the same `sentences` without training and err
/// elsewhere than models.
///
/// A baseline votes by what it has learned of all sentences, as on new text: PUDDLE knows little of the first ones when it meets them. All models together have weight
/// one; a baseline has the square of its agreement with what they vote for (F1 of segments), so that one that segments otherwise hardly counts; and where models are sure,
/// at most twice the share of wrong segments that they expect of themselves, divided by its own (`MOST`). If `with_contexts`, the symbols
/// around boundaries, learned from what models and baselines find, count as much as these together.
///
/// Where words have many affixes, models cut these off at places where no sentence begins or ends. So if all together are unsure (`SURE`), contexts are learned from what models and baselines find
/// [with the edges of sentences](super::edges), to decide alone, and the vote is without contexts.
pub fn vote_with(
    baselines: &[Baseline],
    with_contexts: bool,
    sentences: &[Vec<u32>],
    of_models: Vec<Segments>,
) -> Vote {
    let mut sums: Vec<Segments> = of_models.iter().map(Segments::with_symbols).collect();
    drop(of_models);
    let (by_models, price) = vote(&sums);
    let expected = 2.0 * price;
    let (mut learned, mut weight) = (Vec::new(), 1.0);
    for baseline in baselines {
        let of_text = baseline.learn(sentences);
        let found: Vec<Vec<u32>> = sentences.iter().map(|sentence| of_text.segment(sentence)).collect();
        let agreement = score(sentences, &by_models, &found).token.f1.unwrap_or(0.0);
        let most = MOST * (1.0 - expected) / (1.0 - agreement).max(f64::MIN_POSITIVE);
        let of_baseline = (agreement * agreement).min(most);
        sums.iter_mut().zip(&found).for_each(|(sum, ends)| sum.add(&Segments::certain(ends), of_baseline));
        learned.push((of_text, of_baseline));
        weight += of_baseline;
    }
    let elect = |means: Vec<Segments>, learned| {
        let (winners, price) = vote(&means);
        Vote { winners, price, learned, contexts: None, in_place: None, means }
    };
    let without: Vec<Segments> = sums.iter().map(|sum| sum.clone().over(weight)).collect();
    if !with_contexts {
        return elect(without, learned);
    }
    let learn = |boundaries: &[Vec<f64>]| {
        let found = sentences.iter().zip(boundaries);
        Contexts::learn(found.map(|(sentence, boundaries)| (&sentence[..], &boundaries[..])))
    };
    let boundaries: Vec<Vec<f64>> = without.iter().map(Segments::boundaries).collect();
    let contexts = learn(&boundaries);
    sums.iter_mut().zip(sentences).for_each(|(sum, sentence)| sum.add(&contexts.segments(sentence), weight));
    let with = elect(sums.into_iter().map(|sum| sum.over(2.0 * weight)).collect(), learned);
    let edges = Edges::of(sentences);
    if (2.0 * with.price + edges.share_of_open(&boundaries)) / 2.0 < SURE {
        let in_place = learn(&edges.correct(&boundaries));
        return Vote { in_place: Some(in_place), ..elect(without, with.learned) };
    }
    Vote { contexts: Some(contexts), ..with }
}

/// The segmentation with the highest expected F1 of its segments, as the ends of the segments of each sentence, and the price of a segment: half of that F1.
///
/// With C the expected number of right segments, P the number of segments and G the expected number of true ones, F = 2 C / (P + G) is highest where C − (F / 2) P is,
/// which each sentence maximises by itself; F rises with every pass until it is the highest (Dinkelbach 1967).
pub fn vote(sentences: &[Segments]) -> (Vec<Vec<u32>>, f64) {
    let n_true: f64 = sentences.iter().map(Segments::expected).sum();
    let mut f1 = 0.0;
    loop {
        let winners: Vec<Vec<u32>> = sentences.iter().map(|segments| segments.best_at(f1 / 2.0)).collect();
        let right = |(segments, ends): (&Segments, &Vec<u32>)| segments.of(ends).iter().sum::<f64>();
        let n_right: f64 = sentences.iter().zip(&winners).map(right).sum();
        let n_segments: usize = winners.iter().map(Vec::len).sum();
        let higher = 2.0 * n_right / (n_segments as f64 + n_true).max(1.0);
        if higher <= f1 {
            return (winners, f1 / 2.0);
        }
        f1 = higher;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// End and start of each segment.
    fn segments(ends: &[u32]) -> impl Iterator<Item = (u32, u32)> {
        ends.iter().copied().zip([0].into_iter().chain(ends.iter().copied()))
    }

    /// The mean of certain segmentations by weight.
    fn mean(by_voter: &[Vec<u32>], weights: &[f64]) -> Segments {
        let mut sum = Segments::default();
        by_voter.iter().zip(weights).for_each(|(ends, weight)| sum.add(&Segments::certain(ends), *weight));
        sum.over(weights.iter().sum())
    }

    /// The segmentation of five symbols with this set of inner boundaries.
    fn ends(boundaries: u32) -> Vec<u32> {
        (1..5).filter(|at| boundaries >> (at - 1) & 1 == 1).chain([5]).collect()
    }

    /// Expected F1 over the voters, one of which, drawn by weight, is right.
    fn expected(corpus: &[Vec<Vec<u32>>], weights: &[f64], chosen: &[&Vec<u32>]) -> f64 {
        let all: f64 = weights.iter().sum();
        let (mut correct, mut n) = (0.0, 0.0);
        for (by_voter, ends) in corpus.iter().zip(chosen) {
            n += ends.len() as f64;
            for (voted, weight) in by_voter.iter().zip(weights) {
                let voted: Vec<_> = segments(voted).collect();
                let common = segments(ends).filter(|segment| voted.contains(segment)).count();
                correct += weight / all * common as f64;
                n += weight / all * voted.len() as f64;
            }
        }
        2.0 * correct / n
    }

    #[test]
    fn winners_have_the_highest_expected_f1() {
        let mut n_new = 0;
        for seed in 0..200u32 {
            let n_voters = 3 + seed % 2;
            let weights: Vec<f64> = (0..n_voters).map(|at| 1.0 + f64::from((seed + at) % 5) / 4.0).collect();
            let voted = |at: u32| ends((seed * 7 + at * 5 + seed / 3 * at) % 16);
            let corpus: Vec<Vec<Vec<u32>>> =
                [1, 6].map(|first| (first..first + n_voters).map(voted).collect()).to_vec();
            let all: Vec<Vec<Vec<u32>>> = corpus
                .iter()
                .map(|by_voter| {
                    let known: Vec<(u32, u32)> = by_voter.iter().flat_map(|ends| segments(ends)).collect();
                    let has_votes = |ends: &Vec<u32>| segments(ends).all(|one| known.contains(&one));
                    (0..16).map(ends).filter(has_votes).collect()
                })
                .collect();
            let highest = all[0]
                .iter()
                .flat_map(|one| all[1].iter().map(|other| expected(&corpus, &weights, &[one, other])));
            let highest = highest.max_by(f64::total_cmp).unwrap();
            let means: Vec<Segments> = corpus.iter().map(|by_voter| mean(by_voter, &weights)).collect();
            let (found, price) = vote(&means);
            assert!(
                (expected(&corpus, &weights, &[&found[0], &found[1]]) - highest).abs() < 1e-12,
                "{corpus:?}: {found:?}"
            );
            assert!((2.0 * price - highest).abs() < 1e-12);
            n_new += usize::from(!corpus[0].contains(&found[0]));
        }
        assert!(n_new > 5, "winners need not be a voter's segmentation: {n_new}");
    }

    #[test]
    fn one_voter_wins_and_order_does_not_matter() {
        for boundaries in 0..16 {
            let (one, other, third) = (ends(boundaries), ends(boundaries / 3), ends(5));
            assert_eq!(vote(&[Segments::certain(&one)]), (vec![one.clone()], 0.5));
            let forth = vote(&[mean(&[one.clone(), other.clone(), third.clone()], &[1.0, 1.0, 0.5])]);
            assert_eq!(forth, vote(&[mean(&[third, one, other], &[0.5, 1.0, 1.0])]));
        }
        assert_eq!(vote(&[Segments::default()]), (vec![Vec::new()], 0.0));
    }

    #[test]
    fn baselines_decide_where_models_do_not() {
        // PUDDLE knows "01" and "23" as sentences, and cuts them out.
        let sentences = [vec![0, 1], vec![2, 3], vec![0, 1, 2, 3]];
        let of_models = |whole: &[bool]| {
            let cut = |&whole: &bool| if whole { vec![4] } else { vec![2, 4] };
            let third: Vec<Vec<u32>> = whole.iter().map(cut).collect();
            [vec![vec![2]; whole.len()], vec![vec![2]; whole.len()], third]
                .map(|by_model| mean(&by_model, &vec![1.0; whole.len()]))
                .to_vec()
        };
        let with = |baselines: &[Baseline], whole: &[bool]| {
            vote_with(baselines, false, &sentences, of_models(whole)).winners[2].clone()
        };
        assert_eq!(Baseline::Puddle.segment(&sentences)[2], [2, 4]);
        assert_eq!(
            (with(&[], &[true, true, false]), with(&[Baseline::Puddle], &[true, true, false])),
            (vec![4], vec![2, 4])
        );
        assert_eq!(with(&[Baseline::Puddle], &[true, true]), [4], "all models together have more weight");
    }

    /// Law: the weight of a baseline is the square of its agreement A, at most twice (1 − E) / (1 − A); beside models that are certain it has none.
    #[test]
    fn baselines_have_little_weight_beside_sure_models() {
        let sentences = [vec![0, 1], vec![2, 3], vec![0, 1, 2, 3], vec![2, 3, 0, 1]];
        let [whole, cut] = [vec![4], vec![2, 4]];
        let weight = |shares: [f64; 2]| {
            let of = |share: f64| mean(&[whole.clone(), cut.clone()], &[share, 1.0 - share]);
            let of_models =
                [Segments::certain(&[2]), Segments::certain(&[2])].into_iter().chain(shares.map(of));
            let of_models: Vec<Segments> = of_models.collect();
            let (winners, price) = vote(&of_models);
            let found: Vec<Vec<u32>> = Baseline::Puddle.segment(&sentences);
            let agreement = score(&sentences, &winners, &found).token.f1.unwrap();
            let voted = vote_with(&[Baseline::Puddle], false, &sentences, of_models);
            let most = MOST * (1.0 - 2.0 * price) / (1.0 - agreement);
            let found = voted.learned[0].1;
            assert!((found - most.min(agreement * agreement)).abs() < 1e-12, "{found} {most} {agreement}");
            found
        };
        let [sure, less, hardly] = [[1.0, 1.0], [0.99, 0.99], [0.6, 0.7]].map(weight);
        assert!(sure == 0.0 && 0.0 < less && less < hardly, "{sure} {less} {hardly}");
    }

    #[test]
    fn contexts_decide_where_models_do_not() {
        // Models cut before 20, of which one sentence has nothing but that two of five do. Sentences begin with 20 and end before it.
        let whole = (0..90).flat_map(|at| [vec![at % 9, 10 + at % 9], vec![20]]);
        let sentences: Vec<Vec<u32>> = (0..9).map(|at| vec![at, 10 + at, 20]).chain(whole).collect();
        let of_models = || -> Vec<Segments> {
            let of_sentence = |(at, sentence): (usize, &Vec<u32>)| {
                let (n, n_cut) = (sentence.len() as u32, if at == 0 { 2 } else { 5 });
                let by_model = (0..5).map(|model| if model < n_cut && n == 3 { vec![2, 3] } else { vec![n] });
                mean(&by_model.collect::<Vec<_>>(), &[1.0; 5])
            };
            sentences.iter().enumerate().map(of_sentence).collect()
        };
        let without = vote_with(&[], false, &sentences, of_models());
        let with = vote_with(&[], true, &sentences, of_models());
        assert_eq!((&without.winners[0], &with.winners[0]), (&vec![3], &vec![2, 3]));
        assert!(without.contexts.is_none() && without.winners[1..] == with.winners[1..]);
        // The winners are what each sentence has by itself, as new text.
        let contexts = with.contexts.unwrap();
        for ((sentence, mut all), winner) in sentences.iter().zip(of_models()).zip(&with.winners) {
            all.add(&contexts.segments(sentence), 1.0);
            assert_eq!(&all.over(2.0).best_at(with.price), winner);
        }
    }

    /// Law: where all are unsure, contexts decide in the place of the vote, which is the one without contexts; they do not cut off what begins no sentence.
    #[test]
    fn edges_decide_where_all_are_unsure() {
        // Half of the models cut before 9, a suffix, and between words.
        let words = |at: u32| [vec![1, 2], vec![3, 4], vec![5, 6]][at as usize % 3].clone();
        let sentence = |at: u32| [words(at), vec![9], words(at / 3)].concat();
        let sentences: Vec<Vec<u32>> =
            (0..9).flat_map(|at| [sentence(at), [words(at), vec![9]].concat(), words(at)]).collect();
        let of_models: Vec<Segments> = sentences
            .iter()
            .map(|sentence| match sentence.len() {
                5 => mean(&[vec![2, 3, 5], vec![5]], &[0.55, 0.45]),
                3 => mean(&[vec![2, 3], vec![3]], &[0.55, 0.45]),
                _ => Segments::certain(&[2]),
            })
            .collect();
        let with = vote_with(&[], true, &sentences, of_models.clone());
        let without = vote_with(&[], false, &sentences, of_models);
        assert_eq!(with.winners[0], [2, 3, 5]);
        let edges = with.in_place.clone().unwrap();
        assert_eq!(edges.read(&sentences[0], 0.5).ends, [3, 5]);
        assert_eq!(edges.read(&sentences[1], 0.5).ends, [3]);
        assert_eq!(Vote { in_place: None, ..with }, without);
    }
}
