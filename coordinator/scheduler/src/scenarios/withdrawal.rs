//! Scenarios of leases that take too long, and are withdrawn.

use super::*;

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
