//! A snapshot of run and fleet, as it is sent to watchers.

use fleet::{FleetStatus, MemberInfo, MemberState, OldestLease};
use proto::v1;

use super::JobStatus;

/// The message that says how a job and its fleet are.
pub fn snapshot(job: &JobStatus, fleet: &FleetStatus) -> v1::Snapshot {
    let version = env!("CARGO_PKG_VERSION").to_owned();
    v1::Snapshot { version, job: Some(of_job(job)), fleet: Some(of_fleet(fleet)) }
}

/// Snapshot of a job's progress.
pub fn of_job(job: &JobStatus) -> v1::JobSnapshot {
    v1::JobSnapshot {
        name: job.name.clone(),
        phase: job.activity().to_owned(),
        run: job.run as u32,
        runs: job.runs as u32,
        round: job.round as u32,
        max_rounds: job.max_rounds as u32,
        bound: job.bound,
        sentences: job.sentences as u64,
        sentences_per_second: job.sentences_per_second,
        round_seconds: job.round_seconds,
        busy_seconds: job.busy_seconds,
        seconds_left: job.seconds_left,
        checkpoint: job.checkpoint.map(|checkpoint| v1::CheckpointSnapshot {
            run: checkpoint.run as u32,
            round: checkpoint.round as u32,
            bytes: checkpoint.bytes,
            seconds: checkpoint.seconds,
        }),
        written_checkpoints: job.written_checkpoints,
        failed_checkpoints: job.failed_checkpoints,
    }
}

/// Snapshot of the fleet.
pub fn of_fleet(fleet: &FleetStatus) -> v1::FleetSnapshot {
    let lease = |oldest: &OldestLease| v1::LeaseSnapshot {
        task: oldest.task.0,
        attempt: oldest.attempt.0,
        member: oldest.member.clone(),
        age_seconds: oldest.age.as_secs_f64(),
    };
    v1::FleetSnapshot {
        stage: fleet.stage.map_or(String::new(), |stage| stage.to_string()),
        free: fleet.shards.free as u64,
        assigned: fleet.shards.assigned as u64,
        done: fleet.shards.done as u64,
        oldest_lease: fleet.oldest.as_ref().map(lease),
        members: fleet.members.iter().map(of_member).collect(),
        losses: fleet.losses.iter().map(|(kind, &losses)| ((*kind).to_owned(), losses)).collect(),
        leases: fleet.attempts,
        accepted: fleet.accepted,
        discarded: fleet.discarded,
        bytes_sent: fleet.bytes_sent,
        bytes_received: fleet.bytes_received,
        up_seconds: fleet.up.as_secs_f64(),
    }
}

fn of_member(member: &MemberInfo) -> v1::MemberSnapshot {
    let (state, cause) = match &member.state {
        MemberState::Healthy => ("healthy", String::new()),
        MemberState::Suspect => ("suspect", String::new()),
        MemberState::Draining => ("draining", String::new()),
        MemberState::Gone(cause) => ("gone", cause.to_string()),
    };
    v1::MemberSnapshot {
        name: member.name.clone(),
        state: state.to_owned(),
        cause,
        slots: member.slots,
        leases: member.leases as u32,
        losses: member.losses,
        on_probation: member.on_probation,
        probation_reason: member.probation().unwrap_or_default(),
        oldest_lease_seconds: member.oldest_lease.map(|age| age.as_secs_f64()),
        tasks_done: member.tasks_done,
        busy_seconds: member.busy.as_secs_f64(),
        joined_seconds: member.joined.as_secs_f64(),
        silent_seconds: member.silent.as_secs_f64(),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::time::Duration;

    use fleet::{Shards, Stage};
    use grammaton::work::lease::{Attempt, TaskIndex};
    use training::metrics::CheckpointStatus;
    use training::metrics::Phase;

    use super::*;
    use scheduler::{Cause, MemberId};

    fn member(id: u64, name: &str, state: MemberState) -> MemberInfo {
        MemberInfo {
            id: MemberId(id),
            name: name.into(),
            slots: 2,
            tasks_done: 40 + id,
            busy: Duration::from_millis(1500),
            state,
            leases: 1,
            losses: id as u32,
            failures: 0,
            on_probation: false,
            oldest_lease: Some(Duration::from_millis(300)),
            joined: Duration::from_secs(60),
            silent: Duration::from_millis(400),
        }
    }

    /// A round in which one worker was lost.
    pub(crate) fn middle() -> (JobStatus, FleetStatus) {
        let job = JobStatus {
            name: "out".into(),
            phase: Some(Phase::Rounds),
            waiting: None,
            run: 1,
            runs: 2,
            round: 12,
            max_rounds: 40,
            bound: Some(-1234.5),
            sentences: 9790,
            sentences_per_second: 48_000.0,
            round_seconds: 0.25,
            busy_seconds: 0.5,
            seconds_left: Some(17.0),
            checkpoint: Some(CheckpointStatus { run: 1, round: 11, bytes: 123_456, seconds: 0.02 }),
            written_checkpoints: 3,
            failed_checkpoints: 1,
        };
        let oldest = OldestLease {
            task: TaskIndex(17),
            attempt: Attempt(1),
            member: "alice".into(),
            age: Duration::from_millis(1200),
        };
        let fleet = FleetStatus {
            stage: Some(Stage::Round { run: 1, round: 13 }),
            shards: Shards { free: 3, assigned: 4, done: 33 },
            members: vec![
                member(0, "alice", MemberState::Healthy),
                member(1, "bob", MemberState::Gone(Cause::Silent(Duration::from_secs(15)))),
            ],
            oldest: Some(oldest),
            accounts: Vec::new(),
            losses: [("silent", 1)].into(),
            attempts: 99,
            accepted: 90,
            discarded: 2,
            bytes_sent: 1000,
            bytes_received: 2000,
            up: Duration::from_secs(75),
        };
        (job, fleet)
    }

    #[test]
    fn everything_is_told_under_the_names_of_the_proto_file() {
        let (job, fleet) = middle();
        let json = serde_json::to_value(snapshot(&job, &fleet)).unwrap();
        for (path, expected) in [
            ("/job/phase", "rounds".into()),
            ("/job/checkpoint/round", 11.into()),
            ("/fleet/stage", "round 13".into()),
            ("/fleet/oldest_lease/member", "alice".into()),
            ("/fleet/members/1/state", "gone".into()),
            ("/fleet/members/1/cause", "silent for 15s".into()),
            ("/fleet/losses/silent", serde_json::Value::from(1)),
        ] {
            assert_eq!(json.pointer(path), Some(&expected), "{path}");
        }
    }
}
