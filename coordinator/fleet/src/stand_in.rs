//! Remote members for tests: threads that join as workers do, without sockets.

use grammaton::work::lease::InstanceId;
use proto::check;
use scheduler::{Cause, Event, Identity, Machine, Process};
use tokio::sync::oneshot;

use super::messages::{Input, MemberChannel, Order};
use super::{Compute, Fleet, local};

impl Fleet {
    /// Adds a member of one slot, of that process and machine, which computes with `compute`. An error says why it may not join.
    pub fn join(&self, process: u8, machine: &str, compute: Compute) -> Result<(), String> {
        let inputs = self.link.inputs.clone();
        let (channel, mut orders, _dismissed) = MemberChannel::remote(1);
        let (reply, joined) = oneshot::channel();
        let (instance, machine) = (InstanceId([process; 16]), Machine(machine.into()));
        let joining = Input::Joined {
            name: format!("w{process}"),
            instance: Some(instance),
            machine: machine.clone(),
            slots: 1,
            holds: Vec::new(),
            running: Vec::new(),
            channel,
            reply,
        };
        assert!(inputs.blocking_send(joining).is_ok(), "the fleet runs");
        let member =
            joined.blocking_recv().expect("the fleet runs").map_err(|refused| format!("{refused:?}"))?;
        std::thread::spawn(move || {
            while let Some(order) = orders.blocking_recv() {
                let job = match order {
                    Order::Compute(job) => job,
                    // The task was answered before the order was read.
                    Order::Withdraw(_) => continue,
                    Order::Leave => break,
                };
                let (lease, task) = (job.lease, job.task().expect("tests make their tasks"));
                let input = match local::run(&compute, &task) {
                    Ok(answer) => match check::answer(&task, &answer) {
                        Ok(()) => Input::Answered { member, lease, answer, busy: std::time::Duration::ZERO },
                        Err(error) => {
                            let identity =
                                Identity { process: Process::Named(instance), machine: machine.clone() };
                            Input::Expelled { member, identity, reason: error.to_string() }
                        }
                    },
                    Err(error) => {
                        let (detail, lacks_memory) = (format!("{error:#}"), local::lacks_memory(&error));
                        Input::Happened(Event::Failed {
                            member,
                            lease,
                            detail,
                            lacks_memory,
                            is_certain: false,
                        })
                    }
                };
                if inputs.blocking_send(input).is_err() {
                    return;
                }
            }
            let cause = Cause::Disconnected("it ended".into());
            // A fleet that has stopped has no members.
            let _ = inputs.blocking_send(Input::Happened(Event::MemberLost { member, cause }));
        });
        Ok(())
    }
}
