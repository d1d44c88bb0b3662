//! A position between two symbols of a line, and the probability of a boundary there: a row of `boundaries.tsv`.

use std::fmt;
use std::str::FromStr;

use anyhow::{Context as _, Error, Result, ensure};

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

impl FromStr for Boundary {
    type Err = Error;

    fn from_str(row: &str) -> Result<Boundary> {
        let mut columns = row.split('\t');
        let mut next = || columns.next().context("expected four columns");
        let (line, position) = (next()?.parse()?, next()?.parse()?);
        let (probability, is_chosen) = (next()?.parse()?, next()? == "yes");
        ensure!((0.0..=1.0).contains(&probability), "expected a probability, found {probability}");
        Ok(Boundary { line, position, probability, is_chosen })
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
        let read: Boundary = row.to_string().parse().unwrap();
        assert_eq!(read, Boundary { probability: 0.6667, ..row });
        assert!(
            ["3\t2\t0.5", "3\t2\t1.5\tno", "3\tx\t0.5\tno", ""]
                .iter()
                .all(|row| row.parse::<Boundary>().is_err())
        );
    }
}
