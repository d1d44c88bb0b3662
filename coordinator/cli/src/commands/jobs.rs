//! `grammaton jobs`: lists the jobs of a service. Also formats a job for other commands.

use anyhow::Result;
use basics::human::{duration, table};
use basics::streams;
use client::connection::Jobs;
use proto::v1;
use service::status::WAITING;
use tonic::Status;

use super::Answer;
use super::remote::Reach;

/// Arguments of `jobs`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n\
    \x20 grammaton jobs --limit 20")]
pub struct Args {
    /// List the newest N jobs instead of all
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: Option<u32>,
    /// Print JSON
    #[arg(help_heading = "Output", long)]
    pub json: bool,
    /// The service
    #[command(flatten)]
    pub reach: Reach,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<Answer> {
    let list = args.reach.ask(async |jobs| list(jobs, args.limit).await)?;
    if args.json {
        streams::show_json(&list)?;
        return Ok(Answer::Yes);
    }
    let head = ["id", "name", "owner", "state", "priority", "how far"].map(str::to_owned).to_vec();
    let row = |job: &v1::JobInfo| {
        let (id, priority) = (job.id.to_string(), job.priority.to_string());
        vec![id, job.name.clone(), job.owner.clone(), job.state.clone(), priority, how_far(job)]
    };
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(list.iter().map(row)).collect();
    streams::show(&table(&rows).join("\n"))?;
    Ok(Answer::Yes)
}

/// Lists the newest jobs, page by page: `limit` of them, or all.
async fn list(jobs: &mut Jobs, limit: Option<u32>) -> Result<Vec<v1::JobInfo>, Status> {
    let (mut listed, mut page_token) = (Vec::new(), String::new());
    loop {
        let page_size = limit.map_or(0, |limit| limit - listed.len() as u32);
        let page = jobs.list(v1::ListRequest { page_size, page_token }).await?.into_inner();
        listed.extend(page.jobs);
        page_token = page.next_page_token;
        if page_token.is_empty() || limit.is_some_and(|limit| listed.len() >= limit as usize) {
            listed.truncate(limit.map_or(usize::MAX, |limit| limit as usize));
            return Ok(listed);
        }
    }
}

/// Short description of a job's progress.
pub fn how_far(job: &v1::JobInfo) -> String {
    let seconds = job.ended_millis.saturating_sub(job.begun_millis) as f64 / 1000.0;
    match &job.state[..] {
        "queued" => format!("{} before it", job.ahead),
        "done" => format!("{}, parameters {:.8}", duration(seconds), job.parameters_sha256),
        "failed" => job.error.clone(),
        "cancelled" => String::new(),
        _ => job.progress.as_ref().map_or("reading".to_owned(), progress),
    }
}

fn progress(job: &v1::JobSnapshot) -> String {
    let phase = match &job.phase[..] {
        "" => "reading",
        WAITING => "waiting for workers",
        phase => phase,
    };
    match job.round {
        0 => phase.to_owned(),
        round => {
            let left =
                job.seconds_left.map_or(String::new(), |left| format!(", at most {} left", duration(left)));
            format!("{phase}, round {round}/{}{left}", job.max_rounds)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_in_a_few_words() {
        let progress = v1::JobSnapshot {
            phase: "rounds".into(),
            round: 3,
            max_rounds: 40,
            seconds_left: Some(35.0),
            ..Default::default()
        };
        let job = |state: &str| v1::JobInfo {
            state: state.into(),
            ahead: 2,
            begun_millis: 1000,
            ended_millis: 4000,
            error: "corpus.txt:7: no derivation".into(),
            parameters_sha256: "0123456789abcdef".into(),
            progress: Some(progress.clone()),
            ..Default::default()
        };
        let progress = ["queued", "running", "done", "failed", "cancelled"].map(|state| how_far(&job(state)));
        assert_eq!(
            progress,
            [
                "2 before it",
                "rounds, round 3/40, at most 35 s left",
                "3.0 s, parameters 01234567",
                "corpus.txt:7: no derivation",
                ""
            ]
        );
        assert_eq!(how_far(&v1::JobInfo { progress: None, ..job("running") }), "reading");
    }
}
