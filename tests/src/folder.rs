//! A folder in which `grammaton` runs: files in, results out.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::{Process, binary};

/// Output of `grammaton`.
pub struct Printed {
    /// Exit code.
    pub code: i32,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub log: String,
}

/// A temporary folder for a test.
pub struct Folder(TempDir);

/// The repository's folder `examples`.
pub fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples")
}

impl Folder {
    /// Creates a folder with these files.
    pub fn new(files: &[(&str, &str)]) -> Folder {
        let dir = tempfile::tempdir().expect("a temporary folder can be created");
        for (name, content) in files {
            fs::write(dir.path().join(name), content).expect("and written to");
        }
        Folder(dir)
    }

    /// Path of a file in the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Text of a file in the folder.
    pub fn read(&self, name: &str) -> String {
        let path = self.path(name);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// Command of `grammaton` with these arguments in this folder.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(binary("grammaton"));
        command
            .args(args)
            .current_dir(self.0.path())
            .env_remove("GRAMMATON_TOKEN")
            .env_remove("GRAMMATON_LOG");
        command
    }

    /// Runs `grammaton` to its end, successful or not.
    pub fn run(&self, args: &[&str]) -> Printed {
        let out = self.path(".stdout");
        let file = File::create(&out).expect("a file can be made");
        let mut process = Process::spawn_to(&mut self.command(args), file);
        let code = process.wait().code().expect("it is not killed");
        Printed { code, out: fs::read_to_string(&out).expect("it prints text"), log: process.log() }
    }

    /// Runs `grammaton` and checks that it succeeds; returns its standard output.
    pub fn grammaton(&self, args: &[&str]) -> String {
        let printed = self.run(args);
        assert_eq!(printed.code, 0, "grammaton {args:?}: {}", printed.log);
        printed.out
    }

    /// Trains with these arguments into `out`, quietly.
    pub fn train(&self, out: &str, args: &[&str]) -> Trained {
        let all = [&["train", "job.toml", "--quiet", "--out", out], args].concat();
        self.grammaton(&all);
        Trained::read(&self.path(out))
    }
}

/// Output of a training run.
pub struct Trained {
    /// `summary.json`.
    pub summary: Value,
    /// The lines of `metrics.jsonl`.
    pub rounds: Vec<Value>,
    /// Result files without timings, by name; the kind of model decides which exist.
    pub files: BTreeMap<&'static str, Vec<u8>>,
}

const RESULTS: [&str; 12] = [
    "segmentation.viterbi.txt",
    "segmentation.viterbi.tsv",
    "segmentation.mbr.txt",
    "segmentation.mbr.tsv",
    "parses.viterbi.conllu",
    "parses.mbr-arcs.conllu",
    "parses.txt",
    "lexicon.tsv",
    "boundaries.tsv",
    "model/model.bin",
    "model/sticks.tsv",
    "model/grammar.txt",
];

impl Trained {
    /// Reads an output folder.
    pub fn read(dir: &Path) -> Trained {
        let text =
            |name: &str| fs::read_to_string(dir.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        let json = |line: &str| serde_json::from_str(line).expect("metrics and summary are JSON");
        let read = |name| Some((name, fs::read(dir.join(name)).ok()?));
        Trained {
            summary: json(&text("summary.json")),
            rounds: text("metrics.jsonl").lines().map(json).collect(),
            files: RESULTS.into_iter().filter_map(read).collect(),
        }
    }

    /// `parameters_sha256`.
    pub fn digest(&self) -> &str {
        self.summary["parameters_sha256"].as_str().expect("it is a text")
    }

    /// Bounds of a run, by round.
    pub fn bounds(&self, run: u64) -> Vec<f64> {
        self.rounds
            .iter()
            .filter(|round| round["run"] == run)
            .filter_map(|round| round["bound"].as_f64())
            .collect()
    }

    /// Token F1 of a decoder.
    pub fn f1(&self, decoder: &str) -> f64 {
        self.summary["scores"][decoder]["token_f1"].as_f64().expect("there is gold")
    }

    /// Checks that the bound never falls, except for rounding errors.
    pub fn check_bounds(&self) {
        let runs = self.summary["bounds"].as_array().expect("a bound for every run").len() as u64;
        for bounds in (1..=runs).map(|run| self.bounds(run)) {
            assert!(!bounds.is_empty());
            let falls = |pair: &[f64]| pair[1] < pair[0] - 1e-9 * pair[0].abs();
            assert!(!bounds.windows(2).any(falls), "{bounds:?}");
        }
    }

    /// Checks that both results are the same, to the last bit.
    pub fn check_equals(&self, other: &Trained) {
        assert_eq!(self.digest(), other.digest());
        assert!(self.files.keys().eq(other.files.keys()));
        for (name, bytes) in &self.files {
            assert!(*bytes == other.files[name], "{name} differs");
        }
        let kept = |round: &Value| {
            let mut round = round.clone();
            for time in ["seconds", "busy_seconds", "sentences_per_second"] {
                round.as_object_mut().expect("a line is an object").remove(time);
            }
            round
        };
        let rounds = |trained: &Trained| trained.rounds.iter().map(kept).collect::<Vec<_>>();
        assert_eq!(rounds(self), rounds(other));
        for same in [
            "rounds",
            "converged",
            "bound",
            "run",
            "bounds",
            "scores",
            "brackets",
            "seed",
            "sentences",
            "notices",
        ] {
            assert_eq!(self.summary[same], other.summary[same], "{same}");
        }
    }
}
