//! Expected counts of a shard, by the parameters that it touches, and their sums over shards.

use crate::grammar::ParamId;
use crate::num::tree_sum::Sum;
use crate::work::heap::{flat, rows};
use serde::{Deserialize, Serialize};

/// The parameters that a shard touches.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Index {
    /// Sorted; the order of weights and counts of this shard.
    pub params: Vec<ParamId>,
    /// Items (positions in the shard) that have no derivation at all, or too many for a forest ([`crate::forest::TooAmbiguous`]).
    pub unparsable: Vec<u32>,
}

impl Index {
    /// Bytes on the heap.
    pub fn size(&self) -> usize {
        flat(&self.params) + flat(&self.unparsable)
    }
}

/// The parameters that several shards touch.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct GroupIndex {
    /// All of them, sorted.
    pub params: Vec<ParamId>,
    /// By shard, the places of its parameters among those of all shards, which are sorted.
    pub places: Vec<Vec<u32>>,
}

impl GroupIndex {
    /// Of shards whose indexes have these parameters.
    pub fn new(indexes: &[Vec<ParamId>]) -> GroupIndex {
        let all = union(indexes.iter().map(Vec::as_slice));
        let places = |params: &Vec<ParamId>| {
            let mut all = all.iter().zip(0..);
            let mut place = |param| all.find(|(other, _)| **other == param).map(|(_, place)| place);
            params.iter().filter_map(|&param| place(param)).collect()
        };
        let places = indexes.iter().map(places).collect();
        GroupIndex { params: all, places }
    }

    /// Bytes on the heap.
    pub fn size(&self) -> usize {
        flat(&self.params) + rows(&self.places, |places| flat(places))
    }
}

/// The parameters of several indexes, sorted.
pub fn union<'a>(indexes: impl Iterator<Item = &'a [ParamId]>) -> Vec<ParamId> {
    let mut all = indexes.collect::<Vec<_>>().concat();
    all.sort_unstable();
    all.dedup();
    all
}

/// Expected counts of a shard.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Expectation {
    /// Expected uses of the parameters in use (weight above zero), in the order of the shard's index; multiplicities counted.
    pub counts: Vec<f64>,
    /// Σ over the uses of each parameter in use of −ln(1 − posterior of the use): what log Z would lose without it. Empty if not asked for; +∞ where nothing could replace it.
    pub losses: Vec<f64>,
    /// Σ log Z over the items, multiplicities counted.
    pub log_z: f64,
    /// log Z of each item, only for [`crate::work::shard::Shard::Strings`]; 0 for strings that are not in use.
    pub log_z_items: Vec<f64>,
    /// Strings out of use (weight zero) without which some item has no derivation; sorted. The counts mean
    /// nothing if there are any.
    pub missing: Vec<ParamId>,
}

impl Expectation {
    /// Bytes on the heap.
    pub fn size(&self) -> usize {
        flat(&self.counts) + flat(&self.losses) + flat(&self.log_z_items) + flat(&self.missing)
    }
}

/// Expected counts of some shards, by position in a list of parameters.
#[derive(Clone, PartialEq, Debug)]
pub struct Counts {
    /// The number of positions.
    n: usize,
    /// Whether there are losses.
    with_losses: bool,
    numbers: Numbers,
    /// Σ log Z.
    log_z: f64,
}

#[derive(Clone, PartialEq, Debug)]
enum Numbers {
    /// Of the positions that have any, ascending.
    Few(Vec<Entry>),
    /// Of all positions.
    All(ByPosition),
}

/// Numbers of a position.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Entry {
    at: u32,
    count: f64,
    loss: f64,
}

/// Numbers of all positions.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ByPosition {
    /// Expected uses.
    pub counts: Vec<f64>,
    /// Losses; empty without.
    pub losses: Vec<f64>,
}

/// Numbers are kept for all positions if one of so many has some.
const SPARSE: usize = 4;

impl Counts {
    /// Those of no shard.
    pub fn none(n: usize, with_losses: bool) -> Counts {
        Counts { n, with_losses, numbers: Numbers::Few(Vec::new()), log_z: 0.0 }
    }

    /// Those of an answer that has numbers of these positions, ascending, of `n`. None if it has another number of them.
    pub fn new(
        n: usize,
        with_losses: bool,
        at: impl Iterator<Item = u32> + Clone,
        found: &Expectation,
    ) -> Option<Counts> {
        let n_found = at.clone().count();
        let n_losses = if with_losses { n_found } else { 0 };
        if [found.counts.len(), found.losses.len()] != [n_found, n_losses] {
            return None;
        }
        let losses = found.losses.iter().copied().chain(std::iter::repeat(0.0));
        let entries = at.zip(&found.counts).zip(losses).map(|((at, &count), loss)| Entry { at, count, loss });
        let mut sums = Counts { log_z: found.log_z, ..Counts::none(n, with_losses) };
        sums.numbers = if n_found * SPARSE < n {
            Numbers::Few(entries.collect())
        } else {
            let mut all = sums.zero();
            entries.for_each(|entry| all.add(entry));
            Numbers::All(all)
        };
        Some(sums)
    }

    /// Numbers of all positions, and Σ log Z.
    pub fn all(self) -> (ByPosition, f64) {
        let zero = self.zero();
        (self.numbers.all(zero), self.log_z)
    }

    fn zero(&self) -> ByPosition {
        let losses = vec![0.0; if self.with_losses { self.n } else { 0 }];
        ByPosition { counts: vec![0.0; self.n], losses }
    }
}

impl Sum for Counts {
    fn add(&mut self, other: Counts) {
        self.log_z += other.log_z;
        let own = std::mem::replace(&mut self.numbers, Numbers::Few(Vec::new()));
        self.numbers = match (own, other.numbers) {
            (Numbers::All(mut sums), Numbers::All(others)) => {
                sums.counts.iter_mut().zip(others.counts).for_each(|(sum, count)| *sum += count);
                sums.losses.iter_mut().zip(others.losses).for_each(|(sum, loss)| *sum += loss);
                Numbers::All(sums)
            }
            (all @ Numbers::All(_), few) | (few, all @ Numbers::All(_)) => {
                Numbers::All(few.all(all.all(ByPosition::default())))
            }
            (Numbers::Few(one), Numbers::Few(others)) if (one.len() + others.len()) * SPARSE < self.n => {
                Numbers::Few(merged(&one, &others))
            }
            (one, others) => Numbers::All(others.all(one.all(self.zero()))),
        };
    }
}

impl Numbers {
    /// All numbers, the few of them added to `sums`.
    fn all(self, mut sums: ByPosition) -> ByPosition {
        match self {
            Numbers::All(all) => all,
            Numbers::Few(few) => {
                few.into_iter().for_each(|entry| sums.add(entry));
                sums
            }
        }
    }
}

impl ByPosition {
    fn add(&mut self, Entry { at, count, loss }: Entry) {
        self.counts[at as usize] += count;
        if let Some(sum) = self.losses.get_mut(at as usize) {
            *sum += loss;
        }
    }
}

/// The entries of two ascending lists, added where both have one.
fn merged(one: &[Entry], other: &[Entry]) -> Vec<Entry> {
    let (mut sums, mut rest): (Vec<Entry>, _) = (Vec::with_capacity(one.len() + other.len()), other);
    for entry in one {
        let n_before = rest.iter().take_while(|other| other.at < entry.at).count();
        let (before, after) = rest.split_at(n_before);
        sums.extend(before);
        rest = after;
        match rest.split_first().filter(|(first, _)| first.at == entry.at) {
            Some((first, after)) => {
                sums.push(Entry {
                    at: entry.at,
                    count: entry.count + first.count,
                    loss: entry.loss + first.loss,
                });
                rest = after;
            }
            None => sums.push(*entry),
        }
    }
    sums.extend(rest);
    sums
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn size_counts_all_lists() {
        let counts =
            Expectation { counts: vec![0.0; 5], missing: vec![ParamId(3)], ..Expectation::default() };
        assert_eq!(counts.size(), 44);
    }

    fn expectation(n: usize) -> impl Strategy<Value = Expectation> {
        let number = (any::<u8>(), 1..50u32)
            .prop_map(|(share, number)| if share < 180 { 0.0 } else { 1.0 / f64::from(number) });
        (prop::collection::vec(number, n), -9.0..0.0f64).prop_map(|(counts, log_z)| {
            let losses = counts.iter().map(|count| count / 3.0).collect();
            Expectation { counts, losses, log_z, ..Expectation::default() }
        })
    }

    /// The numbers above zero alone.
    fn few(found: &Expectation) -> Counts {
        let n = found.counts.len();
        let is_there = |&at: &u32| found.counts[at as usize] > 0.0;
        let few = |numbers: &[f64]| numbers.iter().copied().filter(|&number| number > 0.0).collect();
        let some = Expectation { counts: few(&found.counts), losses: few(&found.losses), ..found.clone() };
        Counts::new(n, true, (0..n as u32).filter(is_there), &some).unwrap()
    }

    fn sum(all: impl Iterator<Item = Counts>) -> Counts {
        all.reduce(|mut sum, other| {
            sum.add(other);
            sum
        })
        .unwrap()
    }

    proptest! {
        /// Law: sums of few numbers have the bits of sums of all numbers.
        #[test]
        fn few_numbers_are_added_as_all_are(found in prop::collection::vec(expectation(41), 1..9)) {
            let all = |found: &Expectation| Counts::new(41, true, 0..41, found).unwrap();
            let (of_few, of_all) = (sum(found.iter().map(few)), sum(found.iter().map(all)));
            let bits = |sum: Counts| -> Vec<u64> {
                let (ByPosition { counts, losses }, log_z) = sum.all();
                counts.iter().chain(&losses).chain([&log_z]).map(|number| number.to_bits()).collect()
            };
            prop_assert_eq!(bits(of_few), bits(of_all));
        }
    }

    #[test]
    fn answers_of_another_length_are_refused() {
        let found = Expectation { counts: vec![1.0; 3], ..Expectation::default() };
        assert!(Counts::new(9, false, 0..3, &found).is_some());
        assert!(
            Counts::new(9, false, 0..4, &found).is_none() && Counts::new(9, true, 0..3, &found).is_none()
        );
    }
}
