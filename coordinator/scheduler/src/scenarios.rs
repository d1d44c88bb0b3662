//! Scenarios: events in, actions out.
//!
//! A line is `time  event  | actions`, in chronological order. Time is in seconds. Members and shards are letters; `b=bob` is a member
//! whose name and process differ from its letter; `b@x` is a member on machine x instead of a machine of its own. A lease is
//! `batch.task.attempt`; a member that joins with a lease still computes it. `0+2` is an audited task and its replica; `0=x` is a task whose
//! shard has state x; `2@1:7*3/4` is batch 2 on account 1 of user 7 and share 3 with at most 4 members. `claims` is an answer that claims
//! something. `-` means no action.

mod assignment;
mod audit;
mod blame;
mod loss;
mod sharing;
mod withdrawal;

use std::time::Duration;

use grammaton::work::lease::{Attempt, BatchId, InstanceId, LeaseId, TaskIndex};
use grammaton::work::task::ContentHash;

use super::*;

fn member(word: &str) -> MemberId {
    MemberId(u64::from(word.as_bytes()[0] - b'a'))
}

/// Name and process of a member.
fn name(word: &str) -> &str {
    let word = word.split_once('@').map_or(word, |(word, _)| word);
    word.split_once('=').map_or(word, |(_, name)| name)
}

fn identity(word: &str) -> Identity {
    let mut process = [0; 16];
    process[..name(word).len()].copy_from_slice(name(word).as_bytes());
    let machine = word.split_once('@').map_or(name(word), |(_, machine)| machine);
    Identity { process: Process::Named(InstanceId(process)), machine: Machine(machine.into()) }
}

fn shards(word: &str) -> Vec<ContentHash> {
    word.bytes().map(|letter| ContentHash([letter; 32])).collect()
}

fn lease(word: &str) -> LeaseId {
    let numbers: Vec<u32> = word.split('.').map(|number| number.parse().unwrap()).collect();
    let [batch, task, attempt] = numbers[..] else { panic!("{word} is not a lease") };
    LeaseId { batch: BatchId(batch.into()), task: TaskIndex(task), attempt: Attempt(attempt) }
}

fn replica(word: &str) -> (TaskIndex, TaskIndex) {
    let (task, replica) = word.split_once('+').unwrap_or_else(|| panic!("{word} is not a pair"));
    (TaskIndex(task.parse().unwrap()), TaskIndex(replica.parse().unwrap()))
}

/// Parses `2@1:7*3/4`: batch 2 on account 1, of user 7, share 3 and at most 4 members; only the batch is required.
fn batch(word: &str) -> (BatchId, Account) {
    let (rest, members) = word.split_once('/').map_or((word, None), |(rest, n)| (rest, n.parse().ok()));
    let (rest, share) = rest.split_once('*').unwrap_or((rest, "1"));
    let (batch, account) = rest.split_once('@').unwrap_or((rest, "0"));
    let (account, user) = account.split_once(':').unwrap_or((account, "0"));
    let (id, user) = (AccountId(account.parse().unwrap()), UserId(user.parse().unwrap()));
    (
        BatchId(batch.parse().unwrap()),
        Account { id, user, share: share.parse().unwrap(), max_members: members },
    )
}

fn event(words: &[&str]) -> Event {
    match words {
        ["join", who, slots, more @ ..] => {
            let (running, holds): (Vec<&str>, Vec<&str>) = more.iter().partition(|word| word.contains('.'));
            Event::MemberJoined {
                member: member(who),
                name: name(who).to_owned(),
                identity: identity(who),
                slots: slots.parse().unwrap(),
                holds: holds.into_iter().flat_map(shards).collect(),
                running: running.into_iter().map(lease).collect(),
                watched: true,
            }
        }
        ["thread", who, slots] => Event::MemberJoined {
            member: member(who),
            name: (*who).to_owned(),
            identity: identity(who),
            slots: slots.parse().unwrap(),
            holds: vec![],
            running: vec![],
            watched: false,
        },
        ["drain", who] => Event::MemberDraining { member: member(who) },
        ["left", who] => Event::MemberLost { member: member(who), cause: Cause::Left },
        ["lost", who] => Event::MemberLost { member: member(who), cause: Cause::Disconnected("cut".into()) },
        ["heard", who] => Event::Heard { member: member(who) },
        ["answer", who, what] => Event::Answered { member: member(who), lease: lease(what), claims: false },
        ["claims", who, what] => Event::Answered { member: member(who), lease: lease(what), claims: true },
        ["withdrawn", who, what] => Event::Withdrawn { member: member(who), lease: lease(what) },
        ["failed", who, what] => {
            let (member, lease, detail) = (member(who), lease(what), "no".into());
            Event::Failed { member, lease, detail, lacks_memory: false, is_certain: false }
        }
        ["lacks-memory", who, what] => {
            let (member, lease, detail) = (member(who), lease(what), "too large".into());
            Event::Failed { member, lease, detail, lacks_memory: true, is_certain: false }
        }
        ["impossible", who, what] => {
            let (member, lease, detail) = (member(who), lease(what), "no".into());
            Event::Failed { member, lease, detail, lacks_memory: false, is_certain: true }
        }
        ["submit", word, of, more @ ..] => {
            let (batch, account) = batch(word);
            let mut needs: Vec<Needs> = shards(of).into_iter().map(Needs::shard).collect();
            let (shard_state, replicas): (Vec<&str>, Vec<&str>) =
                more.iter().partition(|word| word.contains('='));
            for (task, shard_state) in shard_state.iter().filter_map(|word| word.split_once('=')) {
                needs[task.parse::<usize>().unwrap()].shard_state = Some(shards(shard_state)[0]);
            }
            let replicas = replicas.into_iter().map(replica).collect();
            Event::BatchSubmitted { batch, account, needs, replicas }
        }
        ["cancel", word] => Event::BatchCancelled { batch: batch(word).0 },
        ["backlog", word] => Event::Backlog { batch: batch(word).0, only: None },
        ["backlog", word, only] => {
            Event::Backlog { batch: batch(word).0, only: Some(TaskIndex(only.parse().unwrap())) }
        }
        ["tick"] => Event::Tick,
        _ => panic!("{words:?} is not an event"),
    }
}

fn print(action: &Action) -> String {
    let letter = |member: &MemberId| char::from(b'a' + member.0 as u8);
    match action {
        Action::Assign { member, lease } => format!("assign {} {lease}", letter(member)),
        Action::Withdraw { member, lease } => format!("withdraw {} {lease}", letter(member)),
        Action::Confirm { batch, task, replica } => {
            format!("confirm {}.{} by {}", batch.0, task.0, replica.0)
        }
        Action::Accept { member, lease, refuted } => {
            format!("accept {} {lease}{}", letter(member), names(" against", refuted))
        }
        Action::Discard { member, lease } => format!("discard {} {lease}", letter(member)),
        Action::Forget { member, cause } => format!("forget {}: {cause}", letter(member)),
        Action::ReportWaiting { members, wanted, just_begun } => {
            format!("waiting {members}/{wanted}{}", if *just_begun { ", just begun" } else { "" })
        }
        Action::BatchDone { batch } => format!("done {}", batch.0),
        Action::Fail { batch, failure, reporters } => {
            format!("fail {}: {failure}{}", batch.0, names("; reported by", reporters))
        }
    }
}

/// `what` they did, and their names.
fn names(what: &str, workers: &[Reporter]) -> String {
    if workers.is_empty() {
        String::new()
    } else {
        workers.iter().fold(what.to_owned(), |line, worker| format!("{line} {}", worker.name))
    }
}

fn run(timeouts: Timeouts, scenario: &str) {
    let mut scheduler = Scheduler::new(timeouts);
    for line in scenario.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (happens, expected) = line.split_once('|').unwrap_or_else(|| panic!("no actions: {line}"));
        let words: Vec<&str> = happens.split_whitespace().collect();
        let now = Duration::from_secs_f64(words[0].parse().unwrap());
        let actions: Vec<String> = scheduler.handle(now, event(&words[1..])).iter().map(print).collect();
        let actions = if actions.is_empty() { "-".to_owned() } else { actions.join("; ") };
        assert_eq!(actions, expected.trim(), "at: {}", happens.trim());
    }
}
