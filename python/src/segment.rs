//! The job of a text to segment, as `grammaton segment` writes it, and that of tagged sentences, as `grammaton dependencies` does.

use std::path::{Path, PathBuf};
use std::time::Duration;

use grammaton::data::corpus::sniff::Contents;
use grammaton::data::dependency::Tags;
use grammaton::models::dmv::rules::RuleSet;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use segment::dependencies::{Options, Parsing, TagSource};
use segment::keys::Keys;
use segment::model::{Known, model};
use segment::morphemes;
use segment::sampling::Sampling;
use segment::text::Text;
use training::events::All;
use training::segmented::Segmented;

use crate::arguments::count;
use crate::error::exception;
use crate::wait::{detached, interruptible};

/// The text at `path` as these assignments of keys say; `words`: each line is a word.
fn read(path: &Path, set: Vec<String>, words: bool) -> anyhow::Result<Text> {
    let contents = if words { Contents::Words } else { Contents::Utterances };
    Text::read(path, contents, &Keys::new(set)?)
}

/// The options of chains.
fn sampling(
    chains: Option<i64>,
    sweeps: Option<i64>,
    seconds: Option<f64>,
    seed: i64,
    workers: Option<i64>,
) -> PyResult<Sampling> {
    let chains = count("chains", chains, 1..=1000u16)?;
    let sweeps = count("sweeps", sweeps, 2..=1_000_000u32)?;
    let workers = count("workers", workers, 1..=u16::MAX)?;
    let seed = u64::try_from(seed).map_err(|_| PyValueError::new_err("seed must be 0 or more"))?;
    if seconds.is_some() && sweeps.is_some() {
        return Err(PyValueError::new_err("give sweeps or seconds, not both"));
    }
    let seconds = seconds.map(Duration::try_from_secs_f64).transpose();
    let seconds = seconds.map_err(|_| PyValueError::new_err("seconds must be a positive number"))?;
    Ok(Sampling { chains, sweeps, seconds, seed, workers, overwrite: false })
}

/// Writes the corpus and the job of a text to the folder `dir`, and returns the path of the job file and what there is to know about the text.
/// `set` assigns keys of the job; `words` is a file of known words.
#[pyfunction]
#[pyo3(signature = (text, dir, *, set, grammar, vowels, words, chains, sweeps, seconds, seed, workers))]
#[expect(clippy::too_many_arguments, reason = "the options of a command")]
pub fn segment_job(
    py: Python<'_>,
    text: PathBuf,
    dir: PathBuf,
    set: Vec<String>,
    grammar: Vec<String>,
    vowels: String,
    words: Option<PathBuf>,
    chains: Option<i64>,
    sweeps: Option<i64>,
    seconds: Option<f64>,
    seed: i64,
    workers: Option<i64>,
) -> PyResult<(PathBuf, Vec<String>)> {
    let sampling = sampling(chains, sweeps, seconds, seed, workers)?;
    interruptible(py, move || {
        let text = read(&text, set, false)?;
        let known = Known { vowels: &vowels, words: words.as_deref() };
        let model = model(&text, &grammar, known, &sampling, &mut All(Vec::new()))?;
        Ok((sampling.write_job(&text, &model, &dir, &mut All(Vec::new()))?, text.notices))
    })
}

/// Writes the corpus and the job of words with morphemes, as [`segment_job`] does of a text. `known`: files of prefixes, suffixes and stems.
#[pyfunction]
#[pyo3(signature = (text, dir, *, set, grammar, known, cascade, threshold, chains, sweeps, seconds, seed, workers))]
#[expect(clippy::too_many_arguments, reason = "the options of a command")]
pub fn morphemes_job(
    py: Python<'_>,
    text: PathBuf,
    dir: PathBuf,
    set: Vec<String>,
    grammar: String,
    known: [Option<PathBuf>; 3],
    cascade: Option<i64>,
    threshold: Option<f64>,
    chains: Option<i64>,
    sweeps: Option<i64>,
    seconds: Option<f64>,
    seed: i64,
    workers: Option<i64>,
) -> PyResult<(PathBuf, Vec<String>)> {
    let sampling = sampling(chains, sweeps, seconds, seed, workers)?;
    let cascade = count("cascade", cascade, 0..=100_000u32)?;
    interruptible(py, move || {
        let text = read(&text, set, true)?;
        let [prefixes, suffixes, stems] = known;
        let known = morphemes::Known { prefixes, suffixes, stems };
        let threshold = threshold.unwrap_or(morphemes::THRESHOLD);
        let model =
            morphemes::model(&text, &grammar, &known, cascade, threshold, &sampling, &mut All(Vec::new()))?;
        Ok((sampling.write_job(&text, &model, &dir, &mut All(Vec::new()))?, text.notices))
    })
}

/// Writes the sentences and the job of a dependency model to the folder `dir`, and returns the path of the job file and what was chosen. `rules` are
/// JSON: `"none"`, `"ud"`, or a list of rules.
#[pyfunction]
#[pyo3(signature = (file, dir, *, tags, rules, constrain, overwrite))]
pub fn dependencies_job(
    py: Python<'_>,
    file: PathBuf,
    dir: PathBuf,
    tags: Option<&str>,
    rules: Option<&str>,
    constrain: bool,
    overwrite: bool,
) -> PyResult<(PathBuf, Vec<String>)> {
    let tags = tags.map(|tags| match tags {
        "upos" => Ok(TagSource::Column(Tags::Upos)),
        "xpos" => Ok(TagSource::Column(Tags::Xpos)),
        "induce" => Ok(TagSource::Induced),
        _ => Err(PyValueError::new_err(format!(
            "tags must be \"upos\", \"xpos\" or \"induce\", found {tags:?}"
        ))),
    });
    let tags = tags.transpose()?;
    let rules = rules.map(serde_json::from_str::<RuleSet>).transpose();
    let rules = rules.map_err(|error| PyValueError::new_err(format!("rules: {error}")))?;
    let options = Options { tags, rules, constrain, overwrite };
    interruptible(py, move || {
        let parsing = Parsing::read(&file, options)?;
        Ok((parsing.write_job(&dir)?, parsing.notices))
    })
}

/// The `n` lines of the results in the folder `dir` whose annotation would teach most.
#[pyfunction]
pub fn suggest(py: Python<'_>, dir: PathBuf, n: i64) -> PyResult<Vec<String>> {
    let n = count("n", Some(n), 1..=u32::MAX)?.unwrap_or_default() as usize;
    interruptible(py, move || {
        let text = Segmented::read(&dir)?;
        Ok(training::suggest::suggest(&text, n)
            .into_iter()
            .map(|at| text.line(&text.sentences[at]))
            .collect())
    })
}

/// The results in the folders `dirs` beside each other, as JSON; gold is that of the file `against`, and the folder `out` gets the page and the tables.
#[pyfunction]
pub fn compare(
    py: Python<'_>,
    dirs: Vec<PathBuf>,
    against: Option<PathBuf>,
    out: Option<PathBuf>,
) -> PyResult<String> {
    interruptible(py, move || {
        let found = training::compare::compare(&dirs, against.as_deref())?;
        out.map(|dir| found.write(&dir)).transpose()?;
        Ok(found.to_json().to_string())
    })
}

/// The lines of the text, segmented as in the folder `dir` of the job's results; `words`: each line is a word.
#[pyfunction]
pub fn segmented(
    py: Python<'_>,
    text: PathBuf,
    set: Vec<String>,
    words: bool,
    dir: PathBuf,
) -> PyResult<String> {
    detached(py, || read(&text, set, words)?.segmented_in(&dir)).map_err(|error| exception(py, error))
}
