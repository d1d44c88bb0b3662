//! Scenarios of audits and claims: answers that another machine has to confirm.

use super::*;

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
