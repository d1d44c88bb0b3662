//! Scenarios of members that fall silent, are lost or connect again.

use super::*;

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
