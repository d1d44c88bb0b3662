//! A position between two symbols of a line, and the probability of a boundary there: a row of `boundaries.tsv`.

use std::fmt;

/// A position inside a line.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Boundary {
    /// Number of the line, from 1.
    pub line: u32,
    /// Number of symbols before it.
    pub position: u32,
    /// Share of the samples that have a boundary there, each chain with the same weight; or what annotated sentences make of it.
    pub probability: f64,
    /// Whether the recommended segmentation has one.
    pub is_chosen: bool,
}

impl Boundary {
    /// Names of the columns.
    pub const HEADER: &'static str = "line\tposition\tprobability\tboundary";
}

impl fmt::Display for Boundary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Boundary { line, position, probability, is_chosen } = self;
        let boundary = if *is_chosen { "yes" } else { "no" };
        write!(f, "{line}\t{position}\t{probability:.4}\t{boundary}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_a_value_for_each_column() {
        let row = Boundary { line: 3, position: 2, probability: 2.0 / 3.0, is_chosen: true };
        assert_eq!(row.to_string(), "3\t2\t0.6667\tyes");
        assert_eq!(Boundary::HEADER.split('\t').count(), 4);
    }
}
