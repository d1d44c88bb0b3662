//! Stochastic rounds: which sentences each of them reads, and how far it moves what is known (Hoffman, Blei, Wang & Paisley 2013).
//!
//! A round reads a sample of the sentence shards. Their counts, times shards there are over shards sampled, estimate what a round over
//! the whole corpus would count; the *statistics* are averages of these estimates that forget:
//!
//! s ← (1 − ρ_t) s + ρ_t ŝ,  ρ_t = (t + τ)^−κ
//!
//! τ and γ are set from s as they are from counts, which is a natural-gradient step of length ρ_t on the bound. With ρ = 1 (κ = 0) over
//! all shards this is batch training.
//!
//! The *first* rounds all have the weights that training starts with, and s is the plain mean of their estimates: after an epoch
//! of them it is what the first round of batch training counts. After one round it is what some sentences say of all strings, and of
//! those that are not in them, that they are not used.
//!
//! Shards are drawn without replacement within an *epoch*, which is as many rounds as it takes to read the corpus once, each of a random
//! order's shards in runs of (nearly) one length. So every sample of so many shards is as likely as any other, which makes ŝ
//! unbiased, and no sentence waits longer than two epochs.

use crate::num::random;

/// The samples and rates of a run. Rounds are counted from 1.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Schedule {
    /// Shards of sentences there are, ≥ 1.
    pub shards: usize,
    /// The most that a round reads, ≥ 1.
    pub sample: usize,
    /// τ ≥ 0: the larger, the less early rounds count.
    pub delay: f64,
    /// κ, from 0 to 1: how fast ρ falls. Above 1/2, and only then, averages settle.
    pub power: f64,
    /// Rounds that have the weights that training starts with, ≥ 1.
    pub first: usize,
    /// Seed of the samples,
    pub seed: u64,
    /// and the run, which has its own part of it.
    pub run: u64,
}

impl Schedule {
    /// ρ_t of round t (Hoffman et al. 2013, Eq. 26); 1 / t of the first rounds.
    pub fn rate(&self, round: usize) -> f64 {
        if self.is_first(round) {
            return 1.0 / round as f64;
        }
        libm::pow((round - self.first) as f64 + self.delay, -self.power)
    }

    /// Whether the round has the weights that training starts with.
    pub fn is_first(&self, round: usize) -> bool {
        round <= self.first
    }

    /// Rounds of an epoch.
    pub fn epoch(&self) -> usize {
        self.shards.div_ceil(self.sample)
    }

    /// The shards that a round reads, ascending, so that a sum over all of them has the order of batch training.
    pub fn sampled(&self, round: usize) -> Vec<usize> {
        let (epoch, place) = ((round - 1) / self.epoch(), (round - 1) % self.epoch());
        let mut random = random::stream(self.seed, self.run, epoch as u64);
        let order = random::permutation(self.shards, &mut random);
        let cut = |place: usize| place * self.shards / self.epoch();
        let mut sampled: Vec<usize> =
            order[cut(place)..cut(place + 1)].iter().map(|&shard| shard as usize).collect();
        sampled.sort_unstable();
        sampled
    }

    /// Weight of the sentences of a round with which the sample stands for the corpus.
    pub fn scale(&self, round: usize) -> f64 {
        self.shards as f64 / self.sampled(round).len() as f64
    }
}

/// Moves averages by `rate` towards what a round found.
pub fn average(statistics: &mut [f64], found: &[f64], rate: f64) {
    for (statistic, &found) in statistics.iter_mut().zip(found) {
        *statistic = averaged(*statistic, found, rate);
    }
}

/// Moves one number by `rate` towards what was found.
pub fn averaged(statistic: f64, found: f64, rate: f64) -> f64 {
    (1.0 - rate) * statistic + rate * found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(shards: usize, sample: usize) -> Schedule {
        Schedule { shards, sample, delay: 4.0, power: 0.75, first: 2, seed: 1, run: 1 }
    }

    #[test]
    fn an_epoch_reads_every_shard_once_in_runs_of_nearly_one_length() {
        for (shards, sample) in [(1, 1), (1, 9), (7, 7), (7, 3), (100, 8), (64, 8)] {
            let schedule = schedule(shards, sample);
            for epoch in 0..3 {
                let rounds = epoch * schedule.epoch() + 1..=(epoch + 1) * schedule.epoch();
                let samples: Vec<Vec<usize>> = rounds.map(|round| schedule.sampled(round)).collect();
                let lengths = samples.iter().map(Vec::len);
                let (shortest, longest) = (lengths.clone().min().unwrap(), lengths.max().unwrap());
                assert!(longest <= sample && longest - shortest <= 1, "{shards}, {sample}: {samples:?}");
                assert!(samples.iter().all(|sample| sample.is_sorted()));
                let mut read = samples.concat();
                read.sort_unstable();
                assert_eq!(read, (0..shards).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn samples_are_of_the_seed_the_run_and_the_round() {
        let first = schedule(100, 8);
        assert_eq!(first.sampled(5), first.sampled(5));
        let others = [Schedule { seed: 2, ..first }, Schedule { run: 2, ..first }];
        assert!(others.iter().all(|other| other.sampled(5) != first.sampled(5)));
        assert_ne!(first.sampled(5), first.sampled(5 + first.epoch()));
    }

    #[test]
    fn rates_fall_as_the_power_says_and_not_at_all_without_one() {
        let rates = [1, 2, 2 + 12, 2 + 77, 2 + 252].map(|round| schedule(9, 3).rate(round));
        for (found, expected) in rates.iter().zip([1.0, 1.0 / 2.0, 1.0 / 8.0, 1.0 / 27.0, 1.0 / 64.0]) {
            assert!((found - expected).abs() < 1e-15, "{rates:?}");
        }
        assert_eq!(Schedule { power: 0.0, ..schedule(9, 3) }.rate(17), 1.0);
    }

    #[test]
    fn rate_one_replaces_the_average() {
        let mut statistics = [0.1, 3.0];
        average(&mut statistics, &[0.7, 1e-300], 1.0);
        assert_eq!(statistics, [0.7, 1e-300]);
        average(&mut statistics, &[0.5, 1e-300], 0.25);
        assert!((statistics[0] - 0.65).abs() < 1e-15);
    }
}
