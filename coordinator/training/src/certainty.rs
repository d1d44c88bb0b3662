//! How sure a segmentation is, without gold: by the probabilities of boundaries, and by whether chains agree.
//!
//! In: of each sentence the probabilities of its boundaries, and the segmentations by the models of all chains. Out: numbers of boundaries, and shares of them.
//! Positions at which no one would set a boundary count nowhere, so that long segments make no share look better.

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

/// Probabilities of a boundary that is unsure.
pub const UNSURE: RangeInclusive<f64> = 0.1..=0.9;

/// Numbers of boundaries inside sentences.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Certainty {
    /// Boundaries that are more probable than [`UNSURE`].
    pub sure: u64,
    /// Boundaries with a probability in [`UNSURE`].
    pub unsure: u64,
    /// Number of chains whose models segmented the text.
    pub chains: usize,
    /// Boundaries that all of them have.
    pub shared: u64,
    /// Boundaries that some of them have and others lack.
    pub disputed: u64,
}

impl Certainty {
    /// Adds a sentence: the probabilities of its boundaries, and the ends of the segments by the model of each chain, the last end being its length.
    pub fn add(&mut self, probabilities: &[f64], by_chain: &[Vec<u32>]) {
        self.sure += probabilities.iter().filter(|found| *found > UNSURE.end()).count() as u64;
        self.unsure += probabilities.iter().filter(|found| UNSURE.contains(found)).count() as u64;
        self.chains = self.chains.max(by_chain.len());
        let mut all: Vec<u32> =
            by_chain.iter().flat_map(|ends| &ends[..ends.len().saturating_sub(1)]).copied().collect();
        all.sort_unstable();
        for boundary in all.chunk_by(|a, b| a == b) {
            let count = if boundary.len() == by_chain.len() { &mut self.shared } else { &mut self.disputed };
            *count += 1;
        }
    }

    /// Share of unsure boundaries among those that are sure or unsure; `None` without any.
    pub fn unsure_share(&self) -> Option<f64> {
        share(self.unsure, self.sure)
    }

    /// Share of the boundaries of any chain that others lack; `None` without any, and of a single chain.
    pub fn disputed_share(&self) -> Option<f64> {
        share(self.disputed, self.shared).filter(|_| self.chains > 1)
    }
}

fn share(part: u64, others: u64) -> Option<f64> {
    (part + others > 0).then(|| part as f64 / (part + others) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All segmentations of four symbols, as ends.
    fn all() -> Vec<Vec<u32>> {
        (0..8u32).map(|set| (1..=4).filter(|&end| end == 4 || set & (1 << (end - 1)) > 0).collect()).collect()
    }

    /// Law: a boundary of any chain is shared if every chain has it, and else disputed; the order of the chains does not matter.
    #[test]
    fn every_boundary_is_shared_or_disputed() {
        for (a, b) in all().iter().flat_map(|a| all().into_iter().map(move |b| (a.clone(), b))) {
            let mut found = Certainty::default();
            found.add(&[], &[a.clone(), b.clone()]);
            let has = |ends: &[u32], end: u32| ends.contains(&end);
            let shared = (1..4).filter(|&end| has(&a, end) && has(&b, end)).count() as u64;
            let any = (1..4).filter(|&end| has(&a, end) || has(&b, end)).count() as u64;
            assert_eq!((found.shared, found.disputed), (shared, any - shared), "{a:?} {b:?}");
            assert_eq!(found.disputed_share().is_none(), any == 0);
            let mut other = Certainty::default();
            other.add(&[], &[b.clone(), a.clone()]);
            assert_eq!(found, other);
            let mut alone = Certainty::default();
            alone.add(&[], std::slice::from_ref(&a));
            assert_eq!((alone.disputed, alone.disputed_share()), (0, None));
        }
    }

    #[test]
    fn boundaries_are_sure_unsure_or_improbable() {
        let mut found = Certainty::default();
        found.add(&[0.0, 0.09, 0.1, 0.5, 0.9, 0.91, 1.0], &[]);
        found.add(&[], &[]);
        assert_eq!((found.sure, found.unsure, found.chains), (2, 3, 0));
        assert_eq!((found.unsure_share(), found.disputed_share()), (Some(0.6), None));
        assert_eq!(Certainty::default().unsure_share(), None);
    }
}
