//! Features of a position between two symbols, with their values: the symbols around it, what a model without annotations finds there, and what
//! unannotated sentences say of it.

use serde::{Deserialize, Serialize};

use super::Evidence;
use super::statistics::{Branching, DEPTH, EDGE, Statistics};

/// Symbols on one side at most.
pub const LONGEST: usize = 5;
/// Symbols before and after a position, of windows across it.
pub const ACROSS: [(usize, usize); 4] = [(1, 1), (1, 2), (2, 1), (2, 2)];
/// Distances to the edges from here on are one.
const FAR: usize = 6;
/// Contexts whose entropies have features for their size and for maxima, in symbols.
const CONTEXTS: [usize; 2] = [2, 3];
/// Shares of samples are at least this far from 0 and 1.
const CERTAINTY: f64 = 0.01;
/// Weight of what one entropy says, of which there are many that say the same.
const HALF: f64 = 0.5;

/// A property of a position. Sides: 0 is before it, 1 after it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Feature {
    /// Of every position.
    Any,
    /// So many symbols stand before it, and these around it.
    Symbols(u8, Vec<u32>),
    /// Logit of the share of samples that have a boundary here, at the position before, at the one after.
    Share(u8),
    /// The model's segmentation has a boundary here.
    Segmented(bool),
    /// Whether it has one here, at the position before, at the one after.
    Pattern([bool; 3]),
    /// Entropy by side and context.
    Entropy(u8, u8),
    /// That it is in this interval.
    EntropyNear(u8, u8, u8),
    /// That it is not lower than at the positions beside.
    EntropyPeak(u8, u8),
    /// Logarithm of the variety by side; 2: their sum.
    Variety(u8),
    /// That it is in this interval.
    VarietyNear(u8, u8),
    /// That it is above 0 and not lower than at the positions beside.
    VarietyPeak(u8),
    /// Symbols up to the edge, by side.
    Distance(u8, u8),
}

/// Logit of the share of samples with a boundary.
pub fn logit(share: f64) -> f64 {
    let share = share.clamp(CERTAINTY, 1.0 - CERTAINTY);
    libm::log(share / (1.0 - share))
}

/// The features of each position of a sentence.
pub fn of_sentence(evidence: &Evidence<'_>, statistics: &Statistics) -> Vec<Vec<(Feature, f64)>> {
    let n = evidence.symbols.len();
    let padded = [&[EDGE], evidence.symbols, &[EDGE]].concat();
    let branchings = statistics.positions(evidence.symbols);
    let is_boundary = |at: usize| at == 0 || at == n || evidence.ends.binary_search(&(at as u32)).is_ok();
    let mut found = Vec::with_capacity(n.saturating_sub(1));
    for at in 1..n {
        let mut features = vec![(Feature::Any, 1.0)];
        let place = at + 1; // in `padded`
        let mut symbols = |before: usize, after: usize| {
            if before <= place && place + after <= padded.len() {
                let window = padded[place - before..place + after].to_vec();
                features.push((Feature::Symbols(before as u8, window), 1.0));
            }
        };
        (1..=LONGEST).for_each(|n| symbols(n, 0));
        (1..=LONGEST).for_each(|n| symbols(0, n));
        ACROSS.iter().for_each(|&(before, after)| symbols(before, after));
        let shares = [Some(at), at.checked_sub(1).filter(|&at| at > 0), Some(at + 1).filter(|&at| at < n)];
        for (which, at) in (0..).zip(shares) {
            features.extend(at.map(|at| (Feature::Share(which), logit(evidence.shares[at - 1]))));
        }
        features.push((Feature::Segmented(is_boundary(at)), 1.0));
        features.push((Feature::Pattern([at, at - 1, at + 1].map(is_boundary)), 1.0));
        let is_peak = |of: &dyn Fn(&[Branching; 2]) -> Option<f64>| {
            let value = |at: usize| branchings.get(at).and_then(of).unwrap_or(f64::NEG_INFINITY);
            let [left, here, right] = [at.wrapping_sub(2), at - 1, at].map(value);
            here >= left && here >= right
        };
        for side in [0, 1] {
            let Branching { entropies, .. } = &branchings[at - 1][side];
            for (context, &entropy) in (1..=DEPTH).zip(entropies) {
                let [of_side, of_context] = [side, context].map(|number| number as u8);
                features.push((Feature::Entropy(of_side, of_context), HALF * entropy));
                if CONTEXTS.contains(&context) {
                    let interval = (2.0 * entropy) as u8;
                    features.push((Feature::EntropyNear(of_side, of_context, interval), HALF));
                    if is_peak(&|position| position[side].entropies.get(context - 1).copied()) {
                        features.push((Feature::EntropyPeak(of_side, of_context), HALF));
                    }
                }
            }
        }
        let variety = |position: &[Branching; 2], side: usize| libm::log(f64::from(position[side].variety));
        for side in [0, 1] {
            let here = variety(&branchings[at - 1], side);
            features.push((Feature::Variety(side as u8), here));
            features.push((Feature::VarietyNear(side as u8, (2.0 * here) as u8), 1.0));
            if here > 0.0 && is_peak(&|position| Some(variety(position, side))) {
                features.push((Feature::VarietyPeak(side as u8), 1.0));
            }
        }
        let both = |position: &[Branching; 2]| variety(position, 0) + variety(position, 1);
        features.push((Feature::Variety(2), both(&branchings[at - 1])));
        if both(&branchings[at - 1]) > 0.0 && is_peak(&|position| Some(both(position))) {
            features.push((Feature::VarietyPeak(2), 1.0));
        }
        features.push((Feature::Distance(0, at.min(FAR) as u8), 1.0));
        features.push((Feature::Distance(1, (n - at).min(FAR) as u8), 1.0));
        found.push(features);
    }
    found
}
