//! Scenarios of accounts and users that share the members.

use super::*;

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
