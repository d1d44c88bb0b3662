//! Scripted stories: events in, actions out, readable in review.
//!
//! A line is `time  event  | actions`, in the order in which they come. Time is in seconds; members and shards
//! are letters, `b=bob` is a member with another name than its letter; a lease is `batch.task.attempt`; `0+2` is an
//! audited task and its twin; `0=x` is a task whose shard carries x; `2@1*3/4` is a batch on an account of share 3 and 4 members at most.
//! `-` means no action.

use std::time::Duration;

use proto::lease::{Attempt, BatchId, LeaseId, TaskIndex};
use shared::task::ContentHash;

use super::*;

fn member(word: &str) -> MemberId {
    MemberId(u64::from(word.as_bytes()[0] - b'a'))
}

fn shards(word: &str) -> Vec<ContentHash> {
    word.bytes().map(|letter| ContentHash([letter; 32])).collect()
}

fn lease(word: &str) -> LeaseId {
    let numbers: Vec<u32> = word.split('.').map(|number| number.parse().unwrap()).collect();
    let [batch, task, attempt] = numbers[..] else { panic!("{word} is no lease") };
    LeaseId { batch: BatchId(batch.into()), task: TaskIndex(task), attempt: Attempt(attempt) }
}

fn twin(word: &str) -> (TaskIndex, TaskIndex) {
    let (task, twin) = word.split_once('+').unwrap_or_else(|| panic!("{word} is no pair"));
    (TaskIndex(task.parse().unwrap()), TaskIndex(twin.parse().unwrap()))
}

/// Batch 2 on account 1, whose share is 3 and which may have 4 members: `2@1*3/4`; only the batch must be there.
fn batch(word: &str) -> (BatchId, Account) {
    let (rest, members) = word.split_once('/').map_or((word, None), |(rest, n)| (rest, n.parse().ok()));
    let (rest, share) = rest.split_once('*').unwrap_or((rest, "1"));
    let (batch, account) = rest.split_once('@').unwrap_or((rest, "0"));
    let (id, share) = (AccountId(account.parse().unwrap()), share.parse().unwrap());
    (BatchId(batch.parse().unwrap()), Account { id, share, max_members: members })
}

fn event(words: &[&str]) -> Event {
    match words {
        ["join", who, slots, holds @ ..] => Event::MemberJoined {
            member: member(who),
            name: who.split_once('=').map_or(*who, |(_, name)| name).to_owned(),
            slots: slots.parse().unwrap(),
            holds: holds.iter().flat_map(|held| shards(held)).collect(),
            watched: true,
        },
        ["thread", who, slots] => Event::MemberJoined {
            member: member(who),
            name: (*who).to_owned(),
            slots: slots.parse().unwrap(),
            holds: vec![],
            watched: false,
        },
        ["drain", who] => Event::MemberDraining { member: member(who) },
        ["left", who] => Event::MemberLost { member: member(who), cause: Cause::Left },
        ["lost", who] => Event::MemberLost { member: member(who), cause: Cause::Disconnected("cut".into()) },
        ["heard", who] => Event::Heard { member: member(who) },
        ["answer", who, what] => Event::Answered { member: member(who), lease: lease(what) },
        ["failed", who, what] => {
            Event::Failed { member: member(who), lease: lease(what), detail: "no".into() }
        }
        ["submit", word, of, more @ ..] => {
            let (batch, account) = batch(word);
            let mut needs: Vec<Needs> =
                shards(of).into_iter().map(|shard| Needs { shard, carried: None }).collect();
            let (carried, twins): (Vec<&str>, Vec<&str>) = more.iter().partition(|word| word.contains('='));
            for (task, carried) in carried.iter().filter_map(|word| word.split_once('=')) {
                needs[task.parse::<usize>().unwrap()].carried = Some(shards(carried)[0]);
            }
            let twins = twins.into_iter().map(twin).collect();
            Event::BatchSubmitted { batch, account, needs, twins }
        }
        ["cancel", word] => Event::BatchCancelled { batch: batch(word).0 },
        ["tick"] => Event::Tick,
        _ => panic!("{words:?} is no event"),
    }
}

fn print(action: &Action) -> String {
    let letter = |member: &MemberId| char::from(b'a' + member.0 as u8);
    match action {
        Action::Lend { member, lease } => format!("lend {} {lease}", letter(member)),
        Action::Accept { member, lease } => format!("accept {} {lease}", letter(member)),
        Action::Discard { member, lease } => format!("discard {} {lease}", letter(member)),
        Action::Forget { member, cause } => format!("forget {}: {cause}", letter(member)),
        Action::ReportWaiting { members, wanted, just_begun } => {
            format!("waiting {members}/{wanted}{}", if *just_begun { ", just begun" } else { "" })
        }
        Action::BatchDone { batch } => format!("done {}", batch.0),
        Action::Fail { batch, failure } => format!("fail {}: {failure}", batch.0),
    }
}

fn tell(patience: Patience, story: &str) {
    let mut scheduler = Scheduler::new(patience);
    for line in story.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (happens, expected) = line.split_once('|').unwrap_or_else(|| panic!("no actions: {line}"));
        let words: Vec<&str> = happens.split_whitespace().collect();
        let now = Duration::from_secs_f64(words[0].parse().unwrap());
        let actions: Vec<String> = scheduler.handle(now, event(&words[1..])).iter().map(print).collect();
        let actions = if actions.is_empty() { "-".to_owned() } else { actions.join("; ") };
        assert_eq!(actions, expected.trim(), "at: {}", happens.trim());
    }
}

#[test]
fn tasks_fill_slots_in_turn_and_one_more_waits_while_there_are_plenty() {
    tell(
        Patience::default(),
        "
        0 join a 1          | -
        0 join b 1          | -
        0 submit 1 pqrstu   | lend a 1.0.0; lend b 1.1.0; lend a 1.2.0; lend b 1.3.0
        1 answer a 1.0.0    | accept a 1.0.0
        1 answer b 1.1.0    | accept b 1.1.0
        2 answer a 1.2.0    | accept a 1.2.0; lend a 1.4.0
        2 answer b 1.3.0    | accept b 1.3.0; lend b 1.5.0
        3 answer b 1.5.0    | accept b 1.5.0
        3 answer a 1.4.0    | accept a 1.4.0; done 1
        ",
    );
}

#[test]
fn a_shard_returns_to_its_member_unless_another_one_idles() {
    tell(
        Patience::default(),
        "
        0 join a 1          | -
        0 submit 1 pq       | lend a 1.0.0
        0 answer a 1.0.0    | accept a 1.0.0; lend a 1.1.0
        0 join b 1          | -
        0 answer a 1.1.0    | accept a 1.1.0; done 1
        1 submit 2 pr       | lend a 2.0.0; lend b 2.1.0
        2 answer a 2.0.0    | accept a 2.0.0
        2 answer b 2.1.0    | accept b 2.1.0; done 2
        3 submit 3 rp       | lend a 3.1.0; lend b 3.0.0
        4 answer b 3.0.0    | accept b 3.0.0
        4 answer a 3.1.0    | accept a 3.1.0; done 3
        5 submit 4 pq       | lend a 4.0.0; lend b 4.1.0
        ",
    );
}

#[test]
fn a_shard_goes_to_who_came_with_what_it_carries_unless_another_one_idles() {
    tell(
        Patience::default(),
        "
        0 join a 1 pq       | -
        0 join b 1 pqx      | -
        0 submit 1 pq 0=x   | lend a 1.1.0; lend b 1.0.0
        1 answer a 1.1.0    | accept a 1.1.0
        1 answer b 1.0.0    | accept b 1.0.0; done 1
        2 submit 2 pq 0=y   | lend a 2.1.0; lend b 2.0.0
        3 answer a 2.1.0    | accept a 2.1.0
        3 answer b 2.0.0    | accept b 2.0.0; done 2
        4 submit 3 rs 0=x 1=x | lend b 3.0.0; lend a 3.1.0
        ",
    );
}

#[test]
fn a_member_that_returns_is_given_the_shards_that_it_kept() {
    tell(
        Patience::default(),
        "
        0 join a 1          | -
        0 join b 1 r        | -
        0 submit 1 rst      | lend b 1.0.0; lend a 1.1.0
        1 join c 1 q        | lend c 1.2.0
        ",
    );
}

#[test]
fn only_the_tasks_of_a_lost_member_are_lent_again() {
    tell(
        Patience::default(),
        "
        0 join a 1          | -
        0 join b 1          | -
        0 submit 1 pq       | lend a 1.0.0; lend b 1.1.0
        1 answer b 1.1.0    | accept b 1.1.0
        1 lost a            | lend b 1.0.1
        2 answer b 1.0.1    | accept b 1.0.1; done 1
        ",
    );
}

#[test]
fn silence_makes_suspect_then_dead_and_a_late_answer_counts_if_it_is_the_first() {
    tell(
        Patience::default(),
        "
        0    join a 1       | -
        0    join b 1       | -
        0    submit 1 pqr   | lend a 1.0.0; lend b 1.1.0
        1    heard b        | -
        4    answer b 1.1.0 | accept b 1.1.0; lend b 1.2.0
        5    tick           | -
        6    answer b 1.2.0 | accept b 1.2.0; lend b 1.0.1
        10   heard b        | -
        15   tick           | forget a: silent for 15s
        16   answer a 1.0.0 | accept a 1.0.0; done 1
        17   answer b 1.0.1 | discard b 1.0.1
        ",
    );
}

#[test]
fn a_suspect_that_is_heard_is_trusted_again() {
    tell(
        Patience::default(),
        "
        0    join a 1       | -
        5    tick           | -
        6    submit 1 p     | -
        7    heard a        | lend a 1.0.0
        ",
    );
}

#[test]
fn a_coordinator_that_was_stopped_itself_suspects_nobody() {
    tell(
        Patience::default(),
        "
        0    join a 1       | -
        99   tick           | -
        100  submit 1 p     | lend a 1.0.0
        ",
    );
}

#[test]
fn a_slow_task_is_lent_a_second_time_to_an_idle_member() {
    tell(
        Patience::default(),
        "
        0    join a 1       | -
        0    join b 1       | -
        0    submit 1 pq    | lend a 1.0.0; lend b 1.1.0
        1    answer b 1.1.0 | accept b 1.1.0
        2.9  heard a        | -
        3    heard b        | lend b 1.0.1
        4    answer b 1.0.1 | accept b 1.0.1; done 1
        5    answer a 1.0.0 | discard a 1.0.0
        ",
    );
}

#[test]
fn who_joins_is_lent_a_task_at_once_that_is_free_or_late() {
    tell(
        Patience::default(),
        "
        0 join a 1          | -
        0 submit 1 pqr      | lend a 1.0.0; lend a 1.1.0
        1 join b 1          | lend b 1.2.0
        2 answer b 1.2.0    | accept b 1.2.0
        2 left b            | -
        3 heard a           | -
        4 join c 1          | lend c 1.0.1
        ",
    );
}

#[test]
fn a_task_that_is_lost_with_three_members_is_poison() {
    tell(
        Patience::default(),
        "
        0 join a 1          | -
        0 submit 1 p        | lend a 1.0.0
        1 lost a            | waiting 0/1
        2 join b 1          | lend b 1.0.1
        3 lost b            | waiting 0/1
        4 join c 1          | lend c 1.0.2
        5 lost c            | fail 1: task 0 was lost with its worker 3 times, last because the worker connection lost: cut; look at its sentences and at the workers' memory
        ",
    );
}

#[test]
fn an_impossible_task_fails_the_batch_at_once_and_the_next_one_goes_on() {
    tell(
        Patience::default(),
        "
        0 join a 2          | -
        0 submit 1 pq       | lend a 1.0.0; lend a 1.1.0
        1 failed a 1.1.0    | fail 1: task 1: no
        1 submit 2 pq       | lend a 2.0.0
        2 answer a 1.0.0    | discard a 1.0.0; lend a 2.1.0
        3 failed a 1.0.0    | -
        4 answer a 2.0.0    | accept a 2.0.0
        4 answer a 2.1.0    | accept a 2.1.0; done 2
        ",
    );
}

#[test]
fn the_first_members_are_awaited_for_ever_and_reported() {
    tell(
        Patience { min_members: 2, ..Patience::default() },
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
        31  join c 1        | lend b 1.0.0
        ",
    );
}

#[test]
fn without_members_a_batch_fails_after_the_grace() {
    tell(
        Patience::default(),
        "
        0  join a 1         | -
        0  submit 1 p       | lend a 1.0.0
        1  left a           | waiting 0/1
        11 tick             | waiting 0/1
        21 tick             | waiting 0/1
        31 tick             | fail 1: no workers for 30s; start some and run the job again
        90 submit 2 p       | waiting 0/1
        91 join b 1         | lend b 2.0.0
        ",
    );
}

#[test]
fn a_draining_member_answers_but_is_lent_nothing() {
    tell(
        Patience::default(),
        "
        0 join a 1          | -
        0 join b 1          | -
        0 submit 1 pqr      | lend a 1.0.0; lend b 1.1.0
        1 drain a           | -
        2 answer a 1.0.0    | accept a 1.0.0
        2 left a            | -
        3 answer b 1.1.0    | accept b 1.1.0; lend b 1.2.0
        3 answer b 1.2.0    | accept b 1.2.0; done 1
        ",
    );
}

#[test]
fn a_member_that_lives_and_does_not_answer_is_forgotten_and_its_task_lent_again() {
    tell(
        Patience { lease_deadline: Duration::from_secs(60), ..Patience::default() },
        "
        0  join a 1         | -
        0  submit 1 p       | lend a 1.0.0
        59 heard a          | -
        59 join b 1         | -
        60 tick             | forget a: still computing task 0 after 60s; lend b 1.0.1
        61 answer a 1.0.0   | accept a 1.0.0; done 1
        ",
    );
}

#[test]
fn a_task_on_which_three_members_are_stuck_is_poison() {
    tell(
        Patience { lease_deadline: Duration::from_secs(4), ..Patience::default() },
        "
        0  join a 1         | -
        0  submit 1 p       | lend a 1.0.0
        1  join b 1         | -
        4  tick             | forget a: still computing task 0 after 4s; lend b 1.0.1
        5  join c 1         | -
        8  tick             | forget b: still computing task 0 after 4s; lend c 1.0.2
        12 tick             | fail 1: task 0 was lost with its worker 3 times, last because the worker still computing task 0 after 4s; look at its sentences and at the workers' memory; forget c: still computing task 0 after 4s
        ",
    );
}

#[test]
fn a_stuck_thread_of_this_process_fails_the_batch_and_is_one_slot_less() {
    tell(
        Patience { lease_deadline: Duration::from_secs(60), ..Patience::default() },
        "
        0  thread a 2       | -
        0  submit 1 pq      | lend a 1.0.0; lend a 1.1.0
        1  answer a 1.1.0   | accept a 1.1.0
        60 tick             | fail 1: task 0: a thread of this process has been computing it for 60s; look at its sentences, or allow more with --lease-deadline SECONDS
        61 submit 2 pq      | lend a 2.1.0
        61 answer a 2.1.0   | accept a 2.1.0; lend a 2.0.0
        ",
    );
}

#[test]
fn twins_go_to_different_members() {
    tell(
        Patience::default(),
        "
        0 join a 2          | -
        0 join b 1          | -
        0 submit 1 pqp 0+2  | lend a 1.0.0; lend b 1.1.0
        1 answer b 1.1.0    | accept b 1.1.0; lend b 1.2.0
        2 answer a 1.0.0    | accept a 1.0.0
        3 answer b 1.2.0    | accept b 1.2.0; done 1
        4 submit 2 pp 0+1   | lend a 2.0.0; lend b 2.1.0
        5 answer b 2.1.0    | accept b 2.1.0
        9 lost a            | lend b 2.0.1
        ",
    );
}

#[test]
fn a_member_audits_itself_only_when_it_is_the_only_healthy_one() {
    tell(
        Patience::default(),
        "
        0 join a 3          | -
        0 join b 1          | -
        0 submit 1 pqp 0+2  | lend a 1.0.0; lend b 1.1.0
        1 answer a 1.0.0    | accept a 1.0.0
        1 drain b           | lend a 1.2.0
        1 answer a 1.2.0    | accept a 1.2.0
        4 answer b 1.1.0    | accept b 1.1.0; done 1
        ",
    );
}

#[test]
fn a_worker_that_is_lost_again_and_again_is_lent_one_task_at_a_time() {
    tell(
        Patience::default(),
        "
        0 join a=bob 2      | -
        1 lost a            | -
        1 join b=bob 2      | -
        2 lost b            | -
        2 join c=bob 2      | -
        3 lost c            | -
        3 join d=bob 2      | -
        4 submit 1 pqrstuvwxyz! | lend d 1.0.0
        5 answer d 1.0.0    | accept d 1.0.0; lend d 1.1.0
        5 answer d 1.1.0    | accept d 1.1.0; lend d 1.2.0
        5 answer d 1.2.0    | accept d 1.2.0; lend d 1.3.0
        5 answer d 1.3.0    | accept d 1.3.0; lend d 1.4.0
        5 answer d 1.4.0    | accept d 1.4.0; lend d 1.5.0
        5 answer d 1.5.0    | accept d 1.5.0; lend d 1.6.0
        5 answer d 1.6.0    | accept d 1.6.0; lend d 1.7.0
        5 answer d 1.7.0    | accept d 1.7.0; lend d 1.8.0
        5 answer d 1.8.0    | accept d 1.8.0; lend d 1.9.0
        5 answer d 1.9.0    | accept d 1.9.0; lend d 1.10.0; lend d 1.11.0
        ",
    );
}

#[test]
fn accounts_take_turns_by_share() {
    tell(
        Patience::default(),
        "
        0 join a 1            | -
        0 submit 1@0 pq       | lend a 1.0.0
        0 submit 2@1*2 rstu   | lend a 2.0.0
        1 answer a 1.0.0      | accept a 1.0.0; lend a 2.1.0
        2 answer a 2.0.0      | accept a 2.0.0; lend a 2.2.0
        3 answer a 2.1.0      | accept a 2.1.0; lend a 1.1.0
        4 answer a 2.2.0      | accept a 2.2.0
        5 answer a 1.1.0      | accept a 1.1.0; done 1; lend a 2.3.0
        6 answer a 2.3.0      | accept a 2.3.0; done 2
        ",
    );
}

#[test]
fn an_account_has_no_more_members_than_it_may() {
    tell(
        Patience::default(),
        "
        0 join a 1            | -
        0 join b 1            | -
        0 submit 1@0/1 pqrs   | lend a 1.0.0; lend a 1.1.0
        1 answer a 1.0.0      | accept a 1.0.0
        1 submit 2@1 xy       | lend b 2.0.0; lend a 2.1.0
        2 lost a              | lend b 2.1.1
        ",
    );
}

#[test]
fn what_ends_one_batch_ends_no_other() {
    tell(
        Patience::default(),
        "
        0 join a 2            | -
        0 submit 1@0 p        | lend a 1.0.0
        0 submit 2@1 q        | lend a 2.0.0
        1 failed a 1.0.0      | fail 1: task 0: no
        1 submit 3@0 r        | lend a 3.0.0
        2 cancel 2            | -
        3 answer a 2.0.0      | discard a 2.0.0
        4 answer a 3.0.0      | accept a 3.0.0; done 3
        ",
    );
}

#[test]
fn who_dies_with_tasks_of_two_jobs_shows_which_of_them_is_poison() {
    tell(
        Patience::default(),
        "
        0 join a 2            | -
        0 submit 1@0 p        | lend a 1.0.0
        0 submit 2@1 q        | lend a 2.0.0
        1 lost a              | waiting 0/1
        2 join b 2            | lend b 1.0.1; lend b 2.0.1
        3 lost b              | waiting 0/1
        4 join c 2            | lend c 1.0.2
        5 answer c 1.0.2      | accept c 1.0.2; done 1; lend c 2.0.2
        6 lost c              | fail 2: task 0 was lost with its worker 3 times, last because the worker connection lost: cut; look at its sentences and at the workers' memory
        ",
    );
}

#[test]
fn a_member_is_set_aside_for_a_task_that_goes_alone() {
    tell(
        Patience::default(),
        "
        0 join a 1            | -
        0 submit 1 p          | lend a 1.0.0
        1 lost a              | waiting 0/1
        1 join b 1            | lend b 1.0.1
        1 join c 1            | -
        1 submit 2@1 qrstuv   | lend c 2.0.0; lend b 2.1.0; lend c 2.2.0
        2 lost b              | -
        3 answer c 2.0.0      | accept c 2.0.0
        4 answer c 2.2.0      | accept c 2.2.0; lend c 1.0.2
        5 answer c 1.0.2      | accept c 1.0.2; done 1; lend c 2.1.1; lend c 2.3.0
        ",
    );
}

#[test]
fn an_empty_batch_is_done() {
    let (batch, account) = batch("1");
    let submitted = Event::BatchSubmitted { batch, account, needs: vec![], twins: vec![] };
    let actions = Scheduler::new(Patience::default()).handle(Duration::ZERO, submitted);
    assert_eq!(actions, [Action::BatchDone { batch: BatchId(1) }]);
}
