//! The job file: model, corpus, inference and output of a training job.
//!
//! In: TOML with four tables, and `--set key=value` overrides, of which the last one wins. Out: a checked [`Job`].
//! A key is declared in one place (`tables.rs`); errors name the nearest known key, with file, line and column. Paths in the file
//! are relative to the file, and paths given with `--set` to the current folder.
//!
//! Invariant: a point of a grid is the job that has its values and no `[[sweep]]`, to the last bit of its parameters
//! (`train/laws.rs`).

mod check;
mod derived;
pub mod keys;
pub mod located;
mod position_marks;
pub mod reference;
pub mod source;
pub mod sweep;
mod tables;
pub mod typed;

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use basics::store;
pub use grammaton::settings::inference::{
    AdaptorPrior, FamiliesSource, HarmonicStops, Hyperparameter, Inference, MAX_ROUNDS, RulePrior, Selection,
    Start,
};
use grammaton::settings::key::Key;
pub use grammaton::settings::{Method, ModelKind};
use keys::{KeyOfJob as _, is_local};
use located::{Fault, Node, Problem};
pub use position_marks::PositionMarks;
pub use source::GrammarSource;
use sweep::{Sweep, SweepTable};
pub use tables::{CorpusTable, GivenHeads, KeptModels, ModelTable, OnUnparsable, OutputTable, STRESS_MARKS};

/// A training job.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// The model to train.
    pub model: ModelTable,
    /// The training data.
    pub corpus: CorpusTable,
    /// Settings of inference, without the keys that vary.
    #[serde(default)]
    pub inference: Inference,
    /// The results.
    #[serde(default)]
    pub output: OutputTable,
    /// Tables `[[sweep]]`: the keys of `inference` that vary, with their values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sweep: Vec<SweepTable>,
    /// Points of the grid, at least one.
    #[serde(skip)]
    pub points: Vec<Point>,
    /// Notices for the user about its keys.
    #[serde(skip)]
    pub notices: Vec<String>,
    /// Affixes that the first run of a cascade found; none before it.
    #[serde(skip)]
    pub found: FoundAffixes,
}

/// Affixes that a run found, the most used first.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FoundAffixes {
    /// Prefixes, as the corpus is written.
    pub prefixes: Vec<String>,
    /// Suffixes, likewise.
    pub suffixes: Vec<String>,
}

/// A point of the grid: one setting of inference, with one or more runs. The points of its voters follow it.
#[derive(Clone, PartialEq, Debug)]
pub struct Point {
    /// Values of the keys that vary: `alpha=1e-5 method=em`; with voters, also the grammar. Empty if nothing varies.
    pub name: String,
    /// The grammar of a voter (`model.voters`); `None` for `model.grammar`.
    pub voter: Option<GrammarSource>,
    /// Values of the keys that vary, by key.
    pub settings: BTreeMap<String, toml::Value>,
    /// All settings of inference.
    pub inference: Inference,
}

impl Point {
    /// The point, and the same settings for the grammar of every voter, but for the number of its chains.
    fn with_voters(self, model: &ModelTable) -> Vec<Point> {
        if model.voters.is_empty() {
            return vec![self];
        }
        let of = |grammar: &GrammarSource, voter: Option<GrammarSource>| {
            let name = format!("{} grammar={grammar}", self.name).trim_start().to_owned();
            let mut settings = self.settings.clone();
            settings.insert("grammar".to_owned(), grammar.to_string().into());
            let mut inference = self.inference.clone();
            if voter.is_some() && model.voter_chains > 0 {
                inference.restarts = model.voter_chains;
            }
            Point { name, voter, settings, inference }
        };
        let voters = model.voters.iter().map(|voter| of(voter, Some(voter.clone())));
        std::iter::once(of(&model.grammar, None)).chain(voters).collect()
    }
}

/// Number of runs of all points.
const MAX_RUNS: usize = 1000;
/// Maximum number of rounds of all runs: each keeps a line of metrics in memory.
const MAX_ROUNDS_OF_ALL: usize = 10 * MAX_ROUNDS;
/// Maximum size of a job file in bytes.
const MAX_BYTES: usize = 1 << 20;
/// Maximum number of values in a job file; each takes some hundred bytes of memory.
const MAX_VALUES: usize = 20_000;
/// Maximum number of values in all points of a grid.
const MAX_VALUES_OF_POINTS: usize = 1_000_000;

/// An error in reading a job.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// The file cannot be read.
    #[error("{path}: cannot read the job file")]
    Read {
        /// Path of the file.
        path: String,
        /// Cause.
        source: std::io::Error,
    },
    /// The file is not text.
    #[error("{path}:{line}: job file is not UTF-8; save it as UTF-8")]
    Encoding {
        /// The file.
        path: String,
        /// First line that is not UTF-8.
        line: usize,
    },
    /// A key or value is invalid.
    #[error(transparent)]
    Fault(#[from] Fault),
}

impl Job {
    /// All keys of a job file.
    pub fn keys() -> Vec<Key> {
        let tables = [ModelTable::keys(), CorpusTable::keys(), Inference::keys(), OutputTable::keys()];
        tables.into_iter().flatten().collect()
    }

    /// Calls `each` with every file or URL that the job reads, and its key.
    pub fn visit_files(&mut self, each: &mut dyn FnMut(&str, &mut PathBuf)) {
        self.visit_paths(&mut |key, value| {
            if key.path.is_some_and(|path| path.is_read && !(path.is_word)(value)) && !value.is_empty() {
                let mut path = PathBuf::from(&*value);
                each(&key.path(), &mut path);
                *value = path.display().to_string();
            }
        });
    }

    /// Calls `each` with every value of a key that may be a path: in the tables, in the sweep, and in every point.
    fn visit_paths(&mut self, each: &mut dyn FnMut(&Key, &mut String)) {
        let keys = Job::keys();
        let keys: Vec<&Key> = keys.iter().filter(|key| key.path.is_some()).collect();
        let visit = |table: &mut toml::Table, name: &str, each: &mut dyn FnMut(&Key, &mut String)| {
            for key in keys.iter().filter(|key| key.table == name) {
                match table.get_mut(key.name) {
                    Some(toml::Value::String(value)) => each(key, value),
                    Some(toml::Value::Array(values)) => {
                        for value in values {
                            if let toml::Value::String(value) = value {
                                each(key, value);
                            }
                        }
                    }
                    _ => {}
                }
            }
        };
        let mut of_inference = |inference: &Inference| -> Inference {
            let mut table = to_table(inference);
            visit(&mut table, "inference", each);
            from_table(table)
        };
        self.inference = of_inference(&self.inference);
        for point in &mut self.points {
            point.inference = of_inference(&point.inference);
        }
        for table in &mut self.sweep {
            for (name, values) in table {
                let mut one =
                    toml::Table::from_iter([(name.clone(), toml::Value::Array(std::mem::take(values)))]);
                visit(&mut one, "inference", each);
                if let Some(toml::Value::Array(visited)) = one.remove(name) {
                    *values = visited;
                }
            }
        }
        let mut model = to_table(&self.model);
        visit(&mut model, "model", each);
        self.model = from_table(model);
        let mut corpus = to_table(&self.corpus);
        visit(&mut corpus, "corpus", each);
        self.corpus = from_table(corpus);
        let mut output = to_table(&self.output);
        visit(&mut output, "output", each);
        self.output = from_table(output);
    }

    /// Reads the job file at `path` and applies `overrides`, each `table.key=value`.
    pub fn load(path: &Path, overrides: &[String]) -> Result<Job, JobError> {
        let name = path.display().to_string();
        let mut bytes = Vec::new();
        let file = std::fs::File::open(path);
        file.and_then(|file| file.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes))
            .map_err(|source| JobError::Read { path: name.clone(), source })?;
        let text = String::from_utf8(bytes).map_err(|error| {
            let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            let line = 1 + valid.iter().filter(|&&byte| byte == b'\n').count();
            JobError::Encoding { path: name.clone(), line }
        })?;
        let folder = path.parent().unwrap_or(Path::new(""));
        Ok(Job::parse(&text, &name, folder, overrides)?)
    }

    /// Reads a job from its text. Errors name `name`; relative paths in the text are relative to `folder`.
    ///
    /// Points and runs are counted before any is created, so that a refusal takes no longer than reading the text.
    pub fn parse(text: &str, name: &str, folder: &Path, overrides: &[String]) -> Result<Job, Fault> {
        if text.len() > MAX_BYTES {
            return Err(Fault::whole(name, format!("a job file has at most {MAX_BYTES} bytes, found more")));
        }
        let keys = Job::keys();
        let mut root = Node::document(text, name)?;
        let mut sweep = Sweep::take(&mut root)?;
        for key in &keys {
            let Some(path) = key.path else { continue };
            let varying =
                sweep.values_mut().filter(|(name, _)| key.table == "inference" && *name == key.name);
            for node in root.find_mut(&key.path()).into_iter().chain(varying.map(|(_, node)| node)) {
                if let Some(value) = node.string().filter(|value| is_local(path, value)) {
                    node.value = located::Value::String(folder.join(value).display().to_string());
                }
            }
        }
        let full = |name: &str| keys.iter().find(|key| key.name == name).map(Key::path);
        for assignment in overrides {
            if !sweep.assign(assignment)? {
                root.set(assignment, full)?;
            }
        }
        let values = root.n_values();
        if values > MAX_VALUES {
            let problem = format!("a job file has at most {MAX_VALUES} values, found {values}");
            return Err(Fault::new(&root, Problem::Other(problem)));
        }
        let n_points = sweep.n_points();
        if n_points > MAX_RUNS || n_points.saturating_mul(values) > MAX_VALUES_OF_POINTS {
            let found = format!("{n_points} points of {values} values");
            let expected = format!("at most {MAX_RUNS} points, with {MAX_VALUES_OF_POINTS} values in all");
            return Err(Fault::new(&root, Problem::Other(format!("a grid has {expected}, found {found}"))));
        }
        if n_points == 0 {
            let problem = "a grid without points: a [[sweep]] has an empty list".to_owned();
            return Err(Fault::new(&root, Problem::Other(problem)));
        }
        let is_set = |key: &&Key| root.find(&key.path()).is_some();
        let set: Vec<Key> = keys.iter().filter(is_set).cloned().collect();
        let kind = root.find("model.kind").map(|node| ModelKind::deserialize(node.clone())).transpose()?;
        let kind = kind.unwrap_or_default();
        for key in &keys {
            // The error for a missing [model] is reported below.
            let is_missing = root.find(&key.path()).is_none() && root.find("model").is_some();
            if let (Some((_, value)), true) = (key.defaults.iter().find(|(of, _)| *of == kind), is_missing) {
                root.set(&format!("{}={value}", key.path()), |_| None)?;
            }
        }
        let mut job = Job::deserialize(root.clone())?;
        if let Some(key) = keys.iter().find(|key| key.required && root.find(&key.path()).is_none()) {
            let table = root.find(key.table).unwrap_or(&root);
            return Err(Fault::new(table, Problem::MissingKey(key.name)));
        }
        if root.find("output.dir").is_none() {
            job.output.dir = folder.join(&job.output.dir);
        }
        // Keys for the file's model and method are ignored if the command line chooses others.
        let chooses = |assignment: &String| {
            let path = assignment.split('=').next().unwrap_or_default().trim();
            ["model.kind", "model.adapted", "inference.method", "inference.prior"].contains(&path)
        };
        let is_chosen = overrides.iter().any(chooses);
        let mut left_out = Vec::new();
        if is_chosen && !sweep.varies("method") && !sweep.varies("prior") {
            let single = Point {
                name: String::new(),
                voter: None,
                settings: BTreeMap::new(),
                inference: job.inference.clone(),
            };
            let is_unread = |name: &str| {
                keys.iter()
                    .any(|key| key.table == "inference" && key.name == name && !key.is_read_at(&job, &single))
            };
            left_out = sweep.leave_out(is_unread);
        }
        job.sweep = sweep.tables();
        for choice in sweep.points() {
            let root = sweep::chosen(&root, &choice);
            let mut point = Job { output: job.output.clone(), ..Job::deserialize(root.clone())? };
            let (name, settings) = (sweep::name(&choice), sweep::settings(&choice));
            point.points.push(Point { name, voter: None, settings, inference: point.inference.clone() });
            point.check_ranges(&root)?;
            point.check(&root)?;
            let varies =
                |key: &&Key| choice.iter().any(|(name, _)| key.table == "inference" && *name == key.name);
            point.check_readers(keys.iter().filter(varies), &root)?;
            job.notices.extend(point.unused(keys.iter().filter(varies)));
            let with_voters = point.points.drain(..).flat_map(|point| point.with_voters(&job.model));
            job.points.extend(with_voters);
        }
        job.notices.dedup();
        let of_file = |key: &&Key| root.find(&key.path()).is_some_and(|node| !node.is_override());
        let is_left_out = |key: &&Key| is_chosen && of_file(key) && !key.is_read(&job);
        left_out.extend(set.iter().filter(is_left_out).map(Key::path));
        let set: Vec<Key> = set.into_iter().filter(|key| !left_out.contains(&key.path())).collect();
        if !left_out.is_empty() {
            let names = left_out.join(", ");
            job.notices.push(format!(
                "ignored, since the model and method of the command line do not read it: {names}"
            ));
        }
        job.check_readers(set.iter(), &root)?;
        let before = job.to_table();
        let is_default = |key: &&Key| {
            let value = |table: &toml::Table| table.get(key.table)?.get(key.name).cloned();
            value(&before) == key.default_of(kind)
        };
        let unused = job.unused(set.iter().filter(|key| !is_default(key)));
        job.notices.extend(unused);
        if let (cascade @ 1.., 2..) = (job.model.cascade, job.points.len()) {
            let expected =
                "0 with model.voters or a [[sweep]], whose runs need affixes of their own".to_owned();
            let problem = Problem::Mismatch { found: cascade.to_string(), expected };
            return Err(Fault::new(root.find("model.cascade").unwrap_or(&root), problem));
        }
        let rounds = job
            .points
            .iter()
            .map(|point| point.inference.restarts.saturating_mul(point.inference.max_rounds));
        let runs = match job.model.grammar {
            GrammarSource::Choose => {
                job.with_grammars(GrammarSource::Choose, vec![GrammarSource::Choose]).n_runs()
            }
            _ => job.n_runs(),
        };
        let rounds = rounds.fold(0, usize::saturating_add);
        if runs > MAX_RUNS || rounds > MAX_ROUNDS_OF_ALL {
            let found = format!("{n_points} points with {runs} runs and {rounds} rounds in all");
            let most = format!("at most {MAX_RUNS} runs and {MAX_ROUNDS_OF_ALL} rounds");
            let problem = format!("a job has {most}, found {found}; lower inference.restarts or max_rounds");
            return Err(Fault::new(&root, Problem::Other(problem)));
        }
        Ok(job)
    }

    /// Number of runs of all points.
    pub fn n_runs(&self) -> usize {
        self.points.iter().map(|point| point.inference.restarts).sum()
    }

    /// For each run, the index of its point, from 0, and its number within the point, from 1.
    pub fn runs(&self) -> impl Iterator<Item = (usize, usize)> {
        let of_point =
            |(at, point): (usize, &Point)| (1..=point.inference.restarts).map(move |run| (at, run));
        self.points.iter().enumerate().flat_map(of_point)
    }

    /// Method of a run, counted from 1.
    pub fn method_of(&self, run: usize) -> Method {
        let point = run.checked_sub(1).and_then(|run| self.runs().nth(run)).map_or(0, |(point, _)| point);
        self.points[point].inference.method
    }

    /// Title of the report: the name of the corpus, unless the job file has another one.
    pub fn title(&self) -> String {
        match &self.output.title[..] {
            "" => self.corpus.path.file_name().map_or(String::new(), |name| name.display().to_string()),
            title => title.to_owned(),
        }
    }

    /// Writes the job as a job file that has the same effect from any folder: with absolute paths, and every value that is read.
    pub fn to_toml(&self) -> String {
        let mut job = self.clone();
        job.visit_paths(&mut |key, value| {
            if key.path.is_some_and(|path| is_local(path, value)) {
                *value = store::absolute(Path::new(&*value)).display().to_string();
            }
        });
        job.to_toml_as_it_is()
    }

    /// Writes the job as a job file with its paths unchanged, without keys that nothing reads.
    pub fn to_toml_as_it_is(&self) -> String {
        let mut job = self.to_table();
        for key in Job::keys() {
            if let (Some(toml::Value::Table(table)), false) = (job.get_mut(key.table), key.is_read(self)) {
                table.remove(key.name);
            }
        }
        job.to_string()
    }

    /// Tables with the values of the job.
    fn to_table(&self) -> toml::Table {
        to_table(self)
    }
}

fn to_table<T: Serialize>(tables: &T) -> toml::Table {
    toml::Table::try_from(tables).expect("tables of plain values have a TOML form")
}

fn from_table<T: for<'de> Deserialize<'de>>(table: toml::Table) -> T {
    T::deserialize(table).expect("a table of a job stays valid with other paths")
}

#[cfg(test)]
mod tests {
    use grammaton::models::decode::Decoder;
    use grammaton::models::logistic_normal::PointEstimate;
    use grammaton::train::mixture::Limit;

    use grammaton::grammar::auto::Auto;

    use super::*;

    const JOB: &str = "[model]\ngrammar = \"../g.gr\"\n\n[corpus]\npath = \"c.txt\"\n";

    fn parse(text: &str, overrides: &[&str]) -> Result<Job, String> {
        let overrides: Vec<String> = overrides.iter().map(|&s| s.to_owned()).collect();
        Job::parse(text, "job.toml", Path::new("jobs"), &overrides).map_err(|fault| fault.to_string())
    }

    fn refusal(more: &str) -> String {
        parse(&format!("{JOB}{more}"), &[]).unwrap_err()
    }

    #[test]
    fn missing_keys_have_their_defaults() {
        let job = parse(JOB, &[]).unwrap();
        assert_eq!(job.inference, Inference::default());
        assert_eq!(job.corpus.max_symbols, 10_000);
        assert_eq!(job.output.decoders, [Decoder::Viterbi, Decoder::Mbr]);
    }

    #[test]
    fn paths_are_relative_to_the_file_and_overrides_to_the_current_folder() {
        let job = parse(JOB, &["corpus.path=other.txt"]).unwrap();
        assert_eq!(job.model.grammar, GrammarSource::File("jobs/../g.gr".into()));
        assert_eq!(job.corpus.path, Path::new("other.txt"));
        assert_eq!(job.output.dir, Path::new("jobs/out"));
        let job = parse(JOB, &["output.dir=here", "output.dir=there"]).unwrap();
        assert_eq!(job.output.dir, Path::new("there"));
    }

    #[test]
    fn automatic_grammars_are_not_paths() {
        let job = parse(JOB, &["model.grammar=auto:colloc"]).unwrap();
        assert_eq!(job.model.grammar, GrammarSource::Auto(Auto::COLLOC));
        let error = parse(JOB, &["model.grammar=auto:unigrm"]).unwrap_err();
        assert_eq!(
            error,
            "--set model.grammar=auto:unigrm: unknown model.grammar \"unigrm\"; did you mean \"unigram\"?"
        );
    }

    #[test]
    fn grammars_are_chosen_for_chains_over_an_adaptor_grammar_alone() {
        let job = |more: &[&str]| {
            let open = ["model.grammar=auto", "inference.method=hastings", "inference.restarts=5"];
            parse(JOB, &[&open[..], more].concat())
        };
        let open = job(&[]).unwrap();
        assert_eq!((&open.model.grammar, open.n_runs()), (&GrammarSource::Choose, 5));
        assert_eq!(parse(&open.to_toml(), &[]).unwrap().model.grammar, GrammarSource::Choose);
        let chosen = |job: &Job| {
            let [grammar, voter] = [Auto::COLLOC3_SYLLABLE, Auto::COLLOC_SYLLABLE].map(GrammarSource::Auto);
            job.with_grammars(grammar, vec![voter])
        };
        assert_eq!(chosen(&open).n_runs(), 5 + 3, "a voter has half of the chains");
        assert_eq!(chosen(&job(&["model.voter_chains=1"]).unwrap()).n_runs(), 5 + 1);
        let read_again = parse(&chosen(&open).to_toml(), &[]).unwrap();
        assert_eq!(read_again.points, chosen(&open).points, "the job that was chosen is a job like others");
        for (more, expected) in [
            (
                "inference.method=vb",
                "--set model.grammar=auto: model.grammar must be a grammar, or model.kind = \"adaptor\" and inference.method = \"hastings\", \
                 for which grammars are chosen, found auto",
            ),
            (
                "model.voters=[\"auto:colloc\"]",
                "--set model.voters=[\"auto:colloc\"]: model.voters must be left out: model.grammar = \"auto\" chooses a voter too, found auto:colloc",
            ),
            (
                "inference.start=model",
                "--set inference.start=model: inference.start must be \"uniform\" or \"incremental\" with model.grammar = \"auto\", found \"model\"",
            ),
        ] {
            assert_eq!(job(&[more]).unwrap_err(), expected);
        }
        assert!(job(&["inference.restarts=700"]).unwrap_err().contains("1050 runs"));
    }

    #[test]
    fn errors_name_place_problem_and_remedy() {
        for (more, expected) in [
            (
                "[inference]\ntruncatoin = 1\n",
                "job.toml:7:1: unknown key \"truncatoin\" in [inference]; did you mean \"truncation\"?",
            ),
            (
                "[inference]\nzzz = 1\n",
                "job.toml:7:1: unknown key \"zzz\" in [inference]; the keys are: method, adaptor, truncation, \
                 rho, max_rounds, tolerance, seed, selection, drop_share, fit, concentration, discount, \
                 max_string, grow_from, grow_by, restarts, jitter, alpha, start, start_from, noise, \
                 anneal_from, anneal_to, anneal_rounds, burn_in, keep_every, sweeps, relabel, gamma_shape, \
                 gamma_scale, patience, sample_shards, first_rounds, forget_power, forget_delay, select_every, \
                 subtypes, harmonic_offset, harmonic_per_child, harmonic_stops, harmonic_stop, \
                 harmonic_smoothing, prior, families, estimate, backoff, rules, rules_weight, components, mixture, base_from, base_by, \
                 base_to",
            ),
            ("[inferense]\n", "job.toml:6:2: unknown table [inferense]; did you mean \"inference\"?"),
            (
                "[inference]\n  truncation = \"many\"\n",
                "job.toml:7:16: inference.truncation must be a whole number, 0 or more, found \"many\"",
            ),
            (
                "[inference]\ntruncation = 0\n",
                "job.toml:7:14: inference.truncation must be from 1 to 100000000, found 0",
            ),
            (
                "[inference]\nseed = -1\n",
                "job.toml:7:8: inference.seed must be a whole number, 0 or more, found -1",
            ),
            ("[inference]\nrho = nan\n", "job.toml:7:7: inference.rho must be from -10 to 10, found NaN"),
            (
                "[inference]\nadaptor = \"pitman-yorr\"\n",
                "job.toml:7:11: unknown inference.adaptor \"pitman-yorr\"; did you mean \"pitman-yor\"?",
            ),
            ("[inference]\nadaptor = 3\n", "job.toml:7:11: inference.adaptor must be a string, found 3"),
            (
                "[output]\ndecoders = [\"viterbi\", \"mrb\"]\n",
                "job.toml:7:24: unknown output.decoders \"mrb\"; did you mean \"mbr\"?",
            ),
            (
                "[output]\ndecoders = []\n",
                "job.toml:7:12: output.decoders must be at least one decoder, as in [\"viterbi\"], found none",
            ),
            (
                "[output]\ndecoders = [\"mbr\", \"mbr\"]\n",
                "job.toml:7:12: output.decoders must be a list of different decoders, found one named twice",
            ),
            (
                "[output]\ndir = \"\"\n",
                "job.toml:7:7: output.dir must be the path of a folder, found an empty one",
            ),
        ] {
            assert_eq!(refusal(more), expected);
        }
    }

    #[test]
    fn required_keys_are_named() {
        let error = parse("[model]\nkind = \"adaptor\"\n[corpus]\npath = \"c\"\n", &[]).unwrap_err();
        assert_eq!(error, "job.toml:1:1: [model] lacks the key \"grammar\"");
        assert_eq!(
            parse("[model]\ngrammar = \"g\"\n", &[]).unwrap_err(),
            "job.toml: table [corpus] is missing"
        );
    }

    #[test]
    fn broken_toml_has_its_place() {
        assert!(refusal("[inference\n").starts_with("job.toml:6:11: not valid TOML: "));
    }

    #[test]
    fn overrides_are_typed_and_may_open_tables() {
        let job =
            parse(JOB, &["inference.seed=7", "inference.rho = -1", "output.decoders=[\"mbr\"]"]).unwrap();
        assert_eq!((job.inference.seed, job.inference.rho), (7, -1.0));
        assert_eq!(job.output.decoders, [Decoder::Mbr]);
        assert_eq!(parse(JOB, &["corpus.path=1984"]).unwrap().corpus.path, Path::new("1984"));
        assert_eq!(
            parse(JOB, &["inference.sede=7"]).unwrap_err(),
            "--set inference.sede=7: unknown key \"sede\" in [inference]; did you mean \"seed\"?"
        );
        assert!(parse(JOB, &["seed"]).unwrap_err().contains("write key=value"));
        let of_no_table = parse(JOB, &["rho=0"]).unwrap_err();
        assert!(
            of_no_table.contains("--set rho=0: rho is a key of a table: write inference.rho=0"),
            "{of_no_table}"
        );
        assert!(parse(JOB, &["sed=1"]).unwrap_err().contains("as in inference.seed=2"));
        assert!(parse(JOB, &["corpus.path.x=1"]).unwrap_err().contains("corpus.path is not a table"));
    }

    #[test]
    fn grids_have_a_point_for_every_combination() {
        let names = |job: &Job| job.points.iter().map(|point| point.name.clone()).collect::<Vec<_>>();
        let kind = "model.kind=pcfg";
        let text = format!(
            "{JOB}[[sweep]]\nalpha = [1e-5, 0.1]\nmethod = [\"vb\", \"cvb\"]\n[[sweep]]\nmethod = \"em\"\n"
        );
        let job = parse(&text, &[kind, "inference.seed=3"]).unwrap();
        assert_eq!(
            names(&job),
            [
                "alpha=1e-5 method=vb",
                "alpha=1e-5 method=cvb",
                "alpha=0.1 method=vb",
                "alpha=0.1 method=cvb",
                "method=em"
            ]
        );
        assert_eq!((job.points[3].inference.alpha, job.points[3].inference.method), (Some(0.1), Method::Cvb));
        assert!(job.points.iter().all(|point| point.inference.seed == 3));
        let again = Job::parse(&job.to_toml(), "job.toml", Path::new("elsewhere"), &[]).unwrap();
        assert_eq!((again.points, again.sweep), (job.points.clone(), job.sweep.clone()));
        // A list on the command line is one more dimension, or the only one.
        let job = parse(&text, &[kind, "inference.seed=1,2"]).unwrap();
        assert_eq!((job.points.len(), names(&job).last().unwrap().as_str()), (10, "method=em seed=2"));
        // A single value holds for all points; a table without other keys is removed.
        let job = parse(&text, &[kind, "inference.method=vb"]).unwrap();
        assert_eq!(names(&job), ["alpha=1e-5", "alpha=0.1"]);
        assert!(job.points.iter().all(|point| point.inference.method == Method::Vb));
        let job = parse(JOB, &[kind, "inference.alpha=1,2", "inference.alpha=3"]).unwrap();
        assert_eq!((names(&job), job.inference.alpha), (vec![String::new()], Some(3.0)));
        let job = parse(JOB, &[kind, "inference.alpha=1,1e-10"]).unwrap();
        assert_eq!(names(&job), ["alpha=1", "alpha=1e-10"]);
        assert_eq!(names(&parse(JOB, &[]).unwrap()), [""]);
        let lists = parse(JOB, &["inference.fit=[\"alpha\", \"discount\"]"]).unwrap();
        assert_eq!(
            (lists.points.len(), lists.inference.fit.len()),
            (1, 2),
            "a list in brackets is one value"
        );
    }

    #[test]
    fn logistic_normal_priors_have_their_kinds_and_methods() {
        let dmv = "[model]\nkind = \"dmv\"\n[corpus]\npath = \"c.conllu\"\n[inference]\n";
        let of = |more: &str| parse(&format!("{dmv}prior = \"logistic-normal\"\n{more}"), &[]);
        let families = |job: Job| job.inference.families;
        assert_eq!(of("").map(families), Ok(FamiliesSource::None));
        assert_eq!(of("families = \"ptb\"\n").map(families), Ok(FamiliesSource::Ptb));
        let file = of("families = \"tags.txt\"\nestimate = \"raw\"\n").unwrap();
        assert_eq!(file.inference.estimate, PointEstimate::Raw);
        assert_eq!(file.inference.families, FamiliesSource::File("jobs/tags.txt".into()));
        let again = Job::parse(&file.to_toml(), "job.toml", Path::new("elsewhere"), &[]).unwrap();
        let absolute = std::path::absolute("jobs/tags.txt").unwrap();
        assert_eq!(again.inference.families, FamiliesSource::File(absolute));
        let overridden = parse(dmv, &["inference.prior=logistic-normal", "inference.families=here.txt"]);
        assert_eq!(overridden.map(families), Ok(FamiliesSource::File("here.txt".into())));
        assert_eq!(
            of("method = \"em\"\n").unwrap_err(),
            "job.toml:7:10: inference.method must be \"vb\" with inference.prior = \"logistic-normal\", found another"
        );
        assert_eq!(
            parse(&format!("{dmv}families = \"ud\"\n"), &[]).unwrap_err(),
            "job.toml:6:12: inference.families is not read in this job (dmv by vb), only by dmv by vb with logistic-normal \
             priors; leave it out"
        );
        assert_eq!(
            refusal("[inference]\nprior = \"logistic-normal\"\n"),
            "job.toml:7:9: inference.prior must be \"dirichlet\", unless model.kind is \"pcfg\", or \"dmv\" without \
             model.adapted, found \"logistic-normal\""
        );
    }

    #[test]
    fn components_and_inequalities_are_read_and_checked() {
        let dmv = "[model]\nkind = \"dmv\"\n[corpus]\npath = \"c.conllu\"\n[inference]\n";
        let normal = format!("{dmv}prior = \"logistic-normal\"\n");
        let of = |more: &str| parse(&format!("{normal}{more}"), &[]);
        let names = |job: &Job| {
            let constrained = job.inference.constrained().unwrap().unwrap();
            constrained.mixture.names().join(" ")
        };
        assert_eq!(of("").unwrap().inference.constrained(), Ok(None));
        let paper = of("components = [\"right-attach\"]\n").unwrap();
        assert_eq!(names(&paper), "base right-attach");
        let limit = paper.inference.constrained().unwrap().unwrap().mixture.limit();
        assert_eq!(limit, Some(Limit { from: 0.85, step: 0.01, to: 0.95 }));
        let own = of("components = [\"short-dep\", { name = \"own\", roots = [\"verb\"], longest_arc = 2, \
            forbid = [{ head = [\"ADP\"], side = \"left\" }] }]\nmixture = [\"own = short-dep\"]\n")
        .unwrap();
        assert_eq!(names(&own), "base short-dep own");
        assert_eq!(own.inference.components[1].longest_arc, Some(2));
        let again = Job::parse(&own.to_toml(), "job.toml", Path::new("elsewhere"), &[]).unwrap();
        assert_eq!(again.inference, own.inference);
        let set = parse(&normal, &["inference.components=[\"short-dep\", \"all-right\"]"]).unwrap();
        assert_eq!((names(&set), set.points.len()), ("base short-dep all-right".to_owned(), 1));
        let grid = of(
            "[[sweep]]\ncomponents = [[\"short-dep\"], [\"all-right\", \"left-chain\"]]\nbase_from = 0.95\n",
        );
        assert_eq!(grid.unwrap().points.len(), 2);
        let one = of("[[sweep]]\ncomponents = [\"short-dep\", \"all-right\"]\nbase_from = [0.85, 0.95]\n");
        assert_eq!(one.unwrap().points.len(), 2);
        for (more, expected) in [
            (
                "components = [\"short-dpe\"]\n",
                "job.toml:7:15: unknown inference.components \"short-dpe\"; did you mean \"short-dep\"?",
            ),
            (
                "components = [{ name = \"own\", root = [\"verb\"] }]\n",
                "job.toml:7:31: unknown key \"root\" in [inference.components]; did you mean \"roots\"?",
            ),
            (
                "components = [\"short-dep\"]\nmixture = [\"bsae <= 0.9\"]\n",
                "job.toml:8:11: inference.mixture: `bsae <= 0.9`: found `bsae`, expected a number or one of base, \
                 short-dep; put spaces between all words, numbers and signs",
            ),
            (
                "components = [\"short-dep\"]\nmixture = [\"base = 0.9\"]\n",
                "job.toml:8:11: inference.mixture: no weights of base, short-dep obey `base = 0.9` beside what is before it; all \
                 are at least 0 and sum to 1, so loosen one",
            ),
            (
                "components = [\"short-dep\"]\nbase_to = 0.5\n",
                "job.toml:8:11: inference.base_to: the limit of `base` must rise within (0, 1], found from 0.85, step 0.01, to \
                 0.5; choose 0 < from <= to <= 1 and step > 0",
            ),
            (
                "components = [\"short-dep\", \"short-dep\"]\n",
                "job.toml:7:14: inference.components: two components are called `short-dep`; give another name to one",
            ),
            (
                "mixture = [\"base <= 0.9\"]\n",
                "job.toml:7:11: inference.mixture must be [], unless there are inference.components, found some",
            ),
        ] {
            assert_eq!(of(more).unwrap_err(), expected);
        }
        assert_eq!(
            parse(&format!("{dmv}components = [\"short-dep\"]\n"), &[]).unwrap_err(),
            "job.toml:6:14: inference.components is not read in this job (dmv by vb), only by dmv by vb with logistic-normal \
             priors; leave it out"
        );
    }

    #[test]
    fn errors_in_a_point_of_a_grid_name_its_place() {
        for (more, expected) in [
            ("[[sweep]]\nrho = [1, -11]\n", "job.toml:7:11: inference.rho must be from -10 to 10, found -11"),
            (
                "[[sweep]]\nalhpa = 1\n",
                "job.toml:7:9: unknown key \"alhpa\" in [inference]; did you mean \"alpha\"?",
            ),
            (
                "[[sweep]]\nmethod = [\"vb\", \"hastings\"]\nrho = 1\n",
                "job.toml:8:7: inference.rho is not read in this job (adaptor by hastings), only by adaptor and dmv with model.adapted \
                 by vb and svb; leave it out",
            ),
            (
                "[sweep]\nalpha = 1\n",
                "job.toml:6:1: sweep must be tables, each beginning with [[sweep]], found something else",
            ),
            (
                "[[sweep]]\nmethod = [\"vb\", \"em\"]\n",
                "job.toml:7:17: inference.method must be \"vb\", \"svb\" or \"hastings\" for an adaptor grammar; the others are for \
                 model.kind = \"pcfg\", found another",
            ),
        ] {
            assert_eq!(refusal(more), expected);
        }
        let error = parse(JOB, &["inference.restarts=600", "inference.seed=1,2"]).unwrap_err();
        assert!(
            error.contains("at most 1000 runs and 10000000 rounds, found 2 points with 1200 runs"),
            "{error}"
        );
    }

    #[test]
    fn largest_seed_is_read_and_written() {
        let of = |seed: &str| parse(&format!("{JOB}[inference]\nseed = {seed}\n"), &[]);
        let job = of("9223372036854775807").unwrap();
        assert_eq!(job.inference.seed, i64::MAX as u64);
        assert!(job.to_toml().contains("seed = 9223372036854775807"));
        assert_eq!(
            of("9223372036854775808").unwrap_err(),
            "job.toml:7:8: inference.seed must be a whole number from -9223372036854775808 to 9223372036854775807, found \
             9223372036854775808"
        );
    }

    #[test]
    fn sizes_are_refused_before_points_are_made() {
        let values: Vec<String> = (1..=100).map(|value| value.to_string()).collect();
        let values = values.join(", ");
        let keys = ["seed", "max_rounds", "truncation", "max_string", "restarts"];
        let grid: String = keys.iter().map(|key| format!("{key} = [{values}]\n")).collect();
        let refused = refusal(&format!("[[sweep]]\n{grid}"));
        assert!(
            refused.contains("at most 1000 points") && refused.contains("found 10000000000 points"),
            "{refused}"
        );
        let long = format!("[output]\nsegments = [{}]\n", "\"a\", ".repeat(100_000));
        assert!(
            refusal(&long).contains("a job file has at most 20000 values, found 100"),
            "{}",
            refusal(&long)
        );
        let longer = format!("[output]\nsegments = [{}]\n", "\"a\", ".repeat(300_000));
        assert!(refusal(&longer).contains("a job file has at most 1048576 bytes"));
        let refused = refusal("[inference]\nmax_rounds = 2000000000\n");
        assert!(
            refused.contains("inference.max_rounds must be from 0 to 1000000, found 2000000000"),
            "{refused}"
        );
        let refused = refusal("[inference]\nmax_rounds = 1000000\nrestarts = 1000\n");
        assert!(refused.contains("1000 runs and 1000000000 rounds"), "{refused}");
        let refused = refusal("[[sweep]]\nseed = []\n");
        assert!(refused.contains("a grid without points"), "{refused}");
    }

    #[test]
    fn keys_of_the_file_for_another_method_are_left_out_with_a_notice() {
        let text = format!("{JOB}[inference]\ntruncation = 7\nmax_rounds = 3\n");
        let job = parse(&text, &["inference.method=hastings"]).unwrap();
        assert_eq!(
            job.notices,
            ["ignored, since the model and method of the command line do not read it: inference.truncation"]
        );
        assert!(!job.to_toml().contains("truncation"));
        let refused = parse(&text, &["inference.method=hastings", "inference.truncation=7"]).unwrap_err();
        assert!(
            refused.contains("inference.truncation is not read in this job (adaptor by hastings)"),
            "{refused}"
        );
        let refused = parse(&format!("{text}method = \"hastings\"\n"), &[]).unwrap_err();
        assert!(refused.contains("inference.truncation is not read"), "{refused}");
    }

    #[test]
    fn a_key_without_effect_gives_a_notice() {
        let notices = |more: &str, set: &[&str]| parse(&format!("{JOB}{more}"), set).unwrap().notices;
        assert_eq!(notices("", &[]), [""; 0]);
        assert_eq!(
            notices("[inference]\nseed = 1\njitter = 0.5\n", &[]),
            [""; 0],
            "default values give no notice"
        );
        assert_eq!(
            notices("[inference]\nseed = 2\n", &[]),
            [
                "inference.seed has no effect here; it needs something random: a sampler, a method over samples of the corpus, a treebank, restarts above 1, \
              or a random start"
            ]
        );
        assert_eq!(notices("[inference]\nseed = 2\nrestarts = 2\n", &[]), [""; 0]);
        let of_grid = notices("", &["inference.seed=1,2", "inference.jitter=0.3"]);
        assert_eq!(of_grid.len(), 2, "{of_grid:?}");
    }

    #[test]
    fn paths_that_vary_are_relative_to_the_file() {
        let text = format!(
            "{JOB}[inference]\nmethod = \"hastings\"\nstart = \"trees\"\n[[sweep]]\nstart_from = [\"a\", \"b\"]\n"
        );
        let job = parse(&text, &[]).unwrap();
        let from: Vec<&Path> = job.points.iter().map(|point| &*point.inference.start_from).collect();
        assert_eq!(from, [Path::new("jobs/a"), Path::new("jobs/b")]);
        let again = Job::parse(&job.to_toml(), "job.toml", Path::new("elsewhere"), &[]).unwrap();
        assert_eq!(again.points[1].inference.start_from, std::path::absolute("jobs/b").unwrap());
    }

    #[test]
    fn printed_job_is_read_back() {
        let job = parse(JOB, &["inference.seed=7", "model.grammar=auto:colloc"]).unwrap();
        let again = Job::parse(&job.to_toml(), "job.toml", Path::new("elsewhere"), &[]).unwrap();
        assert_eq!(again.inference, job.inference);
        assert_eq!(again.model, job.model);
        assert!(again.corpus.path.is_absolute());
        assert_eq!(again.to_toml(), job.to_toml());
    }
}
