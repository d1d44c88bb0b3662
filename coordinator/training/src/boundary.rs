//! A position between two symbols of a line, and the probability of a boundary there: a row of `boundaries.tsv`.

use std::fmt::{self, Write as _};
use std::str::FromStr;

use anyhow::{Context as _, Error, Result, ensure};

/// A position inside a line.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Boundary {
    /// Number of the line, from 1.
    pub line: u32,
    /// Number of symbols before it.
    pub position: u32,
    /// Of a boundary there, by what the segmentation is by: what votes, a share of samples, contexts, the model alone, or a field.
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
        write!(f, "{line}\t{position}\t{}\t{boundary}", Decimals(*probability))
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

/// A position with what the models found there, before anything was learned from annotated lines.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct BoundaryRow {
    /// The position.
    pub boundary: Boundary,
    /// Share of a boundary by the models.
    pub share: f64,
    /// Whether the models' segmentation has one.
    pub is_found: bool,
}

impl BoundaryRow {
    /// Names of the columns, where something was learned.
    pub const HEADER: &'static str = "line\tposition\tprobability\tboundary\tshare\tvote";

    /// A share as the table has it, with four decimals.
    pub fn rounded(share: f64) -> f64 {
        Decimals(share).to_string().parse().expect("a number that was just written")
    }
}

/// A probability with four decimals, as `{:.4}` prints it: tables have millions, and that is slow for 1, which most are near.
struct Decimals(f64);

impl fmt::Display for Decimals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scaled = 1e4 * self.0;
        // Half between two numbers, it is the exact value of the probability that decides.
        let is_half = (scaled - scaled.floor() - 0.5).abs() < 1e-6;
        if is_half || self.0.is_sign_negative() || !(0.0..=1.0).contains(&self.0) {
            return write!(f, "{:.4}", self.0);
        }
        let scaled = scaled.round() as u32;
        write!(f, "{}.{:04}", scaled / 10_000, scaled % 10_000)
    }
}

impl fmt::Display for BoundaryRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BoundaryRow { boundary, share, is_found } = self;
        write!(f, "{boundary}\t{}\t{}", Decimals(*share), if *is_found { "yes" } else { "no" })
    }
}

impl FromStr for BoundaryRow {
    type Err = Error;

    /// Reads a row. Where nothing was learned, the models' share is the probability.
    fn from_str(row: &str) -> Result<BoundaryRow> {
        let boundary: Boundary = row.parse()?;
        let mut more = row.split('\t').skip(4);
        let Some(share) = more.next() else {
            return Ok(BoundaryRow { boundary, share: boundary.probability, is_found: boundary.is_chosen });
        };
        let share = share.parse()?;
        ensure!((0.0..=1.0).contains(&share), "expected a share, found {share}");
        Ok(BoundaryRow { boundary, share, is_found: more.next().context("expected six columns")? == "yes" })
    }
}

/// The rows of a line, each with its end: `probabilities` of its boundaries, the ends of its segments, and, if something was learned from annotated lines, the shares of
/// boundaries and the ends of segments that the models found before.
pub fn rows(line: u32, probabilities: &[f64], ends: &[u32], found: Option<(&[f64], &[u32])>) -> String {
    let mut rows = String::new();
    for (&probability, position) in probabilities.iter().zip(1..) {
        let is_end = |ends: &[u32]| ends.binary_search(&position).is_ok();
        let boundary = Boundary { line, position, probability, is_chosen: is_end(ends) };
        let written = match found {
            None => writeln!(rows, "{boundary}"),
            Some((shares, ends)) => {
                let share = shares[position as usize - 1];
                writeln!(rows, "{}", BoundaryRow { boundary, share, is_found: is_end(ends) })
            }
        };
        written.expect("a string takes any text");
    }
    rows
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Law: every number is printed as `{:.4}` prints it, also near a half and beside 0 and 1.
        #[test]
        fn decimals_are_those_of_the_library(number in prop_oneof![
            0.0..=1.0_f64,
            (0..=20_000_u32, -3..=3_i64).prop_map(|(half, steps)| {
                f64::from_bits((f64::from(half) / 20_000.0).to_bits().saturating_add_signed(steps))
            }),
            any::<f64>(),
        ]) {
            prop_assert_eq!(Decimals(number).to_string(), format!("{number:.4}"));
        }
    }

    #[test]
    fn a_row_has_a_value_for_each_column() {
        let row = Boundary { line: 3, position: 2, probability: 2.0 / 3.0, is_chosen: true };
        assert_eq!(row.to_string(), "3\t2\t0.6667\tyes");
        assert_eq!(Boundary::HEADER.split('\t').count(), 4);
        let learned = BoundaryRow {
            boundary: Boundary { probability: 0.25, ..row },
            share: BoundaryRow::rounded(1.0 / 3.0),
            is_found: false,
        };
        assert_eq!(learned.to_string(), "3\t2\t0.2500\tyes\t0.3333\tno");
        assert_eq!(learned.to_string().parse::<BoundaryRow>().unwrap(), learned);
        let plain: BoundaryRow = "3\t2\t0.6667\tyes".parse().unwrap();
        assert!(plain.share == 0.6667 && plain.is_found);
        let read: Boundary = row.to_string().parse().unwrap();
        assert_eq!(read, Boundary { probability: 0.6667, ..row });
        assert!(
            ["3\t2\t0.5", "3\t2\t1.5\tno", "3\tx\t0.5\tno", ""]
                .iter()
                .all(|row| row.parse::<Boundary>().is_err())
        );
    }
}
