//! Audits: some tasks of every batch are computed by two members, and their answers compared, bit for bit.
//!
//! In: the number of tasks of a batch, and the accepted answers with their members. Out: the *replicas* to append to the batch, the answers
//! that the caller may have, and a [`Doubt`] if two answers to one task differ; an arbiter decides which is right.
//!
//! Invariants: the audited tasks depend on batch and share alone, and over many batches every task is audited equally often; an answer of a
//! worker that [claims](Answer::claims) something reaches the caller only after the worker of another process gave the same one, or the
//! arbiter.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use anyhow::{Result, anyhow};
use grammaton::encoding::encode;
use grammaton::stop::{self, Stop};
use grammaton::work::lease::TaskIndex;
use grammaton::work::task::{Answer, Task};

use super::Compute;
use scheduler::{Identity, MemberId, Reporter};

/// The tasks of a batch that two members compute. Their replicas follow all tasks of the batch: first those that were chosen, in the order
/// of the tasks, then those that confirm an answer, in the order in which they were added.
#[derive(Clone, Default, Debug)]
pub(super) struct Replicas {
    n_tasks: usize,
    originals: Vec<TaskIndex>,
    /// Replica by original.
    replicas: BTreeMap<TaskIndex, TaskIndex>,
}

impl Replicas {
    /// Chooses every `1 / share`-th of `n_tasks`. The first one differs between batches, so that a member that is assigned the same shards
    /// in every round is audited as often as any other.
    pub fn choose(n_tasks: usize, share: f64, batch: usize) -> Replicas {
        let so_far = |task: usize| ((batch + task) as f64 * share).floor();
        let mut chosen = Replicas { n_tasks, ..Replicas::default() };
        for task in (0..n_tasks).filter(|&task| so_far(task + 1) > so_far(task)) {
            chosen.add(TaskIndex(task as u32));
        }
        chosen
    }

    /// Adds a replica of `task`, which has none; returns it.
    pub fn add(&mut self, task: TaskIndex) -> TaskIndex {
        let replica = TaskIndex((self.n_tasks + self.originals.len()) as u32);
        self.originals.push(task);
        self.replicas.insert(task, replica);
        replica
    }

    /// Number of replicas.
    pub fn len(&self) -> usize {
        self.originals.len()
    }

    /// The originals, in the order of their replicas.
    pub fn originals(&self) -> impl Iterator<Item = TaskIndex> {
        self.originals.iter().copied()
    }

    /// Pairs of an original and its replica.
    pub fn pairs(&self) -> Vec<(TaskIndex, TaskIndex)> {
        let replicas = (self.n_tasks as u32..).map(TaskIndex);
        self.originals().zip(replicas).collect()
    }

    /// The replica of a task, if it has one.
    pub fn replica(&self, task: TaskIndex) -> Option<TaskIndex> {
        self.replicas.get(&task).copied()
    }

    /// The original of a replica; the task itself otherwise.
    pub fn original(&self, task: TaskIndex) -> TaskIndex {
        let at = task.index().checked_sub(self.n_tasks);
        at.and_then(|at| self.originals.get(at)).copied().unwrap_or(task)
    }
}

/// The member that gave an answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Witness {
    pub id: MemberId,
    pub name: String,
    pub identity: Identity,
    /// Whether the member is a remote worker, rather than this process.
    pub is_remote: bool,
}

/// Digest of an answer, and its member.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Testimony {
    pub witness: Witness,
    pub digest: blake3::Hash,
}

impl Testimony {
    /// Records that `witness` gave this answer.
    pub fn new(witness: Witness, answer: &Answer) -> Testimony {
        Testimony { witness, digest: digest_of(answer) }
    }
}

/// Hash of all bits of an answer, which tells apart all NaNs and both zeros.
fn digest_of(answer: &Answer) -> blake3::Hash {
    blake3::hash(&encode(answer))
}

/// Computes a task on the calling thread, until `stop` is requested. Returns the digest of the answer; an error says why there is none.
pub fn digest(compute: &Compute, task: &Task, stop: &Stop) -> Result<blake3::Hash> {
    match catch_unwind(AssertUnwindSafe(|| stop::until(stop, || compute(task)))) {
        Ok(answer) => Ok(digest_of(&answer??)),
        Err(_) => Err(anyhow!("the computation panicked, which is a bug; the message is above")),
    }
}

/// What was said of a task and is not certain: two answers that differ, one that claims something and that no other worker confirmed, or
/// reports that it cannot be computed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Doubt {
    pub task: TaskIndex,
    /// The testimonies, at most two.
    pub testimonies: Vec<Testimony>,
    /// Workers that reported that it cannot be computed.
    pub reporters: Vec<Reporter>,
}

impl Doubt {
    fn of(task: TaskIndex, testimonies: Vec<Testimony>) -> Doubt {
        Doubt { task, testimonies, reporters: Vec::new() }
    }
}

/// Consequence of an accepted answer.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Heard {
    /// The answer to this task goes to the caller.
    pub certain: Option<(TaskIndex, Answer)>,
    /// Bytes of an answer that only confirms another one.
    pub confirming: usize,
    /// To be settled before `certain` goes to the caller.
    pub doubt: Option<Doubt>,
}

/// Audits of an open batch.
#[derive(Debug)]
pub(super) struct Audit {
    replicas: Replicas,
    /// First answers of pairs that wait for the second one, by original.
    awaiting: BTreeMap<TaskIndex, Testimony>,
    /// Answers that claim something and wait for the second one of their pair, by original.
    claims: BTreeMap<TaskIndex, Answer>,
    /// Number of pairs that two members answered.
    pub audited: usize,
    /// Number of pairs that one worker answered.
    pub unaudited: usize,
}

impl Audit {
    /// Audits of a batch without answers.
    pub fn new(replicas: Replicas) -> Audit {
        let (awaiting, claims) = (BTreeMap::new(), BTreeMap::new());
        Audit { replicas, awaiting, claims, audited: 0, unaudited: 0 }
    }

    /// The doubt whether these reports that `task` cannot be computed, or this answer to it, are right.
    pub fn refute(
        &self,
        task: TaskIndex,
        witness: &Witness,
        answer: &Answer,
        reporters: Vec<Reporter>,
    ) -> Doubt {
        let testimonies = vec![Testimony::new(witness.clone(), answer)];
        Doubt { task: self.replicas.original(task), testimonies, reporters }
    }

    /// Adds a replica of `task`, whose answer claims something.
    pub fn confirm(&mut self, task: TaskIndex) {
        self.replicas.add(task);
    }

    /// The task that the caller waits for if it takes the answer to `task` next: the replica, if only the confirmation is missing.
    pub fn awaited(&self, task: TaskIndex) -> TaskIndex {
        self.replicas.replica(task).filter(|_| self.claims.contains_key(&task)).unwrap_or(task)
    }

    /// Records the accepted answer to `task`.
    pub fn hear(&mut self, task: TaskIndex, witness: Witness, answer: Answer) -> Heard {
        let task = self.replicas.original(task);
        let claims = witness.is_remote && answer.claims();
        if self.replicas.replica(task).is_none() {
            // No other member could confirm it.
            let doubt = claims.then(|| Doubt::of(task, vec![Testimony::new(witness, &answer)]));
            return Heard { certain: Some((task, answer)), doubt, ..Heard::default() };
        }
        let testimony = Testimony::new(witness, &answer);
        let Some(first) = self.awaiting.remove(&task) else {
            self.awaiting.insert(task, testimony);
            if claims {
                self.claims.insert(task, answer);
                return Heard::default();
            }
            return Heard { certain: Some((task, answer)), ..Heard::default() };
        };
        let by_two = first.witness.identity.process != testimony.witness.identity.process;
        self.audited += usize::from(by_two);
        self.unaudited += usize::from(!by_two);
        let claim = self.claims.remove(&task);
        let is_certain = first.digest == testimony.digest && (by_two || claim.is_none());
        let doubt = (!is_certain).then(|| Doubt::of(task, vec![first, testimony]));
        Heard { certain: claim.map(|claim| (task, claim)), confirming: answer.size(), doubt }
    }
}

#[cfg(test)]
mod tests {
    use grammaton::grammar::ParamId;
    use grammaton::work::lease::InstanceId;
    use grammaton::work::task::Expectation;

    use super::*;
    use scheduler::{Machine, Process};

    /// A worker's process, named by a letter.
    fn witness(name: &str) -> Witness {
        let process = Process::Named(InstanceId([name.as_bytes()[0]; 16]));
        let identity = Identity { process, machine: Machine("rack".into()) };
        Witness { id: MemberId(0), name: name.into(), identity, is_remote: true }
    }

    fn answer(count: f64) -> Answer {
        Answer::Expectation(Expectation { counts: vec![count], ..Expectation::default() })
    }

    fn claim() -> Answer {
        Answer::Expectation(Expectation { missing: vec![ParamId(7)], ..Expectation::default() })
    }

    #[test]
    fn every_task_is_audited_in_time_and_as_many_in_every_batch() {
        let mut times = [0; 40];
        for batch in 0..20 {
            let replicas = Replicas::choose(40, 0.05, batch);
            assert_eq!(replicas.len(), 2, "batch {batch}");
            replicas.originals().for_each(|task| times[task.index()] += 1);
        }
        assert_eq!(times, [1; 40]);
        assert_eq!(Replicas::choose(40, 0.0, 3).pairs(), []);
        assert_eq!(Replicas::choose(40, 1.0, 3).pairs().len(), 40);
    }

    #[test]
    fn replicas_follow_all_tasks() {
        let mut replicas = Replicas::choose(6, 0.5, 0);
        let pairs = [(1, 6), (3, 7), (5, 8)].map(|(task, replica)| (TaskIndex(task), TaskIndex(replica)));
        assert_eq!(replicas.pairs(), pairs);
        assert_eq!(replicas.add(TaskIndex(0)), TaskIndex(9));
        assert_eq!([7, 9, 3].map(|task| replicas.original(TaskIndex(task)).0), [3, 0, 3]);
        assert_eq!(replicas.replica(TaskIndex(3)), Some(TaskIndex(7)));
        assert_eq!(replicas.replica(TaskIndex(2)), None);
    }

    #[test]
    fn answers_are_compared_bit_for_bit() {
        let replicas = Replicas::choose(1, 1.0, 0);
        let compare = |first: (&str, f64), second: (&str, f64)| {
            let mut audit = Audit::new(replicas.clone());
            let heard = audit.hear(TaskIndex(1), witness(first.0), answer(first.1));
            assert!(heard.certain.is_some_and(|(task, _)| task == TaskIndex(0)) && heard.doubt.is_none());
            let heard = audit.hear(TaskIndex(0), witness(second.0), answer(second.1));
            assert_eq!((heard.certain, heard.confirming), (None, answer(0.0).size()));
            (heard.doubt.is_none(), audit.audited, audit.unaudited)
        };
        assert_eq!(compare(("alice", f64::NAN), ("bob", f64::NAN)), (true, 1, 0));
        assert_eq!(compare(("alice", 0.0), ("bob", -0.0)), (false, 1, 0));
        assert_eq!(compare(("alice", 1.0), ("alice", 1.0)), (true, 0, 1));
        assert_eq!(compare(("alice", 1.0), ("alice", 1.0 + f64::EPSILON)), (false, 0, 1));
        let heard = Audit::new(replicas).hear(TaskIndex(9), witness("alice"), answer(1.0));
        assert_eq!(heard, Heard { certain: Some((TaskIndex(9), answer(1.0))), ..Heard::default() });
    }

    #[test]
    fn a_claim_reaches_the_caller_only_with_a_confirmation() {
        let (task, replica) = (TaskIndex(0), TaskIndex(1));
        let begin = || {
            let mut audit = Audit::new(Replicas::choose(1, 0.0, 0));
            audit.confirm(task);
            assert_eq!(audit.hear(task, witness("alice"), claim()), Heard::default());
            assert_eq!(audit.awaited(task), replica);
            audit
        };
        let settled = |name, second: Answer| {
            let mut audit = begin();
            let heard = audit.hear(replica, witness(name), second);
            assert_eq!((heard.certain, audit.awaited(task)), (Some((task, claim())), task));
            heard.doubt.map_or(0, |doubt| doubt.testimonies.len())
        };
        assert_eq!(settled("bob", claim()), 0);
        assert_eq!(settled("bob", answer(1.0)), 2, "the answers differ");
        assert_eq!(settled("alice", claim()), 2, "the same worker confirms nothing");
        // Without other workers, and from this process.
        let alone = |witness: Witness| {
            let heard = Audit::new(Replicas::choose(1, 0.0, 0)).hear(task, witness, claim());
            assert_eq!(heard.certain, Some((task, claim())));
            heard.doubt.map_or(0, |doubt| doubt.testimonies.len())
        };
        assert_eq!(alone(witness("alice")), 1);
        assert_eq!(alone(Witness { is_remote: false, ..witness("local") }), 0);
    }
}
