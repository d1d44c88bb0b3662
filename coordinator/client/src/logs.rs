//! The event log of a job of a service.

use std::time::Duration;

use anyhow::Result;
use basics::streams;
use proto::v1;

use crate::connection::{Way, is_passing};

/// Delay before a call to a service that does not answer is repeated.
const AGAIN: Duration = Duration::from_secs(1);

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
