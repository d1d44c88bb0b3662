//! The output folder of a training run.
//!
//! `metrics.jsonl` grows by a line each round, so that a run can be followed. Every other file is written under a temporary name,
//! synced and renamed, so that no file is ever incomplete. `summary.json` is written last: **if it exists, the result is
//! complete**. A new run removes the files of an earlier run, `summary.json` first, but only after its own input
//! is read and every sentence has a derivation; other files in the folder stay.

use std::fs::{self, File, TryLockError};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use basics::atomic_write;
use basics::store;
use grammaton::models::decode::Decoder;
use grammaton::saved::Model as SavedModel;

use crate::job::Job;
use crate::lexicon;
use crate::metrics::{
    BOUNDARY_VOTE, CONTEXTS, CRF, MAXIMUM_MARGINAL, MBR_VOTE, RoundMetrics, SAMPLE_AVERAGE, Summary,
    decoder_name, recommended,
};
use crate::model;
use crate::outcome::{FleetUse, Outcome};
use crate::report::{self, Report};
use crate::train::spill;

/// The file that is written last.
pub const SUMMARY: &str = "summary.json";
const METRICS: &str = "metrics.jsonl";
/// The job with all values.
pub const JOB: &str = "job.toml";
/// Trees in brackets.
pub const PARSES: &str = "parses.txt";
const REPORT: &str = "report.html";
const LEXICON: &str = "lexicon.tsv";
/// Probabilities of boundaries ([`crate::boundary`]).
pub const BOUNDARIES: &str = "boundaries.tsv";
/// The last decisions of the scheduler, where a batch failed.
const FAILURE: &str = "failure.log";
const MODEL: [&str; 3] = ["model/model.bin", "model/grammar.txt", "model/sticks.tsv"];

/// Names of the decoders whose output is a segmentation.
pub fn decoders() -> impl Iterator<Item = &'static str> {
    let of_models = [Decoder::Viterbi, Decoder::Mbr, Decoder::MbrTree].map(decoder_name);
    of_models.into_iter().chain([SAMPLE_AVERAGE, MAXIMUM_MARGINAL, MBR_VOTE, BOUNDARY_VOTE, CONTEXTS, CRF])
}

/// File of a segmentation.
pub fn segmentation(decoder: &str) -> String {
    format!("segmentation.{decoder}.txt")
}

/// The same as a table ([`crate::row`]).
pub fn table(decoder: &str) -> String {
    format!("segmentation.{decoder}.tsv")
}

/// File of heads.
pub fn arcs(decoder: &str) -> String {
    format!("parses.{decoder}.conllu")
}

/// Of the files of a result, given by their paths, the one that is the answer: the segmentation, or else the dependencies, by the recommended decoder, or else the
/// trees; `None` in a result without any.
pub fn answer<'a>(paths: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let paths: Vec<&str> = paths.collect();
    let decoder = |path: &'a str| -> Option<(bool, &'a str)> {
        let of_text = path.strip_prefix("segmentation.").and_then(|rest| rest.strip_suffix(".txt"));
        let of_heads = || path.strip_prefix("parses.").and_then(|rest| rest.strip_suffix(".conllu"));
        of_text.map(|decoder| (true, decoder)).or_else(|| Some((false, of_heads()?)))
    };
    let best = |is_of_text: bool| {
        let all = paths.iter().filter_map(|path| decoder(path)).filter(|found| found.0 == is_of_text);
        let name = recommended(all.map(|(_, decoder)| decoder))?;
        let name = if is_of_text { segmentation(name) } else { arcs(name) };
        paths.iter().copied().find(|path| *path == name)
    };
    best(true).or_else(|| best(false)).or_else(|| paths.iter().copied().find(|path| *path == PARSES))
}

/// A writable output folder.
#[derive(Debug)]
pub struct Output {
    dir: PathBuf,
    /// Lock of this process; `None` on file systems without locks.
    _lock: Option<File>,
    metrics: Option<File>,
}

impl Output {
    /// Creates the folder if it does not exist, and checks that it is writable and that no other run writes to it. Nothing in it
    /// changes yet.
    pub fn open(dir: &Path) -> Result<Output> {
        if let Some(url) = store::url(dir) {
            bail!("{url}: the output folder must be on this machine; only output.checkpoints can be a URL");
        }
        fs::create_dir_all(dir).with_context(|| refused(dir))?;
        let written = tempfile::tempfile_in(dir).and_then(|mut file| file.write_all(b"?"));
        written.with_context(|| refused(dir))?;
        Ok(Output { dir: dir.to_owned(), _lock: lock(dir)?, metrics: None })
    }

    /// The folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Whether the folder has a finished result.
    pub fn is_finished(&self) -> bool {
        self.dir.join(SUMMARY).exists()
    }

    /// The job of the run in the folder, if its file can be read.
    pub fn job(&self) -> Option<Job> {
        Job::load(&self.dir.join(JOB), &[]).ok()
    }

    /// Removes the files of an earlier run. Writes the job, unless that would replace the file that it was read from, and the
    /// `earlier` rounds of a job that resumes from a checkpoint.
    pub fn begin(&mut self, job: &Job, job_file: &Path, earlier: &[RoundMetrics]) -> Result<()> {
        let decoders: Vec<String> =
            decoders().flat_map(|decoder| [segmentation(decoder), table(decoder)]).collect();
        let arcs = [Decoder::Viterbi, Decoder::MbrArcs].map(|decoder| arcs(decoder_name(decoder)));
        let by_decoder = decoders.iter().chain(&arcs).map(String::as_str);
        let old =
            [SUMMARY, METRICS, REPORT, PARSES, LEXICON, BOUNDARIES, FAILURE].into_iter().chain(by_decoder);
        for name in old.chain(MODEL) {
            match fs::remove_file(self.dir.join(name)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(error).with_context(|| self.refused(name));
                }
                _ => {}
            }
        }
        let is_source = match (self.dir.join(JOB).canonicalize(), job_file.canonicalize()) {
            (Ok(copy), Ok(source)) => copy == source,
            _ => false,
        };
        if !is_source {
            self.write(JOB, job.to_toml().as_bytes())?;
        }
        let file = File::create(self.dir.join(METRICS)).with_context(|| self.refused(METRICS))?;
        self.metrics = Some(file);
        earlier.iter().try_for_each(|round| self.round(round))
    }

    /// Writes what led to a failure, and returns the name of the file.
    pub fn failed(&self, lines: &[String]) -> Result<&'static str> {
        self.write(FAILURE, (lines.join("\n") + "\n").as_bytes()).map(|()| FAILURE)
    }

    /// Adds a line to `metrics.jsonl`.
    pub fn round(&mut self, round: &RoundMetrics) -> Result<()> {
        let refused = self.refused(METRICS);
        let file = self.metrics.as_mut().ok_or_else(|| anyhow!("a round before the run began"))?;
        let mut line = serde_json::to_string(round).context("metrics do not serialise")?;
        line.push('\n');
        file.write_all(line.as_bytes()).context(refused)
    }

    /// Writes the result of a run, `summary.json` last; `fleet_use` says which workers it had.
    pub fn finish(
        &self,
        job: &Job,
        rounds: &[RoundMetrics],
        outcome: &mut Outcome,
        fleet_use: &FleetUse,
    ) -> Result<Summary> {
        if let Some(metrics) = &self.metrics {
            metrics.sync_all().with_context(|| self.refused(METRICS))?;
        }
        let has_segments = outcome.model.of_grammar().is_some_and(|model| !model.segments.is_empty());
        let mut parses = Some(PARSES);
        for decoding in &mut outcome.decodings {
            if has_segments {
                let lines = &mut decoding.segmentations;
                self.write_with(&segmentation(decoding.name), &mut |file| lines.copy_to(file))?;
                let lines = &mut decoding.table;
                self.write_with(&table(decoding.name), &mut |file| lines.copy_to(file))?;
            }
            if let Some(name) = parses.take_if(|_| !decoding.trees.is_empty()) {
                self.write_with(name, &mut |file| decoding.trees.copy_to(file))?;
            }
        }
        if let Some(entries) = &outcome.lexicon {
            self.write_with(LEXICON, &mut |file| {
                writeln!(file, "{}", lexicon::Entry::HEADER)?;
                entries.iter().try_for_each(|entry| writeln!(file, "{entry}"))
            })?;
        }
        if let Some(lines) = &mut outcome.boundaries {
            self.write_with(BOUNDARIES, &mut |file| lines.copy_to(file))?;
        }
        for (decoder, sentences) in &outcome.heads.by_decoder {
            let text = outcome.heads.document.with_heads(sentences, job.corpus.punctuation());
            self.write(&arcs(decoder), text.as_bytes())?;
        }
        let saved = job.corpus.saved(outcome.model.clone());
        let (voters, segmenter) = (outcome.voters.clone(), outcome.segmenter.clone());
        let saved = SavedModel { voters, segmenter, ..saved };
        let [binary, grammar, sticks] = MODEL;
        self.write(binary, &saved.to_bytes())?;
        self.write(grammar, model::grammar_text(&saved.model).as_bytes())?;
        self.write_with(sticks, &mut |file| model::write_sticks(&saved, file))?;
        let summary = outcome.summary(job, fleet_use);
        let page = report::render(&Report { job, rounds, outcome, saved: &saved, summary: &summary });
        self.write(REPORT, page.as_bytes())?;
        let json = serde_json::to_string_pretty(&summary).context("summary does not serialise")?;
        self.write(SUMMARY, format!("{json}\n").as_bytes())?;
        Ok(summary)
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<()> {
        self.write_with(name, &mut |file| file.write_all(bytes))
    }

    /// Writes a file under a temporary name, syncs and renames it.
    fn write_with(&self, name: &str, write: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>) -> Result<()> {
        let path = self.dir.join(name);
        let mut written = || -> io::Result<()> {
            let mut file = atomic_write::create(&path)?;
            let mut buffered = BufWriter::new(&mut file);
            write(&mut buffered)?;
            buffered.flush()?;
            drop(buffered);
            atomic_write::commit(file, &path)
        };
        written().with_context(|| self.refused(name))
    }

    fn refused(&self, name: &str) -> String {
        format!("{}: cannot write the result; {WAY_OUT}", self.dir.join(name).display())
    }
}

/// Locks a folder of results for this process, and removes what killed processes left there. `None` on file systems without locks.
pub fn lock(dir: &Path) -> Result<Option<File>> {
    let lock = File::open(dir).with_context(|| refused(dir))?;
    match lock.try_lock() {
        Ok(()) => {
            spill::sweep(dir);
            [dir, &dir.join("model")].into_iter().for_each(atomic_write::remove_temporary);
            Ok(Some(lock))
        }
        Err(TryLockError::WouldBlock) => bail!(
            "{}: another run writes to this folder; wait for its end, or choose another folder with --out DIR",
            dir.display()
        ),
        Err(TryLockError::Error(_)) => Ok(None),
    }
}

fn refused(dir: &Path) -> String {
    format!("{}: cannot write to the output folder; {WAY_OUT}", dir.display())
}

const WAY_OUT: &str = "free space or make it writable, or choose another folder with --out DIR";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_is_the_file_of_the_recommended_decoder() {
        let of = |paths: &[&'static str]| answer(paths.iter().copied());
        let text = [
            "job.toml",
            "parses.txt",
            "segmentation.mbr.tsv",
            "segmentation.mbr.txt",
            "segmentation.viterbi.txt",
        ];
        assert_eq!(of(&text), Some("segmentation.mbr.txt"));
        assert_eq!(of(&["segmentation.viterbi.txt", "segmentation.crf.txt"]), Some("segmentation.crf.txt"));
        assert_eq!(of(&["parses.viterbi.conllu", "parses.mbr-arcs.conllu"]), Some("parses.mbr-arcs.conllu"));
        assert_eq!(of(&["model/model.bin", "parses.txt"]), Some("parses.txt"));
        assert_eq!(of(&["model/model.bin", "model/segmentation.mbr.txt"]), None);
    }
}
