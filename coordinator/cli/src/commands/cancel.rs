//! `grammaton cancel`, `grammaton resume` and `grammaton delete`: stop, resume and delete a job of a service.

use anyhow::Result;
use basics::streams;
use proto::v1;

use super::Answer;
use super::remote::Reach;

/// Arguments of `cancel`, of `resume`, and of `delete`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Id of the job
    pub id: u64,
    /// Print the job as JSON
    #[arg(help_heading = "Output", long)]
    pub json: bool,
    /// The service
    #[command(flatten)]
    pub reach: Reach,
}

/// Stops the job, which may take a moment.
pub fn run(args: &Args) -> Result<Answer> {
    let job = v1::JobRef { id: args.id };
    tell(args, &args.reach.ask(async |jobs| Ok(jobs.cancel(job).await?.into_inner()))?)
}

/// Resumes the job from its newest checkpoint.
pub fn resume(args: &Args) -> Result<Answer> {
    let job = v1::JobRef { id: args.id };
    tell(args, &args.reach.ask(async |jobs| Ok(jobs.resume(job).await?.into_inner()))?)
}

/// Deletes the job, which must have ended, with its results.
pub fn delete(args: &Args) -> Result<Answer> {
    let job = v1::JobRef { id: args.id };
    let mut info = args.reach.ask(async |jobs| Ok(jobs.delete(job).await?.into_inner()))?;
    info.state = "deleted".to_owned();
    tell(args, &info)
}

fn tell(args: &Args, info: &v1::JobInfo) -> Result<Answer> {
    if args.json {
        streams::show_json(info)?
    } else {
        streams::show(&info.state)?
    }
    Ok(Answer::Yes)
}
