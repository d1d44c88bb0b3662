//! Fixed factors of dependency trees: what is known of arcs before training.
//!
//! A tree weighs, beside the weights of its rules, the product of a factor for each of its arcs and one for its root. Factors are not learned, and
//! are the same in every round. They are logarithms here, by tag, and belong to the grammar of [`crate::models::dmv`], with which they travel and are
//! saved. A factor of zero is no such factor: trees that are forbidden are left out by [`crate::data::TreeMarks::heads`].

use serde::{Deserialize, Serialize};

/// Logarithms of the factors of arcs and roots, by tag.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ArcFactors {
    /// Of a root with this tag. `[n_tags]`
    pub roots: Vec<f64>,
    /// By head and child, of an arc to the left and of one to the right. `[n_tags, n_tags]`
    pub arcs: Vec<[f64; 2]>,
    /// Of an arc across a place where punctuation was.
    pub crossing: f64,
    /// Of an arc longer than so many words, for each such length.
    pub longer: Vec<(u32, f64)>,
}

impl ArcFactors {
    /// The largest absolute value of a logarithm.
    pub const MOST: f64 = 100.0;
    /// The largest number of entries of [`ArcFactors::longer`].
    pub const MOST_LENGTHS: usize = 64;

    /// Factors of one for this number of tags.
    pub fn ones(n_tags: usize) -> ArcFactors {
        ArcFactors {
            roots: vec![0.0; n_tags],
            arcs: vec![[0.0; 2]; n_tags * n_tags],
            crossing: 0.0,
            longer: Vec::new(),
        }
    }

    /// Whether there is one for each tag and pair of tags of `n_tags`, and none is out of range.
    pub fn suits(&self, n_tags: usize) -> bool {
        let numbers = self.roots.iter().chain(self.arcs.as_flattened()).chain([&self.crossing]);
        let in_range = |number: &f64| number.abs() <= ArcFactors::MOST;
        self.roots.len() == n_tags
            && self.arcs.len() == n_tags * n_tags
            && self.longer.len() <= ArcFactors::MOST_LENGTHS
            && numbers.chain(self.longer.iter().map(|(_, number)| number)).all(in_range)
    }
}
