//! `grammaton fetch`: downloads the results of a job of a service.

use std::path::PathBuf;

use anyhow::Result;
use basics::streams;
use client::connection::runtime;
use client::fetch::download;

use super::Answer;
use super::remote::Reach;

/// Arguments of `fetch`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n\
    \x20 grammaton fetch 17 --out results")]
pub struct Args {
    /// Id of the job, which must be done
    pub id: u64,
    /// Folder for the results; created if it does not exist
    #[arg(help_heading = "Output", long, value_name = "DIR")]
    pub out: PathBuf,
    /// Replace the results of another run in the folder
    #[arg(help_heading = "Output", long)]
    pub overwrite: bool,
    /// Print the paths of the files as a JSON list
    #[arg(help_heading = "Output", long)]
    pub json: bool,
    /// The service
    #[command(flatten)]
    pub reach: Reach,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<Answer> {
    let written =
        runtime()?.block_on(download(&args.reach.way(None)?, args.id, &args.out, args.overwrite))?;
    if args.json {
        streams::show_json(&written)?
    } else {
        streams::show(&args.out.display().to_string())?
    }
    Ok(Answer::Yes)
}
