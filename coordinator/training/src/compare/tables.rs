//! The tables of a comparison: rows of named values, for JSON and for files of tab-separated values.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use basics::atomic_write;
use serde_json::{Map, Value, json};

use super::scores::label;
use super::{Comparison, page};
use grammaton::data::corpus::BETWEEN_ANALYSES;
use grammaton::data::eval::comparison::MEASURES;

/// Rows of values by column.
pub type Table = Vec<Map<String, Value>>;

/// The page in the folder of a comparison.
pub const PAGE: &str = "compare.html";

fn row(cells: Vec<(String, Value)>) -> Map<String, Value> {
    cells.into_iter().collect()
}

/// Columns with the letters of runs.
fn by_run<T: Into<Value>>(values: impl IntoIterator<Item = T>) -> Vec<(String, Value)> {
    values.into_iter().enumerate().map(|(at, value)| (label(at).to_string(), value.into())).collect()
}

impl Comparison {
    /// A row for each run.
    pub fn runs_table(&self) -> Table {
        let of_run = |(at, run): (usize, &super::Run)| {
            let (summary, timings) = (&run.summary, run.summary.timings);
            row(vec![
                ("run".to_owned(), label(at).to_string().into()),
                ("folder".to_owned(), run.folder.clone().into()),
                ("decoder".to_owned(), run.decoder.into()),
                ("words".to_owned(), run.n_tokens.into()),
                ("distinct_words".to_owned(), run.n_types.into()),
                ("objective".to_owned(), json!(summary.result.bound)),
                ("r_hat".to_owned(), json!(summary.result.r_hat)),
                ("rounds".to_owned(), summary.result.rounds_run.into()),
                ("seconds".to_owned(), json!(timings.preprocess + timings.rounds + timings.decode)),
                ("version".to_owned(), summary.version.clone().into()),
            ])
        };
        self.runs.iter().enumerate().map(of_run).collect()
    }

    /// A row for each setting that differs.
    pub fn settings_table(&self) -> Table {
        let of_key = |setting: &super::Setting| {
            let values = by_run(setting.values.iter().map(|value| json!(value)));
            row([("key".to_owned(), setting.key.clone().into())].into_iter().chain(values).collect())
        };
        self.settings.iter().map(of_key).collect()
    }

    /// A row for each run and measure. Without gold the measures are of the agreement with the first run.
    pub fn scores_table(&self) -> Table {
        let mut rows = Table::new();
        for (at, run) in self.runs.iter().enumerate() {
            let mut add = |measure: &str, score: Option<f64>, more: [Value; 6]| {
                let names = ["low", "high", "difference", "difference_low", "difference_high", "p"];
                let first: Vec<(String, Value)> = vec![
                    ("run".to_owned(), label(at).to_string().into()),
                    ("folder".to_owned(), run.folder.clone().into()),
                    ("measure".to_owned(), measure.into()),
                    ("score".to_owned(), json!(score)),
                ];
                let more = names.iter().map(|name| (*name).to_owned()).zip(more);
                rows.push(row(first.into_iter().chain(more).collect()));
            };
            const NONE: [Value; 6] = [const { Value::Null }; 6];
            if let Some(scored) = &self.scored {
                let output = &scored.outputs[at];
                let difference = at.checked_sub(1).map(|other| &scored.differences[other].measures);
                for name in MEASURES {
                    let interval = output.intervals.get(name);
                    let found = difference.and_then(|measures| measures.get(name));
                    let more = [
                        json!(interval.map(|found| found.low)),
                        json!(interval.map(|found| found.high)),
                        json!(found.map(|found| found.difference)),
                        json!(found.map(|found| found.low)),
                        json!(found.map(|found| found.high)),
                        json!(found.map(|found| found.p)),
                    ];
                    add(name, interval.map(|found| found.score), more);
                }
                add("lexicon_f1", output.scores.lexicon.f1, NONE);
            }
            if let Some(other) = at.checked_sub(1) {
                let agreement = &self.agreement[other];
                add("agreement_token_f1", agreement.token.f1, NONE);
                add("agreement_boundary_f1", agreement.boundary.f1, NONE);
                let share = agreement.exact as f64 / agreement.sentences as f64;
                add("agreement_exact_share", Some(share), NONE);
            }
        }
        rows
    }

    /// A row for each line that differs.
    pub fn lines_table(&self) -> Table {
        let of_line = |line: &super::Line| {
            let segmentations = by_run(line.segmentations.iter().map(|segments| segments.line.clone()));
            let gold: Vec<&str> = line.gold.iter().map(|gold| &gold.line[..]).collect();
            let gold = Some(gold.join(BETWEEN_ANALYSES)).filter(|gold| !gold.is_empty());
            let first = [
                ("line".to_owned(), line.line.into()),
                ("differing".to_owned(), line.differing.into()),
                ("gold".to_owned(), json!(gold)),
            ];
            row(first.into_iter().chain(segmentations).collect())
        };
        self.lines.iter().map(of_line).collect()
    }

    /// A row for each word of which some run has more than another.
    pub fn words_table(&self) -> Table {
        let of_word = |word: &super::Word| {
            let counts = by_run(word.counts.iter().copied());
            let first = [
                ("word".to_owned(), Value::from(word.word.clone())),
                ("in_gold".to_owned(), json!(word.in_gold)),
            ];
            row(first.into_iter().chain(counts).collect())
        };
        self.words.iter().map(of_word).collect()
    }

    /// All tables as one JSON object.
    pub fn to_json(&self) -> Value {
        json!({
            "runs": self.runs_table(),
            "settings": self.settings_table(),
            "scores": self.scores_table(),
            "n_lines": self.n_lines,
            "lines": self.lines_table(),
            "words": self.words_table(),
            "verdicts": self.verdicts(),
            "notices": self.notices,
        })
    }

    /// Writes the page and the tables to the folder `dir`, which is created if it does not exist.
    ///
    /// # Errors
    /// A folder that has one of these files, and what the file system refuses.
    pub fn write(&self, dir: &Path) -> Result<()> {
        let refused = || {
            format!("{}: cannot write the comparison; choose another folder with --out DIR", dir.display())
        };
        let letters: Vec<String> = (0..self.runs.len()).map(|at| label(at).to_string()).collect();
        let letters: Vec<&str> = letters.iter().map(String::as_str).collect();
        let of_scores = [
            "run",
            "folder",
            "measure",
            "score",
            "low",
            "high",
            "difference",
            "difference_low",
            "difference_high",
            "p",
        ];
        let files = [
            ("scores.tsv", tsv(&of_scores, &self.scores_table())),
            ("lines.tsv", tsv(&[&["line", "differing", "gold"][..], &letters].concat(), &self.lines_table())),
            ("words.tsv", tsv(&[&["word"][..], &letters, &["in_gold"]].concat(), &self.words_table())),
            (PAGE, page::render(self)),
        ];
        if let Some((name, _)) = files.iter().find(|(name, _)| dir.join(name).exists()) {
            bail!("{}: the file exists; choose another folder with --out DIR", dir.join(name).display());
        }
        fs::create_dir_all(dir).with_context(refused)?;
        for (name, content) in files {
            let path = dir.join(name);
            let written = || -> std::io::Result<()> {
                let mut file = atomic_write::create(&path)?;
                file.write_all(content.as_bytes())?;
                atomic_write::commit(file, &path)
            };
            written().with_context(refused)?;
        }
        Ok(())
    }
}

/// A table of tab-separated values: shares with four decimals, and nothing for what is not known.
fn tsv(columns: &[&str], rows: &Table) -> String {
    let cell = |row: &Map<String, Value>, name: &str| match row.get(name) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.replace(['\t', '\n', '\r'], " "),
        Some(Value::Bool(is)) => (if *is { "yes" } else { "no" }).to_owned(),
        Some(number) if number.is_f64() => number.as_f64().map_or(String::new(), |it| format!("{it:.4}")),
        Some(other) => other.to_string(),
    };
    let line = |row: &Map<String, Value>| {
        let cells: Vec<String> = columns.iter().map(|name| cell(row, name)).collect();
        cells.join("\t") + "\n"
    };
    [columns.join("\t") + "\n"].into_iter().chain(rows.iter().map(line)).collect()
}
