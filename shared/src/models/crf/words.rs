//! Features of a segment as a whole: its length, and how often its string is a segment elsewhere.
//!
//! In: the segmentation that models find in all sentences, and what is known of annotated ones. Out: for each span of a sentence a [`Word`].

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Known;

/// Weights of a segment's features.
pub const N_FEATURES: usize = LENGTHS + 6;
/// Lengths that have a feature of their own, and all longer ones the last.
const LENGTHS: usize = 8;
/// Weight of what the count says, whose logarithm is larger than other features.
const HALF: f64 = 0.5;

/// Strings that are segments, with the number of times that models find them and that they are annotated.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Words(BTreeMap<Vec<u32>, [u32; 2]>);

/// How often a string is a segment.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Word {
    /// ln(1 + n)/2 of the number n of times that models find it.
    found: f64,
    /// ln(1 + n) of the number n of times that it is annotated in other sentences.
    annotated: f64,
}

impl Words {
    /// The segments of sentences of symbols, which end at these positions.
    pub fn found<'a>(sentences: impl IntoIterator<Item = (&'a [u32], &'a [u32])>) -> Words {
        let mut words = Words::default();
        for (symbols, ends) in sentences {
            let starts = std::iter::once(&0).chain(ends);
            starts.zip(ends).for_each(|(&start, &end)| words.add(&symbols[start as usize..end as usize], 0));
        }
        words
    }

    /// Adds the segments of a sentence that are annotated.
    pub fn annotate(&mut self, symbols: &[u32], known: &Known) {
        known_segments(symbols, known).for_each(|string| self.add(string, 1));
    }

    fn add(&mut self, string: &[u32], which: usize) {
        match self.0.get_mut(string) {
            Some(counts) => counts[which] = counts[which].saturating_add(1),
            None => {
                let mut counts = [0; 2];
                counts[which] = 1;
                self.0.insert(string.to_vec(), counts);
            }
        }
    }

    /// The spans of a sentence up to a longest one, by start and then by length. If it is annotated with `own`, that does not count.
    pub fn spans(&self, symbols: &[u32], longest: usize, own: Option<&Known>) -> Vec<Vec<Word>> {
        let own: Vec<&[u32]> = own.map_or_else(Vec::new, |known| known_segments(symbols, known).collect());
        let word = |string: &[u32]| {
            let [found, annotated] = self.0.get(string).copied().unwrap_or_default();
            let n_own = own.iter().filter(|segment| **segment == string).count() as u32;
            let [found, annotated] =
                [found, annotated - n_own.min(annotated)].map(|n| libm::log1p(f64::from(n)));
            Word { found: HALF * found, annotated }
        };
        let of_start = |start: usize| {
            let ends = start + 1..=symbols.len().min(start + longest);
            ends.map(|end| word(&symbols[start..end])).collect()
        };
        (0..symbols.len()).map(of_start).collect()
    }
}

impl Word {
    /// Its features as a segment of so many symbols, by number, with their values.
    pub fn features(&self, length: usize) -> [(usize, f64); 7] {
        let is = |condition: bool| f64::from(u8::from(condition));
        let is_annotated = self.annotated > 0.0;
        [
            (length.min(LENGTHS) - 1, 1.0),
            (LENGTHS, self.found),
            (LENGTHS + 1, is(self.found == 0.0)),
            (LENGTHS + 2, is(is_annotated)),
            (LENGTHS + 3, self.annotated),
            (LENGTHS + 4, is(is_annotated && length > 1)),
            (LENGTHS + 5, is(is_annotated && length > 2)),
        ]
    }
}

/// The segments of a sentence whose edges are known, and that none ends inside.
fn known_segments<'a>(symbols: &'a [u32], known: &'a Known) -> impl Iterator<Item = &'a [u32]> {
    let n = symbols.len();
    let is_end = move |at: usize| at == 0 || at == n || known[at - 1] == Some(true);
    (0..n).filter(move |&start| is_end(start)).filter_map(move |start| {
        let end = (start + 1..=n).find(|&at| at == n || known[at - 1] != Some(false))?;
        is_end(end).then(|| &symbols[start..end])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_counted_where_they_are_segments() {
        let mut words = Words::found([(&[1, 2, 3][..], &[1, 3][..]), (&[2, 3][..], &[2][..])]);
        assert_eq!(words.0.get(&[2, 3][..]), Some(&[2, 0]));
        // Of the second edge nothing is known, so that no segment is.
        words.annotate(&[1, 2, 3, 1], &vec![Some(true), None, Some(true)]);
        assert_eq!(words.0.get(&[1][..]), Some(&[1, 2]));
        assert_eq!(words.0.len(), 2);
        let known = vec![Some(true), Some(false)];
        words.annotate(&[1, 2, 3], &known);
        let annotated = |own: Option<&Known>| words.spans(&[1, 2, 3], 2, own)[1][1].annotated;
        assert_eq!([annotated(None), annotated(Some(&known))], [libm::log1p(1.0), 0.0]);
        assert_eq!(words.spans(&[1, 2, 3], 2, None).iter().map(Vec::len).collect::<Vec<_>>(), [2, 2, 1]);
    }
}
