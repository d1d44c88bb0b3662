//! The models that a file keeps beside the first one, to vote on new text: those of all chains that vote on the text of the job, bounded in number and bytes; none if the
//! job keeps one model.
//!
//! In: the finished points of a job, and the one that is kept. Out: which chains of which points.

use grammaton::models::{Model, Trained};

use super::rounds::FinishedPoint;
use crate::job::{Job, KeptModels};

/// Models of a file at most: each one takes its time with every sentence of new text.
const MOST: usize = 8;
/// Bytes of the models beside the first one at most.
const BYTES: usize = 256 << 20;

/// Models that vote on new text beside that of the kept point.
pub struct Voters {
    /// Point and number of the chain among [`FinishedPoint::models`], ascending.
    places: Vec<(usize, usize)>,
    /// Number of models that vote on the text of the job.
    n_voting: usize,
}

impl Voters {
    /// Those of a job whose point number `kept` is written.
    pub fn of(job: &Job, points: &[FinishedPoint], kept: usize) -> Voters {
        let voters = (kept + 1..points.len()).take_while(|&at| job.points[at].voter.is_some());
        let of_kept = (0..points[kept].chains.len()).map(|chain| (kept, chain));
        let of_voter = |at: usize| (0..points[at].models().count()).map(move |chain| (at, chain));
        let all: Vec<(usize, usize)> = of_kept.chain(voters.flat_map(of_voter)).collect();
        if job.output.models == KeptModels::One {
            return Voters { places: Vec::new(), n_voting: 1 };
        }
        let size = |&(at, chain): &(usize, usize)| {
            let model = points[at].models().nth(chain).expect("the chain has a model");
            job.corpus.saved(Trained::Grammar(model.clone())).to_bytes().len()
        };
        let places = within(&spread(&all, MOST - 1), size, BYTES);
        Voters { places, n_voting: all.len() + 1 }
    }

    /// The models.
    pub fn models(&self, points: &[FinishedPoint]) -> Vec<Model> {
        self.places.iter().filter_map(|&(at, chain)| points[at].models().nth(chain).cloned()).collect()
    }

    /// A notice if fewer models are kept than vote on the text of the job.
    pub fn notice(&self) -> Option<String> {
        let (n, n_kept) = (self.n_voting, self.places.len() + 1);
        (n_kept < n).then(|| {
            format!(
                "model/model.bin keeps the models of {n_kept} of {n} chains, which vote on new text: {MOST} at most, and those beside the first of {} MiB",
                BYTES >> 20
            )
        })
    }
}

/// `n` of these at most, evenly over all.
fn spread<T: Clone>(all: &[T], n: usize) -> Vec<T> {
    let n = n.min(all.len());
    (0..n).map(|at| all[(2 * at + 1) * all.len() / (2 * n)].clone()).collect()
}

/// The first ones whose sizes have a sum within `most`.
fn within<T: Clone>(all: &[T], size: impl Fn(&T) -> usize, most: usize) -> Vec<T> {
    let mut sum = 0_usize;
    let fits = |one: &&T| {
        sum = sum.saturating_add(size(one));
        sum <= most
    };
    all.iter().take_while(fits).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn voters_are_spread_and_fit() {
        assert_eq!(spread(&[0, 1, 2], 7), [0, 1, 2]);
        assert_eq!(spread(&[0; 0], 7), [0; 0]);
        for n in 7..40 {
            let all: Vec<usize> = (0..n).collect();
            let chosen = spread(&all, 7);
            assert_eq!(chosen.len(), 7, "{n}");
            assert!(chosen.is_sorted_by(|a, b| a < b), "{chosen:?}");
            // Of two thirds of the list as many as that, by one.
            let n_first = chosen.iter().filter(|at| **at < n * 2 / 3).count();
            assert!((4..=5).contains(&n_first), "{n}: {chosen:?}");
        }
        assert_eq!(within(&[3, 4, 5, 1], |n| *n, 7), [3, 4]);
        assert_eq!(within(&[8, 1], |n| *n, 7), [0; 0]);
    }
}
