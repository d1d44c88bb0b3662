//! `grammaton logs`: shows the event log of a job of a service.

use std::time::Duration;

use anyhow::Result;
use basics::human::{visible, visible_json};
use basics::streams;
use proto::v1;

use super::Answer;
use super::remote::{Reach, Way, is_passing, runtime};

/// Delay before a call to a service that does not answer is repeated.
const AGAIN: Duration = Duration::from_secs(1);

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

/// Passes each line to `print` until the job has ended, even if the service restarts meanwhile; returns the job. A service that does not answer is
/// waited for if it has `answered` before.
pub async fn follow(
    way: &Way,
    id: u64,
    mut answered: bool,
    print: &mut dyn FnMut(&v1::LogLine) -> Result<()>,
) -> Result<v1::JobInfo> {
    let (mut skip, mut said) = (0, false);
    loop {
        let read = async {
            read(way, id, &mut skip, true, print).await?;
            way.ask(async |jobs| Ok(jobs.get(v1::JobRef { id }).await?.into_inner())).await
        };
        match read.await {
            Ok(info) if is_over(&info) => return Ok(info),
            Ok(_) => (answered, said) = (true, false),
            Err(error) if is_passing(&error) && (answered || skip > 0) => {
                if !said {
                    streams::tell(&format!("{error:#}; trying again"));
                }
                said = true;
            }
            Err(error) => return Err(error),
        }
        tokio::time::sleep(AGAIN).await;
    }
}

/// Whether the job has ended.
fn is_over(info: &v1::JobInfo) -> bool {
    matches!(&info.state[..], "done" | "failed" | "cancelled")
}

/// Passes on the lines after the first `skip`, and adds their number to `skip`.
pub async fn read(
    way: &Way,
    id: u64,
    skip: &mut u64,
    follow: bool,
    print: &mut dyn FnMut(&v1::LogLine) -> Result<()>,
) -> Result<()> {
    let mut failed = None;
    way.ask(async |jobs| {
        let mut lines = jobs.logs(v1::LogsRequest { id, skip: *skip, follow }).await?.into_inner();
        while let Some(line) = lines.message().await? {
            *skip = line.number;
            failed = print(&line).err();
            if failed.is_some() {
                break;
            }
        }
        Ok(())
    })
    .await?;
    failed.map_or(Ok(()), Err)
}
