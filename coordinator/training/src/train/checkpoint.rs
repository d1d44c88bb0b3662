//! Checkpoints: the state of a job between two rounds, from which another process resumes it.
//!
//! In: a [`Checkpoint`] between two rounds. Out, to another process: the newest intact one, if it is of the same job and
//! data. Invariant: a run that resumes from any checkpoint ends with the same parameters, bit for bit, as one that was
//! never interrupted (`tests/tests/all/resume.rs`).
//!
//! They lie in a [`Store`] as `000001.ckpt`, `000002.ckpt`, …: [`sealed`] files whose body is bincode
//! (fixed-size little-endian integers) under zstd. The last few and the one with the best bound are kept. What can be
//! computed again from job and data is not in them.

use std::borrow::Cow;
use std::io::{BufWriter, IntoInnerError, Read};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use basics::clock;
use basics::store::Store;
use grammaton::data::corpus::unpack::{Packing, Unpack};
use grammaton::grammar::Grammar;
use grammaton::models::latent;
use grammaton::models::tally::Tally;
use grammaton::sealed::{self, Defect, Seal};
use grammaton::work::task::{ContentHash, Named};
use serde::{Deserialize, Serialize};

use crate::job::keys::KeyOfJob as _;
use crate::job::{Job, ModelKind, OutputTable};
use crate::metrics::CheckpointStatus;
use crate::metrics::{HeldOut, RoundMetrics, Timings};
use crate::train::group::Inputs;
use crate::train::prepare::{Items, Sentences};
use grammaton::methods::State;
use grammaton::prepare::Chosen;

/// First bytes of a file.
pub const SEAL: Seal = Seal { magic: *b"GRMTNCKP", oldest: 6, version: 6 };
/// Level of zstd. It takes a tenth of the time of the default level, and parameters hardly shrink more with that.
const LEVEL: i32 = 1;
/// Bytes that are compressed at a time.
const AT_ONCE: usize = 64 << 10;
const ENDING: &str = ".ckpt";
/// Maximum number of a checkpoint, beyond any job's.
const MOST: u64 = 1_000_000_000_000;

/// A job between two rounds.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Checkpoint<'a> {
    /// Job and data that it belongs to.
    pub origin: Cow<'a, Origin>,
    /// The strings that were chosen before the first round, by group of points.
    pub chosen: Cow<'a, Vec<Chosen>>,
    /// Progress of the job.
    pub progress: Cow<'a, Progress>,
}

/// Identity of a job and its data. Jobs of the same origin may resume from each other's checkpoints.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Origin {
    /// The job file, with its defaults.
    job: String,
    /// Hashes of the grammars of all groups of points.
    grammar: ContentHash,
    /// Hashes of the shards of all groups.
    corpus: ContentHash,
}

/// Progress of a job.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Progress {
    /// State of every run of the job; empty before the first round.
    pub runs: Vec<Run>,
    /// Samples of all runs, by point and sentence of the corpus.
    pub tallies: Vec<Arc<Vec<Tally>>>,
    /// Metrics of all rounds of all runs.
    #[serde(with = "as_json")]
    pub rounds: Vec<RoundMetrics>,
    /// Time by phase, in all processes that worked on the job.
    pub timings: Timings,
    /// Number of times the job was resumed from a checkpoint.
    pub resumed: u32,
}

/// A run of a job.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Run {
    /// Whether the bound's change fell below the tolerance.
    pub converged: bool,
    /// State of the trainer; `None` before the first round.
    pub state: Option<State>,
    /// The best measurement on held-out sentences, and the state that gave it.
    pub best: Option<(HeldOut, State)>,
    /// Number of measurements since the best one.
    pub waited: usize,
}

impl Origin {
    /// The origin of a job and the data that it read.
    pub fn new(job: &Job, groups: &[Items]) -> Origin {
        let of_shards = |group: &Items| {
            let shards: Vec<ContentHash> = group.shards().iter().map(|shard| shard.hash).collect();
            Named::new(shards).hash
        };
        let of_grammar = |group: &Items| match group {
            Items::Sentences(Sentences { grammar, .. }) => grammar.hash,
            Items::Trees { .. } => Named::new(latent::grammar_in_formats()).hash,
        };
        let of_all = |hashes: Vec<ContentHash>| match hashes[..] {
            [one] => one,
            _ => Named::new(hashes).hash,
        };
        let grammar = of_all(groups.iter().map(of_grammar).collect());
        let corpus = of_all(groups.iter().map(of_shards).collect());
        Origin { job: job.to_toml(), grammar, corpus }
    }

    /// Why a job of origin `now` cannot resume from `progress`, which is of this origin; `None` if it can.
    ///
    /// Paths may differ, and a job of one run may have more rounds. Everything else affects the parameters.
    fn obstacle(&self, now: &Origin, progress: &Progress) -> Option<String> {
        if self.grammar != now.grammar {
            return Some("it is of another grammar".to_owned());
        }
        if self.corpus != now.corpus {
            return Some("it is of another corpus".to_owned());
        }
        let table = |job: &str| job.parse::<toml::Table>().unwrap_or_default();
        let (then, now) = (table(&self.job), table(&now.job));
        // A key that a release has added since has its default, which does what the older one did.
        let keys = Job::keys();
        let default = |table: &str, name: &str| {
            let key = keys.iter().find(|key| (key.table, key.name) == (table, name))?;
            let kind = now.get("model")?.get("kind")?.clone();
            key.default_of(ModelKind::deserialize(kind).ok()?)
        };
        let value = |job: &toml::Table, table: &str, key: &str| {
            job.get(table).and_then(|table| table.get(key)).cloned().or_else(|| default(table, key))
        };
        let more_rounds = |now: &toml::Value| {
            let states = progress.runs.iter().filter_map(|run| run.state.as_ref());
            let done = states.map(|state| state.past().rounds).max().unwrap_or(0);
            progress.runs.len() <= 1 && now.as_integer() >= Some(done as i64)
        };
        if then.get("sweep") != now.get("sweep") {
            return Some("it is of another job, in which other keys vary".to_owned());
        }
        for name in ["model", "corpus", "inference"] {
            let keys = now.get(name).and_then(toml::Value::as_table);
            for (key, after) in keys.into_iter().flatten() {
                let before = value(&then, name, key);
                let free = match (name, &key[..]) {
                    ("model", "grammar") | ("corpus", "path" | "held_out" | "test") => true,
                    ("inference", "start_from") => true,
                    ("inference", "max_rounds") => more_rounds(after),
                    _ => false,
                };
                if !free && before.as_ref() != Some(after) {
                    let before = before.map_or("not known".to_owned(), |value| value.to_string());
                    return Some(format!(
                        "it is of another job, in which {name}.{key} is {before}, not {after}"
                    ));
                }
            }
        }
        None
    }
}

impl Progress {
    /// The last complete round of any run; 0 before the first.
    pub fn last_round(&self) -> usize {
        self.rounds.last().map_or(0, |last| last.round)
    }
}

impl Checkpoint<'_> {
    /// The best of the last bounds of all runs.
    pub fn bound(&self) -> Option<f64> {
        let bounds = self.progress.runs.iter().filter_map(|run| run.state.as_ref()?.past().bound);
        bounds.reduce(f64::max)
    }

    /// Run and round after which it was taken.
    pub fn place(&self) -> (usize, usize) {
        self.progress.rounds.last().map_or((0, 0), |last| (last.run, last.round))
    }

    /// The bytes of its file.
    pub fn to_bytes(&self) -> Vec<u8> {
        const PLAIN: &str =
            "a checkpoint is plain data, which serialises, and memory takes all that is written to it";
        SEAL.around(|bytes| {
            // By itself zstd would be handed number by number.
            let mut body = BufWriter::with_capacity(AT_ONCE, zstd::Encoder::new(bytes, LEVEL).expect(PLAIN));
            bincode::serde::encode_into_std_write(self, &mut body, bincode::config::legacy()).expect(PLAIN);
            // Flushing the encoder as well would end a piece there.
            let encoder = body.into_inner().map_err(IntoInnerError::into_error).expect(PLAIN);
            encoder.finish().expect(PLAIN);
        })
    }

    /// Reads a file, all of whose references are within it.
    pub fn from_bytes(bytes: &[u8]) -> Result<Checkpoint<'static>, Defect> {
        let (_, body) = SEAL.open(bytes)?;
        sealed::decode(&unpacked(body)?)
    }

    /// Checks that it fits a job: `grammars` by group of points, and the group of every run.
    fn check(&self, grammars: &[Option<&Grammar>], group_of_run: &[usize]) -> Result<(), Defect> {
        let (n_chosen, n_runs) = (self.chosen.len(), self.progress.runs.len());
        if n_chosen != grammars.len() || n_runs > 0 && n_runs != group_of_run.len() {
            let expected = (grammars.len(), group_of_run.len());
            return Err(Defect::corrupt(format!(
                "it has {n_chosen} groups of points and {n_runs} runs, not {} and {}",
                expected.0, expected.1
            )));
        }
        for (grammar, chosen) in grammars.iter().zip(self.chosen.iter()) {
            grammar.map_or(Ok(()), |grammar| chosen.lexicon.check(grammar)).map_err(Defect::corrupt)?;
        }
        for (run, &group) in self.progress.runs.iter().zip(group_of_run) {
            let language = grammars[group].map(|grammar| (grammar, &self.chosen[group].lexicon));
            let mut states = run.state.iter().chain(run.best.as_ref().map(|(_, state)| state));
            states.try_for_each(|state| state.check(language)).map_err(Defect::corrupt)?;
        }
        Ok(())
    }
}

/// The body of a checkpoint.
fn unpacked(compressed: &[u8]) -> Result<Vec<u8>, Defect> {
    let mut body = Vec::new();
    let unpack = Unpack::new(Packing::Zstd, compressed);
    unpack.and_then(|mut unpack| unpack.read_to_end(&mut body)).map_err(Defect::corrupt)?;
    Ok(body)
}

/// A checkpoint to resume from.
#[derive(Debug)]
pub struct Resumed {
    /// Name of its file, without the folder.
    pub name: String,
    /// Its content.
    pub checkpoint: Checkpoint<'static>,
}

/// The checkpoints of one job.
pub struct Checkpoints {
    /// Store of checkpoints; `None` if the job writes none.
    store: Option<Arc<Store>>,
    every: Duration,
    keep: usize,
    /// Numbers and bounds of the checkpoints in the store.
    kept: Vec<(u64, Option<f64>)>,
    /// Other files in the store whose names end like those of checkpoints.
    strays: Vec<String>,
    /// Whether to resume from the newest one.
    resume: bool,
    /// The checkpoint that the job resumes from.
    resumed: Option<u64>,
    /// Time at which the next one is due.
    due: Instant,
}

/// Parameters for writing the next checkpoint, possibly on another thread; [`Checkpoints::written`] receives the outcome.
pub struct NextFile {
    store: Arc<Store>,
    keep: usize,
    kept: Vec<(u64, Option<f64>)>,
}

/// The outcome of [`NextFile::write`].
pub struct Written {
    status: Result<CheckpointStatus>,
    /// The checkpoints in the store, as in [`Checkpoints`].
    kept: Vec<(u64, Option<f64>)>,
    ended: Instant,
}

impl Checkpoints {
    /// No checkpoints are read or written.
    pub fn none() -> Checkpoints {
        let (kept, due) = (Vec::new(), clock::instant());
        let strays = Vec::new();
        Checkpoints {
            store: None,
            every: Duration::MAX,
            keep: 0,
            kept,
            strays,
            resume: false,
            resumed: None,
            due,
        }
    }

    /// The checkpoints that the job file configures. Changes nothing in the store.
    pub fn open(output: &OutputTable, resume: bool) -> Result<Checkpoints> {
        if output.keep_checkpoints == 0 && !resume {
            return Ok(Checkpoints::none());
        }
        let store = Store::open(&output.checkpoints())
            .context("no checkpoints can be kept there; choose another place with output.checkpoints")?;
        let (mut kept, mut strays) = (Vec::new(), Vec::new());
        for name in store.list()?.into_iter().filter(|name| name.ends_with(ENDING)) {
            match number(&name) {
                Some(number) => kept.push((number, None)),
                None => strays.push(name),
            }
        }
        kept.sort_unstable_by_key(|&(number, _)| number);
        let every = Duration::from_secs_f64(output.checkpoint_seconds);
        let (keep, due) = (output.keep_checkpoints, clock::instant() + every);
        let store = Some(Arc::new(store));
        Ok(Checkpoints { store, every, keep, kept, strays, resume, resumed: None, due })
    }

    /// Name of the newest checkpoint, if there is one.
    pub fn newest(&self) -> Option<String> {
        let (&(number, _), store) = (self.kept.last()?, self.store.as_ref()?);
        Some(store.describe(&name(number)))
    }

    /// Name of the checkpoint that the job resumes from, if it does.
    pub fn resumed(&self) -> Option<String> {
        Some(self.store.as_ref()?.describe(&name(self.resumed?)))
    }

    /// Reads the newest intact checkpoint, if the job is to be resumed and there is one. Refuses a checkpoint of another job or of a newer
    /// format; calls `notice` for damaged checkpoints and for other files.
    pub fn resume(
        &mut self,
        origin: &Origin,
        inputs: &Inputs,
        notice: &mut dyn FnMut(String),
    ) -> Result<Option<Resumed>> {
        let (grammars, group_of_run) = (inputs.grammars(), inputs.group_of_run());
        self.newest_intact(origin, &grammars, &group_of_run, notice)
    }

    fn newest_intact(
        &mut self,
        origin: &Origin,
        grammars: &[Option<&Grammar>],
        group_of_run: &[usize],
        notice: &mut dyn FnMut(String),
    ) -> Result<Option<Resumed>> {
        let (Some(store), true) = (&self.store, self.resume) else { return Ok(None) };
        for stray in &self.strays {
            let (place, like) = (store.describe(stray), name(1));
            notice(format!("{place}: ignored, as checkpoints have names of six digits or more, like {like}"));
        }
        if self.kept.is_empty() {
            return Ok(None);
        }
        let mut found: Option<Resumed> = None;
        for (number, bound) in self.kept.iter_mut().rev() {
            let (file, place) = (name(*number), store.describe(&name(*number)));
            let checkpoint = match Checkpoint::from_bytes(&store.get(&file)?) {
                Ok(checkpoint) => checkpoint,
                Err(newer @ Defect::Newer { .. }) => {
                    bail!("{place}: checkpoint {newer}; upgrade grammaton, or start over in another folder")
                }
                Err(older @ Defect::Older { .. }) => bail!(
                    "{place}: checkpoint {older}; finish the job with the version that wrote it, or start over in another folder"
                ),
                Err(defect) => {
                    notice(format!("{place}: checkpoint is {defect}; continuing with an older one"));
                    continue;
                }
            };
            *bound = checkpoint.bound();
            if found.is_some() {
                continue;
            }
            if let Some(obstacle) = checkpoint.origin.obstacle(origin, &checkpoint.progress) {
                bail!(
                    "{place}: cannot go on from this checkpoint: {obstacle}; resume the job that it is of, or start over in another folder"
                );
            }
            match checkpoint.check(grammars, group_of_run) {
                Ok(()) => {
                    found = Some(Resumed { name: file, checkpoint });
                    self.resumed = Some(*number);
                }
                Err(defect) => {
                    notice(format!("{place}: checkpoint is {defect}; continuing with an older one"))
                }
            }
        }
        if found.is_none() {
            bail!(
                "{}: none of the {} checkpoints is intact; remove them, and start over without --resume",
                store.describe(""),
                self.kept.len()
            );
        }
        self.due = clock::instant() + self.every;
        Ok(found)
    }

    /// Whether the job resumes from the newest checkpoint.
    pub fn are_resumed(&self) -> bool {
        self.resume
    }

    /// Removes checkpoints of an earlier job, unless this run resumes from them.
    pub fn begin(&mut self) -> Result<()> {
        if let (Some(store), false) = (&self.store, self.resume) {
            self.kept.drain(..).try_for_each(|(number, _)| store.remove(&name(number)))?;
        }
        Ok(())
    }

    /// Makes the next attempt of the job resume from the newest checkpoint, or start over.
    pub fn reopen(&mut self, output: &OutputTable, resume: bool) -> Result<()> {
        if self.store.is_some() {
            *self = Checkpoints::open(output, resume)?;
        }
        Ok(())
    }

    /// Whether the job writes checkpoints.
    pub fn are_kept(&self) -> bool {
        self.store.is_some() && self.keep > 0
    }

    /// Whether the next checkpoint is due.
    pub fn are_due(&self) -> bool {
        self.are_kept() && self.due <= clock::instant()
    }

    /// Whether the job wants one after every round.
    pub fn are_after_every_round(&self) -> bool {
        self.every.is_zero()
    }

    /// Parameters for writing the next checkpoint; `None` if the job writes none. One checkpoint is written at a time.
    pub fn next_file(&self) -> Option<NextFile> {
        let store = self.store.clone().filter(|_| self.are_kept())?;
        Some(NextFile { store, keep: self.keep, kept: self.kept.clone() })
    }

    /// Records the outcome of writing a checkpoint. The next one is due some time later, whether this one was written or not.
    pub fn written(&mut self, written: Written) -> Result<CheckpointStatus> {
        self.kept = written.kept;
        self.due = written.ended + self.every;
        written.status
    }
}

impl NextFile {
    /// Writes `checkpoint`, and removes those that need not be kept any more.
    pub fn write(mut self, checkpoint: &Checkpoint<'_>) -> Written {
        let begun = clock::instant();
        let n_bytes = self.put(checkpoint);
        let ended = clock::instant();
        let ((run, round), seconds) = (checkpoint.place(), (ended - begun).as_secs_f64());
        let status = n_bytes.map(|bytes| CheckpointStatus { run, round, bytes, seconds });
        Written { status, kept: self.kept, ended }
    }

    /// Returns the size of its file in bytes.
    fn put(&mut self, checkpoint: &Checkpoint<'_>) -> Result<u64> {
        let bytes = checkpoint.to_bytes();
        let n_bytes = bytes.len() as u64;
        let number = self.kept.last().map_or(1, |&(last, _)| last + 1);
        self.store.put(&name(number), bytes)?;
        self.kept.push((number, checkpoint.bound()));
        for number in superfluous(&self.kept, self.keep) {
            self.store.remove(&name(number))?;
            self.kept.retain(|&(kept, _)| kept != number);
        }
        Ok(n_bytes)
    }
}

/// Checkpoints to remove: all but the last `keep` and the one with the best bound.
fn superfluous(kept: &[(u64, Option<f64>)], keep: usize) -> Vec<u64> {
    let bound = |&&(_, bound): &&(u64, Option<f64>)| bound.unwrap_or(f64::NEG_INFINITY);
    let best = kept.iter().max_by(|a, b| bound(a).total_cmp(&bound(b))).map(|&(number, _)| number);
    let old = &kept[..kept.len().saturating_sub(keep)];
    old.iter().map(|&(number, _)| number).filter(|&number| Some(number) != best).collect()
}

fn name(number: u64) -> String {
    format!("{number:06}{ENDING}")
}

/// The number of the checkpoint of that name; none unless [`name`] makes it.
fn number(found: &str) -> Option<u64> {
    let number = found.strip_suffix(ENDING)?.parse().ok()?;
    (number < MOST && name(number) == found).then_some(number)
}

/// Metrics leave out what was not measured, which bincode could not read back.
mod as_json {
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser};

    use crate::metrics::RoundMetrics;

    pub fn serialize<S: Serializer>(rounds: &[RoundMetrics], serializer: S) -> Result<S::Ok, S::Error> {
        serde_json::to_string(rounds).map_err(ser::Error::custom)?.serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<RoundMetrics>, D::Error> {
        serde_json::from_str(&String::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use grammaton::limits::{UNPACKED_ALWAYS, max_unpacked};
    use grammaton::models::tally::Analysis;

    use super::*;
    use crate::model::tests::{OfGrammar as _, small};

    pub fn output(dir: &std::path::Path) -> OutputTable {
        OutputTable { dir: dir.to_owned(), checkpoint_seconds: 0.0, ..OutputTable::default() }
    }

    pub fn origin(more: &str) -> Origin {
        let text = format!("[model]\ngrammar = \"/g\"\n[corpus]\npath = \"/c\"\n[inference]\n{more}");
        let job = Job::parse(&text, "job.toml", std::path::Path::new("/"), &[]).unwrap();
        let hash = ContentHash([7; 32]);
        Origin { job: job.to_toml(), grammar: hash, corpus: hash }
    }

    /// After that many rounds, with that bound.
    pub fn checkpoint(rounds: usize, bound: f64) -> Checkpoint<'static> {
        let model = small().of_grammar().clone();
        let params = model.adaptor().unwrap();
        let state = serde_json::json!({ "Adaptor": {
            "params": params, "past": { "rounds": rounds, "bound": bound }, "counts": vec![0.0; 10],
            "before_drop": params, "drop_share": 0.2, "grew": false,
        }});
        let run = Run { state: Some(serde_json::from_value(state).unwrap()), ..Run::default() };
        let round = |round| RoundMetrics { run: 1, round, seconds: 0.1 + 0.2, ..RoundMetrics::default() };
        let rounds = (1..=rounds).map(round).collect();
        let progress = Progress { runs: vec![run], rounds, ..Progress::default() };
        let chosen = Chosen { lexicon: model.lexicon, underivable: 1, added: 2 };
        Checkpoint {
            origin: Cow::Owned(origin("")),
            chosen: Cow::Owned(vec![chosen]),
            progress: Cow::Owned(progress),
        }
    }

    /// Law: a file is what it is if the body is serialised as a whole and then compressed.
    #[test]
    fn bodies_are_compressed_as_they_are_serialised() {
        for rounds in [0, 1, 40, 3000] {
            let checkpoint = checkpoint(rounds, -1.0);
            let body = bincode::serde::encode_to_vec(&checkpoint, bincode::config::legacy()).unwrap();
            assert!(rounds < 3000 || body.len() > 8 * AT_ONCE);
            let whole = SEAL.close(&zstd::encode_all(&body[..], LEVEL).unwrap());
            assert!(checkpoint.to_bytes() == whole, "{rounds} rounds");
        }
    }

    /// Writes one, on this thread.
    fn write(checkpoints: &mut Checkpoints, checkpoint: &Checkpoint<'_>) -> Result<CheckpointStatus> {
        let written = checkpoints.next_file().unwrap().write(checkpoint);
        checkpoints.written(written)
    }

    pub fn files(dir: &std::path::Path) -> Vec<String> {
        Store::open(&output(dir).checkpoints()).unwrap().list().unwrap()
    }

    /// Resumes a job. Returns the resumed state, and the notices.
    pub fn resumed(
        dir: &std::path::Path,
        origin: &Origin,
    ) -> (Result<Option<Checkpoint<'static>>>, Vec<String>) {
        let mut notices = Vec::new();
        let mut checkpoints = Checkpoints::open(&output(dir), true).unwrap();
        let found =
            checkpoints.newest_intact(origin, &[Some(&small().of_grammar().grammar)], &[0], &mut |notice| {
                notices.push(notice)
            });
        (found.map(|found| found.map(|found| found.checkpoint)), notices)
    }

    #[test]
    fn written_checkpoints_resume() {
        let dir = tempfile::tempdir().unwrap();
        let mut checkpoints = Checkpoints::open(&output(dir.path()), false).unwrap();
        assert_eq!(checkpoints.newest(), None);
        let written = write(&mut checkpoints, &checkpoint(3, -5.0)).unwrap();
        assert_eq!((written.run, written.round), (1, 3));
        let (found, notices) = resumed(dir.path(), &origin(""));
        assert_eq!((found.unwrap(), notices), (Some(checkpoint(3, -5.0)), vec![]));
        let size = std::fs::metadata(dir.path().join("checkpoints/000001.ckpt")).unwrap().len();
        assert_eq!(size, written.bytes);
    }

    /// `cargo test -p grammaton-cli write_golden -- --ignored` writes those of a new format.
    const GOLDEN: &[u8] = include_bytes!("../../tests/golden/checkpoint-6.ckpt");

    /// The checkpoint of [`GOLDEN`], with samples.
    fn golden() -> Checkpoint<'static> {
        let mut tally = Tally::default();
        for (ends, tree) in [(vec![1, 2], "(S (W a) (W b))"), (vec![2], "(S (W a b))")] {
            tally.add(&Analysis { ends, tree: tree.to_owned() });
        }
        let mut golden = checkpoint(3, -5.0);
        golden.progress.to_mut().tallies = vec![Arc::new(vec![tally])];
        golden
    }

    #[test]
    fn checkpoints_of_this_format_resume() {
        let read = Checkpoint::from_bytes(GOLDEN).unwrap();
        let golden = golden();
        assert_eq!((&read.chosen, &read.progress), (&golden.chosen, &golden.progress));
        assert_eq!(read.origin.obstacle(&origin(""), &read.progress), None);
    }

    #[test]
    fn an_earlier_format_is_refused_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let mut checkpoints = Checkpoints::open(&output(dir.path()), false).unwrap();
        write(&mut checkpoints, &checkpoint(3, -5.0)).unwrap();
        let first = Seal { oldest: 1, version: 1, ..SEAL }.close(b"");
        std::fs::write(dir.path().join("checkpoints/000002.ckpt"), first).unwrap();
        let refusal = format!("{:#}", resumed(dir.path(), &origin("")).0.unwrap_err());
        assert!(
            refusal.contains("000002.ckpt: checkpoint format 1 is older than this build reads (6)"),
            "{refusal}"
        );
    }

    #[test]
    #[ignore = "writes what the test above reads"]
    fn by_hand_write_golden() {
        let path = format!("{}/tests/golden/checkpoint-{}.ckpt", env!("CARGO_MANIFEST_DIR"), SEAL.version);
        std::fs::write(path, golden().to_bytes()).unwrap();
    }

    #[test]
    fn a_key_that_a_release_has_added_since_has_its_default() {
        let mut older = origin("");
        older.job = older
            .job
            .lines()
            .filter(|line| !line.starts_with("jitter"))
            .map(|line| format!("{line}\n"))
            .collect();
        assert_ne!(older, origin(""));
        let progress = checkpoint(3, -5.0).progress;
        assert_eq!(older.obstacle(&origin(""), &progress), None);
        let changed = older.obstacle(&origin("jitter = 0.25\n"), &progress).unwrap();
        assert!(changed.contains("inference.jitter is 0.5, not 0.25"), "{changed}");
    }

    #[test]
    fn the_last_ones_and_the_best_are_kept_also_over_a_restart() {
        let dir = tempfile::tempdir().unwrap();
        let mut checkpoints = Checkpoints::open(&output(dir.path()), false).unwrap();
        for (round, bound) in [-9.0, -1.0, -8.0, -7.0, -6.0].into_iter().enumerate() {
            write(&mut checkpoints, &checkpoint(round + 1, bound)).unwrap();
        }
        assert_eq!(files(dir.path()), ["000002.ckpt", "000004.ckpt", "000005.ckpt"]);
        let mut checkpoints = Checkpoints::open(&output(dir.path()), true).unwrap();
        checkpoints
            .newest_intact(&origin(""), &[Some(&small().of_grammar().grammar)], &[0], &mut |_| {})
            .unwrap();
        checkpoints.begin().unwrap();
        write(&mut checkpoints, &checkpoint(6, -5.0)).unwrap();
        assert_eq!(files(dir.path()), ["000002.ckpt", "000005.ckpt", "000006.ckpt"]);
        // A run that starts over leaves none of them.
        Checkpoints::open(&output(dir.path()), false).unwrap().begin().unwrap();
        assert_eq!(files(dir.path()), [""; 0]);
    }

    #[test]
    fn damaged_checkpoints_are_skipped_and_reported() {
        let dir = tempfile::tempdir().unwrap();
        let mut checkpoints = Checkpoints::open(&output(dir.path()), false).unwrap();
        for round in 1..=2 {
            write(&mut checkpoints, &checkpoint(round, -9.0 + round as f64)).unwrap();
        }
        let last = dir.path().join("checkpoints/000002.ckpt");
        let whole = std::fs::read(&last).unwrap();
        let mut flipped = whole.clone();
        flipped[whole.len() / 2] ^= 1;
        for (bytes, why) in [
            (&whole[..whole.len() - 1], "cut short"),
            (&flipped[..], "checksum does not fit"),
            (&b""[..], "is another kind of file"),
            (&SEAL.close(b"nonsense")[..], "damaged"),
        ] {
            std::fs::write(&last, bytes).unwrap();
            let (found, notices) = resumed(dir.path(), &origin(""));
            assert_eq!(found.unwrap().unwrap().place(), (1, 1), "{why}");
            assert!(notices.len() == 1 && notices[0].contains(why), "{why}: {notices:?}");
            assert!(
                notices[0].contains("000002.ckpt") && notices[0].ends_with("continuing with an older one")
            );
        }
        std::fs::write(dir.path().join("checkpoints/000001.ckpt"), b"").unwrap();
        let error = resumed(dir.path(), &origin("")).0.unwrap_err().to_string();
        assert!(error.contains("none of the 2 checkpoints is intact"), "{error}");
    }

    #[test]
    fn files_with_other_names_are_ignored_and_reported() {
        let dir = tempfile::tempdir().unwrap();
        let mut checkpoints = Checkpoints::open(&output(dir.path()), false).unwrap();
        write(&mut checkpoints, &checkpoint(3, -5.0)).unwrap();
        let strays = ["18446744073709551615.ckpt", "7.ckpt", "best.ckpt"];
        for stray in strays {
            std::fs::write(dir.path().join("checkpoints").join(stray), b"?").unwrap();
        }
        let (found, notices) = resumed(dir.path(), &origin(""));
        assert_eq!(found.unwrap().unwrap().place(), (1, 3));
        assert_eq!(notices.len(), strays.len(), "{notices:?}");
        for (notice, stray) in notices.iter().zip(strays) {
            let expected = format!(
                "checkpoints/{stray}: ignored, as checkpoints have names of six digits or more, like 000001.ckpt"
            );
            assert!(notice.ends_with(&expected), "{notice}");
        }
        std::fs::remove_file(dir.path().join("checkpoints/000001.ckpt")).unwrap();
        let (found, notices) = resumed(dir.path(), &origin(""));
        assert!(found.unwrap().is_none() && notices.len() == strays.len());
    }

    #[test]
    fn one_that_points_outside_of_itself_is_damaged() {
        let dir = tempfile::tempdir().unwrap();
        let mut checkpoints = Checkpoints::open(&output(dir.path()), false).unwrap();
        let mut foreign = checkpoint(1, -1.0);
        let Some(State::Adaptor(state)) = &mut foreign.progress.to_mut().runs[0].state else { panic!() };
        state.params.sticks[0].order[0] = grammaton::grammar::ParamId(99);
        write(&mut checkpoints, &foreign).unwrap();
        let (found, notices) = resumed(dir.path(), &origin(""));
        assert!(found.is_err() && notices[0].contains("a stick has a string it lacks"), "{notices:?}");
    }

    #[test]
    fn a_checkpoint_that_unpacks_to_too_much_is_damaged() {
        for size in [UNPACKED_ALWAYS + 1, 4 * UNPACKED_ALWAYS] {
            let zeros = std::io::repeat(0).take(size);
            let file = SEAL.close(&zstd::encode_all(zeros, LEVEL).unwrap());
            assert_eq!(max_unpacked(file.len() as u64), UNPACKED_ALWAYS);
            let defect = Checkpoint::from_bytes(&file).unwrap_err().to_string();
            assert!(defect.contains("expected at most 256 times as many"), "{defect}");
        }
    }

    #[test]
    fn counts_and_rounds_that_no_run_has_are_damaged() {
        let grammar = small().of_grammar().grammar.clone();
        checkpoint(1, -1.0).check(&[Some(&grammar)], &[0]).unwrap();
        let edits = [
            ("counts", "/Adaptor/counts", serde_json::json!(vec![-1.0; 10])),
            ("counts", "/Adaptor/counts", serde_json::json!(vec![1e308; 10])),
            ("rounds", "/Adaptor/past/rounds", serde_json::json!(u64::MAX)),
        ];
        for (field, place, value) in edits {
            let mut hostile = checkpoint(1, -1.0);
            let run = &mut hostile.progress.to_mut().runs[0];
            let mut state = serde_json::to_value(&run.state).unwrap();
            *state.pointer_mut(place).unwrap() = value;
            run.state = serde_json::from_value(state).unwrap();
            let defect = hostile.check(&[Some(&grammar)], &[0]).unwrap_err().to_string();
            assert!(defect.contains(field), "{defect}");
        }
    }

    #[test]
    fn checkpoints_of_another_job_or_a_newer_format_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let mut checkpoints = Checkpoints::open(&output(dir.path()), false).unwrap();
        write(&mut checkpoints, &checkpoint(5, -9.0)).unwrap();
        let refusal = |origin: &Origin| format!("{:#}", resumed(dir.path(), origin).0.unwrap_err());
        for (other, why) in [
            (origin("seed = 2\n"), "it is of another job, in which inference.seed is 1, not 2"),
            (origin("max_rounds = 4\n"), "it is of another job, in which inference.max_rounds is 40, not 4"),
            (Origin { grammar: ContentHash([1; 32]), ..origin("") }, "it is of another grammar"),
            (Origin { corpus: ContentHash([1; 32]), ..origin("") }, "it is of another corpus"),
        ] {
            let refusal = refusal(&other);
            assert!(refusal.contains(why) && refusal.contains("000001.ckpt"), "{refusal}");
        }
        let more = resumed(dir.path(), &origin("max_rounds = 400\n")).0.unwrap();
        assert_eq!(more.unwrap().place(), (1, 5), "one run may get more rounds");

        let newer = Seal { version: 200, ..SEAL }.close(b"");
        std::fs::write(dir.path().join("checkpoints/000002.ckpt"), newer).unwrap();
        let refusal = refusal(&origin(""));
        assert!(
            refusal.contains("000002.ckpt: checkpoint format 200 is newer than this build reads (6)"),
            "{refusal}"
        );
    }

    #[test]
    fn without_resume_nothing_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let mut checkpoints = Checkpoints::open(&output(dir.path()), false).unwrap();
        write(&mut checkpoints, &checkpoint(5, -9.0)).unwrap();
        let mut again = Checkpoints::open(&output(dir.path()), false).unwrap();
        assert!(again.newest().unwrap().ends_with("checkpoints/000001.ckpt"));
        assert!(
            again
                .newest_intact(&origin(""), &[Some(&small().of_grammar().grammar)], &[0], &mut |_| {})
                .unwrap()
                .is_none()
        );
        let off = OutputTable { keep_checkpoints: 0, ..output(dir.path()) };
        assert!(!Checkpoints::open(&off, false).unwrap().are_due());
    }
}
