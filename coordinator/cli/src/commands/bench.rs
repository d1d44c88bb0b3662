//! `grammaton bench`: measures training on this machine, to help choose machines for a cluster.
//!
//! Sentences are drawn from a synthetic language (`language`), or from a given grammar. Separate processes train on them (`trial`):
//! with threads of one process, and with worker processes over loopback. All files are in a temporary folder.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use basics::human::megabytes;
use basics::streams;
use grammaton::data::corpus::Unit;
use grammaton::data::generate::{self, Options};
use grammaton::grammar::Grammar;
use grammaton::grammar::auto::Auto;
use serde::Serialize;
use training::input;

use self::trial::{BenchWorkers, Trial};
use super::Answer;
use super::sample::{segmented, unit};

mod language;
mod trial;

/// Arguments of `bench`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n\
    \x20 grammaton bench\n\
    \x20 grammaton bench --sentences 1000,100000 --threads 1,8 --json\n\
    \x20 grammaton bench --grammar colloc3-syllable --set inference.method=hastings --threads 1")]
pub struct Args {
    /// Numbers of sentences, separated by commas
    #[arg(long, value_name = "N,N", value_delimiter = ',', default_value = "1000,10000")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=50_000_000))]
    pub sentences: Vec<u32>,
    /// Numbers of threads, separated by commas [default: 1 and all cores]
    #[arg(long, value_name = "N,N", value_delimiter = ',', value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: Vec<u16>,
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
    grammar: String,
    /// Values of `--set`.
    set: Vec<String>,
    rounds: u16,
    seed: u64,
    cores: usize,
    trials: Vec<Trial>,
}

/// Draws, trains and prints.
pub fn run(args: &Args) -> Result<Answer> {
    let subject = Subject::new(&args.grammar)?;
    let folder = tempfile::tempdir().context("cannot create a temporary folder")?;
    let program = std::env::current_exe().context("cannot find this program's own file")?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = match &args.threads[..] {
        [] if cores == 1 => vec![1],
        [] => vec![1, cores as u16],
        threads => threads.to_vec(),
    };
    let job = folder.path().join("job.toml");
    fs::write(&job, subject.job(args.rounds)).context("cannot write to the temporary folder")?;
    let mut trials: Vec<Trial> = Vec::new();
    for &n in &args.sentences {
        let corpus = folder.path().join("corpus.txt");
        subject.draw(n as usize, args.seed, &corpus)?;
        let threads = threads.iter().map(|&threads| BenchWorkers::Threads(threads));
        let workers = [1, 2].map(BenchWorkers::Workers);
        for bench_workers in threads.chain(workers) {
            streams::tell(&format!("{n} sentences, {bench_workers}"));
            trials.push(trial::run(&program, &job, &args.set, n, &bench_workers)?);
        }
    }
    for at in 0..trials.len() {
        trials[at].efficiency = efficiency(&trials, &trials[at]);
    }
    let grammar = args.grammar.display().to_string();
    let (set, rounds, seed) = (args.set.clone(), args.rounds, args.seed);
    let report = Report { grammar, set, rounds, seed, cores, trials };
    let printed = if args.json {
        serde_json::to_string_pretty(&report).context("the trials do not serialise")? + "\n"
    } else {
        text(&report)
    };
    streams::print(&printed)?;
    Ok(Answer::Yes)
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
fn weak_scaling(trials: &[Trial]) -> Vec<(u32, f64)> {
    let find = |sentences: u32, n: u16| {
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
    let Report { grammar, set, rounds, cores, trials, .. } = report;
    let subject = [std::slice::from_ref(grammar), set].concat().join(", ");
    let mut lines = vec![
        format!("{subject}: the median of {rounds} rounds after the first, {cores} cores"),
        format!(
            "{:>10} {:>10} {:<11} {:>9} {:>10} {:>12} {:>9} {:>10} {:>9} {:>9}",
            "sentences",
            "symbols",
            "by",
            "prepare s",
            "round s",
            "sentences/s",
            "CPU s",
            "efficiency",
            "decode s",
            "peak MB"
        ),
    ];
    lines.extend(trials.iter().map(|trial| {
        let peak = trial.peak_bytes.map_or("-".to_owned(), |bytes| format!("{:.0}", megabytes(bytes)));
        format!(
            "{:>10} {:>10} {:<11} {:>9.3} {:>10.4} {:>12.0} {:>9.4} {:>8.1} % {:>9.3} {:>9}",
            trial.sentences,
            trial.symbols,
            format!("{} {}", trial.n, trial.by),
            trial.preparation_seconds,
            trial.round_seconds,
            trial.sentences_per_second,
            trial.cpu_seconds,
            100.0 * trial.efficiency,
            trial.decoding_seconds,
            peak,
        )
    }));
    lines.extend(weak_scaling(trials).into_iter().map(|(sentences, efficiency)| {
        format!(
            "two workers on twice {sentences} sentences: {:.1} % of one worker's speed each",
            100.0 * efficiency
        )
    }));
    lines.push(hint(report));
    if *cores < 3 {
        lines.push(format!(
            "two workers and their coordinator share {cores} cores here, and slow each other down"
        ));
    }
    lines.push(String::new());
    lines.join("\n")
}

/// Efficiency from which two workers are worthwhile.
const WORTH_IT: f64 = 0.8;

/// Smallest number of sentences for which more machines are worthwhile.
fn hint(report: &Report) -> String {
    let pairs = report.trials.iter().filter(|trial| trial.by == "workers" && trial.n == 2);
    match pairs.clone().filter(|trial| trial.efficiency >= WORTH_IT).min_by_key(|trial| trial.sentences) {
        Some(trial) => format!(
            "two workers pay from {} sentences on (rounds of {:.2} CPU-s); `grammaton plan` says how many more do",
            trial.sentences, trial.cpu_seconds
        ),
        None => format!(
            "two workers do not pay at any of these sizes (less than {:.0} % of a thread each): one process is enough",
            100.0 * WORTH_IT
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial(sentences: u32, by: &'static str, n: u16, round_seconds: f64) -> Trial {
        Trial {
            sentences,
            symbols: 10 * u64::from(sentences),
            by,
            n,
            preparation_seconds: 0.5,
            round_seconds,
            sentences_per_second: f64::from(sentences) / round_seconds,
            cpu_seconds: 2.0,
            efficiency: 0.0,
            decoding_seconds: 0.25,
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
        Report { grammar: "unigram".into(), set, rounds: 3, seed: 1, cores: 2, trials }
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
            " sentences    symbols by          prepare s    round s  sentences/s     CPU s efficiency  decode s   peak MB",
            "       100       1000 1 threads       0.500     1.0000          100    2.0000    100.0 %     0.250        50",
        ];
        assert_eq!(printed.lines().take(3).collect::<Vec<_>>(), expected);
        assert!(printed.contains("twice 100 sentences: 80.0 %"), "{printed}");
        assert!(printed.contains("two workers pay from 200 sentences on"), "{printed}");
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
