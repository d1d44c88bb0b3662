//! Marks of single positions in annotated sentences (`corpus.boundary_mark`, `corpus.joined_mark`).

use anyhow::{Result, bail};
use grammaton::data::corpus::{Options, Unit, clean};

/// Marks of single positions in annotated sentences; an empty one marks nothing.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PositionMarks {
    /// Where a segment ends for certain.
    pub boundary: String,
    /// Where none does.
    pub joined: String,
}

impl PositionMarks {
    /// Whether positions have marks.
    pub fn any(&self) -> bool {
        !self.boundary.is_empty() || !self.joined.is_empty()
    }

    /// What a symbol marks, if it is a mark.
    pub fn meaning(&self, symbol: &str) -> Option<bool> {
        match symbol {
            "" => None,
            mark if mark == self.boundary => Some(true),
            mark if mark == self.joined => Some(false),
            _ => None,
        }
    }

    /// Refuses marks that cannot be found in lines that are read by `options`.
    pub fn check(&self, options: &Options) -> Result<()> {
        let unit = options.effective_unit();
        for (key, mark) in [("boundary_mark", &self.boundary), ("joined_mark", &self.joined)] {
            let mut n_symbols = 0;
            clean::symbols(mark, unit, &options.cleaning.digraphs, |_| n_symbols += 1);
            if n_symbols > 1 || mark.contains(char::is_whitespace) {
                bail!(
                    "corpus.{key}: `{mark}` is no single symbol of the unit {}; choose one, as in \"+\"",
                    unit.name()
                );
            }
            if unit == Unit::Token && mark == unit.separators().1.trim() {
                bail!(
                    "corpus.{key}: `{mark}` separates the words of lines of tokens, whose positions are all known; choose another, as in \"+\""
                );
            }
            if !mark.is_empty() && options.cleaning.line(mark, unit) != *mark {
                bail!(
                    "corpus.{key}: the keys about cleaning change `{mark}` before it is read; choose a symbol that is no letter or \
                     punctuation, such as \"│\""
                );
            }
        }
        if self.any() && self.boundary == self.joined {
            bail!(
                "corpus.boundary_mark and corpus.joined_mark are both `{}`; choose different ones",
                self.boundary
            );
        }
        Ok(())
    }
}
