//! Scenarios of assignment: which member is assigned which task, and when a batch begins and ends.

use super::*;

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
fn an_empty_batch_is_done() {
    let (batch, account) = batch("1");
    let submitted = Event::BatchSubmitted { batch, account, needs: vec![], replicas: vec![] };
    let actions = Scheduler::new(Timeouts::default()).handle(Duration::ZERO, submitted);
    assert_eq!(actions, [Action::BatchDone { batch: BatchId(1) }]);
}
