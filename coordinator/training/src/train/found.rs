//! The segments and boundaries that the recommended decoder finds, as they grow line by line: what `lexicon.tsv` and `boundaries.tsv` have.

use std::path::Path;

use anyhow::Result;
use grammaton::data::corpus::Unit;
use grammaton::grammar::tree::Tree;
use grammaton::models::Model;
use rayon::prelude::*;

use super::sentence::{Reading, Sentence, TOGETHER};
use crate::boundary;
use crate::lexicon::{Entry, Lexicon, Segment};
use crate::model;
use crate::outcome::Lines;

/// Segments and boundaries of the lines so far.
pub struct Found<'a> {
    /// Names of the nonterminals whose constituents are segments.
    labels: &'a [&'a str],
    unit: Unit,
    lexicon: Lexicon,
    /// The table of boundaries.
    boundaries: Lines,
}

/// What some sentences add.
struct Part<'a> {
    /// By sentence.
    segments: Vec<Vec<Segment<'a>>>,
    /// Segments of all gold analyses.
    gold: Vec<String>,
    /// Rows of the table.
    boundaries: String,
}

impl<'a> Found<'a> {
    /// None yet, in lines of this unit; `header` has the columns of the table of boundaries. The file that a long table needs is made
    /// in `folder`.
    pub fn new(
        labels: &'a [&'a str],
        unit: Unit,
        has_gold: bool,
        header: &'static str,
        folder: &Path,
    ) -> Result<Found<'a>> {
        let mut boundaries = Lines::new_in(folder);
        boundaries.push(header)?;
        let lexicon = Lexicon::new(unit.separators().1, has_gold);
        Ok(Found { labels, unit, lexicon, boundaries })
    }

    /// Adds the next sentences: their gold analyses, if they have any, the segments of those that are analysed, which are constituents of their trees if there are trees,
    /// and the boundaries of those that were trained on, with their probabilities, if these are known.
    pub fn add(&mut self, sentences: &[Sentence<'_>]) -> Result<()> {
        let parts = sentences.par_chunks(TOGETHER).map(|part| self.part(part));
        for Part { segments, gold, boundaries } in parts.collect::<Result<Vec<_>>>()? {
            segments.iter().for_each(|line| self.lexicon.add(line));
            self.lexicon.add_gold(gold);
            self.boundaries.push_all(&boundaries)?;
        }
        Ok(())
    }

    fn part(&self, sentences: &[Sentence<'_>]) -> Result<Part<'a>> {
        let gold = sentences.iter().flat_map(|sentence| {
            let analyses = sentence.gold().into_iter().flatten();
            analyses.flat_map(|ends| sentence.corpus.segments(sentence.at, ends))
        });
        Ok(Part {
            segments: sentences.iter().map(|sentence| self.segments(sentence)).collect::<Result<_>>()?,
            gold: gold.collect(),
            boundaries: self.rows(sentences),
        })
    }

    fn segments(&self, sentence: &Sentence<'_>) -> Result<Vec<Segment<'a>>> {
        let Sentence { corpus, at, probabilities, .. } = sentence;
        let Reading { ends, tree, analysed, .. } = sentence.best();
        if !analysed {
            return Ok(Vec::new());
        }
        let tree = tree.map(Tree::parse).transpose()?;
        let label = |name: &str| self.labels.iter().copied().find(|label| *label == name);
        let constituents = tree.as_ref().map(|tree| tree.segments(|name| label(name).is_some()));
        let category = |at: usize| label(constituents.as_ref()?.get(at)?.1?);
        let segment = |(at, text): (usize, String)| Segment {
            text,
            category: category(at),
            share: probabilities.as_ref().map(|found| found.segments[at]),
        };
        Ok(corpus.segments(*at, ends).into_iter().enumerate().map(segment).collect())
    }

    /// Rows of the table.
    fn rows(&self, sentences: &[Sentence<'_>]) -> String {
        let mut rows = String::new();
        for sentence in sentences.iter().filter(|sentence| sentence.place.is_some()) {
            let Reading { ends, analysed, .. } = sentence.best();
            if let Some(probabilities) = sentence.probabilities.as_ref().filter(|_| *analysed) {
                let found = sentence.evidence.map(|evidence| (evidence.shares, evidence.ends));
                rows += &boundary::rows(sentence.line(), &probabilities.boundaries, ends, found);
            }
        }
        rows
    }

    /// The lexicon, with the probabilities of strings by `model`, and the table of boundaries.
    pub fn finish(self, model: &Model) -> (Vec<Entry>, Lines) {
        let entries = self.lexicon.entries(model::segment_weights(model, self.unit));
        (entries, self.boundaries)
    }
}
