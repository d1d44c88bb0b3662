//! Notice of a collapsed level: most of the segments that were found are single symbols.

/// Number of segments below which there is no notice.
const MIN_SEGMENTS: u64 = 100;
/// Share of single symbols above which there is a notice.
const MAX_SHARE: f64 = 0.5;
/// Number of symbols above which a script writes more than single sounds, as syllables or morphemes; then words of one symbol are common, as in Chinese.
pub const MANY_SYMBOLS: usize = 200;

/// Counts of segments.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SegmentLengths {
    n_segments: u64,
    /// Number of segments of one symbol.
    n_single: u64,
}

impl SegmentLengths {
    /// Adds a sentence whose segments end at these positions.
    pub fn add(&mut self, ends: &[u32]) {
        let starts = std::iter::once(&0).chain(ends);
        self.n_segments += ends.len() as u64;
        self.n_single += starts.zip(ends).filter(|(start, end)| *end - *start == 1).count() as u64;
    }

    /// Returns a notice if most of these segments, which `decoder` found in a text of so many distinct symbols, are single symbols, and those of
    /// `gold`, if there is any, are not.
    pub fn notice(&self, decoder: &str, n_symbols: usize, gold: Option<SegmentLengths>) -> Option<String> {
        let share = self.share();
        let is_right = gold.is_some_and(|gold| gold.share() > share / 2.0);
        if self.n_segments < MIN_SEGMENTS || share <= MAX_SHARE || n_symbols > MANY_SYMBOLS || is_right {
            return None;
        }
        Some(format!(
            "{:.0} % of the segments that {decoder} finds are single symbols: the model has collapsed to the level of symbols; use grammar = \
             \"auto:colloc3-syllable\" with method = \"hastings\", as `grammaton segment` does, or \"auto:unigram\"",
            100.0 * share
        ))
    }

    fn share(&self) -> f64 {
        self.n_single as f64 / self.n_segments.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(sentences: &[&[u32]]) -> SegmentLengths {
        let mut lengths = SegmentLengths::default();
        (0..50).for_each(|_| sentences.iter().for_each(|ends| lengths.add(ends)));
        lengths
    }

    #[test]
    fn many_single_symbols_that_gold_lacks_are_reported() {
        let (single, mixed) = (of(&[&[1, 2, 3], &[1, 4]]), of(&[&[1, 3], &[4]]));
        assert_eq!((single.n_segments, single.n_single), (250, 200));
        let notice = single.notice("viterbi", 30, Some(mixed)).unwrap();
        assert!(notice.starts_with("80 % of the segments that viterbi finds are single symbols"), "{notice}");
        assert_eq!(mixed.notice("viterbi", 30, None), None);
        assert_eq!(single.notice("viterbi", 3000, None), None, "a script of syllables");
        assert_eq!(single.notice("viterbi", 30, Some(single)), None, "gold has them as well");
        assert_eq!(SegmentLengths::default().notice("viterbi", 30, None), None);
    }
}
