//! The last events and decisions of the scheduler, for the report of a batch that failed.

use std::collections::VecDeque;
use std::fmt::Display;
use std::time::Duration;

use scheduler::{Action, Event};

/// Maximum number of events and decisions in the report.
const KEPT: usize = 300;

/// The newest [`KEPT`] events and decisions. Recording one costs no formatting.
#[derive(Default)]
pub(super) struct Decisions(VecDeque<(Duration, Decision)>);

enum Decision {
    /// Records the number of tasks of a batch, replicas included.
    Submitted {
        batch: u64,
        account: u64,
        tasks: usize,
    },
    Happened(Event),
    Did(Action),
}

impl Decisions {
    /// Records an event at the time `at` since the start; heartbeats and ticks are left out.
    pub fn happened(&mut self, at: Duration, event: &Event) {
        match event {
            Event::Heard { .. } | Event::Tick | Event::Backlog { .. } => {}
            Event::BatchSubmitted { batch, account, needs, .. } => {
                let (batch, account, tasks) = (batch.0, account.id.0, needs.len());
                self.push(at, Decision::Submitted { batch, account, tasks });
            }
            event => self.push(at, Decision::Happened(event.clone())),
        }
    }

    /// Records actions of the scheduler.
    pub fn did(&mut self, at: Duration, action: &Action) {
        self.push(at, Decision::Did(action.clone()));
    }

    fn push(&mut self, at: Duration, decision: Decision) {
        if self.0.len() == KEPT {
            self.0.pop_front();
        }
        self.0.push_back((at, decision));
    }

    /// A line for each, the oldest first, with seconds since the start; `name` returns the name of a member.
    pub fn report<N: Display>(&self, name: impl Fn(scheduler::MemberId) -> N) -> Vec<String> {
        let line = |(at, decision): &(Duration, Decision)| {
            let text = match decision {
                Decision::Submitted { batch, account, tasks } => {
                    format!("batch {batch} of account {account} submitted, {tasks} tasks")
                }
                Decision::Happened(event) => event_text(event, &name),
                Decision::Did(action) => action_text(action, &name),
            };
            format!("{:10.3} s  {text}", at.as_secs_f64())
        };
        self.0.iter().map(line).collect()
    }
}

fn event_text<N: Display>(event: &Event, name: &impl Fn(scheduler::MemberId) -> N) -> String {
    match event {
        Event::MemberJoined { member, name, slots, .. } => {
            format!("{name} joined as member {}, {slots} slots", member.0)
        }
        Event::MemberDraining { member } => format!("{} takes no more tasks", name(*member)),
        Event::MemberLost { member, cause } => format!("{} lost: {cause}", name(*member)),
        Event::Answered { member, lease, claims } => {
            format!("{} answered lease {lease}{}", name(*member), if *claims { " with a claim" } else { "" })
        }
        Event::Withdrawn { member, lease } => format!("{} stopped lease {lease}", name(*member)),
        Event::Failed { member, lease, detail, .. } => {
            format!("{} failed lease {lease}: {detail}", name(*member))
        }
        Event::BatchCancelled { batch } => format!("batch {} cancelled", batch.0),
        Event::AccountClosed { account } => format!("account {} closed", account.0),
        Event::BatchSubmitted { .. } | Event::Heard { .. } | Event::Tick | Event::Backlog { .. } => {
            String::new()
        }
    }
}

fn action_text<N: Display>(action: &Action, name: &impl Fn(scheduler::MemberId) -> N) -> String {
    match action {
        Action::Assign { member, lease } => format!("assign lease {lease} to {}", name(*member)),
        Action::Withdraw { member, lease } => format!("withdraw lease {lease} of {}", name(*member)),
        Action::Confirm { batch, task, replica } => {
            format!("confirm the answer to task {} of batch {} by task {}", task.0, batch.0, replica.0)
        }
        Action::Accept { member, lease, .. } => format!("accept lease {lease} of {}", name(*member)),
        Action::Discard { member, lease } => format!("discard lease {lease} of {}", name(*member)),
        Action::Forget { member, cause } => format!("dismiss {}: {cause}", name(*member)),
        Action::ReportWaiting { members, wanted, .. } => {
            format!("wait for workers: {members} are there, {wanted} are needed")
        }
        Action::BatchDone { batch } => format!("batch {} done", batch.0),
        Action::Fail { batch, failure, .. } => format!("batch {} failed: {failure}", batch.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use grammaton::work::lease::BatchId;
    use scheduler::MemberId;

    #[test]
    fn only_the_newest_are_kept_and_signs_of_life_are_not() {
        let mut decisions = Decisions::default();
        for at in 0..KEPT as u64 + 7 {
            decisions.happened(Duration::from_secs(at), &Event::Heard { member: MemberId(1) });
            decisions.happened(Duration::from_secs(at), &Event::Tick);
            decisions.did(Duration::from_millis(at), &Action::BatchDone { batch: BatchId(at) });
        }
        let lines = decisions.report(|member| member.0);
        assert_eq!(lines.len(), KEPT);
        assert_eq!(lines[0].trim_start(), "0.007 s  batch 7 done");
        assert!(lines.last().unwrap().ends_with(&format!("batch {} done", KEPT + 6)));
    }
}
