//! `grammaton logs`: what happened to a job of a service, and what happens.

use std::time::Duration;

use anyhow::Result;
use proto::v1;

use super::Answer;
use super::remote::{Reach, Way, is_passing, runtime};
use crate::streams;

/// How long to wait before a service that does not answer is asked again.
const AGAIN: Duration = Duration::from_secs(1);

/// Arguments of `logs`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The job
    pub id: u64,
    /// Show what happens until the job ends, too
    #[arg(long, short)]
    pub follow: bool,
    /// Print a JSON object a line
    #[arg(long)]
    pub json: bool,
    /// The service
    #[command(flatten)]
    pub reach: Reach,
}

/// Prints line by line.
pub fn run(args: &Args) -> Result<Answer> {
    let (way, runtime) = (args.reach.way(None)?, runtime()?);
    let mut print = |line: &v1::LogLine| match args.json {
        true => streams::print(&format!("{}\n", serde_json::to_string(line)?)),
        false => streams::print(&format!("{}\n", line.text)),
    };
    if args.follow {
        runtime.block_on(follow(&way, args.id, &mut print))?;
    } else {
        runtime.block_on(read(&way, args.id, &mut 0, false, &mut print))?;
    }
    Ok(Answer::Yes)
}

/// Hands each line to `print` until the job is over, whatever becomes of the service meanwhile; the job then.
pub async fn follow(
    way: &Way,
    id: u64,
    print: &mut dyn FnMut(&v1::LogLine) -> Result<()>,
) -> Result<v1::JobInfo> {
    let (mut skip, mut answered, mut said) = (0, false, false);
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

/// Whether nothing more happens to the job.
fn is_over(info: &v1::JobInfo) -> bool {
    matches!(&info.state[..], "done" | "failed" | "cancelled")
}

/// Hands on the lines after the first `skip`, which grows with them.
async fn read(
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
