//! `grammaton status`: shows the status of a running coordinator, or of a job of a service.

use std::time::Duration;

use anyhow::Result;
use basics::human::{duration, kilobytes, table};
use basics::streams;
use client::connection::runtime;
use proto::v1;
use proto::v1::status_client::StatusClient;
use service::status::WAITING;
use tonic::Request;

use super::Answer;
use super::jobs::how_far;
use super::remote::Reach;

/// Timeout of the call.
const WITHIN: Duration = Duration::from_secs(10);

/// Arguments of `status`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Exit code 0 means that the coordinator answered, 2 that it did not.\n\n\
    Examples:\n\
    \x20 grammaton status 17\n\
    \x20 grammaton status http://127.0.0.1:7600 --json")]
pub struct Args {
    /// Id of a job of the service, or URL of a coordinator: http://host:port, or https://host:port with --ca
    #[arg(value_name = "ID|URL")]
    pub what: String,
    /// Print JSON
    #[arg(help_heading = "Output", long)]
    pub json: bool,
    /// The service
    #[command(flatten)]
    pub reach: Reach,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<Answer> {
    match args.what.parse() {
        Ok(id) => {
            let job = args.reach.ask(async |jobs| Ok(jobs.get(v1::JobRef { id }).await?.into_inner()))?;
            if args.json { streams::show_json(&job)? } else { streams::show(of_service(&job).trim_end())? }
        }
        Err(_) => {
            let snapshot = runtime()?.block_on(ask(args))?;
            if args.json {
                streams::show_json(&snapshot)?
            } else {
                streams::show(text(&snapshot).trim_end())?
            }
        }
    }
    Ok(Answer::Yes)
}

async fn ask(args: &Args) -> Result<v1::Snapshot> {
    let way = args.reach.way(Some(&args.what))?;
    way.with(async |channel, bearer| {
        let mut request = Request::new(v1::NowRequest {});
        request.set_timeout(WITHIN);
        let mut client = StatusClient::with_interceptor(channel, bearer);
        Ok(client.now(request).await?.into_inner())
    })
    .await
}

/// Formats a job of a service.
fn of_service(job: &v1::JobInfo) -> String {
    let v1::JobInfo { id, name, state, owner, priority, .. } = job;
    let mut lines = vec![format!("job {id}, {name}: {state}, submitted by {owner}, priority {priority}")];
    if job.max_workers > 0 {
        lines.push(format!("at most {} workers at a time", job.max_workers));
    }
    if job.starts > 0 {
        lines.push(format!("starts: {}", job.starts));
    }
    if job.worker_seconds > 0.0 {
        lines.push(format!("{} of workers' time so far", duration(job.worker_seconds)));
    }
    match (&job.state[..], &job.progress) {
        ("running" | "pausing" | "stopping", Some(progress)) => lines.extend(progress_lines(progress)),
        _ => lines.push(how_far(job)),
    }
    lines.retain(|line| !line.is_empty());
    lines.join("\n") + "\n"
}

/// Formats a snapshot.
fn text(snapshot: &v1::Snapshot) -> String {
    let v1::Snapshot { job, fleet, .. } = snapshot;
    let (job, fleet) = (job.clone().unwrap_or_default(), fleet.clone().unwrap_or_default());
    let mut lines = progress_lines(&job);
    lines.extend(of_fleet(&fleet));
    lines.join("\n") + "\n"
}

/// Formats the progress of a job.
fn progress_lines(job: &v1::JobSnapshot) -> Vec<String> {
    let mut lines = vec![of_job(job)];
    if let Some(checkpoint) = &job.checkpoint {
        lines.push(format!(
            "checkpoint: after round {}{}, {}, written in {}",
            checkpoint.round,
            of_runs(job.runs),
            kilobytes(checkpoint.bytes),
            duration(checkpoint.seconds),
        ));
    }
    if job.failed_checkpoints > 0 {
        lines.push(format!("failed checkpoints: {}", job.failed_checkpoints));
    }
    lines
}

/// Formats the fleet.
pub fn of_fleet(fleet: &v1::FleetSnapshot) -> Vec<String> {
    let mut lines = Vec::new();
    if !fleet.stage.is_empty() {
        let v1::FleetSnapshot { stage, free, assigned, done, .. } = fleet;
        lines.push(format!(
            "{stage}: {done} of {} shards done, {assigned} assigned, {free} free",
            free + assigned + done
        ));
    }
    if let Some(oldest) = &fleet.oldest_lease {
        let v1::LeaseSnapshot { task, attempt, member, age_seconds } = oldest;
        let age = duration(*age_seconds);
        lines
            .push(format!("oldest lease: shard {task}, attempt {}, held by {member} for {age}", attempt + 1));
    }
    let losses: Vec<String> = fleet.losses.iter().map(|(cause, count)| format!("{count} {cause}")).collect();
    if !losses.is_empty() {
        lines.push(format!("workers gone: {}", losses.join(", ")));
    }
    lines.extend(of_members(&fleet.members));
    lines
}

fn of_job(job: &v1::JobSnapshot) -> String {
    let mut line = match &job.phase[..] {
        "" => "starting".to_owned(),
        WAITING => format!("{}: waiting for workers", job.name),
        phase => format!("{}: {phase}", job.name),
    };
    if job.run > 0 {
        line += &format!(", round {}/{}{}", job.round, job.max_rounds, of_runs(job.runs));
        if let Some(bound) = job.bound {
            let run = if job.runs > 1 { format!(" in run {}", job.run) } else { String::new() };
            line += &format!(", bound {bound:.2}{run}");
        }
        line += &format!(", {:.0} sentences/s", job.sentences_per_second);
        if let Some(left) = job.seconds_left {
            line += &format!(", at most {} left", duration(left));
        }
    }
    line
}

/// Number of runs of the job, which advance together.
fn of_runs(runs: u32) -> String {
    if runs > 1 { format!(" of {runs} runs") } else { String::new() }
}

/// Formats a table with one line per member.
fn of_members(members: &[v1::MemberSnapshot]) -> Vec<String> {
    let head = ["worker", "state", "slots", "leases", "oldest", "done", "busy", "silent"]
        .map(str::to_owned)
        .to_vec();
    let row = |member: &v1::MemberSnapshot| {
        let state = match &member.cause[..] {
            "" if member.on_probation => {
                format!("{}, on probation: {}", member.state, member.probation_reason)
            }
            "" => member.state.clone(),
            cause => format!("{}: {cause}", member.state),
        };
        let oldest = member.oldest_lease_seconds.map_or("–".to_owned(), duration);
        let (busy, silent) = (duration(member.busy_seconds), duration(member.silent_seconds));
        let (slots, leases, done) = (member.slots, member.leases, member.tasks_done);
        let numbers = [slots.to_string(), leases.to_string(), oldest, done.to_string(), busy, silent];
        [member.name.clone(), state].into_iter().chain(numbers).collect()
    };
    table(&std::iter::once(head).chain(members.iter().map(row)).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_reads_well() {
        let member = |name: &str, state: &str, cause: &str| v1::MemberSnapshot {
            name: name.into(),
            state: state.into(),
            cause: cause.into(),
            slots: 2,
            leases: 1,
            oldest_lease_seconds: (state == "healthy").then_some(1.2),
            tasks_done: 40,
            busy_seconds: 15.0,
            ..v1::MemberSnapshot::default()
        };
        let job = v1::JobSnapshot {
            name: "out".into(),
            phase: "rounds".into(),
            run: 1,
            runs: 1,
            round: 12,
            max_rounds: 40,
            bound: Some(-1234.5),
            sentences_per_second: 48_000.0,
            seconds_left: Some(35.0),
            checkpoint: Some(v1::CheckpointSnapshot { run: 1, round: 11, bytes: 123_456, seconds: 0.02 }),
            ..v1::JobSnapshot::default()
        };
        let oldest = v1::LeaseSnapshot { task: 17, attempt: 1, member: "alice".into(), age_seconds: 1.2 };
        let fleet = v1::FleetSnapshot {
            stage: "round 13".into(),
            free: 3,
            assigned: 4,
            done: 33,
            oldest_lease: Some(oldest),
            members: vec![member("alice", "healthy", ""), member("bob", "gone", "silent for 15s")],
            losses: [("silent".to_owned(), 1)].into(),
            ..v1::FleetSnapshot::default()
        };
        let printed = text(&v1::Snapshot { version: "1".into(), job: Some(job.clone()), fleet: Some(fleet) });
        assert_eq!(
            printed,
            "out: rounds, round 12/40, bound -1234.50, 48000 sentences/s, at most 35 s left\n\
             checkpoint: after round 11, 124 kB, written in 0.0 s\n\
             round 13: 33 of 40 shards done, 4 assigned, 3 free\n\
             oldest lease: shard 17, attempt 2, held by alice for 1.2 s\n\
             workers gone: 1 silent\n\
             worker  state                 slots  leases  oldest  done  busy  silent\n\
             alice   healthy               2      1       1.2 s   40    15 s  0.0 s\n\
             bob     gone: silent for 15s  2      1       –       40    15 s  0.0 s\n"
        );
        let job = v1::JobSnapshot { run: 3, runs: 8, ..job };
        let printed = text(&v1::Snapshot { job: Some(job), ..v1::Snapshot::default() });
        assert!(
            printed.starts_with(
                "out: rounds, round 12/40 of 8 runs, bound -1234.50 in run 3, 48000 sentences/s, at most 35 s left\n\
                 checkpoint: after round 11 of 8 runs, 124 kB"
            ),
            "{printed}"
        );
        let job = v1::JobSnapshot { name: "out".into(), phase: "waiting".into(), ..Default::default() };
        let printed = text(&v1::Snapshot { job: Some(job), ..v1::Snapshot::default() });
        assert!(printed.starts_with("out: waiting for workers\n"), "{printed}");
        assert!(text(&v1::Snapshot::default()).starts_with("starting\nworker"));
    }
}
