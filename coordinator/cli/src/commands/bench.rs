//! `grammaton bench`: measures training on this machine, to help choose machines for a cluster.
//!
//! Sentences are drawn from a synthetic language (`language`), or from a given grammar; or a given job is run as it is. Separate processes
//! train on them (`trial`): with threads of one process, and with worker processes over loopback or on other hosts. All files are in a
//! temporary folder.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use basics::human::megabytes;
use basics::streams;
use grammaton::data::corpus::Unit;
use grammaton::data::generate::{self, Options};
use grammaton::grammar::Grammar;
use grammaton::grammar::auto::Auto;
use serde::Serialize;
use training::input;

use self::trial::{BenchWorkers, Hosts, Trial};
use super::Answer;
use super::sample::{segmented, unit};

mod language;
mod trial;

/// Arguments of `bench`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n\
    \x20 grammaton bench\n\
    \x20 grammaton bench --sentences 1000,100000 --threads 1,8 --json\n\
    \x20 grammaton bench --grammar colloc3-syllable --set inference.method=hastings --threads 1\n\
    \x20 grammaton bench --job job.toml --workers 1,20 --hosts node1,node2 --token-file token")]
pub struct Args {
    /// Numbers of sentences, separated by commas
    #[arg(long, value_name = "N,N", value_delimiter = ',', default_value = "1000,10000")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=50_000_000))]
    pub sentences: Vec<u32>,
    /// Job to run to its end as it is, in the place of generated sentences
    #[arg(long, value_name = "FILE", conflicts_with_all = ["sentences", "grammar", "rounds", "seed"])]
    pub job: Option<PathBuf>,
    /// Numbers of threads, separated by commas [default: 1 and all cores]
    #[arg(long, value_name = "N,N", value_delimiter = ',', value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: Vec<u16>,
    /// Numbers of workers of one thread, separated by commas
    #[arg(long, value_name = "N,N", value_delimiter = ',', default_value = "1,2")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..))]
    pub workers: Vec<u16>,
    /// Hosts of the workers, separated by commas, with this program at the same path; in turn, if there are fewer than workers
    #[arg(help_heading = "Hosts", long, value_name = "HOST,HOST", value_delimiter = ',')]
    pub hosts: Vec<String>,
    /// Command that runs another one on a host, with {host} for its name, as in 'srun -N1 -n1 -w {host}'
    #[arg(
        help_heading = "Hosts",
        long,
        value_name = "COMMAND",
        default_value = "ssh {host}",
        requires = "hosts"
    )]
    pub launch: String,
    /// Name or address of this machine for the hosts [default: its host name]
    #[arg(help_heading = "Hosts", long, value_name = "ADDR", requires = "hosts")]
    pub address: Option<String>,
    /// File with the token that workers must show, at the same path on the hosts
    #[arg(help_heading = "Hosts", long, value_name = "FILE", requires = "hosts")]
    pub token_file: Option<PathBuf>,
    /// Allow connections without token
    #[arg(help_heading = "Hosts", long, requires = "hosts", conflicts_with = "token_file")]
    pub insecure: bool,
    /// Grammar to train: a name of `grammaton grammars`, on a synthetic language; or a grammar file, on sentences drawn from it
    #[arg(long, value_name = "NAME|FILE", default_value = "unigram")]
    pub grammar: PathBuf,
    /// Set a value of the job that is measured, as in --set inference.method=hastings; repeatable, the last one wins
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Number of rounds after the first, whose median is reported
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub rounds: u16,
    /// Seed of the sentences
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub seed: u64,
    /// Print JSON
    #[arg(help_heading = "Output", long)]
    pub json: bool,
}

/// Sentences drawn from one seed, so that a longer corpus begins with a shorter one.
const AT_ONCE: usize = 10_000;

/// Grammar to train, and source of the sentences.
struct Subject {
    /// Value of the key `grammar` in the job file.
    grammar: String,
    /// Whether the grammar is an adaptor grammar, which is trained by `vb` instead of `em`.
    is_adapted: bool,
    language: Grammar,
    unit: Unit,
}

/// Result of the command.
#[derive(Serialize)]
struct Report {
    /// Name of the grammar, or the job.
    subject: String,
    /// Values of `--set`.
    set: Vec<String>,
    /// Number of rounds after the first; `None` if the job says it.
    rounds: Option<u16>,
    seed: u64,
    cores: usize,
    /// Number of hosts of the workers, 0 if they run here.
    hosts: usize,
    trials: Vec<Trial>,
}

/// Draws, trains and prints.
pub fn run(args: &Args) -> Result<Answer> {
    let folder = tempfile::tempdir().context("cannot create a temporary folder")?;
    let program = std::env::current_exe().context("cannot find this program's own file")?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = match &args.threads[..] {
        [] if cores == 1 => vec![1],
        [] => vec![1, cores as u16],
        threads => threads.to_vec(),
    };
    let hosts = args.hosts()?;
    let threads = threads.iter().map(|&threads| BenchWorkers::Threads(threads));
    let workers = args.workers.iter().map(|&workers| BenchWorkers::Workers(workers));
    let all: Vec<BenchWorkers> = threads.chain(workers).collect();
    let mut trials: Vec<Trial> = Vec::new();
    let mut measure = |job: &Path, what: &str| -> Result<()> {
        for bench_workers in &all {
            streams::tell(&format!("{what}, {bench_workers}"));
            let trial = trial::run(&program, (job, &args.set), folder.path(), &hosts, bench_workers);
            trials.push(trial.with_context(|| what.to_owned())?);
        }
        Ok(())
    };
    match &args.job {
        Some(job) => measure(job, &job.display().to_string())?,
        None => {
            let subject = Subject::new(&args.grammar)?;
            let job = folder.path().join("job.toml");
            fs::write(&job, subject.job(args.rounds)).context("cannot write to the temporary folder")?;
            for &n in &args.sentences {
                subject.draw(n as usize, args.seed, &folder.path().join("corpus.txt"))?;
                measure(&job, &format!("{n} sentences"))?;
            }
        }
    }
    for at in 0..trials.len() {
        trials[at].efficiency = efficiency(&trials, &trials[at]);
    }
    let report = Report {
        subject: args.job.as_ref().unwrap_or(&args.grammar).display().to_string(),
        set: args.set.clone(),
        rounds: args.job.is_none().then_some(args.rounds),
        seed: args.seed,
        cores,
        hosts: args.hosts.len(),
        trials,
    };
    let printed = if args.json {
        serde_json::to_string_pretty(&report).context("the trials do not serialise")? + "\n"
    } else {
        text(&report)
    };
    streams::print(&printed)?;
    Ok(Answer::Yes)
}

impl Args {
    fn hosts(&self) -> Result<Hosts> {
        if self.hosts.is_empty() {
            return Ok(Hosts { address: "127.0.0.1".to_owned(), ..Hosts::default() });
        }
        let launch: Vec<String> = self.launch.split_whitespace().map(str::to_owned).collect();
        if launch.is_empty() {
            bail!("--launch: expected a command, as in 'ssh {{host}}'");
        }
        let access = match (&self.token_file, self.insecure) {
            (Some(file), _) => {
                let file =
                    fs::canonicalize(file).with_context(|| format!("{}: cannot be found", file.display()))?;
                vec!["--token-file".to_owned(), file.display().to_string()]
            }
            (None, true) => vec!["--insecure".to_owned()],
            (None, false) => bail!("--hosts: workers on other hosts need --token-file FILE, or --insecure"),
        };
        let address = self.address.clone().unwrap_or_else(worker::command::host);
        Ok(Hosts { names: self.hosts.clone(), launch, address, access })
    }
}

impl Subject {
    fn new(grammar: &Path) -> Result<Subject> {
        if grammar.to_str().is_some_and(|name| name.parse::<Auto>().is_ok()) {
            let (language, grammar) = (language::language(), format!("auto:{}", grammar.display()));
            return Ok(Subject { grammar, is_adapted: true, unit: unit(&language), language });
        }
        let (language, notices) = input::grammar(grammar)?;
        notices.iter().for_each(|notice| streams::tell(&format!("notice: {notice}")));
        let path =
            fs::canonicalize(grammar).with_context(|| format!("{}: cannot be found", grammar.display()))?;
        let (is_adapted, unit) = (language.adapted().next().is_some(), unit(&language));
        Ok(Subject { grammar: path.display().to_string(), is_adapted, language, unit })
    }

    /// The text of the job file; the corpus is beside it.
    fn job(&self, rounds: u16) -> String {
        let (kind, method) = if self.is_adapted { ("adaptor", "vb") } else { ("pcfg", "em") };
        let (format, unit) = match self.unit {
            Unit::Char | Unit::Grapheme | Unit::Ipa => ("segmented", "char"),
            Unit::Token => ("tokens", "token"),
        };
        let (grammar, rounds) = (toml::Value::from(self.grammar.clone()), 1 + rounds);
        let segments = self.language.symbols.first().cloned().map(toml::Value::from);
        let segments = segments.filter(|_| !self.grammar.starts_with("auto:")).map(|name| name.to_string());
        format!(
            "[model]\nkind = \"{kind}\"\ngrammar = {grammar}\n[corpus]\npath = \"corpus.txt\"\nformat = \"{format}\"\n\
             unit = \"{unit}\"\n[inference]\nmethod = \"{method}\"\nmax_rounds = {rounds}\ntolerance = 0\n[output]\n\
             segments = [{}]\nscore_every = 0\ndecoders = [\"viterbi\"]\nkeep_checkpoints = 0\n",
            segments.unwrap_or_default()
        )
    }

    /// Writes `n` sentences.
    fn draw(&self, n: usize, seed: u64, to: &Path) -> Result<()> {
        let segments = ["Word".to_owned()];
        let mut text = String::new();
        for (chunk, first) in (0..n).step_by(AT_ONCE).enumerate() {
            let seed = seed.wrapping_add(chunk as u64);
            let count = AT_ONCE.min(n - first);
            for tree in generate::sample(&self.language, count, seed, &Options::default())? {
                match self.unit {
                    Unit::Char | Unit::Grapheme | Unit::Ipa => {
                        text += &segmented(&tree, &segments, Unit::Char)
                    }
                    Unit::Token => text += &tree.terminals().collect::<Vec<_>>().join(" "),
                }
                text.push('\n');
            }
        }
        fs::write(to, text).with_context(|| format!("{}: cannot write the sentences", to.display()))
    }
}

/// Parallel efficiency: throughput per thread or worker, relative to one thread of one process (or the nearest trial to it) on the same
/// sentences.
fn efficiency(trials: &[Trial], trial: &Trial) -> f64 {
    let alike = trials.iter().filter(|other| other.sentences == trial.sentences);
    let alone = alike.min_by_key(|other| (other.by == "workers", other.n)).unwrap_or(trial);
    let cost = |trial: &Trial| trial.round_seconds * f64::from(trial.n);
    cost(alone) / cost(trial)
}

/// Weak scaling of two workers on twice the sentences, relative to one: 1 if they take the same time.
fn weak_scaling(trials: &[Trial]) -> Vec<(u64, f64)> {
    let find = |sentences: u64, n: u16| {
        trials.iter().find(|trial| trial.sentences == sentences && trial.by == "workers" && trial.n == n)
    };
    let of = |one: &Trial| {
        let two = find(one.sentences.checked_mul(2)?, 2)?;
        Some((one.sentences, one.round_seconds / two.round_seconds))
    };
    let ones = trials.iter().filter(|trial| trial.by == "workers" && trial.n == 1);
    ones.filter_map(of).collect()
}

fn text(report: &Report) -> String {
    let Report { subject, set, rounds, cores, hosts, trials, .. } = report;
    let subject = [std::slice::from_ref(subject), set].concat().join(", ");
    let rounds = rounds.map_or("all".to_owned(), |rounds| rounds.to_string());
    let mut lines = vec![
        format!("{subject}: the median of {rounds} rounds after the first, {cores} cores"),
        format!(
            "{:>10} {:>10} {:<11} {:>9} {:>10} {:>12} {:>9} {:>10} {:>9} {:>9} {:>9}",
            "sentences",
            "symbols",
            "by",
            "prepare s",
            "round s",
            "sentences/s",
            "CPU s",
            "efficiency",
            "decode s",
            "all s",
            "peak MB"
        ),
    ];
    lines.extend(trials.iter().map(|trial| {
        let peak = trial.peak_bytes.map_or("-".to_owned(), |bytes| format!("{:.0}", megabytes(bytes)));
        format!(
            "{:>10} {:>10} {:<11} {:>9.3} {:>10.4} {:>12.0} {:>9.4} {:>8.1} % {:>9.3} {:>9.3} {:>9}",
            trial.sentences,
            trial.symbols,
            format!("{} {}", trial.n, trial.by),
            trial.preparation_seconds,
            trial.round_seconds,
            trial.sentences_per_second,
            trial.cpu_seconds,
            100.0 * trial.efficiency,
            trial.decoding_seconds,
            trial.total_seconds,
            peak,
        )
    }));
    lines.extend(weak_scaling(trials).into_iter().map(|(sentences, efficiency)| {
        format!(
            "two workers on twice {sentences} sentences: {:.1} % of one worker's speed each",
            100.0 * efficiency
        )
    }));
    lines.extend(hint(report));
    lines.push(digests(trials));
    if *cores < 3 && *hosts == 0 && trials.iter().any(|trial| trial.by == "workers") {
        lines.push(format!(
            "two workers and their coordinator share {cores} cores here, and slow each other down"
        ));
    }
    lines.push(String::new());
    lines.join("\n")
}

/// Efficiency from which two workers are worthwhile.
const WORTH_IT: f64 = 0.8;

/// Whether all trials on the same sentences learned the same.
fn digests(trials: &[Trial]) -> String {
    let differs = |one: &&Trial| {
        let same = |other: &Trial| other.parameters_sha256 == one.parameters_sha256;
        trials.iter().any(|other| other.sentences == one.sentences && !same(other))
    };
    match trials.iter().find(differs) {
        Some(trial) => format!(
            "trials on {} sentences learned different parameters: a worker computes wrongly, or this is a defect of the program",
            trial.sentences
        ),
        None => "all trials on the same sentences learned the same parameters, bit for bit".to_owned(),
    }
}

/// Smallest number of sentences for which more machines are worthwhile; `None` if two workers were not tried.
fn hint(report: &Report) -> Option<String> {
    let pairs = report.trials.iter().filter(|trial| trial.by == "workers" && trial.n == 2);
    pairs.clone().next()?;
    Some(
        match pairs.clone().filter(|trial| trial.efficiency >= WORTH_IT).min_by_key(|trial| trial.sentences) {
            Some(trial) => format!(
                "two workers pay from {} sentences on (rounds of {:.2} CPU-s); `grammaton plan` says how many more do",
                trial.sentences, trial.cpu_seconds
            ),
            None => format!(
                "two workers do not pay at any of these sizes (less than {:.0} % of a thread each): one process is enough",
                100.0 * WORTH_IT
            ),
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial(sentences: u64, by: &'static str, n: u16, round_seconds: f64) -> Trial {
        Trial {
            sentences,
            symbols: 10 * sentences,
            by,
            n,
            preparation_seconds: 0.5,
            round_seconds,
            sentences_per_second: sentences as f64 / round_seconds,
            cpu_seconds: 2.0,
            efficiency: 0.0,
            decoding_seconds: 0.25,
            total_seconds: 7.5,
            parameters_sha256: "a1".to_owned(),
            peak_bytes: Some(50_000_000),
        }
    }

    fn report() -> Report {
        let mut trials = vec![
            trial(100, "threads", 1, 1.0),
            trial(100, "threads", 2, 0.8),
            trial(100, "workers", 1, 2.0),
            trial(100, "workers", 2, 2.0),
            trial(200, "threads", 2, 2.0),
            trial(200, "workers", 1, 4.0),
            trial(200, "workers", 2, 2.5),
        ];
        for at in 0..trials.len() {
            trials[at].efficiency = efficiency(&trials, &trials[at]);
        }
        let set = vec!["inference.rho=0".into()];
        Report { subject: "unigram".into(), set, rounds: Some(3), seed: 1, cores: 2, hosts: 0, trials }
    }

    #[test]
    fn efficiency_is_against_the_fewest_threads_of_one_process() {
        let found: Vec<f64> = report().trials.iter().map(|trial| trial.efficiency).collect();
        assert_eq!(found, [1.0, 0.625, 0.5, 0.25, 1.0, 1.0, 0.8]);
        assert_eq!(weak_scaling(&report().trials), [(100, 0.8)]);
    }

    #[test]
    fn a_table_ends_with_the_break_even_of_two_workers() {
        let printed = text(&report());
        let expected = [
            "unigram, inference.rho=0: the median of 3 rounds after the first, 2 cores",
            " sentences    symbols by          prepare s    round s  sentences/s     CPU s efficiency  decode s     all s   peak MB",
            "       100       1000 1 threads       0.500     1.0000          100    2.0000    100.0 %     0.250     7.500        50",
        ];
        assert_eq!(printed.lines().take(3).collect::<Vec<_>>(), expected);
        assert!(printed.contains("twice 100 sentences: 80.0 %"), "{printed}");
        assert!(printed.contains("two workers pay from 200 sentences on"), "{printed}");
        assert!(printed.contains("learned the same parameters, bit for bit"), "{printed}");
        let mut report = report();
        report.trials[5].parameters_sha256 = "b2".to_owned();
        assert!(text(&report).contains("trials on 200 sentences learned different parameters"));
    }

    #[test]
    fn a_longer_corpus_begins_as_a_shorter_one() {
        let subject = Subject::new(Path::new("unigram")).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let draw = |n: usize, seed| {
            let path = dir.path().join("corpus.txt");
            subject.draw(n, seed, &path).unwrap();
            fs::read_to_string(path).unwrap()
        };
        let (short, long) = (draw(20, 7), draw(AT_ONCE + 5, 7));
        assert_eq!((short.lines().count(), long.lines().count()), (20, AT_ONCE + 5));
        assert!(long.starts_with(&short) && draw(20, 8) != short);
    }
}
