//! The process of a job of a service. The service starts it; it is not for users.

use std::fs::File;
use std::io::{stdin, stdout};
use std::os::fd::AsFd;

use anyhow::{Context, Result};
use clap::Args as Arguments;
use service::job_process;

use super::Answer;
use crate::signals::Signals;

/// Arguments of `grammaton job-process`.
#[derive(Arguments, Debug)]
pub struct Args {}

/// Does what the service assigns on standard input.
pub fn run(_: &Args) -> Result<Answer> {
    // Signals to a whole group or container are for the service, which stops its jobs.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let _signals = runtime.block_on(async { Signals::listen() })?;
    // As files, since standard output is buffered by line.
    let input = File::from(stdin().as_fd().try_clone_to_owned().context("no standard input")?);
    let output = File::from(stdout().as_fd().try_clone_to_owned().context("no standard output")?);
    job_process::run(input, Box::new(output), true, || std::process::exit(1))?;
    Ok(Answer::Yes)
}
