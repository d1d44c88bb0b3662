//! `grammaton logs`: shows the event log of a job of a service.

use anyhow::Result;
use basics::human::{visible, visible_json};
use basics::streams;
use client::connection::runtime;
use client::logs::{follow, read};
use proto::v1;

use super::Answer;
use super::remote::Reach;

/// Arguments of `logs`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n\
    \x20 grammaton logs 17 --follow")]
pub struct Args {
    /// Id of the job
    pub id: u64,
    /// Also show new lines until the job ends
    #[arg(long, short)]
    pub follow: bool,
    /// Print one JSON object per line
    #[arg(help_heading = "Output", long)]
    pub json: bool,
    /// The service
    #[command(flatten)]
    pub reach: Reach,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<Answer> {
    let (way, runtime) = (args.reach.way(None)?, runtime()?);
    let mut print = |line: &v1::LogLine| {
        if args.json {
            streams::print(&format!("{}\n", visible_json(&serde_json::to_string(line)?)))
        } else {
            streams::show(&visible(&line.text))
        }
    };
    if args.follow {
        runtime.block_on(follow(&way, args.id, false, &mut print))?;
    } else {
        runtime.block_on(read(&way, args.id, &mut 0, false, &mut print))?;
    }
    Ok(Answer::Yes)
}
