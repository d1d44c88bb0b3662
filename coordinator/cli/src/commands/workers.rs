//! `grammaton workers`: lists the workers of a service.

use anyhow::Result;
use basics::streams;
use proto::v1;

use super::Answer;
use super::remote::Reach;
use super::status::of_fleet;

/// Arguments of `workers`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n\
    \x20 grammaton workers --json")]
pub struct Args {
    /// Print JSON
    #[arg(help_heading = "Output", long)]
    pub json: bool,
    /// The service
    #[command(flatten)]
    pub reach: Reach,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<Answer> {
    let fleet = args.reach.ask(async |jobs| Ok(jobs.workers(v1::WorkersRequest {}).await?.into_inner()))?;
    if args.json {
        streams::show_json(&fleet)?
    } else {
        streams::show(&of_fleet(&fleet).join("\n"))?
    }
    Ok(Answer::Yes)
}
