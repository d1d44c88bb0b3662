//! The command line: parses the arguments, runs the command, and returns an exit code.
//!
//! 0 done, 1 a negative answer, 2 bad input or usage, 130 and 143 stopped by a signal. An error is one line on standard error. A panic is a
//! bug, and is reported in one line as well; compute threads catch panics and turn them into errors.

pub mod commands;
pub mod signals;

mod help;

use std::ffi::OsString;
use std::panic::catch_unwind;
use std::process::ExitCode;

use basics::nearest::nearest;
use basics::streams::{Closed, tell};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use proto::log::{self, Form};

use crate::commands::{
    Answer, annotate, bench, cancel, check, compare, completions, demo, dependencies, eval, export, fetch,
    grammars, inspect, job_process, jobs, keys, logs, man, morphemes, new, parse, plan, run, sample, segment,
    serve, status, submit, suggest, token, train, treebank, up, workers,
};

/// Train probabilistic grammars, on one machine or on a cluster.
#[derive(Parser, Debug)]
#[command(
    name = "grammaton",
    version,
    long_version = proto::BUILD,
    propagate_version = true,
    after_help = "Exit codes: 0 done, 1 a negative answer, 2 bad input or usage, 130 stopped by Ctrl-C, 143 by SIGTERM.\n\
    GRAMMATON_LOG sets the level of logs on standard error (error, warn, info, debug, trace).\n\n\
    Examples:\n\
    \x20 grammaton segment text.txt --out words\n\
    \x20 grammaton train job.toml\n\
    \x20 grammaton parse results new.txt"
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Format of the logs on standard error; json also logs progress
    #[arg(long, default_value_t, global = true, value_name = "text|json")]
    log: Form,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Find the words of a small text that comes with the program, and open the report
    Demo(demo::Args),
    /// Find the words of a text, without a job file
    Segment(segment::Args),
    /// Find the morphemes of words, without a job file
    Morphemes(morphemes::Args),
    /// Find the heads of tagged words, without a job file
    Dependencies(dependencies::Args),
    /// Print a job file to start from, made for a corpus
    New(new::Args),
    /// Train a model from a job file
    Train(Box<train::Args>),
    /// Check a job without training: sentences that cannot be derived, time, memory
    Check(check::Args),
    /// Train in all tasks of a cluster's job, as in: srun grammaton run JOB
    Run(Box<run::Args>),
    /// Train on a cluster: submit a batch job that runs in many tasks, and follow it
    #[command(
        subcommand,
        after_help = "Examples:\n\
        \x20 grammaton up slurm job.toml -n 16 --out results"
    )]
    Up(up::Args),
    /// Compute for a coordinator until its job is finished
    #[command(after_help = worker::command::after_help("grammaton worker"))]
    Worker(worker::command::Args),
    /// Segment or parse text with a trained model
    Parse(parse::Args),
    /// Compare an analysis with a gold standard
    #[command(
        subcommand,
        after_help = "Examples:\n\
        \x20 grammaton eval segmentation gold.txt results/segmentation.mbr.txt\n\
        \x20 grammaton eval brackets gold.mrg parsed.mrg\n\
        \x20 grammaton eval dependencies gold.conllu predicted.conllu\n\
        \x20 grammaton eval stats text.txt"
    )]
    Eval(eval::Args),
    /// Compare the results of several runs on the same text
    Compare(compare::Args),
    /// Draw sentences, with their analysis, from a grammar
    Sample(sample::Args),
    /// Extract a grammar from a treebank, to train from its trees
    Treebank(treebank::Args),
    /// Write a segmented text in a format of other programs
    Export(export::Args),
    /// Print the lines of a result whose annotation would teach most
    Suggest(suggest::Args),
    /// Annotate the lines of a result in a browser, and see what is learned from them
    Annotate(annotate::Args),
    /// Show the learned parameters of a model
    Inspect(inspect::Args),
    /// List the grammars that are made from a corpus, or print one as a file
    Grammars(grammars::Args),
    /// Show the keys of a job file: default, values, readers, meaning
    Keys(keys::Args),
    /// Run a service that trains jobs of many users on one fleet
    Serve(Box<serve::Args>),
    /// Submit a job to a service
    Submit(Box<submit::Args>),
    /// List the jobs of a service
    Jobs(jobs::Args),
    /// Show the status of a job of a service, or of a coordinator and its workers
    Status(status::Args),
    /// Show the event log of a job of a service
    Logs(logs::Args),
    /// Stop a job of a service
    #[command(after_help = "Examples:\n  grammaton cancel 17")]
    Cancel(cancel::Args),
    /// Resume a job of a service that failed or was cancelled
    #[command(after_help = "Examples:\n  grammaton resume 17")]
    Resume(cancel::Args),
    /// Delete a job of a service that has ended, with its results
    #[command(after_help = "Examples:\n  grammaton delete 17")]
    Delete(cancel::Args),
    /// Download the results of a job of a service
    Fetch(fetch::Args),
    /// List the workers of a service
    Workers(workers::Args),
    /// Create a token for a service
    Token(token::Args),
    /// Estimate the time of a job on a cluster, from rounds measured on this machine
    Plan(plan::Args),
    /// Measure training on this machine, with threads and with worker processes
    Bench(bench::Args),
    /// Print completions for a shell
    Completions(completions::Args),
    /// Write man pages of all commands, or print their reference in Markdown
    Man(man::Args),
    /// Train or check a job of a service, which starts this process
    #[command(hide = true)]
    JobProcess(job_process::Args),
}

const BAD: u8 = 2;

/// The definition of the command line.
pub fn definition() -> clap::Command {
    help::in_groups(Cli::command())
}

fn parsed(args: impl IntoIterator<Item = impl Into<OsString> + Clone>) -> Result<Cli, clap::Error> {
    Cli::from_arg_matches(&definition().try_get_matches_from(args)?)
}

/// Runs the command line `args`, whose first element is the program's name.
pub fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    std::panic::set_hook(Box::new(|panic| {
        let what = panic.payload_as_str().unwrap_or("no message");
        let place = panic.location().map_or(String::new(), |place| format!(" ({place})"));
        complain(&format!(
            "internal error: {what}{place}; please report it, with the command that led to it"
        ));
    }));
    let args: Vec<OsString> = args.into_iter().collect();
    catch_unwind(|| answer(args)).unwrap_or(ExitCode::from(BAD))
}

fn answer(args: Vec<OsString>) -> ExitCode {
    let cli = match parsed(args) {
        Ok(cli) => cli,
        Err(error) => return misuse(&error),
    };
    let usual = match (&cli.command, cli.log) {
        (Command::Worker(_), _) => worker::command::LOG_LEVEL,
        // JSON logs include progress.
        (_, Form::Json) => "info",
        (_, Form::Text) => "warn",
    };
    // A worker listens by itself.
    let is_worker = matches!(cli.command, Command::Worker(_));
    if let Err(error) = if is_worker { Ok(()) } else { signals::end_first_process() } {
        complain(&format!("{error:#}"));
        return ExitCode::from(BAD);
    }
    let log = match log::start(cli.log, usual) {
        Ok(log) => log,
        Err(error) => {
            complain(&error);
            return ExitCode::from(BAD);
        }
    };
    let answer = match cli.command {
        Command::Demo(args) => demo::run(&args, cli.log),
        Command::Segment(args) => segment::run(&args, cli.log),
        Command::Morphemes(args) => morphemes::run(&args, cli.log),
        Command::Dependencies(args) => dependencies::run(&args, cli.log),
        Command::New(args) => new::run(&args),
        Command::Train(args) => train::run(&args, cli.log),
        Command::Check(args) => check::run(&args),
        Command::Run(args) => run::run(&args, cli.log),
        Command::Up(args) => up::run(&args),
        Command::Worker(args) => return worker::command::run(&args, log),
        Command::Parse(args) => parse::run(&args),
        Command::Eval(args) => eval::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Sample(args) => sample::run(&args),
        Command::Treebank(args) => treebank::run(&args),
        Command::Export(args) => export::run(&args),
        Command::Suggest(args) => suggest::run(&args),
        Command::Annotate(args) => annotate::run(&args),
        Command::Inspect(args) => inspect::run(&args),
        Command::Grammars(args) => grammars::run(&args),
        Command::Keys(args) => keys::run(&args),
        Command::Serve(args) => serve::run(&args, cli.log),
        Command::Submit(args) => submit::run(&args),
        Command::Jobs(args) => jobs::run(&args),
        Command::Status(args) => status::run(&args),
        Command::Logs(args) => logs::run(&args),
        Command::Cancel(args) => cancel::run(&args),
        Command::Resume(args) => cancel::resume(&args),
        Command::Delete(args) => cancel::delete(&args),
        Command::Fetch(args) => fetch::run(&args),
        Command::Workers(args) => workers::run(&args),
        Command::Token(args) => token::run(&args),
        Command::Plan(args) => plan::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Completions(args) => completions::run(&args, definition()),
        Command::Man(args) => man::run(&args, definition()),
        Command::JobProcess(args) => job_process::run(&args),
    };
    drop(log); // writes pending log lines before the last line
    match answer {
        Ok(Answer::Yes) => ExitCode::SUCCESS,
        Ok(Answer::No) => ExitCode::from(1),
        Ok(Answer::Stopped(signal)) => ExitCode::from(signal.exit_code()),
        Err(error) if error.is::<Closed>() => ExitCode::SUCCESS,
        Err(error) => {
            complain(&format!("{error:#}"));
            ExitCode::from(BAD)
        }
    }
}

/// Prints help and version as they are, and condenses any other error to one line.
fn misuse(error: &clap::Error) -> ExitCode {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            // Closed standard output is not an error.
            let _ = error.print();
            ExitCode::SUCCESS
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = error.print();
            ExitCode::from(BAD)
        }
        _ => {
            complain(&condensed(error));
            ExitCode::from(BAD)
        }
    }
}

/// The error and its tips, without the usage that follows them, and without a tip that names an option of another meaning.
fn condensed(error: &clap::Error) -> String {
    let message = error.to_string();
    let is_near = match (error.get(ContextKind::InvalidArg), error.get(ContextKind::SuggestedArg)) {
        (Some(ContextValue::String(found)), Some(ContextValue::String(suggested))) => {
            nearest(found.trim_start_matches('-'), [suggested.trim_start_matches('-')]).is_some()
        }
        _ => true,
    };
    let shown = message.split("\n\nUsage:").next().unwrap_or(&message);
    let shown = shown.strip_prefix("error: ").unwrap_or(shown);
    let lines: Vec<&str> = shown.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let more = "try --help";
    let is_told = |line: &&str| {
        !line.starts_with("For more information") && (is_near || !line.starts_with("tip: a similar argument"))
    };
    let lines: Vec<&str> = lines.into_iter().filter(is_told).collect();
    format!("{}; {more}", lines.join("; ").replace(":; ", ": "))
}

/// The message on one line.
fn complain(message: &str) {
    let line = message.split_whitespace().collect::<Vec<_>>().join(" ");
    tell(&format!("error: {line}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definition_is_sound() {
        definition().debug_assert();
    }

    /// Commands with their names as on the command line, without hidden ones and `help`.
    fn leaves(command: &clap::Command, name: &str, found: &mut Vec<(String, clap::Command)>) {
        let shown = |command: &&clap::Command| !command.is_hide_set() && command.get_name() != "help";
        let below: Vec<&clap::Command> = command.get_subcommands().filter(shown).collect();
        if below.is_empty() {
            found.push((name.to_owned(), command.clone()));
        }
        below.iter().for_each(|command| leaves(command, &format!("{name} {}", command.get_name()), found));
    }

    /// The help of every command ends with examples, which are accepted.
    #[test]
    fn every_command_has_examples() {
        let mut commands = Vec::new();
        leaves(&definition(), "grammaton", &mut commands);
        assert!(commands.len() > 25, "{}", commands.len());
        for (name, command) in commands {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let (_, examples) =
                help.split_once("Examples:\n").unwrap_or_else(|| panic!("{name}: no examples"));
            for example in examples.lines().map(str::trim) {
                let example = example.strip_prefix("srun -n 16 ").unwrap_or(example);
                assert!(example.starts_with(&name), "{name}: {example}");
                let parsed = parsed(example.split_whitespace());
                assert!(parsed.is_ok(), "{example}: {}", parsed.unwrap_err());
            }
        }
    }

    #[test]
    fn misuse_is_reported_in_a_line() {
        let shown = |args: &[&str]| condensed(&parsed(args).unwrap_err());
        assert_eq!(
            shown(&["grammaton", "trian"]),
            "unrecognized subcommand 'trian'; tip: some similar subcommands exist: 'treebank', 'train'; try --help"
        );
        assert_eq!(
            shown(&["grammaton", "inspect"]),
            "the following required arguments were not provided: <MODEL>; try --help"
        );
        let verbose = shown(&["grammaton", "segment", "--verbose", "text.txt"]);
        assert!(verbose.starts_with("unexpected argument '--verbose' found"), "{verbose}");
        assert!(!verbose.contains("--version"), "{verbose}");
        let mistyped = shown(&["grammaton", "segment", "--jsn", "text.txt"]);
        assert!(mistyped.contains("tip: a similar argument exists: '--json'"), "{mistyped}");
    }
}
