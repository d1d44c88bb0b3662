//! The files of a decoded text as they grow: of each decoding the segmentation, the table and the trees, and what the recommended one finds.
//!
//! In: sentences as every decoding reads them, in the order of their lines. Their texts are made by all cores of this machine, and put into the files in order.

use std::ops::Range;
use std::path::Path;

use anyhow::Result;
use rayon::prelude::*;

use super::found::Found;
use super::sentence::{Reading, Sentence, TOGETHER};
use crate::outcome::{Decoding, Lines};
use crate::row::{Gaps, Row};

/// The files of a text.
pub struct Decodings<'a> {
    decodings: Vec<Decoding>,
    /// By decoding, whether it has trees.
    has_trees: Vec<bool>,
    /// What the recommended decoding finds, if there are segments.
    found: Option<Found<'a>>,
    gaps: Gaps,
}

/// Lines of a decoding, each with its end.
#[derive(Clone, Default)]
struct Texts {
    segmentations: String,
    table: String,
    trees: String,
}

impl<'a> Decodings<'a> {
    /// No lines yet, of decodings with these names, which have trees or not. The files that long texts need are made in `folder`.
    pub fn new(
        decodings: impl Iterator<Item = (&'static str, bool)>,
        found: Option<Found<'a>>,
        folder: &Path,
    ) -> Result<Decodings<'a>> {
        let decoding = |(name, has_trees)| -> Result<(Decoding, bool)> {
            let [segmentations, mut table, trees] = std::array::from_fn(|_| Lines::new_in(folder));
            table.push(Row::HEADER)?;
            Ok((Decoding { name, segmentations, table, trees }, has_trees))
        };
        let all: Vec<(Decoding, bool)> = decodings.map(decoding).collect::<Result<_>>()?;
        let (decodings, has_trees) = all.into_iter().unzip();
        Ok(Decodings { decodings, has_trees, found, gaps: Gaps::default() })
    }

    /// Adds the next sentences, after the empty lines before each.
    pub fn add(&mut self, sentences: &[Sentence<'_>]) -> Result<()> {
        let Decodings { decodings, has_trees, found, gaps } = self;
        let parts = sentences.chunks(TOGETHER).map(|part| {
            let after = Gaps::after(part[part.len() - 1].line());
            (part, std::mem::replace(gaps, after))
        });
        let parts: Vec<(&[Sentence<'_>], Gaps)> = parts.collect();
        let texts = |(part, mut gaps): (&[Sentence<'_>], Gaps)| {
            let mut texts = vec![Texts::default(); has_trees.len()];
            for sentence in part {
                add_empty(&mut texts, has_trees, gaps.before(sentence.line()));
                let gold = sentence.gold().map(|gold| sentence.corpus.analyses_line(sentence.at, gold));
                let of_decodings = texts.iter_mut().zip(&sentence.readings);
                of_decodings.for_each(|(texts, reading)| texts.add(sentence, reading, gold.as_deref()));
            }
            texts
        };
        let write = || {
            let texts: Vec<Vec<Texts>> = parts.into_par_iter().map(texts).collect();
            texts.iter().try_for_each(|texts| put(decodings, texts))
        };
        let (written, found) =
            rayon::join(write, || found.as_mut().map_or(Ok(()), |found| found.add(sentences)));
        written.and(found)
    }

    /// The decodings of all lines of a corpus, and what the recommended one finds.
    pub fn finish(mut self, n_lines: u32) -> Result<(Vec<Decoding>, Option<Found<'a>>)> {
        let mut texts = vec![Texts::default(); self.has_trees.len()];
        add_empty(&mut texts, &self.has_trees, self.gaps.before(n_lines + 1));
        put(&mut self.decodings, &texts)?;
        Ok((self.decodings, self.found))
    }
}

impl Texts {
    fn add(&mut self, sentence: &Sentence<'_>, reading: &Reading<'_>, gold: Option<&str>) {
        let segmentation = sentence.segmented(reading);
        let row = Row {
            line: sentence.line(),
            gold,
            predicted: reading.analysed.then_some(&segmentation),
            log_probability: reading.log_probability,
            status: sentence.status(reading),
        };
        add_line(&mut self.segmentations, &segmentation);
        add_line(&mut self.table, &row.to_string());
        reading.tree.into_iter().for_each(|tree| add_line(&mut self.trees, tree));
    }
}

/// Adds empty lines.
fn add_empty(texts: &mut [Texts], has_trees: &[bool], lines: Range<u32>) {
    for line in lines {
        for (texts, &has_trees) in texts.iter_mut().zip(has_trees) {
            add_line(&mut texts.segmentations, "");
            add_line(&mut texts.table, &Row::empty(line).to_string());
            if has_trees {
                add_line(&mut texts.trees, "");
            }
        }
    }
}

fn add_line(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}

/// Adds lines to the files.
fn put(decodings: &mut [Decoding], texts: &[Texts]) -> Result<()> {
    for (decoding, texts) in decodings.iter_mut().zip(texts) {
        decoding.segmentations.push_all(&texts.segmentations)?;
        decoding.table.push_all(&texts.table)?;
        decoding.trees.push_all(&texts.trees)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use grammaton::data::corpus::{Corpus, Options};

    use super::*;

    /// The file of these lines.
    fn text(lines: &mut Lines) -> String {
        let mut text = Vec::new();
        lines.copy_to(&mut text).unwrap();
        String::from_utf8(text).unwrap()
    }

    /// Law: the files have a line for each line of the text, in order, however many sentences are added together.
    #[test]
    fn files_do_not_depend_on_how_many_sentences_are_added_together() {
        let n_lines = 3 * TOGETHER as u32 + 5;
        let line = |at: u32| {
            if at.is_multiple_of(7) { String::new() } else { format!("a{} b", "c".repeat(at as usize % 5)) }
        };
        let lines: Vec<String> = (1..=n_lines).map(line).collect();
        let (corpus, _) = Corpus::read(lines.join("\n").as_bytes(), "text", &Options::default()).unwrap();
        let sentence = |at: usize| {
            let n = corpus.sentences[at].len() as u32;
            let found =
                Reading { tree: Some("(S x)"), log_probability: Some(-0.5), ..Reading::of(vec![1, n]) };
            Sentence {
                corpus: &corpus,
                at,
                place: (!at.is_multiple_of(11)).then_some(at),
                readings: vec![found, Reading::none(n, false)],
                best: 0,
                probabilities: None,
                evidence: None,
            }
        };
        let sentences: Vec<Sentence<'_>> = (0..corpus.sentences.len()).map(sentence).collect();
        let files = |together: usize| -> Vec<String> {
            let folder = tempfile::tempdir().unwrap();
            let names = [("viterbi", true), ("mbr", false)].into_iter();
            let mut decodings = Decodings::new(names, None, folder.path()).unwrap();
            sentences.chunks(together).for_each(|part| decodings.add(part).unwrap());
            let (decodings, _) = decodings.finish(n_lines).unwrap();
            let of = |Decoding { mut segmentations, mut table, mut trees, .. }| {
                [&mut segmentations, &mut table, &mut trees].map(text)
            };
            decodings.into_iter().flat_map(of).collect()
        };
        let all = files(sentences.len());
        let expected = |at: u32| match &lines[at as usize - 1][..] {
            "" => [format!("{at}\t\t\t\tempty"), String::new()],
            line => {
                let gold = line.trim_end();
                let (first, rest) = gold.split_at(1);
                let found = format!("{first} {}", rest.replace(' ', ""));
                let place = corpus.lines.binary_search(&at).unwrap();
                let status = if place.is_multiple_of(11) { "held out" } else { "ok" };
                [format!("{at}\t{gold}\t{found}\t-0.5\t{status}"), "(S x)".to_owned()]
            }
        };
        let rows: Vec<String> = (1..=n_lines).map(|at| expected(at)[0].clone()).collect();
        assert_eq!(all[1], format!("{}\n{}\n", Row::HEADER, rows.join("\n")));
        let trees: Vec<String> = (1..=n_lines).map(|at| expected(at)[1].clone()).collect();
        assert_eq!(all[2], trees.join("\n") + "\n");
        assert!(all[5].is_empty());
        assert_eq!(all[3].lines().count(), n_lines as usize);
        for together in [1, 2, TOGETHER - 1, TOGETHER + 1] {
            assert_eq!(files(together), all, "{together}");
        }
    }
}
