//! Expelled workers: they gave a wrong answer and may not rejoin.
//!
//! A wrong answer expels its process. It is also counted against the machine: a second wrong process of a machine, or a first one with a
//! certificate, closes the machine to new processes. Its processes that had joined by then stay, and may reconnect; each is judged by its own
//! answers, since honest workers may share a machine, and the address of a gateway.
//!
//! Every expulsion is also a value, [`Expulsion`], for a service that keeps them and begins with those of the service before.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use grammaton::work::lease::InstanceId;
use scheduler::{Identity, Machine, MemberId, Process};
use serde::{Deserialize, Serialize};

/// Maximum numbers of expelled processes and of their machines; beyond it an old one is dropped for each new one.
const MOST: usize = 4096;

/// An expulsion, to be kept. Processes are named by their ids, in hexadecimal.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expulsion {
    /// The machine of the process.
    pub machine: String,
    /// Why it was expelled.
    pub reason: String,
    /// The process, if it had an id.
    pub process: Option<String>,
    /// Processes of this machine that had joined.
    pub beside: Vec<String>,
}

/// Expulsions that outlast a fleet.
#[derive(Clone)]
pub struct Expulsions {
    /// Those of fleets before.
    pub earlier: Vec<Expulsion>,
    /// Keeps a new one. It must not wait.
    pub keep: Arc<dyn Fn(Expulsion) + Send + Sync>,
}

impl Default for Expulsions {
    fn default() -> Expulsions {
        Expulsions { earlier: Vec::new(), keep: Arc::new(|_| {}) }
    }
}

impl Expulsion {
    fn new<'a>(identity: &Identity, reason: &str, members: impl Iterator<Item = &'a Identity>) -> Expulsion {
        let beside = members.filter(|member| member.machine == identity.machine);
        Expulsion {
            machine: identity.machine.0.to_string(),
            reason: reason.to_owned(),
            process: id(identity.process),
            beside: beside.filter_map(|member| id(member.process)).collect(),
        }
    }
}

/// The id of a process, in hexadecimal; one without id cannot come back.
fn id(process: Process) -> Option<String> {
    match process {
        Process::Named(InstanceId(id)) => Some(format!("{:032x}", u128::from_be_bytes(id))),
        Process::Unnamed(_) => None,
    }
}

/// The process with that id.
fn process(id: &str) -> Option<Process> {
    let id = u128::from_str_radix(id, 16).ok()?;
    Some(Process::Named(InstanceId(id.to_be_bytes())))
}

/// Expelled workers with their reasons.
#[derive(Default)]
pub(super) struct Expelled {
    processes: BTreeMap<Process, String>,
    machines: BTreeMap<Machine, WrongMachine>,
}

/// A machine of which a process gave a wrong answer.
#[derive(Default)]
struct WrongMachine {
    /// Its processes that gave wrong answers.
    wrong: BTreeSet<Process>,
    /// Once it is closed: the processes that had joined by then, and the reason.
    closed: Option<(BTreeSet<Process>, String)>,
}

impl Expelled {
    /// The workers that `earlier` fleets expelled.
    pub fn by(earlier: &[Expulsion]) -> Expelled {
        let mut expelled = Expelled::default();
        for (at, Expulsion { machine, reason, process: id, beside }) in earlier.iter().enumerate() {
            // No member has such an id, from which those of processes without a name are made.
            let unnamed = Process::Unnamed(MemberId(u64::MAX - at as u64));
            let machine = Machine(machine.as_str().into());
            let identity = |process| Identity { process, machine: machine.clone() };
            let members: Vec<Identity> = beside.iter().filter_map(|id| process(id)).map(identity).collect();
            let wrong = identity(id.as_deref().and_then(process).unwrap_or(unnamed));
            expelled.add(&wrong, reason, members.iter());
        }
        expelled
    }

    /// Expels a worker. Returns the record to keep. `members` are the identities of all workers that have joined.
    pub fn add<'a>(
        &mut self,
        identity: &Identity,
        reason: &str,
        members: impl Iterator<Item = &'a Identity> + Clone,
    ) -> Expulsion {
        let kept = Expulsion::new(identity, reason, members.clone());
        let Identity { process, machine } = identity;
        make_room(&mut self.processes);
        self.processes.insert(*process, reason.to_owned());
        make_room(&mut self.machines);
        let state = self.machines.entry(machine.clone()).or_default();
        if state.closed.is_some() {
            return kept;
        }
        state.wrong.insert(*process);
        let most = if machine.has_certificate() { 1 } else { 2 };
        if state.wrong.len() >= most {
            let members = members.filter(|member| member.machine == *machine);
            let reason = format!("{reason}; no new process of its machine is admitted");
            state.closed = Some((members.map(|member| member.process).collect(), reason));
        }
        kept
    }

    /// Why the worker was expelled, if it was.
    pub fn reason(&self, identity: &Identity) -> Option<&str> {
        let of_machine = || {
            let (stay, reason) = self.machines.get(&identity.machine)?.closed.as_ref()?;
            (!stay.contains(&identity.process)).then_some(reason)
        };
        self.processes.get(&identity.process).or_else(of_machine).map(String::as_str)
    }
}

fn make_room<K: Ord, V>(entries: &mut BTreeMap<K, V>) {
    if entries.len() >= MOST {
        entries.pop_first();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worker(process: u128, machine: &Machine) -> Identity {
        let process = Process::Named(InstanceId(process.to_le_bytes()));
        Identity { process, machine: machine.clone() }
    }

    #[test]
    fn a_wrong_answer_expels_its_process_and_a_second_one_closes_the_machine_to_new_processes() {
        let (machine, other) = (Machine("10.0.0.7".into()), Machine("10.0.0.8".into()));
        let members = [1, 2, 3].map(|process| worker(process, &machine));
        let mut expelled = Expelled::default();
        let reasons = |expelled: &Expelled| {
            [1, 2, 3, 4].map(|process| expelled.reason(&worker(process, &machine)).is_some())
        };
        for _ in 0..2 {
            expelled.add(&members[0], "wrong", members.iter());
            assert_eq!(reasons(&expelled), [true, false, false, false]);
        }
        expelled.add(&members[1], "wrong", members.iter());
        assert_eq!(reasons(&expelled), [true, true, false, true], "members stay, new processes do not join");
        assert_eq!(expelled.reason(&worker(4, &other)), None, "another machine");
        // Those that stay are judged by their own answers, and later ones were not there.
        expelled.add(&members[2], "wrong", [worker(4, &machine)].iter());
        assert_eq!(reasons(&expelled), [true; 4]);
    }

    #[test]
    fn a_wrong_answer_closes_a_certificate() {
        let (machine, other) = (Machine::certified("w1"), Machine::certified("w2"));
        let (first, beside) = (worker(1, &machine), worker(2, &machine));
        let mut expelled = Expelled::default();
        expelled.add(&first, "wrong", [first.clone(), beside.clone()].iter());
        assert_eq!(expelled.reason(&first), Some("wrong"));
        assert_eq!(
            expelled.reason(&worker(1, &other)),
            Some("wrong"),
            "the process with another certificate"
        );
        assert_eq!(
            expelled.reason(&worker(3, &machine)),
            Some("wrong; no new process of its machine is admitted")
        );
        assert_eq!((expelled.reason(&beside), expelled.reason(&worker(3, &other))), (None, None));
    }

    #[test]
    fn expulsions_that_are_kept_expel_the_same_workers() {
        let (machine, certified) = (Machine("10.0.0.7".into()), Machine::certified("w1"));
        let unnamed = Identity { process: Process::Unnamed(MemberId(0)), machine: machine.clone() };
        let members = [worker(1, &machine), worker(2, &machine), worker(3, &certified), unnamed.clone()];
        let (mut expelled, mut kept) = (Expelled::default(), Vec::new());
        let all = || [&machine, &certified].into_iter().flat_map(|on| (1..5).map(|of| worker(of, on)));
        for wrong in [&members[0], &unnamed, &members[2]] {
            kept.push(expelled.add(wrong, "wrong", members.iter()));
            let lines = serde_json::to_string(&kept).unwrap();
            let again = Expelled::by(&serde_json::from_str::<Vec<Expulsion>>(&lines).unwrap());
            for worker in all() {
                assert_eq!(again.reason(&worker), expelled.reason(&worker), "{worker:?} after {lines}");
            }
        }
        assert_eq!(
            all().filter(|worker| expelled.reason(worker).is_some()).count(),
            7,
            "all but one that stays"
        );
    }

    #[test]
    fn expulsions_take_bounded_memory() {
        let mut expelled = Expelled::default();
        for id in 0..2 * MOST as u128 {
            expelled.add(&worker(id, &Machine(id.to_string().into())), "wrong", [].iter());
        }
        assert_eq!((expelled.processes.len(), expelled.machines.len()), (MOST, MOST));
    }
}
