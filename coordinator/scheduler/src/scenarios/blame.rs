//! Scenarios of blame: tasks that kill or fail, the members that fail them, and the end of a batch.

use super::*;

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
