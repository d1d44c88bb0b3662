//! `grammaton status`: asks a running coordinator how its job and fleet are.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use proto::route::{Route, Verdict};
use proto::tls::{ClientTls, IdentityFiles};
use proto::token::Token;
use proto::v1;
use proto::v1::status_client::StatusClient;
use tonic::Request;

use super::Answer;
use crate::progress::{duration, table};
use crate::streams;

/// How long the coordinator may take to answer.
const WITHIN: Duration = Duration::from_secs(10);

/// Arguments of `status`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Exit code 0 means that the coordinator answered, 2 that it did not.")]
pub struct Args {
    /// The coordinator, as http://host:port, or https://host:port with --ca
    #[arg(value_name = "URL")]
    pub coordinator: String,
    /// File that holds the coordinator's token; without it, the variable GRAMMATON_TOKEN
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Certificate (PEM) of the authority that signed the coordinator's certificate
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// Certificate (PEM) to show to a coordinator that demands one
    #[arg(long, value_name = "FILE", requires_all = ["ca", "key"])]
    pub cert: Option<PathBuf>,
    /// Private key (PEM) of --cert
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub key: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Asks and prints.
pub fn run(args: &Args) -> Result<Answer> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let snapshot = runtime.context("cannot start a runtime")?.block_on(ask(args))?;
    if args.json {
        let json = serde_json::to_string_pretty(&snapshot).context("the status does not serialise")?;
        streams::print(&format!("{json}\n"))?;
    } else {
        streams::print(&text(&snapshot))?;
    }
    Ok(Answer::Yes)
}

async fn ask(args: &Args) -> Result<v1::Snapshot> {
    let url = &args.coordinator;
    let identity = match (&args.cert, &args.key) {
        (Some(certificate), Some(key)) => Some(IdentityFiles { certificate, key }),
        _ => None,
    };
    let tls = args.ca.as_deref().map(|ca| ClientTls::read(ca, identity)).transpose()?;
    let route = Route::new(url, tls.as_ref())?;
    let mut request = Request::new(v1::NowRequest {});
    if let Some(token) = Token::find(args.token_file.as_deref())? {
        request.metadata_mut().insert("authorization", token.header());
    }
    request.set_timeout(WITHIN);
    let verdict = Verdict::default();
    let answer = match route.open(&verdict).await {
        Ok(channel) => {
            StatusClient::new(channel).now(request).await.map_err(|status| anyhow!("{}", status.message()))
        }
        Err(error) => Err(anyhow!(error).context("no coordinator answers there")),
    };
    match verdict.get() {
        // What the connection showed says more than how it ended.
        Some(distrust) => bail!("{url}: {distrust}"),
        None => answer.map(tonic::Response::into_inner).with_context(|| url.clone()),
    }
}

/// A snapshot for people.
fn text(snapshot: &v1::Snapshot) -> String {
    let v1::Snapshot { job, fleet, .. } = snapshot;
    let (job, fleet) = (job.clone().unwrap_or_default(), fleet.clone().unwrap_or_default());
    let mut lines = vec![of_job(&job)];
    if let Some(checkpoint) = &job.checkpoint {
        lines.push(format!(
            "checkpoint: after round {}{}, {} kB, written in {}",
            checkpoint.round,
            of_runs(job.runs),
            checkpoint.bytes.div_ceil(1000),
            duration(checkpoint.seconds),
        ));
    }
    if job.failed_checkpoints > 0 {
        lines.push(format!("checkpoints that could not be written: {}", job.failed_checkpoints));
    }
    if !fleet.stage.is_empty() {
        let v1::FleetSnapshot { stage, free, lent, done, .. } = &fleet;
        lines
            .push(format!("{stage}: {done} of {} shards done, {lent} lent, {free} free", free + lent + done));
    }
    if let Some(oldest) = &fleet.oldest_lease {
        let v1::LeaseSnapshot { task, attempt, member, age_seconds } = oldest;
        let age = duration(*age_seconds);
        lines
            .push(format!("oldest lease: shard {task}, attempt {}, held by {member} for {age}", attempt + 1));
    }
    let losses: Vec<String> = fleet.losses.iter().map(|(cause, count)| format!("{count} {cause}")).collect();
    if !losses.is_empty() {
        lines.push(format!("workers that went: {}", losses.join(", ")));
    }
    lines.extend(of_members(&fleet.members));
    lines.join("\n") + "\n"
}

fn of_job(job: &v1::JobSnapshot) -> String {
    let mut line = match &job.phase[..] {
        "" => "starting".to_owned(),
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

/// All runs of a job go on together.
fn of_runs(runs: u32) -> String {
    if runs > 1 { format!(" of {runs} runs") } else { String::new() }
}

/// A table: a line for each member, below the names of the columns.
fn of_members(members: &[v1::MemberSnapshot]) -> Vec<String> {
    let head = ["worker", "state", "slots", "leases", "oldest", "done", "busy", "silent"]
        .map(str::to_owned)
        .to_vec();
    let row = |member: &v1::MemberSnapshot| {
        let state = match &member.cause[..] {
            "" if member.on_probation => format!("{}, on probation", member.state),
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
            lent: 4,
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
             round 13: 33 of 40 shards done, 4 lent, 3 free\n\
             oldest lease: shard 17, attempt 2, held by alice for 1.2 s\n\
             workers that went: 1 silent\n\
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
        assert!(text(&v1::Snapshot::default()).starts_with("starting\nworker"));
    }
}
