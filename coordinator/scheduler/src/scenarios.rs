//! Scenarios: events in, actions out.
//!
//! A line is `time  event  | actions`, in chronological order. Time is in seconds. Members and shards are letters; `b=bob` is a member
//! whose name and process differ from its letter; `b@x` is a member on machine x instead of a machine of its own. A lease is
//! `batch.task.attempt`; a member that joins with a lease still computes it. `0+2` is an audited task and its replica; `0=x` is a task whose
//! shard has state x; `2@1:7*3/4` is batch 2 on account 1 of user 7 and share 3 with at most 4 members. `claims` is an answer that claims
//! something. `-` means no action.

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
            let mut needs: Vec<Needs> =
                shards(of).into_iter().map(|shard| Needs { shard, shard_state: None }).collect();
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

#[test]
fn tasks_fill_slots_in_turn_and_one_more_waits_if_there_are_plenty() {
    run(
        Timeouts::default(),
        "
        0 join a 1          | -
        0 join b 1          | -
        0 submit 1 pqrstu   | assign a 1.0.0; assign b 1.1.0; assign a 1.2.0; assign b 1.3.0
        1 answer a 1.0.0    | accept a 1.0.0
        1 answer b 1.1.0    | accept b 1.1.0
        2 answer a 1.2.0    | accept a 1.2.0; assign a 1.4.0
        2 answer b 1.3.0    | accept b 1.3.0; assign b 1.5.0
        3 answer b 1.5.0    | accept b 1.5.0
        3 answer a 1.4.0    | accept a 1.4.0; done 1
        ",
    );
}

#[test]
fn a_shard_returns_to_its_member_unless_another_is_idle() {
    run(
        Timeouts::default(),
        "
        0 join a 1          | -
        0 submit 1 pq       | assign a 1.0.0
        0 answer a 1.0.0    | accept a 1.0.0; assign a 1.1.0
        0 join b 1          | -
        0 answer a 1.1.0    | accept a 1.1.0; done 1
        1 submit 2 pr       | assign a 2.0.0; assign b 2.1.0
        2 answer a 2.0.0    | accept a 2.0.0
        2 answer b 2.1.0    | accept b 2.1.0; done 2
        3 submit 3 rp       | assign a 3.1.0; assign b 3.0.0
        4 answer b 3.0.0    | accept b 3.0.0
        4 answer a 3.1.0    | accept a 3.1.0; done 3
        5 submit 4 pq       | assign a 4.0.0; assign b 4.1.0
        ",
    );
}

#[test]
fn a_shard_goes_to_the_member_that_joined_with_its_state_unless_another_is_idle() {
    run(
        Timeouts::default(),
        "
        0 join a 1 pq       | -
        0 join b 1 pqx      | -
        0 submit 1 pq 0=x   | assign a 1.1.0; assign b 1.0.0
        1 answer a 1.1.0    | accept a 1.1.0
        1 answer b 1.0.0    | accept b 1.0.0; done 1
        2 submit 2 pq 0=y   | assign a 2.1.0; assign b 2.0.0
        3 answer a 2.1.0    | accept a 2.1.0
        3 answer b 2.0.0    | accept b 2.0.0; done 2
        4 submit 3 rs 0=x 1=x | assign b 3.0.0; assign a 3.1.0
        ",
    );
}

#[test]
fn a_member_that_reconnects_is_assigned_the_shards_that_it_kept() {
    run(
        Timeouts::default(),
        "
        0 join a 1          | -
        0 join b 1 r        | -
        0 submit 1 rst      | assign b 1.0.0; assign a 1.1.0
        1 join c 1 q        | assign c 1.2.0
        ",
    );
}

#[test]
fn only_the_tasks_of_a_lost_member_are_assigned_again() {
    run(
        Timeouts::default(),
        "
        0 join a 1          | -
        0 join b 1          | -
        0 submit 1 pq       | assign a 1.0.0; assign b 1.1.0
        1 answer b 1.1.0    | accept b 1.1.0
        1 lost a            | assign b 1.0.1
        2 answer b 1.0.1    | accept b 1.0.1; done 1
        ",
    );
}

#[test]
fn a_silent_member_is_suspect_then_dead_and_its_late_answer_counts_if_it_is_the_first() {
    run(
        Timeouts::default(),
        "
        0    join a 1       | -
        0    join b 1       | -
        0    submit 1 pqr   | assign a 1.0.0; assign b 1.1.0
        1    heard b        | -
        4    answer b 1.1.0 | accept b 1.1.0; assign b 1.2.0
        5    tick           | -
        6    answer b 1.2.0 | accept b 1.2.0; assign b 1.0.1
        10   heard b        | -
        15   tick           | forget a: silent for 15s
        16   answer a 1.0.0 | accept a 1.0.0; withdraw b 1.0.1; done 1
        17   answer b 1.0.1 | discard b 1.0.1
        ",
    );
}

#[test]
fn a_suspect_that_is_heard_is_healthy_again() {
    run(
        Timeouts::default(),
        "
        0    join a 1       | -
        5    tick           | -
        6    submit 1 p     | -
        7    heard a        | assign a 1.0.0
        ",
    );
}

#[test]
fn a_coordinator_that_was_stopped_itself_suspects_no_member() {
    run(
        Timeouts::default(),
        "
        0    join a 1       | -
        99   tick           | -
        100  submit 1 p     | assign a 1.0.0
        ",
    );
}

#[test]
fn a_slow_task_gets_a_backup_on_an_idle_member() {
    run(
        Timeouts::default(),
        "
        0    join a 1       | -
        0    join b 1       | -
        0    submit 1 pq    | assign a 1.0.0; assign b 1.1.0
        1    answer b 1.1.0 | accept b 1.1.0
        2.9  heard a        | -
        3    heard b        | assign b 1.0.1
        4    answer b 1.0.1 | accept b 1.0.1; withdraw a 1.0.0; done 1
        5    answer a 1.0.0 | discard a 1.0.0
        ",
    );
}

#[test]
fn a_new_member_is_assigned_a_free_or_late_task_at_once() {
    run(
        Timeouts::default(),
        "
        0 join a 1          | -
        0 submit 1 pqr      | assign a 1.0.0; assign a 1.1.0
        1 join b 1          | assign b 1.2.0
        2 answer b 1.2.0    | accept b 1.2.0
        2 left b            | -
        3 heard a           | -
        4 join c 1          | assign c 1.0.1
        ",
    );
}

#[test]
fn a_task_lost_with_three_members_is_poison() {
    run(
        Timeouts::default(),
        "
        0 join a 1          | -
        0 submit 1 p        | assign a 1.0.0
        1 lost a            | waiting 0/1
        2 join b 1          | assign b 1.0.1
        3 lost b            | waiting 0/1
        4 join c 1          | assign c 1.0.2
        5 lost c            | fail 1: task 0: a (a) was lost with it: connection lost: cut; b (b) was lost with it: connection lost: cut; c (c) was lost with it: connection lost: cut; look at its sentences and at the workers' memory
        ",
    );
}

#[test]
fn an_impossible_task_fails_the_batch_at_once_and_the_next_one_goes_on() {
    run(
        Timeouts::default(),
        "
        0 join a 2          | -
        0 submit 1 pq       | assign a 1.0.0; assign a 1.1.0
        1 impossible a 1.1.0 | fail 1: task 1: no; withdraw a 1.0.0
        1 submit 2 pq       | assign a 2.0.0
        2 answer a 1.0.0    | discard a 1.0.0; assign a 2.1.0
        3 impossible a 1.0.0 | -
        4 answer a 2.0.0    | accept a 2.0.0
        4 answer a 2.1.0    | accept a 2.1.0; done 2
        ",
    );
}

#[test]
fn a_batch_waits_for_the_first_members_without_limit_and_reports_it() {
    run(
        Timeouts { min_members: 2, ..Timeouts::default() },
        "
        0   submit 1 p      | waiting 0/2, just begun
        5   tick            | -
        10  tick            | waiting 0/2
        12  join a 1        | -
        17  tick            | -
        20  tick            | waiting 1/2
        27  tick            | forget a: silent for 15s
        30  tick            | waiting 0/2
        31  join b 1        | -
        31  join c 1        | assign b 1.0.0
        ",
    );
}

#[test]
fn a_batch_without_members_fails_after_the_grace_period() {
    run(
        Timeouts::default(),
        "
        0  join a 1         | -
        0  submit 1 p       | assign a 1.0.0
        1  left a           | waiting 0/1
        11 tick             | waiting 0/1
        21 tick             | waiting 0/1
        31 tick             | fail 1: no workers for 30s; start some and run the job again
        90 submit 2 p       | waiting 0/1
        91 join b 1         | assign b 2.0.0
        ",
    );
}

#[test]
fn a_draining_member_answers_and_is_assigned_nothing() {
    run(
        Timeouts::default(),
        "
        0 join a 1          | -
        0 join b 1          | -
        0 submit 1 pqr      | assign a 1.0.0; assign b 1.1.0
        1 drain a           | -
        2 answer a 1.0.0    | accept a 1.0.0
        2 left a            | -
        3 answer b 1.1.0    | accept b 1.1.0; assign b 1.2.0
        3 answer b 1.2.0    | accept b 1.2.0; done 1
        ",
    );
}

#[test]
fn replicas_go_to_different_members() {
    run(
        Timeouts::default(),
        "
        0 join a 2          | -
        0 join b 1          | -
        0 submit 1 pqp 0+2  | assign a 1.0.0; assign b 1.1.0
        1 answer b 1.1.0    | accept b 1.1.0; assign b 1.2.0
        2 answer a 1.0.0    | accept a 1.0.0
        3 answer b 1.2.0    | accept b 1.2.0; done 1
        4 submit 2 pp 0+1   | assign a 2.0.0; assign b 2.1.0
        5 answer b 2.1.0    | accept b 2.1.0
        9 lost a            | assign b 2.0.1
        ",
    );
}

#[test]
fn a_member_audits_itself_only_if_it_is_the_only_healthy_one() {
    run(
        Timeouts::default(),
        "
        0 join a 3          | -
        0 join b 1          | -
        0 submit 1 pqp 0+2  | assign a 1.0.0; assign b 1.1.0
        1 answer a 1.0.0    | accept a 1.0.0
        1 drain b           | assign a 1.2.0
        1 answer a 1.2.0    | accept a 1.2.0
        4 answer b 1.1.0    | accept b 1.1.0; done 1
        ",
    );
}

#[test]
fn a_worker_that_is_lost_repeatedly_is_assigned_one_task_at_a_time() {
    run(
        Timeouts::default(),
        "
        0 join a=bob 2      | -
        1 lost a            | -
        1 join b=bob 2      | -
        2 lost b            | -
        2 join c=bob 2      | -
        3 lost c            | -
        3 join d=bob 2      | -
        4 submit 1 pqrstuvwxyz! | assign d 1.0.0
        5 answer d 1.0.0    | accept d 1.0.0; assign d 1.1.0
        5 answer d 1.1.0    | accept d 1.1.0; assign d 1.2.0
        5 answer d 1.2.0    | accept d 1.2.0; assign d 1.3.0
        5 answer d 1.3.0    | accept d 1.3.0; assign d 1.4.0
        5 answer d 1.4.0    | accept d 1.4.0; assign d 1.5.0
        5 answer d 1.5.0    | accept d 1.5.0; assign d 1.6.0
        5 answer d 1.6.0    | accept d 1.6.0; assign d 1.7.0
        5 answer d 1.7.0    | accept d 1.7.0; assign d 1.8.0
        5 answer d 1.8.0    | accept d 1.8.0; assign d 1.9.0
        5 answer d 1.9.0    | accept d 1.9.0; assign d 1.10.0; assign d 1.11.0
        ",
    );
}

#[test]
fn accounts_take_turns_by_share() {
    run(
        Timeouts::default(),
        "
        0 join a 1            | -
        0 submit 1@0 pq       | assign a 1.0.0
        0 submit 2@1*2 rstu   | assign a 2.0.0
        1 answer a 1.0.0      | accept a 1.0.0; assign a 2.1.0
        2 answer a 2.0.0      | accept a 2.0.0; assign a 2.2.0
        3 answer a 2.1.0      | accept a 2.1.0; assign a 1.1.0
        4 answer a 2.2.0      | accept a 2.2.0
        5 answer a 1.1.0      | accept a 1.1.0; done 1; assign a 2.3.0
        6 answer a 2.3.0      | accept a 2.3.0; done 2
        ",
    );
}

#[test]
fn an_account_has_at_most_its_maximum_number_of_members() {
    run(
        Timeouts::default(),
        "
        0 join a 1            | -
        0 join b 1            | -
        0 submit 1@0/1 pqrs   | assign a 1.0.0; assign a 1.1.0
        1 answer a 1.0.0      | accept a 1.0.0
        1 submit 2@1 xy       | assign b 2.0.0; assign a 2.1.0
        2 lost a              | assign b 2.1.1
        ",
    );
}

#[test]
fn the_failure_of_a_batch_ends_no_other_batch() {
    run(
        Timeouts::default(),
        "
        0 join a 2            | -
        0 submit 1@0 p        | assign a 1.0.0
        0 submit 2@1 q        | assign a 2.0.0
        1 impossible a 1.0.0  | fail 1: task 0: no
        1 submit 3@0 r        | assign a 3.0.0
        2 cancel 2            | withdraw a 2.0.0
        3 answer a 2.0.0      | discard a 2.0.0
        4 answer a 3.0.0      | accept a 3.0.0; done 3
        ",
    );
}

#[test]
fn of_the_tasks_of_two_jobs_only_the_one_that_kills_alone_is_poison() {
    run(
        Timeouts::default(),
        "
        0 join a 2            | -
        0 submit 1@0 p        | assign a 1.0.0
        0 submit 2@1 q        | assign a 2.0.0
        1 lost a              | waiting 0/1
        2 join b 2            | assign b 1.0.1; assign b 2.0.1
        3 lost b              | waiting 0/1
        4 join c 2            | assign c 1.0.2
        5 answer c 1.0.2      | accept c 1.0.2; done 1; assign c 2.0.2
        6 lost c              | fail 2: task 0: a (a) was lost with it: connection lost: cut; b (b) was lost with it: connection lost: cut; c (c) was lost with it: connection lost: cut; look at its sentences and at the workers' memory
        ",
    );
}

#[test]
fn a_member_is_reserved_for_a_task_that_goes_alone() {
    run(
        Timeouts::default(),
        "
        0 join a 1            | -
        0 submit 1 p          | assign a 1.0.0
        1 lost a              | waiting 0/1
        1 join b 1            | assign b 1.0.1
        1 join c 1            | -
        1 submit 2@1 qrstuv   | assign c 2.0.0; assign b 2.1.0; assign c 2.2.0
        2 lost b              | -
        3 answer c 2.0.0      | accept c 2.0.0
        4 answer c 2.2.0      | accept c 2.2.0; assign c 1.0.2
        5 answer c 1.0.2      | accept c 1.0.2; done 1; assign c 2.1.1; assign c 2.3.0
        ",
    );
}

#[test]
fn an_answer_counts_only_from_the_holder_of_its_lease() {
    run(
        Timeouts::default(),
        "
        0 join a 1          | -
        0 join m 1          | -
        0 submit 1 pp 0+1   | assign a 1.0.0; assign m 1.1.0
        1 answer m 1.1.0    | accept m 1.1.0
        1 answer m 1.0.0    | forget m: broke the protocol: it answered lease 1.0.0, which was not given to it
        2 answer m 1.0.0    | -
        3 answer a 1.0.0    | accept a 1.0.0; done 1
        ",
    );
}

#[test]
fn a_failure_or_an_answer_to_an_unknown_lease_breaks_the_protocol() {
    run(
        Timeouts::default(),
        "
        0 join a 1          | -
        0 join m 1          | -
        0 join n 1          | -
        0 submit 1 p        | assign a 1.0.0
        1 answer m 1.0.7    | forget m: broke the protocol: it answered lease 1.0.7, which was not given to it
        1 failed n 1.0.0    | forget n: broke the protocol: it answered lease 1.0.0, which was not given to it
        3 answer a 1.0.0    | accept a 1.0.0; done 1
        ",
    );
}

#[test]
fn a_process_that_reconnects_answers_the_leases_of_its_earlier_member() {
    run(
        Timeouts::default(),
        "
        0 join a=alice 1    | -
        0 join m=mallory 1  | -
        0 submit 1 pq       | assign a 1.0.0; assign m 1.1.0
        1 answer m 1.1.0    | accept m 1.1.0
        2 join b=alice 1    | forget a: connection lost: its worker connected again; assign m 1.0.1
        3 answer b 1.0.0    | accept b 1.0.0; withdraw m 1.0.1; done 1
        ",
    );
}

#[test]
fn an_attacker_that_disconnects_repeatedly_ends_no_batch_while_another_worker_is_present() {
    run(
        Timeouts::default(),
        "
        0 join a 1          | -
        0 join m@x 1        | -
        0 submit 1 pq       | assign a 1.0.0; assign m 1.1.0
        1 lost m            | -
        1 join n@x 1        | -
        2 lost n            | -
        2 join o@x 1        | -
        3 answer a 1.0.0    | accept a 1.0.0; assign a 1.1.1
        4 lost o            | -
        5 answer a 1.1.1    | accept a 1.1.1; done 1
        ",
    );
}

#[test]
fn an_attacker_without_other_workers_fails_a_task_three_times_before_the_batch_ends() {
    run(
        Timeouts::default(),
        "
        0 join m 1          | -
        0 submit 1 p        | assign m 1.0.0
        1 failed m 1.0.0    | assign m 1.0.1
        2 failed m 1.0.1    | assign m 1.0.2
        3 failed m 1.0.2    | fail 1: task 0: m (m) reported: no; m (m) reported: no; m (m) reported: no; reported by m
        ",
    );
}

#[test]
fn a_task_that_one_member_fails_goes_to_another() {
    run(
        Timeouts::default(),
        "
        0 join a 1          | -
        0 join b 1          | -
        0 submit 1 p        | assign a 1.0.0
        1 failed a 1.0.0    | assign b 1.0.1
        2 answer b 1.0.1    | accept b 1.0.1; done 1
        ",
    );
}

#[test]
fn a_worker_that_fails_tasks_that_others_answer_is_put_on_probation() {
    run(
        Timeouts::default(),
        "
        0  join a 2         | -
        0  join b 1         | -
        0  submit 1 pqr     | assign a 1.0.0; assign b 1.1.0; assign a 1.2.0
        1  failed a 1.0.0   | -
        1  failed a 1.2.0   | -
        2  answer b 1.1.0   | accept b 1.1.0; assign b 1.0.1
        3  answer b 1.0.1   | accept b 1.0.1; assign b 1.2.1
        4  answer b 1.2.1   | accept b 1.2.1; done 1
        5  submit 2 stuv    | assign a 2.0.0; assign b 2.1.0; assign a 2.2.0
        6  failed a 2.0.0   | assign a 2.3.0
        7  answer b 2.1.0   | accept b 2.1.0; assign b 2.0.1
        8  answer b 2.0.1   | accept b 2.0.1 against a
        9  answer a 2.2.0   | accept a 2.2.0
        10 answer a 2.3.0   | accept a 2.3.0; done 2
        11 submit 3 wxyz    | assign a 3.0.0; assign b 3.1.0
        ",
    );
}

#[test]
fn three_refuted_reports_in_a_row_name_the_reporter() {
    run(
        Timeouts::default(),
        "
        0  join a@x 1       | -
        0  join b@y 1       | -
        0  submit 1 p       | assign a 1.0.0
        1  failed a 1.0.0   | assign b 1.0.1
        2  answer b 1.0.1   | accept b 1.0.1; done 1
        3  submit 2 q       | assign a 2.0.0
        4  failed a 2.0.0   | assign b 2.0.1
        5  answer b 2.0.1   | accept b 2.0.1; done 2
        6  submit 3 r       | assign a 3.0.0
        7  answer a 3.0.0   | accept a 3.0.0; done 3
        8  submit 4 s       | assign a 4.0.0
        9  failed a 4.0.0   | assign b 4.0.1
        10 answer b 4.0.1   | accept b 4.0.1; done 4
        11 lost a           | -
        12 join c@x 1       | -
        13 submit 5 t       | assign b 5.0.0
        14 claims b 5.0.0   | confirm 5.0 by 1; accept b 5.0.0; assign c 5.1.0
        15 failed c 5.1.0   | assign b 5.1.1
        16 answer b 5.1.1   | accept b 5.1.1; done 5
        17 submit 6 uv      | assign b 6.0.0; assign c 6.1.0
        18 failed c 6.1.0   | -
        19 answer b 6.0.0   | accept b 6.0.0; assign b 6.1.1
        20 answer b 6.1.1   | accept b 6.1.1 against c; done 6
        ",
    );
}

/// A member that lacks memory for tasks that others compute is not judged; with no other member, the task is given up.
#[test]
fn members_that_lack_memory_leave_tasks_to_others_and_are_not_judged() {
    run(
        Timeouts::default(),
        "
        0  join a@x 1       | -
        0  join b@y 1       | -
        0  submit 1 p       | assign a 1.0.0
        1  lacks-memory a 1.0.0 | assign b 1.0.1
        2  answer b 1.0.1   | accept b 1.0.1; done 1
        3  submit 2 q       | assign a 2.0.0
        4  lacks-memory a 2.0.0 | assign b 2.0.1
        5  answer b 2.0.1   | accept b 2.0.1; done 2
        6  submit 3 r       | assign a 3.0.0
        7  lacks-memory a 3.0.0 | assign b 3.0.1
        8  answer b 3.0.1   | accept b 3.0.1; done 3
        9  submit 4 s       | assign a 4.0.0
        10 lacks-memory a 4.0.0 | assign b 4.0.1
        11 answer b 4.0.1   | accept b 4.0.1; done 4
        ",
    );
}

#[test]
fn a_replica_that_another_member_fails_goes_to_the_member_that_answered_the_original() {
    run(
        Timeouts::default(),
        "
        0 join a 1          | -
        0 join m 1          | -
        0 submit 1 pp 0+1   | assign a 1.0.0; assign m 1.1.0
        1 answer a 1.0.0    | accept a 1.0.0
        2 failed m 1.1.0    | assign a 1.1.1
        3 answer a 1.1.1    | accept a 1.1.1; done 1
        ",
    );
}

#[test]
fn a_member_beside_others_is_assigned_few_tasks_before_its_first_answer() {
    run(
        Timeouts::default(),
        "
        0 join a 1          | -
        0 join m 99         | -
        0 submit 1 pqrstuvwxyz | assign a 1.0.0; assign m 1.1.0; assign m 1.2.0; assign a 1.3.0; assign m 1.4.0
        1 answer m 1.1.0    | accept m 1.1.0; assign m 1.5.0; assign m 1.6.0; assign m 1.7.0; assign m 1.8.0; assign m 1.9.0; assign m 1.10.0
        ",
    );
}

#[test]
fn the_only_member_is_assigned_as_many_tasks_as_it_has_slots() {
    run(
        Timeouts::default(),
        "
        0 join a 5          | -
        0 submit 1 pqrst    | assign a 1.0.0; assign a 1.1.0; assign a 1.2.0; assign a 1.3.0; assign a 1.4.0
        ",
    );
}

#[test]
fn a_member_with_heartbeats_and_no_answer_has_a_backup_in_the_first_batch() {
    run(
        Timeouts::default(),
        "
        0  join a 1         | -
        0  join b 1         | -
        0  submit 1 p       | assign a 1.0.0
        14 heard a          | -
        14 heard b          | -
        15 tick             | assign b 1.0.1
        16 answer b 1.0.1   | accept b 1.0.1; withdraw a 1.0.0; done 1
        ",
    );
}

#[test]
fn an_overdue_lease_is_withdrawn_and_its_task_assigned_again() {
    run(
        Timeouts { lease_deadline: Duration::from_secs(60), ..Timeouts::default() },
        "
        0  join a 2          | -
        0  submit 1 p        | assign a 1.0.0
        40 heard a           | -
        50 submit 2@1 qr     | assign a 2.0.0
        51 heard a           | -
        51 join b 1          | assign b 2.1.0
        52 answer b 2.1.0    | accept b 2.1.0; assign b 1.0.1
        56 heard a           | -
        56 heard b           | -
        60 tick              | withdraw a 1.0.0
        61 withdrawn a 1.0.0 | -
        62 answer a 2.0.0    | accept a 2.0.0; done 2
        63 answer b 1.0.1    | accept b 1.0.1; done 1
        ",
    );
}

#[test]
fn an_overdue_lease_that_is_answered_after_all_counts() {
    run(
        Timeouts { lease_deadline: Duration::from_secs(4), ..Timeouts::default() },
        "
        0  join a 1          | -
        0  submit 1 p        | assign a 1.0.0
        1  join b 1          | -
        4  tick              | withdraw a 1.0.0; assign b 1.0.1
        5  answer a 1.0.0    | accept a 1.0.0; withdraw b 1.0.1; done 1
        ",
    );
}

#[test]
fn a_task_that_three_machines_do_not_finish_fails_its_own_batch() {
    run(
        Timeouts { lease_deadline: Duration::from_secs(4), ..Timeouts::default() },
        "
        0  join a 1           | -
        0  submit 1 p         | assign a 1.0.0
        1  join b 1           | -
        4  tick               | withdraw a 1.0.0; assign b 1.0.1
        4  withdrawn a 1.0.0  | -
        5  join c 1           | -
        8  tick               | withdraw b 1.0.1; assign c 1.0.2
        8  withdrawn b 1.0.1  | -
        8  submit 2@1 q       | assign a 2.0.0
        9  answer a 2.0.0     | accept a 2.0.0; done 2
        9  submit 3@1 q       | assign a 3.0.0
        10 heard b            | -
        12 tick               | withdraw c 1.0.2; fail 1: task 0: a (a) computed it for 4s without an end; b (b) computed it for 4s without an end; c (c) computed it for 4s without an end; look at its sentences, or allow more with --lease-deadline SECONDS
        12 answer a 3.0.0     | accept a 3.0.0; done 3
        ",
    );
}

#[test]
fn a_lease_that_waits_behind_another_is_not_overdue() {
    run(
        Timeouts { lease_deadline: Duration::from_secs(4), ..Timeouts::default() },
        "
        0  join a 1           | -
        0  submit 1 pqr       | assign a 1.0.0; assign a 1.1.0
        3  answer a 1.0.0     | accept a 1.0.0
        4  tick               | -
        6  answer a 1.1.0     | accept a 1.1.0; assign a 1.2.0
        ",
    );
}

#[test]
fn a_stuck_thread_of_this_process_fails_the_batch_and_loses_its_slot() {
    run(
        Timeouts { lease_deadline: Duration::from_secs(60), ..Timeouts::default() },
        "
        0  thread a 2       | -
        0  submit 1 pq      | assign a 1.0.0; assign a 1.1.0
        1  answer a 1.1.0   | accept a 1.1.0
        60 tick             | withdraw a 1.0.0; fail 1: task 0: a (a) computed it for 60s without an end; look at its sentences, or allow more with --lease-deadline SECONDS
        61 submit 2 pq      | assign a 2.1.0
        61 answer a 2.1.0   | accept a 2.1.0; assign a 2.0.0
        62 answer a 2.0.0   | accept a 2.0.0; done 2
        70 tick             | -
        71 submit 3 pqr     | assign a 3.0.0; assign a 3.1.0
        ",
    );
}

#[test]
fn a_task_that_does_not_end_in_this_process_goes_to_another_machine() {
    run(
        Timeouts { lease_deadline: Duration::from_secs(14), ..Timeouts::default() },
        "
        0  thread a 1         | -
        0  submit 1 p         | assign a 1.0.0
        10 join b 1           | -
        14 tick               | withdraw a 1.0.0; assign b 1.0.1
        14 withdrawn a 1.0.0  | -
        15 answer b 1.0.1     | accept b 1.0.1; done 1
        ",
    );
}

#[test]
fn a_withdrawn_lease_occupies_its_slot_until_its_member_confirms() {
    run(
        Timeouts::default(),
        "
        0 join a 1            | -
        0 submit 1 pqr        | assign a 1.0.0; assign a 1.1.0
        1 cancel 1            | withdraw a 1.0.0; withdraw a 1.1.0
        1 submit 2 p          | -
        2 withdrawn a 1.1.0   | -
        2 withdrawn a 1.0.0   | assign a 2.0.0
        2 withdrawn a 1.0.0   | -
        3 answer a 2.0.0      | accept a 2.0.0; done 2
        ",
    );
}

#[test]
fn a_member_that_does_not_confirm_is_removed_and_its_other_tasks_are_assigned_again() {
    run(
        Timeouts { dead_after: Duration::from_secs(60), ..Timeouts::default() },
        "
        0  join a 2           | -
        0  submit 1 p         | assign a 1.0.0
        0  submit 2@1 q       | assign a 2.0.0
        1  cancel 1           | withdraw a 1.0.0
        5  tick               | -
        9  join b 1           | assign b 2.0.1
        10 heard a            | -
        11 tick               | forget a: did not stop computing task 0 within 10s
        12 answer b 2.0.1     | accept b 2.0.1; done 2
        ",
    );
}

#[test]
fn a_stuck_task_fails_no_other_batch_however_many_members_it_takes_along() {
    run(
        Timeouts {
            lease_deadline: Duration::from_secs(4),
            stop_grace: Duration::from_secs(1),
            ..Timeouts::default()
        },
        "
        0  join a 2           | -
        0  submit 1 p         | assign a 1.0.0
        3  submit 2@1 q       | assign a 2.0.0
        4  tick               | withdraw a 1.0.0
        5  tick               | forget a: did not stop computing task 0 within 1s; waiting 0/1
        5  join b 2           | assign b 2.0.1; assign b 1.0.1
        6  answer b 2.0.1     | accept b 2.0.1; done 2
        ",
    );
}

#[test]
fn a_process_that_connects_again_holds_what_it_still_computes() {
    run(
        Timeouts::default(),
        "
        0 join a=alice 2              | -
        0 submit 1 pqr                | assign a 1.0.0; assign a 1.1.0
        1 join b=alice 2 1.0.0 1.1.0  | forget a: connection lost: its worker connected again
        2 answer b 1.0.0              | accept b 1.0.0; assign b 1.2.0
        3 lost b                      | waiting 0/1
        4 join c=alice 2 1.1.0        | assign c 1.2.1
        5 answer c 1.1.0              | accept c 1.1.0
        5 answer c 1.2.1              | accept c 1.2.1; done 1
        ",
    );
}

#[test]
fn what_a_process_that_connects_again_need_not_compute_is_withdrawn() {
    run(
        Timeouts { dead_after: Duration::from_secs(60), ..Timeouts::default() },
        "
        0  join a=alice 2                   | -
        0  join m 1                         | -
        0  submit 1 pq                      | assign a 1.0.0; assign m 1.1.0
        0  answer m 1.1.0                   | accept m 1.1.0
        1  lost a                           | assign m 1.0.1
        2  answer m 1.0.1                   | accept m 1.0.1; done 1
        3  submit 2 pqr                     | assign m 2.0.0; assign m 2.1.0
        4  join b=alice 2 1.0.0 9.7.0 2.0.0 | withdraw b 1.0.0; withdraw b 9.7.0
        5  withdrawn b 1.0.0                | assign b 2.2.0
        10 heard m                          | -
        10 heard b                          | -
        14 tick                             | forget b: did not stop computing task 7 within 10s
        ",
    );
}

#[test]
fn a_claim_is_confirmed_by_another_machine() {
    run(
        Timeouts::default(),
        "
        0 join a@x 1          | -
        0 join b@x 1          | -
        0 submit 1 p          | assign a 1.0.0
        1 claims a 1.0.0      | confirm 1.0 by 1; accept a 1.0.0; assign b 1.1.0
        2 claims b 1.1.0      | accept b 1.1.0; done 1
        3 join c@y 1          | -
        3 submit 2 p          | assign a 2.0.0
        4 claims a 2.0.0      | confirm 2.0 by 1; accept a 2.0.0; assign c 2.1.0
        5 answer c 2.1.0      | accept c 2.1.0; done 2
        ",
    );
}

#[test]
fn a_claim_that_no_other_member_can_confirm_is_accepted_without() {
    run(
        Timeouts::default(),
        "
        0  join a 1           | -
        0  submit 1 pq        | assign a 1.0.0
        1  claims a 1.0.0     | accept a 1.0.0; assign a 1.1.0
        2  join b 1           | -
        2  claims a 1.1.0     | confirm 1.1 by 2; accept a 1.1.0; assign b 1.2.0
        3  lost b             | assign a 1.2.1
        4  claims a 1.2.1     | accept a 1.2.1; done 1
        5  join c 1           | -
        5  submit 2@1/1 p     | assign a 2.0.0
        6  claims a 2.0.0     | accept a 2.0.0; done 2
        ",
    );
}

#[test]
fn an_audited_task_and_a_task_of_this_process_need_no_further_confirmation() {
    run(
        Timeouts::default(),
        "
        0 join a 1            | -
        0 join b 1            | -
        0 submit 1 pp 0+1     | assign a 1.0.0; assign b 1.1.0
        1 claims a 1.0.0      | accept a 1.0.0
        1 claims b 1.1.0      | accept b 1.1.0; done 1
        2 drain a             | -
        2 drain b             | -
        2 thread c 1          | -
        3 submit 2 p          | assign c 2.0.0
        4 claims c 2.0.0      | accept c 2.0.0; done 2
        ",
    );
}

#[test]
fn a_full_backlog_does_not_stop_the_confirmation_of_the_answer_that_the_caller_waits_for() {
    run(
        Timeouts::default(),
        "
        0 join a 1            | -
        0 join b 1            | -
        0 submit 1 pqr        | assign a 1.0.0; assign b 1.1.0
        1 backlog 1 0         | -
        1 answer b 1.1.0      | accept b 1.1.0
        2 claims a 1.0.0      | confirm 1.0 by 3; accept a 1.0.0; assign b 1.3.0
        3 answer b 1.3.0      | accept b 1.3.0
        3 backlog 1           | assign a 1.2.0
        ",
    );
}

#[test]
fn replicas_go_to_different_machines_if_there_are_several() {
    run(
        Timeouts::default(),
        "
        0 join a@x 1          | -
        0 join b@x 1          | -
        0 submit 1 pp 0+1     | assign a 1.0.0; assign b 1.1.0
        1 answer b 1.1.0      | accept b 1.1.0
        1 answer a 1.0.0      | accept a 1.0.0; done 1
        2 join c@y 1          | -
        2 submit 2 pp 0+1     | assign a 2.0.0; assign c 2.1.0
        3 lost c              | assign b 2.1.1
        ",
    );
}

#[test]
fn three_processes_of_one_machine_end_no_batch_while_another_machine_is_there() {
    run(
        Timeouts::default(),
        "
        0 join b@bad 1        | -
        0 join c@bad 1        | -
        0 join d@bad 1        | -
        0 join a 1            | -
        0 submit 1 pqrs       | assign a 1.0.0; assign b 1.1.0; assign c 1.2.0; assign d 1.3.0
        1 answer b 1.1.0      | accept b 1.1.0
        1 answer c 1.2.0      | accept c 1.2.0
        1 failed d 1.3.0      | -
        2 answer a 1.0.0      | accept a 1.0.0; assign a 1.3.1
        3 answer a 1.3.1      | accept a 1.3.1; done 1
        ",
    );
}

#[test]
fn of_an_involved_machine_first_those_are_asked_that_were_there_before_the_failure() {
    run(
        Timeouts::default(),
        "
        0 join a@x 1          | -
        0 join b@x 1          | -
        0 submit 1 p          | assign a 1.0.0
        1 failed a 1.0.0      | assign b 1.0.1
        2 join c@x 1          | -
        3 failed b 1.0.1      | assign c 1.0.2
        4 failed c 1.0.2      | fail 1: task 0: a (x) reported: no; b (x) reported: no; c (x) reported: no; reported by c b a
        ",
    );
}

#[test]
fn all_machines_are_asked_before_a_task_is_given_up_for_reported_failures() {
    run(
        Timeouts::default(),
        "
        0 join a 1          | -
        0 join b 1          | -
        0 join c 1          | -
        0 join d 1          | -
        0 submit 1 p        | assign a 1.0.0
        1 failed a 1.0.0    | assign b 1.0.1
        2 lost b            | assign c 1.0.2
        3 failed c 1.0.2    | assign d 1.0.3
        4 answer d 1.0.3    | accept d 1.0.3; done 1
        ",
    );
}

#[test]
fn a_member_that_stops_a_lease_without_being_asked_has_failed_it() {
    run(
        Timeouts::default(),
        "
        0 join a 1            | -
        0 submit 1 p          | assign a 1.0.0
        1 withdrawn a 1.0.0   | assign a 1.0.1
        2 join b 1            | -
        3 withdrawn a 1.0.1   | assign b 1.0.2
        4 answer b 1.0.2      | accept b 1.0.2; done 1
        ",
    );
}

#[test]
fn users_take_turns_however_many_accounts_they_have() {
    run(
        Timeouts::default(),
        "
        0 join a 1              | -
        0 submit 1@1:1*100 pq   | assign a 1.0.0
        0 submit 2@2:1*100 pq   | assign a 2.0.0
        0 submit 3@3:1*100 pq   | -
        0 submit 4@4:2 pq       | -
        1 answer a 1.0.0        | accept a 1.0.0; assign a 4.0.0
        2 answer a 2.0.0        | accept a 2.0.0; assign a 4.1.0
        3 answer a 4.0.0        | accept a 4.0.0; assign a 3.0.0
        4 answer a 4.1.0        | accept a 4.1.0; done 4; assign a 3.1.0
        ",
    );
}

#[test]
fn an_empty_batch_is_done() {
    let (batch, account) = batch("1");
    let submitted = Event::BatchSubmitted { batch, account, needs: vec![], replicas: vec![] };
    let actions = Scheduler::new(Timeouts::default()).handle(Duration::ZERO, submitted);
    assert_eq!(actions, [Action::BatchDone { batch: BatchId(1) }]);
}

#[test]
fn an_account_waits_if_and_only_if_no_member_computes_for_it_or_could() {
    check_shortages(
        2,
        "
        0  join a 1          | -   -
        0  submit 1@1 p      | 1/2 -
        1  lost a            | 0/2 -
        2  join b 1          | 1/2 -
        3  join c 1          | -   -
        3  submit 2@2 q      | -   -
        4  drain b           | -   -
        5  drain c           | -   -
        6  answer b 1.0.0    | -   -
        7  submit 3@1 r      | 0/1 -
        8  lost c            | 0/1 0/1
        9  cancel 3@1        | -   0/1
        10 join d 1          | -   -
        14 heard b           | -   -
        15 tick              | -   0/1
        16 heard d           | -   -
        17 answer d 2.0.1    | -   -
        18 lost d            | -   -
        ",
    );
}

#[test]
fn an_account_waits_for_its_own_members_while_it_may_have_no_other() {
    check_shortages(
        1,
        "
        0  join a 1          | -   -
        0  join b 1          | -   -
        0  submit 1@1/1 p    | -   -
        0  submit 2@2 q      | -   -
        4  heard b           | -   -
        5  tick              | 0/1 -
        6  heard a           | -   -
        7  drain a           | -   -
        12 heard b           | -   -
        12 tick              | 0/1 -
        13 lost a            | -   -
        14 answer b 2.0.0    | -   -
        ",
    );
}

/// After each event of the scenario: what accounts 1 and 2 wait for.
fn check_shortages(min_members: usize, scenario: &str) {
    let mut scheduler = Scheduler::new(Timeouts { min_members, ..Timeouts::default() });
    for line in scenario.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (happens, expected) = line.split_once('|').unwrap();
        let words: Vec<&str> = happens.split_whitespace().collect();
        let now = Duration::from_secs_f64(words[0].parse().unwrap());
        scheduler.handle(now, event(&words[1..]));
        let shortage = |account| match scheduler.shortage(AccountId(account)) {
            Some(Shortage { members, wanted }) => format!("{members}/{wanted}"),
            None => "-".to_owned(),
        };
        let expected: Vec<&str> = expected.split_whitespace().collect();
        assert_eq!([1, 2].map(shortage), expected[..], "at: {}", happens.trim());
    }
}
