//! A run as it is compared, read from its folder of results.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};
use grammaton::data::corpus::{Analyses, BETWEEN_ANALYSES, Corpus, Options};
use grammaton::models::decode::Decoder;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::input;
use crate::input::segmented_file::{Resolved, SegmentedFile};
use crate::job::{Job, PositionMarks};
use crate::metrics::{Summary, decoder_name};
use crate::output::{self, JOB, SUMMARY};
use crate::row::{Row, Status};
use crate::segmented::{Printed, check_finished};

/// A run. Lists of lines are `[n_sentences]` of `corpus`.
pub struct Read {
    /// Its folder, as it was given.
    pub folder: String,
    /// The decoder whose segmentation is compared.
    pub decoder: &'static str,
    /// Its summary.
    pub summary: Summary,
    /// Values of its job file by key, as in `inference.seed`.
    pub settings: BTreeMap<String, String>,
    /// The text.
    pub corpus: Corpus,
    /// Ends of the segments of each line.
    pub ends: Vec<Vec<u32>>,
    /// Whether each line has an analysis.
    pub analysed: Vec<bool>,
    /// Whether each line was trained on.
    pub trained: Vec<bool>,
    /// Whether each line was learned from, with its annotation.
    pub annotated: Vec<bool>,
    /// The gold segmentations of each line; `None` without gold.
    pub gold: Option<Vec<Analyses>>,
    /// What there is to know.
    pub notices: Vec<String>,
    /// How the lines of its files are read.
    options: Options,
}

impl Read {
    /// Reads the run in a folder of results.
    pub fn of(dir: &Path) -> Result<Read> {
        check_finished(dir)?;
        let folder = dir.display().to_string();
        let path = dir.join(SUMMARY);
        let summary = input::text(&path, &path.display().to_string(), "summary")?;
        let summary: Summary =
            serde_json::from_str(&summary).with_context(|| format!("{}: not a summary", path.display()))?;
        let job = Job::load(&dir.join(JOB), &[])?;
        let of_heads =
            [Decoder::MbrArcs, Decoder::Viterbi].map(|decoder| output::arcs(decoder_name(decoder)));
        if let Some(heads) = of_heads.iter().find(|name| dir.join(name).exists()) {
            bail!(
                "{folder}: heads of words are compared by grammaton eval dependencies A/{heads} B/{heads} --against GOLD"
            );
        }
        let Printed { decoder, options, corpus } = Printed::read(dir, &job)?;
        let n = corpus.sentences.len();
        let mut read = Read {
            settings: settings(&dir.join(JOB))?,
            ends: corpus.segmentation(),
            analysed: vec![false; n],
            trained: vec![false; n],
            annotated: vec![false; n],
            gold: None,
            notices: Vec::new(),
            folder,
            decoder,
            summary,
            corpus,
            options,
        };
        read.table(&dir.join(output::table(decoder)))?;
        let annotated = &job.corpus.annotated;
        if !annotated.as_os_str().is_empty() {
            let options = job.corpus.options();
            match SegmentedFile::read(annotated, &options, &job.corpus.position_marks()) {
                Ok(file) => {
                    let known = read.of_file(&file);
                    read.annotated = known.iter().map(Option::is_some).collect();
                }
                Err(error) => read.notices.push(format!(
                    "{}: the annotated lines cannot be read and are scored like others: {error:#}",
                    read.folder
                )),
            }
        }
        Ok(read)
    }

    /// Takes the status and the gold of each line from the table of its segmentation.
    fn table(&mut self, path: &Path) -> Result<()> {
        let name = path.display().to_string();
        let text = input::text(path, &name, "table")?;
        let mut rows = text.lines();
        ensure!(rows.next() == Some(Row::HEADER), "{name}:1: expected the columns {:?}", Row::HEADER);
        let places: FxHashMap<u32, usize> = self.corpus.lines.iter().copied().zip(0..).collect();
        let mut gold: Vec<&str> = Vec::new();
        let [ok, held_out] = [Status::Ok, Status::HeldOut].map(|status| status.to_string());
        for (row, n) in rows.zip(2_usize..) {
            let columns: Vec<&str> = row.split('\t').collect();
            let [line, of_gold, predicted, _, status] = columns[..] else {
                bail!("{name}:{n}: expected five columns, found {}", columns.len());
            };
            ensure!(
                line.parse::<usize>() == Ok(n - 1),
                "{name}:{n}: expected line {}, found {line:?}",
                n - 1
            );
            gold.push(of_gold);
            if let Some(&at) = places.get(&(n as u32 - 1)) {
                self.analysed[at] = !predicted.is_empty() && (status == ok || status == held_out);
                self.trained[at] = status == ok;
            }
        }
        if gold.iter().any(|gold| !gold.is_empty()) {
            self.gold = Some(self.analyses(&gold, &name)?);
        }
        Ok(())
    }

    /// The segmentations in the column of gold, line by line: of each one, or several with commas between them.
    fn analyses(&self, gold: &[&str], name: &str) -> Result<Vec<Analyses>> {
        let places: FxHashMap<u32, usize> = self.corpus.lines.iter().copied().zip(0..).collect();
        let mut analyses = vec![Vec::new(); self.corpus.sentences.len()];
        let (segmented, _) = Corpus::read(gold.join("\n").as_bytes(), name, &self.options)?;
        for (ends, &line) in segmented.segmentation().into_iter().zip(&segmented.lines) {
            let of_line = places.get(&line).and_then(|&at| {
                let n = self.corpus.sentences[at].len() as u32;
                let is_of_line = |ends: &Vec<u32>| ends.last() == Some(&n);
                // A sentence may have commas itself.
                let several =
                    || self.several(gold[line as usize - 1]).filter(|all| all.iter().all(is_of_line));
                Some((at, if is_of_line(&ends) { vec![ends] } else { several()? }))
            });
            let Some((at, of_line)) = of_line else {
                bail!(
                    "{name}:{}: the gold is not of the text of {}; train once more, or choose gold by --against FILE",
                    line + 1,
                    self.corpus.source_name
                );
            };
            analyses[at] = of_line;
        }
        Ok(analyses)
    }

    /// The segmentations between the commas of a line.
    fn several(&self, line: &str) -> Option<Analyses> {
        let lines = line.replace(BETWEEN_ANALYSES, "\n");
        Corpus::read(lines.as_bytes(), "gold", &self.options).ok().map(|(corpus, _)| corpus.segmentation())
    }

    /// The analyses that the file at `path` has of each line.
    ///
    /// # Errors
    /// Those of reading, and a file without a line of the text.
    pub fn said(&self, path: &Path) -> Result<Vec<Analyses>> {
        let file = SegmentedFile::read(path, &self.options, &PositionMarks::default())?;
        let said = self.of_file(&file);
        ensure!(
            said.iter().any(Option::is_some),
            "{}: no line of it is a line of {}, whose boundaries alone may differ",
            file.name,
            self.corpus.source_name
        );
        Ok(said.into_iter().map(Option::unwrap_or_default).collect())
    }

    /// The analyses that a file has of each line; `None` of lines that it lacks.
    fn of_file(&self, file: &SegmentedFile) -> Vec<Option<Analyses>> {
        let in_text = file.in_symbols(&self.corpus.symbols);
        let text: FxHashSet<&Vec<u32>> = self.corpus.sentences.iter().collect();
        let mut known: FxHashMap<Vec<u32>, Analyses> = FxHashMap::default();
        for Resolved { read, .. } in file.resolved(|it| in_text(it).is_some_and(|it| text.contains(&it))) {
            if let Some(sentence) = in_text(&read.sentence) {
                let analyses = known.entry(sentence).or_default();
                for ends in &read.analyses {
                    if !analyses.contains(ends) {
                        analyses.push(ends.clone());
                    }
                }
            }
        }
        self.corpus.sentences.iter().map(|sentence| known.get(sentence).cloned()).collect()
    }

    /// Leaves out all sentences but the first `n`.
    pub fn truncate(&mut self, n: usize) {
        self.corpus = self.corpus.subset(&(0..n).collect::<Vec<_>>());
        self.ends.truncate(n);
        self.gold.iter_mut().for_each(|gold| gold.truncate(n));
        [&mut self.analysed, &mut self.trained, &mut self.annotated]
            .into_iter()
            .for_each(|lines| lines.truncate(n));
    }
}

/// The values of a job file by key.
fn settings(path: &Path) -> Result<BTreeMap<String, String>> {
    fn flat(prefix: &str, value: &toml::Value, found: &mut BTreeMap<String, String>) {
        let shown = match value {
            toml::Value::Table(table) => {
                let dot = if prefix.is_empty() { "" } else { "." };
                table.iter().for_each(|(key, value)| flat(&format!("{prefix}{dot}{key}"), value, found));
                return;
            }
            toml::Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        found.insert(prefix.to_owned(), shown);
    }
    let name = path.display().to_string();
    let table: toml::Table = input::text(path, &name, "job file")?.parse().with_context(|| name.clone())?;
    let mut found = BTreeMap::new();
    flat("", &toml::Value::Table(table), &mut found);
    Ok(found)
}
