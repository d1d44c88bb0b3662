//! `grammaton completions`: prints a script that completes commands and options in a shell.

use anyhow::Result;
use basics::streams;
use clap_complete::{Shell, generate};

use super::Answer;

/// Arguments of `completions`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n\
    \x20 grammaton completions bash\n\
    \x20 grammaton completions zsh\n\
    \x20 grammaton completions fish")]
pub struct Args {
    /// The shell
    shell: Shell,
}

/// Runs the command; `program` is the whole command line.
pub fn run(args: &Args, mut program: clap::Command) -> Result<Answer> {
    let name = program.get_name().to_owned();
    let mut script = Vec::new();
    generate(args.shell, &mut program, name, &mut script);
    streams::print(&String::from_utf8_lossy(&script))?;
    Ok(Answer::Yes)
}
