//! What answers take in memory until they are taken in.

use super::{Annotated, Answer, Candidates, Chained, Collapsed, Expectation, Fitted, Index, Sampled};
use crate::models::decode::Decoded;
use crate::models::logistic_normal::Statistics;
use crate::models::tally::Analysis;

impl Answer {
    /// Bytes on the heap, but for what a shard carries, which stays.
    pub fn size(&self) -> usize {
        match self {
            Answer::Candidates(Candidates { symbols, strings, expected, unparsable }) => {
                flat(symbols) + strings.size() + flat(expected) + flat(unparsable)
            }
            Answer::Missing(missing) => rows(missing, |(_, string)| flat(string)),
            Answer::Index(Index { params, unparsable }) => flat(params) + flat(unparsable),
            Answer::Expectation(expectation) | Answer::Collapsed(Collapsed { expectation, .. }) => {
                expectation.size()
            }
            Answer::Sampled(Sampled { counts, analyses, missing }) => {
                flat(counts) + rows(analyses, Analysis::size) + flat(missing)
            }
            Answer::Chained(Chained { uses, strings, analyses, .. }) => {
                flat(uses) + rows(strings, |uses| flat(&uses.string)) + rows(analyses, Analysis::size)
            }
            Answer::Decoded(decoded) => rows(decoded, |Decoded { segmentations, trees, .. }| {
                rows(segmentations, |ends| flat(ends)) + rows(trees, String::len)
            }),
            Answer::Annotated(Annotated { expectation, .. }) => flat(&expectation.counts),
            Answer::Fitted(Fitted::Statistics(Statistics { moments, parts, .. })) => {
                let of = rows(moments, |of| flat(&of.first) + flat(&of.second) + flat(&of.variance));
                of + flat(parts)
            }
            Answer::Fitted(Fitted::Unbounded { .. }) => 0,
        }
    }
}

impl Expectation {
    fn size(&self) -> usize {
        flat(&self.counts) + flat(&self.losses) + flat(&self.log_z_items) + flat(&self.missing)
    }
}

impl Analysis {
    fn size(&self) -> usize {
        flat(&self.ends) + self.tree.len()
    }
}

fn flat<T>(values: &[T]) -> usize {
    size_of_val(values)
}

/// Of values that hold more each.
fn rows<T>(values: &[T], more: impl Fn(&T) -> usize) -> usize {
    flat(values) + values.iter().map(more).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grammar::ParamId;
    use crate::grammar::SymbolId;

    #[test]
    fn what_is_held_counts() {
        let counts =
            Expectation { counts: vec![0.0; 5], missing: vec![ParamId(3)], ..Expectation::default() };
        assert_eq!(Answer::Expectation(counts).size(), 44);
        let strings = [vec![SymbolId(1); 7], vec![SymbolId(2)]];
        let missing = strings.map(|string| (SymbolId(0), string)).to_vec();
        assert_eq!(Answer::Missing(missing).size(), 2 * size_of::<(SymbolId, Vec<SymbolId>)>() + 32);
    }
}
