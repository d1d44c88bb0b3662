//! A text segmented by sampling: the job that is written for it, and its effort.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use basics::clock;
use basics::nearest::nearest;
use fleet::{FleetConfig, MEMORY};
use grammaton::grammar::auto::{Auto, NAMES};
use training::choice;
use training::events::{Observer, RunEvent};
use training::input;
use training::job::Job;
use training::progress::with_names;

use crate::effort::{self, Cost, Effort, PROBE_WORK, PROBE_WORK_OF_MANY_SYMBOLS};
use crate::text::{ANNOTATED, Text};
use crate::time_limit::within;

/// Chains of a text, and where they are computed.
#[derive(Clone, Debug)]
pub struct Sampling {
    /// Number of chains of every grammar, if given.
    pub chains: Option<u16>,
    /// Number of sweeps of each chain, if given.
    pub sweeps: Option<u32>,
    /// Time for everything, if it is limited.
    pub seconds: Option<Duration>,
    /// Seed of all random choices.
    pub seed: u64,
    /// Number of compute threads; all cores if not given.
    pub workers: Option<u16>,
    /// Whether files of the folder may be replaced.
    pub overwrite: bool,
}

impl Default for Sampling {
    fn default() -> Sampling {
        Sampling { chains: None, sweeps: None, seconds: None, seed: 1, workers: None, overwrite: false }
    }
}

/// The model of a job.
#[derive(Clone)]
pub struct ModelFile {
    /// The grammar.
    pub grammar: Auto,
    /// Further grammars, whose models vote with its models.
    pub voters: Vec<Auto>,
    /// Grammars that may take its place if it takes too long.
    pub simpler: Vec<Auto>,
    /// Number and length of its chains unless the command line says.
    pub effort: Effort,
    /// Number of prefixes and of suffixes that a first run finds; 0 without one.
    pub cascade: u32,
    /// Probability from which on a boundary is printed; 0 for the vote of the models.
    pub threshold: f64,
    /// Whether this probability is that by the symbols around the boundary, or these vote.
    pub contexts: bool,
    /// Why these grammars; for the job file.
    pub reason: Option<String>,
    /// Time that the choice of the model took, which is left out of the time for its sweeps.
    pub spent: Duration,
    /// Further keys of `[model]` with their values.
    pub keys: Vec<(&'static str, toml::Value)>,
    /// Further files of the job: name in the folder, content, and the name that the user gave.
    pub files: Vec<(&'static str, String, String)>,
}

impl ModelFile {
    /// Adds the key of `[model]` for the user's file at `path`, which becomes `file` in the folder.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn know(&mut self, key: &'static str, file: &'static str, path: &Path) -> Result<()> {
        let name = path.display().to_string();
        self.keys.push((key, file.into()));
        self.files.push((file, input::text(path, &name, "list")?, name));
        Ok(())
    }

    /// The model, its first grammar alone in one chain, and the simpler grammars in one chain each.
    fn simplified(&self) -> Vec<ModelFile> {
        let alone = |&grammar| ModelFile {
            grammar,
            voters: Vec::new(),
            effort: Effort { chains: 1, voter_chains: None, ..self.effort },
            ..self.clone()
        };
        let simpler = self.simpler.iter().filter(|&&grammar| grammar != self.grammar);
        std::iter::once(self.clone())
            .chain(std::iter::once(&self.grammar).chain(simpler).map(alone))
            .collect()
    }

    /// Its grammars, and whether they have one chain.
    fn describe(&self) -> String {
        let grammars = std::iter::once(&self.grammar).chain(&self.voters);
        let grammars = grammars.map(Auto::to_string).collect::<Vec<_>>().join(" and ");
        if self.effort.chains == 1 { format!("one chain of {grammars}") } else { grammars }
    }
}

/// Number of sweeps below which a run is a trial.
const FEW_SWEEPS: u32 = 10;

/// The grammar of that name, with or without `auto:`.
pub fn grammar(name: &str) -> Result<Auto> {
    let name = name.strip_prefix("auto:").unwrap_or(name);
    name.parse().map_err(|_| match nearest(name, NAMES) {
        Some(near) => anyhow!("--grammar {name}: not a grammar; did you mean \"{near}\"?"),
        None => anyhow!("--grammar {name}: not a grammar; `grammaton grammars` lists them"),
    })
}

/// The corpus that the job reads.
pub const CORPUS: &str = "corpus.txt";
/// The job file.
pub const JOB: &str = "job.toml";
/// Keys of the job file in messages, and the options that stand for them.
const OPTIONS: &[(&str, &str)] = &[
    ("a larger inference.max_rounds", "more --sweeps"),
    ("inference.max_rounds", "--sweeps"),
    ("inference.restarts", "--chains"),
    ("inference.seed", "--seed"),
    ("model.grammar", "--grammar"),
    ("model.voters", "--grammar"),
    ("model.vowels", "--vowels"),
    ("model.stress", "--stress"),
    ("model.prefixes", "--prefixes"),
    ("model.suffixes", "--suffixes"),
    ("model.stems", "--stems"),
    ("model.words", "--words"),
    ("model.cascade", "--cascade"),
    ("output.threshold", "--threshold"),
    ("corpus.unit", "--unit"),
    ("corpus.boundary_mark", "--boundary-mark"),
    ("corpus.joined_mark", "--joined-mark"),
];
/// The begin of every job file that the commands write.
pub const MARK: &str = "# Written by grammaton";
/// The segmentation, as the text is written.
pub const SEGMENTED: &str = "segmented.txt";

impl Sampling {
    /// The compute threads of this process.
    pub fn fleet(&self) -> FleetConfig {
        FleetConfig::local(self.workers, MEMORY)
    }

    /// Writes the corpus and the job of `text` to `dir`, and returns the path of the job file.
    pub fn write_job(
        &self,
        text: &Text,
        model: &ModelFile,
        dir: &Path,
        observer: &mut dyn Observer,
    ) -> Result<PathBuf> {
        self.check_own(dir, text)?;
        fs::create_dir_all(dir).with_context(|| format!("{}: cannot create the folder", dir.display()))?;
        write(dir, CORPUS, &text.corpus_file()?)?;
        text.annotations_file().map_or(Ok(()), |lines| write(dir, ANNOTATED, &lines))?;
        model.files.iter().try_for_each(|(name, content, _)| write(dir, name, content))?;
        let job = match self.seconds {
            Some(seconds) => {
                let (model, effort) = self.fit(text, model, seconds, observer)?;
                self.job(text, &model, effort)
            }
            None => self.job(text, model, self.effort(model)),
        };
        // Errors name the assignment, not the file with it.
        Job::parse(&job, JOB, dir, text.assignments())?;
        write(dir, JOB, &assigned(&job, text.assignments())?)?;
        Ok(dir.join(JOB))
    }

    /// The first of `model`, its grammar alone, and simpler ones whose run fits in the time that is left, by a short run on a part of the text, and the
    /// effort for that time.
    fn fit(
        &self,
        text: &Text,
        model: &ModelFile,
        seconds: Duration,
        observer: &mut dyn Observer,
    ) -> Result<(ModelFile, Effort)> {
        let dir = tempfile::tempdir().context("cannot create a temporary folder")?;
        let names = names_in(dir.path(), text);
        let mut notice = |text: &str| observer.on(&RunEvent::Notice(with_names(text, &names)));
        let begun = clock::now();
        // Of a cascade the second run is measured; the first one is shorter.
        let n_runs = if model.cascade > 0 { 2 } else { 1 };
        let left = || seconds.saturating_sub(model.spent + clock::now().saturating_sub(begun)) / n_runs;
        let of_second = if model.grammar.has_positions() { PROBE_WORK_OF_MANY_SYMBOLS } else { PROBE_WORK };
        let (part, times) = text.part(seconds.as_secs_f64() * of_second);
        // The results are written in the rest, which is also for what a part of the text does not show.
        let time = || left().mul_f64(if times > 1.0 { 0.9 } else { 0.95 });
        write(dir.path(), CORPUS, &part.corpus_file()?)?;
        model.files.iter().try_for_each(|(name, content, _)| write(dir.path(), name, content))?;
        let (line, n_symbols) = text.longest_line();
        let mut candidates = model.simplified().into_iter().peekable();
        let mut last = None;
        while let Some(candidate) = candidates.next() {
            let effort = self.effort(&candidate);
            let probe = Effort { sweeps: effort::PROBE_SWEEPS, ..effort };
            let mut probe =
                Job::parse(&self.job(text, &candidate, probe), JOB, dir.path(), text.assignments())?;
            probe.corpus.gold = PathBuf::new();
            probe.corpus.remove_annotations();
            let config = self.fleet();
            let n_threads = config.local_workers;
            let measured = within(left() / 2, config, |fleet| {
                let cost = Cost::measure(&probe, fleet)?.of_work(times);
                if !cost.fits(time()) {
                    return Ok(cost);
                }
                let unable = |&grammar: &Auto| {
                    choice::unable(text.corpus(), grammar, &probe.corpus, &probe.model, fleet).transpose()
                };
                let mut grammars = std::iter::once(&candidate.grammar).chain(&candidate.voters);
                match grammars.find_map(unable).transpose()? {
                    Some(why) if candidates.peek().is_some() => bail!("{why}"),
                    _ => Ok(cost),
                }
            });
            let is_over = || format!("too slow for --seconds {}", seconds.as_secs_f64());
            let (cause, is_hopeless) = match measured {
                Ok(Some(cost)) if cost.fits(time()) => {
                    let effort = match self.chains {
                        Some(_) => Effort { sweeps: cost.sweeps(time()), ..effort },
                        None => effort::spread(effort, cost, time(), probe.n_runs(), n_threads),
                    };
                    if effort.sweeps < FEW_SWEEPS {
                        notice(&format!(
                            "only {} sweeps of each chain fit into --seconds {}: this is a trial; give more seconds for a result",
                            effort.sweeps,
                            seconds.as_secs_f64()
                        ))?;
                    }
                    return Ok((candidate, effort));
                }
                Ok(Some(cost)) => (is_over(), !cost.of_work(1.0 / probe.n_runs() as f64).fits(time())),
                Ok(None) => (is_over(), true),
                Err(error) if candidates.peek().is_none() => return Err(error),
                Err(error) => (error.root_cause().to_string(), true),
            };
            if is_hopeless {
                // So is one chain of it.
                while candidates.next_if(|next| next.grammar == candidate.grammar).is_some() {}
            }
            if let Some(next) = candidates.peek() {
                notice(&format!(
                    "{}: {cause}; the longest line, {line}, has {n_symbols} symbols; going on with {}",
                    candidate.describe(),
                    next.describe()
                ))?;
            }
            last = Some(candidate);
        }
        let Some(last) = last.filter(|_| !model.simpler.is_empty()) else {
            bail!(
                "--seconds {}: too short for {} and this text, the longest line of which, {line}, has {n_symbols} symbols; give more \
                 seconds, or split long lines",
                seconds.as_secs_f64(),
                model.describe()
            )
        };
        notice(
            "only 2 sweeps are run, and may take longer than --seconds: this is a trial; give more seconds for a result",
        )?;
        let effort = Effort { sweeps: 2, ..self.effort(&last) };
        Ok((last, effort))
    }

    /// Refuses a folder with files of these names that no earlier run wrote, unless they may be replaced; and one where the text itself would be.
    ///
    /// # Errors
    /// With the path of the file.
    pub fn check_own(&self, dir: &Path, text: &Text) -> Result<()> {
        let source = fs::canonicalize(&text.corpus().source_name).ok();
        let is_text = |path: &Path| source.is_some() && fs::canonicalize(path).ok() == source;
        let is_kept = !self.overwrite && !is_own(dir);
        match WRITTEN.map(|name| dir.join(name)).iter().find(|path| is_text(path) || is_kept && path.exists())
        {
            Some(path) if is_text(path) => bail!(
                "{}: the text would be overwritten; choose another folder with --out DIR",
                path.display()
            ),
            Some(path) => bail!(
                "{}: the file would be overwritten; replace it with --overwrite, or choose another folder with --out DIR",
                path.display()
            ),
            None => Ok(()),
        }
    }

    /// The effort of `model`, with what the command line says.
    fn effort(&self, model: &ModelFile) -> Effort {
        let sweeps = self.sweeps.unwrap_or(model.effort.sweeps);
        match self.chains {
            Some(chains) => Effort { chains, voter_chains: None, sweeps },
            None => Effort { sweeps, ..model.effort },
        }
    }

    /// The job file of a run with this effort; each sweep is a round.
    fn job(&self, text: &Text, model: &ModelFile, effort: Effort) -> String {
        let ModelFile { grammar, voters, keys, reason, .. } = model;
        let Effort { chains, voter_chains, sweeps } = effort;
        let reason = reason.as_ref().map(|reason| format!("# {reason}\n")).unwrap_or_default();
        let keys: String = keys.iter().map(|(key, value)| format!("{key} = {value}\n")).collect();
        let of_text = text.keys();
        let voters: Vec<String> = voters.iter().map(|voter| format!("\"auto:{voter}\"")).collect();
        let voters =
            if voters.is_empty() { String::new() } else { format!("voters = [{}]\n", voters.join(", ")) };
        let voter_chains = voter_chains.filter(|_| !voters.is_empty());
        let voter_chains = voter_chains.map(|n| format!("voter_chains = {n}\n")).unwrap_or_default();
        let cascade = match model.cascade {
            0 => String::new(),
            n => format!("cascade = {n}\n"),
        };
        let keep_every = effort.keep_every(model.voters.len());
        let title = title(&text.corpus().source_name);
        let (seed, hyperparameters) = (self.seed, choice::hyperparameters(*grammar));
        let models = models(*grammar);
        let threshold = match model.threshold {
            0.0 => String::new(),
            threshold => format!("threshold = {threshold:?}\n"),
        };
        let contexts = if model.contexts { "contexts = true\n" } else { "" };
        format!(
            "{MARK}. `grammaton train {JOB} --out again` gives the same result.\n{reason}\
             [model]\ngrammar = \"auto:{grammar}\"\n{voters}{voter_chains}{cascade}{keys}\n\
             [corpus]\npath = \"{CORPUS}\"\n{of_text}\n\
             [inference]\nmethod = \"hastings\"\n{hyperparameters}\
             max_rounds = {sweeps}\nkeep_every = {keep_every}\nrestarts = {chains}\nseed = {seed}\n\n\
             [output]\ndir = \".\"\ntitle = {title}\ndecoders = [\"mbr\"]\nscore_every = 0\n{models}{threshold}{contexts}"
        )
    }
}

/// The name of the user's file, as TOML, for the title of the report.
pub fn title(source: &str) -> toml::Value {
    let name = Path::new(source).file_name().map_or(source.into(), |name| name.to_string_lossy());
    name.replace(char::is_control, "").into()
}

/// The job file with these assignments, and its first comments.
fn assigned(job: &str, assignments: &[String]) -> Result<String> {
    if assignments.is_empty() {
        return Ok(job.to_owned());
    }
    let mut tables: toml::Table =
        job.parse().context("internal error: the job is no TOML; please report it")?;
    for assignment in assignments {
        let (path, value) = assignment.split_once('=').context("--set needs KEY=VALUE")?;
        let (table, key) = path.trim().split_once('.').context("--set needs TABLE.KEY=VALUE")?;
        let parsed = format!("value = {value}").parse::<toml::Table>().ok();
        let value = parsed.and_then(|mut parsed| parsed.remove("value"));
        let value = value.unwrap_or_else(|| assignment[path.len() + 1..].trim().into());
        let table = tables.entry(table).or_insert_with(|| toml::Table::new().into());
        table.as_table_mut().context("--set needs TABLE.KEY=VALUE")?.insert(key.to_owned(), value);
    }
    let comments = job.lines().take_while(|line| line.starts_with('#')).map(|line| format!("{line}\n"));
    Ok(comments.collect::<String>() + "\n" + &tables.to_string())
}

/// The models that read new text: of words that were not trained on, the best chain of a grammar of morphemes finds more boundaries than the vote of all
/// (docs/results/segment.md).
fn models(grammar: Auto) -> &'static str {
    if grammar.has_affixes() { "models = \"one\"\n" } else { "" }
}

/// Files that the commands write, besides those of `train`, and that a user may have in a folder.
const WRITTEN: [&str; 8] =
    [CORPUS, ANNOTATED, JOB, SEGMENTED, "prefixes.txt", "suffixes.txt", "stems.txt", "known-words.txt"];

/// The corpus and its annotations in a folder and keys of its job, each with what the user calls it.
pub fn names_in(dir: &Path, text: &Text) -> Vec<(String, String)> {
    let in_dir = |name: &str| dir.join(name).display().to_string();
    let corpus = (in_dir(CORPUS), text.corpus().source_name.clone());
    let annotated = Some(text.annotated.display().to_string()).filter(|path| !path.is_empty());
    let annotated = (in_dir(ANNOTATED), annotated.unwrap_or_else(|| corpus.1.clone()));
    let options = OPTIONS.iter().map(|&(key, option)| (key.to_owned(), option.to_owned()));
    [annotated, corpus].into_iter().chain(options).collect()
}

/// Whether an earlier run wrote the files of a folder.
pub fn is_own(dir: &Path) -> bool {
    fs::read_to_string(dir.join(JOB)).is_ok_and(|job| job.starts_with(MARK))
}

/// Writes a file of a folder.
///
/// # Errors
/// With its path.
pub fn write(dir: &Path, name: &str, text: &str) -> Result<()> {
    let path = dir.join(name);
    fs::write(&path, text).with_context(|| format!("{}: cannot write the file", path.display()))
}
