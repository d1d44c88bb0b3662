//! A finished result of a job on text, read back from its folder: its sentences as they are segmented, and how probable each boundary is.
//!
//! In: the job, the recommended segmentation and `boundaries.tsv` of a folder of results. Out: the sentences that were trained on, in the order of the
//! text, each with the probabilities of its boundaries.

use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};
use grammaton::data::corpus::{Cleaning, Corpus, Format, Layout, Options};
use rustc_hash::FxHashMap;

use crate::boundary::Boundary;
use crate::input;
use crate::job::Job;
use crate::metrics::recommended;
use crate::output::{self, JOB, SUMMARY};

/// The text of a folder of results.
pub struct Segmented {
    /// The text as it is segmented: its gold is the printed segmentation.
    pub corpus: Corpus,
    /// The sentences that have boundaries to be unsure of, in the order of the text.
    pub sentences: Vec<Sentence>,
}

/// A sentence of two symbols or more that was trained on.
pub struct Sentence {
    /// Its position in the corpus.
    pub at: usize,
    /// The probability of a boundary at each position between symbols.
    pub probabilities: Vec<f64>,
}

impl Segmented {
    /// Reads the result in the folder `dir`.
    ///
    /// # Errors
    /// A folder without a finished result, one without probabilities of boundaries, and files that do not belong together.
    pub fn read(dir: &Path) -> Result<Segmented> {
        let name = dir.display();
        ensure!(
            dir.join(SUMMARY).exists(),
            "{name}: no finished result ({SUMMARY}); give a folder that grammaton segment, morphemes or train has written"
        );
        let boundaries = dir.join(output::BOUNDARIES);
        ensure!(
            boundaries.exists(),
            "{name}: no probabilities of boundaries ({}), which results of vb and em lack; train with grammaton segment or morphemes, with \
             inference.method = \"hastings\" or \"gibbs\", or with corpus.annotated",
            output::BOUNDARIES
        );
        let job = Job::load(&dir.join(JOB), &[])?;
        let corpus = printed(dir, &job)?;
        let text = input::text(&boundaries, &boundaries.display().to_string(), "boundaries")?;
        let mut by_line = by_line(&text).with_context(|| boundaries.display().to_string())?;
        let mut sentences = Vec::new();
        for (at, line) in corpus.lines.iter().enumerate() {
            let Some(probabilities) = by_line.remove(line) else { continue };
            ensure!(
                probabilities.len() + 1 == corpus.sentences[at].len(),
                "{}: line {line} of the text has {} symbols, and {} positions here; train once more",
                boundaries.display(),
                corpus.sentences[at].len(),
                probabilities.len()
            );
            sentences.push(Sentence { at, probabilities });
        }
        if let Some(line) = by_line.keys().min() {
            bail!("{}: line {line} is not in the text; train once more", boundaries.display());
        }
        Ok(Segmented { corpus, sentences })
    }

    /// A sentence as it is segmented.
    pub fn line(&self, sentence: &Sentence) -> String {
        let whole = || self.corpus.line(sentence.at, &[self.corpus.sentences[sentence.at].len() as u32]);
        self.corpus.gold_line(sentence.at).unwrap_or_else(whole)
    }
}

/// The recommended segmentation in the folder `dir`.
fn printed(dir: &Path, job: &Job) -> Result<Corpus> {
    let decoders = output::decoders().filter(|decoder| dir.join(output::segmentation(decoder)).exists());
    let Some(decoder) = recommended(decoders) else {
        bail!(
            "{}: no segmentation of a text; give results of a job with segments (output.segments)",
            dir.display()
        )
    };
    let options = job.corpus.options();
    let options = Options {
        format: Format::Segmented,
        unit: options.effective_unit(),
        layout: Layout::default(),
        cleaning: Cleaning { digraphs: options.cleaning.digraphs, ..Cleaning::default() },
        ..options
    };
    Ok(input::corpus(&dir.join(output::segmentation(decoder)), &options)?.0)
}

/// Probabilities by the number of the line.
fn by_line(table: &str) -> Result<FxHashMap<u32, Vec<f64>>> {
    let mut found: FxHashMap<u32, Vec<f64>> = FxHashMap::default();
    let mut rows = table.lines();
    ensure!(rows.next() == Some(Boundary::HEADER), "line 1: expected the columns {:?}", Boundary::HEADER);
    for (row, n) in rows.zip(2..) {
        let boundary: Boundary = row.parse().with_context(|| format!("line {n}: {row:?}"))?;
        let probabilities = found.entry(boundary.line).or_default();
        probabilities.push(boundary.probability);
        ensure!(
            boundary.position as usize == probabilities.len(),
            "line {n}: expected position {}, found {}; positions of a line ascend from 1",
            probabilities.len(),
            boundary.position
        );
    }
    Ok(found)
}
