//! The job file: what to train on what, how, and where the result goes.
//!
//! In: TOML with four tables, and `--set key=value` overrides, of which the last one wins. Out: a checked [`Job`].
//! A key is added by adding a field to its table (`tables.rs`) and its value to the table's `Default`; errors name the nearest known
//! key, with file, line and column. Paths in the file are relative to the file, those given with `--set` to the
//! current folder.

mod check;
pub mod located;
pub mod source;
pub mod sweep;
mod tables;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::store;
use located::{Fault, Node, Problem};
use source::{AUTO, DMV, TREEBANK};
pub use source::{FamiliesSource, GrammarSource};
use sweep::{Sweep, SweepTable};
pub use tables::{
    AdaptorPrior, CorpusTable, HarmonicStops, Hyperparameter, InferenceTable, Method, ModelKind, ModelTable,
    OutputTable, RulePrior, Selection, Start,
};

/// A training job.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// What is trained.
    pub model: ModelTable,
    /// What it is trained on.
    pub corpus: CorpusTable,
    /// How it is trained.
    #[serde(default)]
    pub inference: InferenceTable,
    /// Where the result goes.
    #[serde(default)]
    pub output: OutputTable,
    /// The keys of `inference` that vary.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sweep: Vec<SweepTable>,
    /// What they make of it: at least one point.
    #[serde(skip)]
    pub points: Vec<Point>,
}

/// One setting of the inference, of which there may be several runs.
#[derive(Clone, PartialEq, Debug)]
pub struct Point {
    /// Its values of the keys that vary: `alpha=1e-5 method=em`; empty if none does.
    pub name: String,
    /// Its inference.
    pub inference: InferenceTable,
}

/// Runs of all points together.
const MAX_RUNS: usize = 1000;

/// Why there is no job.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// The file cannot be read.
    #[error("{path}: cannot read the job file")]
    Read {
        /// The file.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// The file is not text.
    #[error("{path}:{line}: job file is not UTF-8; save it as UTF-8")]
    Encoding {
        /// The file.
        path: String,
        /// The first line that is not.
        line: usize,
    },
    /// The file says something that is not understood.
    #[error(transparent)]
    Fault(#[from] Fault),
}

impl Job {
    /// Shows `each` file or URL that the job reads, by the key that names it.
    pub fn visit_files(&mut self, each: &mut dyn FnMut(&str, &mut PathBuf)) {
        if let GrammarSource::File(path) = &mut self.model.grammar {
            each("model.grammar", path);
        }
        each("corpus.path", &mut self.corpus.path);
        if !self.corpus.held_out.as_os_str().is_empty() {
            each("corpus.held_out", &mut self.corpus.held_out);
        }
        let points = self.points.iter_mut().map(|point| &mut point.inference);
        for inference in std::iter::once(&mut self.inference).chain(points) {
            if !inference.start_from.as_os_str().is_empty() {
                each("inference.start_from", &mut inference.start_from);
            }
            if let FamiliesSource::File(path) = &mut inference.families {
                each("inference.families", path);
            }
        }
    }

    /// Reads the job file at `path` and applies `overrides`, each `table.key=value`.
    pub fn load(path: &Path, overrides: &[String]) -> Result<Job, JobError> {
        let name = path.display().to_string();
        let bytes = std::fs::read(path).map_err(|source| JobError::Read { path: name.clone(), source })?;
        let text = String::from_utf8(bytes).map_err(|error| {
            let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            let line = 1 + valid.iter().filter(|&&byte| byte == b'\n').count();
            JobError::Encoding { path: name.clone(), line }
        })?;
        let folder = path.parent().unwrap_or(Path::new(""));
        Ok(Job::parse(&text, &name, folder, overrides)?)
    }

    /// Reads a job from its text. `name` stands in errors; relative paths in the text are put under `folder`.
    pub fn parse(text: &str, name: &str, folder: &Path, overrides: &[String]) -> Result<Job, Fault> {
        let mut root = Node::document(text, name)?;
        let paths = ["model.grammar", "corpus.path", "corpus.held_out", "inference.start_from"];
        for path in paths.into_iter().chain(["output.dir", "output.checkpoints"]) {
            if let Some(value) = root.find_string(path)
                && !value.starts_with(AUTO)
                && !store::is_url(value)
                && !value.is_empty()
            {
                *value = folder.join(&*value).display().to_string();
            }
        }
        if let Some(value) = root.find_string("inference.families")
            && let FamiliesSource::File(path) = FamiliesSource::from(&value[..])
            && !store::is_url(value)
        {
            *value = folder.join(path).display().to_string();
        }
        let mut sweep = Sweep::take(&mut root)?;
        for assignment in overrides {
            if !sweep.assign(assignment)? {
                root.set(assignment)?;
            }
        }
        let is_of =
            |root: &mut Node, kind: &str| root.find_string("model.kind").is_some_and(|found| found == kind);
        for (kind, made) in [("pcfg-la", TREEBANK), ("dmv", DMV)] {
            if is_of(&mut root, kind) && root.find("model.grammar").is_none() {
                root.set(&format!("model.grammar={AUTO}{made}"))?;
            }
        }
        if is_of(&mut root, "dmv") {
            let defaults =
                [("output.decoders", "[\"viterbi\", \"mbr-arcs\"]"), ("inference.start", "harmonic")];
            for (key, value) in defaults {
                if root.find(key).is_none() {
                    root.set(&format!("{key}={value}"))?;
                }
            }
        }
        let mut job = Job::deserialize(root.clone())?;
        if root.find("output.dir").is_none() {
            job.output.dir = folder.join(&job.output.dir);
        }
        job.sweep = sweep.tables();
        for choice in sweep.points() {
            let root = sweep::chosen(&root, &choice);
            let point = Job { output: job.output.clone(), ..Job::deserialize(root.clone())? };
            point.check(&root)?;
            job.points.push(Point { name: sweep::name(&choice), inference: point.inference });
        }
        if job.points.len() * job.inference.restarts > MAX_RUNS {
            let found = format!("{} points of {} runs", job.points.len(), job.inference.restarts);
            let expected = format!("a job of at most {MAX_RUNS} runs");
            return Err(Fault::new(&root, Problem::Mismatch { found, expected }));
        }
        Ok(job)
    }

    /// The job as a job file which does the same from any folder: paths are absolute, defaults are spelled out.
    pub fn to_toml(&self) -> String {
        let absolute = store::absolute;
        let mut job = self.clone();
        job.visit_files(&mut |_, path| *path = absolute(path));
        job.output.dir = absolute(&job.output.dir);
        let checkpoints = &mut job.output.checkpoints;
        if !checkpoints.is_empty() {
            *checkpoints = absolute(Path::new(&*checkpoints)).display().to_string();
        }
        job.to_toml_as_it_is()
    }

    /// The job as a job file, with its paths as they are.
    pub fn to_toml_as_it_is(&self) -> String {
        toml::to_string(self).expect("tables of plain values have a TOML form")
    }
}

#[cfg(test)]
mod tests {
    use shared::grammar::auto::Auto;
    use shared::logistic_normal::PointEstimate;
    use shared::mixture::Limit;
    use shared::task::Decoder;

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
    fn defaults_fill_what_is_left_out() {
        let job = parse(JOB, &[]).unwrap();
        assert_eq!(job.inference, InferenceTable::default());
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
        assert_eq!(job.model.grammar, GrammarSource::Auto(Auto::Colloc));
        let error = parse(JOB, &["model.grammar=auto:unigrm"]).unwrap_err();
        assert_eq!(
            error,
            "--set model.grammar=auto:unigrm: unknown model.grammar \"unigrm\"; did you mean \"unigram\"?"
        );
    }

    #[test]
    fn errors_say_where_what_and_the_way_out() {
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
                 harmonic_smoothing, prior, families, estimate, components, mixture, base_from, base_by, base_to",
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
        assert!(parse(JOB, &["seed=1"]).unwrap_err().contains("name the table and the key"));
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
        // One value is that of all points; a table that says nothing else goes.
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
            "job.toml:6:12: inference.families must be \"none\", unless model.kind is \"dmv\" and inference.prior \
             \"logistic-normal\", found ud"
        );
        assert_eq!(
            refusal("[inference]\nprior = \"logistic-normal\"\n"),
            "job.toml:7:9: inference.prior must be \"dirichlet\", unless model.kind is \"pcfg\" or \"dmv\", found \
             \"logistic-normal\""
        );
    }

    #[test]
    fn components_are_mixed_as_the_job_says() {
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
            "job.toml:6:14: inference.components must be [], unless model.kind is \"dmv\" and inference.prior \
             \"logistic-normal\", found some"
        );
    }

    #[test]
    fn every_point_of_a_grid_is_checked_where_it_stands() {
        for (more, expected) in [
            (
                "[[sweep]]\nalpha = [1, -1]\n",
                "job.toml:7:13: inference.alpha must be above 0 and at most 1000000, found -1",
            ),
            (
                "[[sweep]]\nalhpa = 1\n",
                "job.toml:7:9: unknown key \"alhpa\" in [inference]; did you mean \"alpha\"?",
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
        assert!(error.contains("a job of at most 1000 runs, found 2 points of 600 runs"), "{error}");
    }

    #[test]
    fn largest_seed_is_read() {
        let text = format!("{JOB}[inference]\nseed = 18446744073709551615\n");
        match parse(&text, &[]) {
            Ok(job) => assert_eq!(job.inference.seed, u64::MAX),
            Err(error) => panic!("{error}"),
        }
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
