//! A finished result of a job on text, read back from its folder: its sentences as they are segmented, and how probable each boundary is.
//!
//! In: the job, the recommended segmentation and `boundaries.tsv` of a folder of results. Out: the sentences that were trained on, in the order of the
//! text, each with the probabilities of its boundaries.

use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};
use grammaton::data::corpus::{Cleaning, Corpus, Format, Layout, Options};
use rustc_hash::FxHashMap;

use crate::boundary::{Boundary, BoundaryRow};
use crate::input;
use crate::job::{Job, PositionMarks};
use crate::metrics::recommended;
use crate::output::{self, JOB, SUMMARY};

/// The text of a folder of results.
#[derive(Clone)]
pub struct Segmented {
    /// How the job reads its files.
    pub options: Options,
    /// Its marks of single positions in annotated lines.
    pub marks: PositionMarks,
    /// The text as it is segmented: its gold is the printed segmentation.
    pub corpus: Corpus,
    /// The sentences that have boundaries to be unsure of, in the order of the text.
    pub sentences: Vec<Sentence>,
    /// The first position in the corpus of each distinct sentence.
    first: FxHashMap<Vec<u32>, usize>,
}

/// A sentence of two symbols or more that was trained on.
#[derive(Clone, Default)]
pub struct Sentence {
    /// Its position in the corpus.
    pub at: usize,
    /// The probability of a boundary at each position between symbols.
    pub probabilities: Vec<f64>,
    /// What the models found before anything was learned from annotated lines: the share of each boundary.
    pub shares: Vec<f64>,
    /// Likewise the ends of the segments, ascending, the last one the length of the sentence.
    pub ends: Vec<u32>,
}

impl Segmented {
    /// Reads the result in the folder `dir`.
    ///
    /// # Errors
    /// A folder without a finished result, one without probabilities of boundaries, and files that do not belong together.
    pub fn read(dir: &Path) -> Result<Segmented> {
        check_finished(dir)?;
        let name = dir.display();
        let boundaries = dir.join(output::BOUNDARIES);
        ensure!(
            boundaries.exists(),
            "{name}: no probabilities of boundaries ({}); give results of a job with segments (output.segments), and train again if an earlier \
             version wrote them",
            output::BOUNDARIES
        );
        let job = Job::load(&dir.join(JOB), &[])?;
        let Printed { corpus, .. } = Printed::read(dir, &job)?;
        let mut by_line = self::boundaries(&boundaries)?;
        let mut sentences = Vec::new();
        for (at, line) in corpus.lines.iter().enumerate() {
            let Some(rows) = by_line.remove(line) else { continue };
            let n = corpus.sentences[at].len();
            ensure!(
                rows.len() + 1 == n,
                "{}: line {line} of the text has {} symbols, and {} positions here; train once more",
                boundaries.display(),
                n,
                rows.len()
            );
            let ends = rows.iter().filter(|row| row.is_found).map(|row| row.boundary.position);
            sentences.push(Sentence {
                at,
                ends: ends.chain([n as u32]).collect(),
                probabilities: rows.iter().map(|row| row.boundary.probability).collect(),
                shares: rows.iter().map(|row| row.share).collect(),
            });
        }
        if let Some(line) = by_line.keys().min() {
            bail!("{}: line {line} is not in the text; train once more", boundaries.display());
        }
        Ok(Segmented::new(job.corpus.options(), job.corpus.position_marks(), corpus, sentences))
    }

    /// A text that is read by `options`, with the `sentences` that were trained on.
    pub fn new(
        options: Options,
        marks: PositionMarks,
        corpus: Corpus,
        sentences: Vec<Sentence>,
    ) -> Segmented {
        let mut first = FxHashMap::default();
        for (at, symbols) in corpus.sentences.iter().enumerate().rev() {
            first.insert(symbols.clone(), at);
        }
        Segmented { options, marks, corpus, sentences, first }
    }

    /// The first position in the corpus of a sentence, if the text has it.
    pub fn first(&self, symbols: &[u32]) -> Option<usize> {
        self.first.get(symbols).copied()
    }

    /// The symbols of a sentence.
    pub fn symbols(&self, sentence: &Sentence) -> &Vec<u32> {
        &self.corpus.sentences[sentence.at]
    }

    /// All sentences that were trained on: their positions in the corpus, and the sentences that have boundaries to be unsure of, which those of one symbol lack.
    pub fn trained_on(&self) -> impl Iterator<Item = (usize, Option<&Sentence>)> {
        let mut listed = self.sentences.iter().peekable();
        let all = self.corpus.sentences.iter().enumerate();
        all.filter_map(move |(at, symbols)| {
            let sentence = listed.next_if(|sentence| sentence.at == at);
            (sentence.is_some() || symbols.len() == 1).then_some((at, sentence))
        })
    }

    /// A sentence as it is segmented.
    pub fn line(&self, sentence: &Sentence) -> String {
        self.line_at(sentence.at)
    }

    fn line_at(&self, at: usize) -> String {
        let whole = || self.corpus.line(at, &[self.corpus.sentences[at].len() as u32]);
        self.corpus.gold_line(at).unwrap_or_else(whole)
    }

    /// The text as it is segmented, with its empty lines but for those at its end.
    pub fn lines(&self) -> String {
        let mut written = String::new();
        let mut n = 1;
        for (at, &line) in self.corpus.lines.iter().enumerate() {
            (n..line).for_each(|_| written.push('\n'));
            written += &self.line_at(at);
            written.push('\n');
            n = line + 1;
        }
        written
    }
}

/// Refuses a folder without a finished result.
pub fn check_finished(dir: &Path) -> Result<()> {
    ensure!(
        dir.join(SUMMARY).exists(),
        "{}: no finished result ({SUMMARY}); give a folder that grammaton segment, morphemes or train has written",
        dir.display()
    );
    Ok(())
}

/// The recommended segmentation in a folder of results.
pub struct Printed {
    /// The decoder.
    pub decoder: &'static str,
    /// How its lines are read.
    pub options: Options,
    /// What it has, as gold.
    pub corpus: Corpus,
}

impl Printed {
    /// Reads it from the folder `dir` of a job.
    pub fn read(dir: &Path, job: &Job) -> Result<Printed> {
        let decoders = output::decoders().filter(|decoder| dir.join(output::segmentation(decoder)).exists());
        let Some(decoder) = recommended(decoders) else {
            bail!(
                "{}: no segmentation of a text; give results of a job with segments (output.segments)",
                dir.display()
            )
        };
        let options = printed_options(job);
        let (corpus, _) = input::corpus(&dir.join(output::segmentation(decoder)), &options)?;
        Ok(Printed { decoder, options, corpus })
    }
}

/// How segmented lines of a job's results are read.
pub fn printed_options(job: &Job) -> Options {
    let options = job.corpus.options();
    Options {
        format: Format::Segmented,
        unit: options.effective_unit(),
        layout: Layout::default(),
        cleaning: Cleaning { digraphs: options.cleaning.digraphs, ..Cleaning::default() },
        ..options
    }
}

/// The rows of the table of boundaries at `path`, by the number of the line.
pub fn boundaries(path: &Path) -> Result<FxHashMap<u32, Vec<BoundaryRow>>> {
    let name = path.display().to_string();
    by_line(&input::text(path, &name, "boundaries")?).context(name)
}

/// Rows by the number of the line.
fn by_line(table: &str) -> Result<FxHashMap<u32, Vec<BoundaryRow>>> {
    let mut found: FxHashMap<u32, Vec<BoundaryRow>> = FxHashMap::default();
    let mut rows = table.lines();
    let header = rows.next().unwrap_or_default();
    ensure!(
        [Boundary::HEADER, BoundaryRow::HEADER].contains(&header),
        "line 1: expected the columns {:?}, found {header:?}",
        Boundary::HEADER
    );
    for (row, n) in rows.zip(2..) {
        let row: BoundaryRow = row.parse().with_context(|| format!("line {n}: {row:?}"))?;
        let (position, of_line) = (row.boundary.position, found.entry(row.boundary.line).or_default());
        of_line.push(row);
        ensure!(
            position as usize == of_line.len(),
            "line {n}: expected position {}, found {position}; positions of a line ascend from 1",
            of_line.len()
        );
    }
    Ok(found)
}
