//! `grammaton man`: the reference of all commands, as man pages or in Markdown (`docs/reference/commands.md`).

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use basics::streams;
use clap::Command;

use super::Answer;

/// Arguments of `man`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n\
    \x20 grammaton man /usr/local/share/man/man1\n\
    \x20 grammaton man --markdown")]
pub struct Args {
    /// Folder for the pages; created if it does not exist
    #[arg(value_name = "DIR", required_unless_present = "markdown")]
    dir: Option<PathBuf>,
    /// Print the help of all commands in Markdown
    #[arg(help_heading = "Output", long, conflicts_with = "dir")]
    markdown: bool,
}

/// Runs the command; `program` is the whole command line.
pub fn run(args: &Args, program: Command) -> Result<Answer> {
    match &args.dir {
        Some(dir) => {
            fs::create_dir_all(dir)
                .with_context(|| format!("{}: cannot create the folder", dir.display()))?;
            clap_mangen::generate_to(program, dir)
                .with_context(|| format!("{}: cannot write man pages there", dir.display()))?;
            streams::print(&format!("{}\n", dir.join("grammaton.1").display()))?;
        }
        None => streams::print(&markdown(program))?,
    }
    Ok(Answer::Yes)
}

const HEAD: &str = "\
# Commands

<!-- Made by `grammaton man --markdown`; do not edit. -->

What `--help` prints for each command. `grammaton man DIR` writes man pages, `grammaton completions SHELL` prints completions for bash, zsh,
fish and other shells.

How a worker behaves is in [The worker](worker.md).
";

/// Width of the help in columns.
const WIDTH: usize = 100;

/// The help of a program and its commands in Markdown.
pub fn markdown(program: Command) -> String {
    let mut program = program.term_width(WIDTH);
    program.build();
    let mut text = HEAD.to_owned();
    describe(&mut program, &mut text);
    text
}

/// Adds the help of a command and the commands below it, without hidden ones and `help`.
fn describe(command: &mut Command, text: &mut String) {
    let name = command.get_bin_name().unwrap_or(command.get_name()).to_owned();
    let help = command.render_long_help();
    let lines: String = help.to_string().lines().map(|line| format!("{}\n", line.trim_end())).collect();
    write!(text, "\n## {name}\n\n```text\n{lines}```\n").expect("a String takes all that is written to it");
    for below in command.get_subcommands_mut() {
        if !below.is_hide_set() && below.get_name() != "help" {
            describe(below, text);
        }
    }
}
