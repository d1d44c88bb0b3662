//! Results of several runs on the same text, beside each other.
//!
//! In: folders of results with a segmentation, and gold, from these or from a file. Out: a [`Comparison`]: what differs in their settings, their scores with
//! intervals and a paired test, how far they agree, the lines that differ, and the words of which one has more than the other; as text ([`text`]), as a page
//! ([`page`]) and as tables ([`tables`]).
//!
//! Lines that some run has not analysed are left out. Scored are the lines that every run has trained on and has not learned from, so that a run
//! with annotated lines has no advantage on these.
//!
//! Law: runs of different texts are refused at the first difference. A run compared with itself differs in nothing.

pub mod page;
mod reading;
pub mod scores;
pub mod tables;
pub mod text;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Result, bail, ensure};
use grammaton::data::corpus::{Analyses, Corpus};
use grammaton::data::eval::comparison::{self, n_differing};
use grammaton::data::eval::segmentation::{SegmentationScores, check_text, score};
use serde::Serialize;

use crate::metrics::{Summary, score_text};
use reading::Read;
use scores::label;

/// Number of resamples of the bootstrap.
pub const RESAMPLES: u32 = 10_000;
/// Seed of the bootstrap.
pub const SEED: u64 = 1;

/// Runs beside each other.
pub struct Comparison {
    /// In the order in which they were given; the first is compared with each of the others.
    pub runs: Vec<Run>,
    /// Settings that are not the same in all runs.
    pub settings: Vec<Setting>,
    /// Scores against gold, if there is any.
    pub scored: Option<comparison::Comparison>,
    /// By run but the first: its scores if the first were gold.
    pub agreement: Vec<SegmentationScores>,
    /// Number of lines that all runs have analysed.
    pub n_lines: usize,
    /// Those of them that are not segmented alike, the most different first.
    pub lines: Vec<Line>,
    /// Words of which some run has more than another, the largest difference first.
    pub words: Vec<Word>,
    /// What there is to know.
    pub notices: Vec<String>,
}

/// A run.
pub struct Run {
    /// Folder of its results, as it was given.
    pub folder: String,
    /// The decoder whose segmentation is compared.
    pub decoder: &'static str,
    /// Its summary.
    pub summary: Summary,
    /// Number of words in the lines that are compared.
    pub n_tokens: u64,
    /// Number of distinct words in them.
    pub n_types: u64,
}

/// A key of the job file with its values by run, `None` where the run has no such key.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Setting {
    /// As in `inference.seed`.
    pub key: String,
    /// As in the job file.
    pub values: Vec<Option<String>>,
}

/// A line that is not segmented alike in all runs.
#[derive(Clone, PartialEq, Debug)]
pub struct Line {
    /// Number of the line in the text, from 1.
    pub line: u32,
    /// Number of positions at which some runs have a boundary and others have not.
    pub differing: u32,
    /// Its gold segmentations; none without gold.
    pub gold: Vec<Segments>,
    /// By run.
    pub segmentations: Vec<Segments>,
}

/// A segmentation of a line.
#[derive(Clone, PartialEq, Debug)]
pub struct Segments {
    /// The line as it is printed.
    pub line: String,
    /// Its segments, each with its end position.
    pub segments: Vec<(String, u32)>,
}

/// A word and the number of its occurrences by run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Word {
    /// As it is printed.
    pub word: String,
    /// By run.
    pub counts: Vec<u64>,
    /// Whether the gold segmentation has it, if there is one.
    pub in_gold: Option<bool>,
}

/// Compares the runs in `folders`. Gold is that of the file `against`, or else that of the runs.
///
/// # Errors
/// Fewer than two runs or more than 26, folders without a finished result, results without segments, different texts or units, and different gold.
pub fn compare(folders: &[PathBuf], against: Option<&Path>) -> Result<Comparison> {
    ensure!(
        (2..=26).contains(&folders.len()),
        "give 2 to 26 folders of results to compare, found {}",
        folders.len()
    );
    let mut read: Vec<Read> = folders.iter().map(|folder| Read::of(folder)).collect::<Result<_>>()?;
    let mut notices: Vec<String> = read.iter_mut().flat_map(|run| std::mem::take(&mut run.notices)).collect();
    for other in 1..read.len() {
        let (first, others) = read.split_at_mut(other);
        notices.extend(same_text(&mut first[0], &mut others[0])?);
    }
    let gold = gold(&read, against)?;
    let first = &read[0];
    let n = first.corpus.sentences.len();
    let is_compared = |at: &usize| read.iter().all(|run| run.analysed[*at]);
    let compared: Vec<usize> = (0..n).filter(is_compared).collect();
    ensure!(!compared.is_empty(), "no line is analysed by all runs, so that there is nothing to compare");
    if compared.len() < n {
        notices.push(format!(
            "{} lines are left out, since some run has no analysis of them",
            n - compared.len()
        ));
    }
    let is_annotated = |at: &usize| read.iter().any(|run| run.annotated[*at]);
    let is_trained = |at: &usize| read.iter().all(|run| run.trained[*at]);
    let is_gold = |at: &usize| gold.as_ref().is_some_and(|gold| !gold[*at].is_empty());
    let n_annotated = compared.iter().filter(|at| is_annotated(at) && is_gold(at)).count();
    if n_annotated > 0 {
        notices.push(format!("{n_annotated} lines are not scored, since some run has learned from them"));
    }
    let scored: Vec<usize> =
        compared.iter().copied().filter(|at| is_gold(at) && is_trained(at) && !is_annotated(at)).collect();
    let pick = |all: &[Vec<u32>], places: &[usize]| -> Vec<Vec<u32>> {
        places.iter().map(|&at| all[at].clone()).collect()
    };
    let outputs =
        |places: &[usize]| -> Vec<Vec<Vec<u32>>> { read.iter().map(|run| pick(&run.ends, places)).collect() };
    let comparison = gold.as_ref().filter(|_| !scored.is_empty()).map(|gold| {
        let golds: Vec<Analyses> = scored.iter().map(|&at| gold[at].clone()).collect();
        let outputs = outputs(&scored);
        let outputs: Vec<&[Vec<u32>]> = outputs.iter().map(Vec::as_slice).collect();
        comparison::compare(&pick(&first.corpus.sentences, &scored), &golds, &outputs, RESAMPLES, SEED)
    });
    let (sentences, ends) = (pick(&first.corpus.sentences, &compared), outputs(&compared));
    let agreement = ends[1..].iter().map(|other| score(&sentences, &ends[0], other)).collect();
    let all_gold = gold.as_deref();
    let words = words(&first.corpus, &compared, &read, all_gold);
    let n_tokens = |run: usize| ends[run].iter().map(|ends| ends.len() as u64).sum();
    let n_types = |run: usize| words.iter().filter(|word| word.counts[run] > 0).count() as u64;
    let [n_tokens, n_types]: [Vec<u64>; 2] =
        [(0..read.len()).map(n_tokens).collect(), (0..read.len()).map(n_types).collect()];
    Ok(Comparison {
        settings: settings(&read),
        scored: comparison,
        agreement,
        n_lines: compared.len(),
        lines: lines(&first.corpus, &compared, &read, all_gold),
        words: words.into_iter().filter(|word| spread(word) > 0).collect(),
        notices,
        runs: read
            .into_iter()
            .enumerate()
            .map(|(at, run)| Run {
                folder: run.folder,
                decoder: run.decoder,
                summary: run.summary,
                n_tokens: n_tokens[at],
                n_types: n_types[at],
            })
            .collect(),
    })
}

/// Refuses a run of another text. Sentences behind the text, which were added to it because they are annotated, are taken away; a notice says so.
fn same_text(first: &mut Read, other: &mut Read) -> Result<Option<String>> {
    let [a, b] = [first.corpus.unit, other.corpus.unit].map(|unit| unit.name());
    if a != b {
        bail!("{}: its symbols are of the unit {b}, those of {} of the unit {a}", other.folder, first.folder);
    }
    let n = first.corpus.sentences.len().min(other.corpus.sentences.len());
    let mut notice = None;
    for run in [&mut *first, &mut *other] {
        let more = run.corpus.sentences.len() - n;
        if more > 0 && run.annotated[n..].iter().all(|is| *is) {
            run.truncate(n);
            notice = Some(format!(
                "{}: {more} annotated lines that the other text lacks are left out",
                run.folder
            ));
        }
    }
    check_text(&first.corpus, &other.corpus)?;
    Ok(notice)
}

/// The gold analyses of each line: those of the file `against`, or else of the first run that has any, which those of other runs may not contradict.
fn gold(read: &[Read], against: Option<&Path>) -> Result<Option<Vec<Analyses>>> {
    if let Some(path) = against {
        return read[0].said(path).map(Some);
    }
    let mut with_gold = read.iter().filter_map(|run| Some((run, run.gold.as_ref()?)));
    let Some((first, gold)) = with_gold.next() else { return Ok(None) };
    for (run, other) in with_gold {
        let differs = |at: &usize| {
            let (one, other) = (&gold[*at], &other[*at]);
            !one.is_empty() && !other.is_empty() && one != other
        };
        if let Some(at) = (0..other.len().min(gold.len())).find(differs) {
            let line = |analyses: &Analyses| read[0].corpus.analyses_line(at, analyses);
            bail!(
                "{}: the gold segmentation of line {} is `{}`, but `{}` in {}; choose one with --against FILE",
                run.folder,
                run.corpus.lines[at],
                line(&other[at]),
                line(&gold[at]),
                first.folder
            );
        }
    }
    Ok(Some(gold[..gold.len().min(read[0].corpus.sentences.len())].to_vec()))
}

/// The keys of the job files that differ. Paths of text and results are left out: the text is the same.
fn settings(read: &[Read]) -> Vec<Setting> {
    let mut keys: BTreeMap<&String, Vec<Option<String>>> = BTreeMap::new();
    for (at, run) in read.iter().enumerate() {
        for (key, value) in &run.settings {
            keys.entry(key).or_insert_with(|| vec![None; read.len()])[at] = Some(value.clone());
        }
    }
    keys.into_iter()
        .filter(|(key, _)| !["corpus.path", "output.dir"].contains(&key.as_str()))
        .filter(|(_, values)| values.iter().any(|value| *value != values[0]))
        .map(|(key, values)| Setting { key: key.clone(), values })
        .collect()
}

fn lines(corpus: &Corpus, compared: &[usize], read: &[Read], gold: Option<&[Analyses]>) -> Vec<Line> {
    let segments = |at: usize, ends: &[u32]| Segments {
        line: corpus.line(at, ends),
        segments: corpus.segments(at, ends).into_iter().zip(ends.iter().copied()).collect(),
    };
    let line = |&at: &usize| {
        let ends: Vec<&[u32]> = read.iter().map(|run| &run.ends[at][..]).collect();
        let differing = n_differing(&ends);
        let of_gold = gold.iter().flat_map(|gold| &gold[at]);
        (differing > 0).then(|| Line {
            line: corpus.lines[at],
            differing,
            gold: of_gold.map(|ends| segments(at, ends)).collect(),
            segmentations: ends.iter().map(|ends| segments(at, ends)).collect(),
        })
    };
    let mut lines: Vec<Line> = compared.iter().filter_map(line).collect();
    lines.sort_by_key(|line| (Reverse(line.differing), line.line));
    lines
}

/// All words of the lines that are compared.
fn words(corpus: &Corpus, compared: &[usize], read: &[Read], gold: Option<&[Analyses]>) -> Vec<Word> {
    let mut counts: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for (run, Read { ends, .. }) in read.iter().enumerate() {
        for word in compared.iter().flat_map(|&at| corpus.segments(at, &ends[at])) {
            counts.entry(word).or_insert_with(|| vec![0; read.len()])[run] += 1;
        }
    }
    let of_gold: Option<BTreeSet<String>> = gold.map(|gold| {
        let of_line = |(at, analyses): (usize, &Analyses)| {
            analyses.iter().flat_map(|ends| corpus.segments(at, ends)).collect::<Vec<_>>()
        };
        gold.iter().enumerate().flat_map(of_line).collect()
    });
    let in_gold = |word: &String| of_gold.as_ref().map(|gold| gold.contains(word));
    let mut words: Vec<Word> =
        counts.into_iter().map(|(word, counts)| Word { in_gold: in_gold(&word), word, counts }).collect();
    words.sort_by_key(|word| Reverse(spread(word)));
    words
}

/// The largest number of occurrences of a word less the smallest.
fn spread(word: &Word) -> u64 {
    let (least, most) = (word.counts.iter().min(), word.counts.iter().max());
    most.zip(least).map_or(0, |(most, least)| most - least)
}

impl Comparison {
    /// Words that a run has and the first one lacks, or with `lost` the other way round, with their numbers; the most frequent first.
    pub fn changed_words(&self, run: usize, lost: bool) -> Vec<(&Word, u64)> {
        let [of, not_of] = if lost { [0, run] } else { [run, 0] };
        let changed = self.words.iter().filter(|word| word.counts[of] > 0 && word.counts[not_of] == 0);
        let mut changed: Vec<(&Word, u64)> = changed.map(|word| (word, word.counts[of])).collect();
        changed.sort_by_key(|(_, count)| Reverse(*count));
        changed
    }

    /// What the comparison shows, a sentence for each run but the first.
    pub fn verdicts(&self) -> Vec<String> {
        let of_run = |run: usize| match self
            .scored
            .as_ref()
            .and_then(|scored| scored.differences[run - 1].measures.get("token_f1"))
        {
            Some(found) => scores::verdict("Token F1", run, found),
            None => {
                let f1 = self.agreement[run - 1].token.f1;
                format!(
                    "{} and {} agree with token F1 {}: {} of {} lines are the same.",
                    label(0),
                    label(run),
                    score_text(f1, 4),
                    self.agreement[run - 1].exact,
                    self.n_lines
                )
            }
        };
        (1..self.runs.len()).map(of_run).collect()
    }
}
