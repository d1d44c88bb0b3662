//! The segments and boundaries that the recommended decoder finds, as they grow line by line: what `lexicon.tsv` and `boundaries.tsv` have.

use std::path::Path;

use anyhow::Result;
use grammaton::data::corpus::{Corpus, Unit};
use grammaton::grammar::tree::Tree;
use grammaton::models::Model;
use grammaton::models::crf::Evidence;

use super::posterior::Probabilities;
use crate::boundary;
use crate::lexicon::{Entry, Lexicon, Segment};
use crate::model;
use crate::outcome::Lines;

/// Segments and boundaries of the lines so far.
pub struct Found<'a> {
    /// Names of the nonterminals whose constituents are segments.
    labels: Vec<&'a str>,
    unit: Unit,
    lexicon: Lexicon,
    /// The table of boundaries.
    boundaries: Lines,
}

impl<'a> Found<'a> {
    /// None yet, in lines of this unit; `header` has the columns of the table of boundaries. The file that a long table needs is made in `folder`.
    pub fn new(
        labels: Vec<&'a str>,
        unit: Unit,
        has_gold: bool,
        header: &'static str,
        folder: &Path,
    ) -> Result<Found<'a>> {
        let mut boundaries = Lines::new_in(folder);
        boundaries.push(header)?;
        Ok(Found { labels, unit, lexicon: Lexicon::new(unit.separators().1, has_gold), boundaries })
    }

    /// Adds the gold analyses of the sentence at a position of `corpus`, if it has any.
    pub fn gold(&mut self, corpus: &Corpus, at: usize) {
        let analyses = corpus.gold.iter().flat_map(|gold| &gold[at]);
        analyses.for_each(|ends| self.lexicon.add_gold(corpus.segments(at, ends)));
    }

    /// Adds the sentence at a position of `corpus`, whose segments end at `ends` and are constituents of `tree`, if there is one, with the
    /// probabilities of its segments, if they are known.
    pub fn sentence(
        &mut self,
        corpus: &Corpus,
        at: usize,
        ends: &[u32],
        tree: Option<&str>,
        probabilities: Option<&Probabilities>,
    ) -> Result<()> {
        let segments = corpus.segments(at, ends);
        let tree = tree.map(Tree::parse).transpose()?;
        let constituents = tree.as_ref().map(|tree| tree.segments(|label| self.labels.contains(&label)));
        let segment = |at: usize| Segment {
            text: &segments[at],
            category: constituents.as_ref().and_then(|found| found.get(at)?.1),
            share: probabilities.map(|found| found.segments[at]),
        };
        self.lexicon.add(&(0..segments.len()).map(segment).collect::<Vec<_>>());
        Ok(())
    }

    /// Adds the boundaries of a line that was trained on, whose segments end at `ends`, with their probabilities, and what the models found before something was
    /// learned, if something was.
    pub fn boundaries(
        &mut self,
        line: u32,
        ends: &[u32],
        probabilities: &Probabilities,
        evidence: Option<Evidence<'_>>,
    ) -> Result<()> {
        let found = evidence.map(|evidence| (evidence.shares, evidence.ends));
        let mut rows = boundary::rows(line, &probabilities.boundaries, ends, found);
        Ok(rows.try_for_each(|row| self.boundaries.push(&row))?)
    }

    /// The lexicon, with the probabilities of strings by `model`, and the table of boundaries.
    pub fn finish(self, model: &Model) -> (Vec<Entry>, Lines) {
        let entries = self.lexicon.entries(model::segment_weights(model, self.unit));
        (entries, self.boundaries)
    }
}
