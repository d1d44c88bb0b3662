//! Audits: some tasks of every batch are computed by two members, and their answers compared, bit for bit.
//!
//! In: the number of tasks of a batch, and the accepted answers with their members. Out: the *replicas* to append to the batch, and
//! a [`Doubt`] if two answers to one task differ; an arbiter decides which is right. Invariant: the audited tasks depend on batch and
//! share alone, and over many batches every task is audited equally often.

use std::collections::BTreeMap;

use proto::convert::Wire as _;
use shared::work::lease::TaskIndex;
use shared::work::task::Answer;

use scheduler::MemberId;

/// The audited tasks of a batch, ascending; their replicas follow all tasks of the batch, in the same order.
#[derive(Clone, Default, Debug)]
pub(super) struct Replicas {
    n_tasks: usize,
    audited: Vec<TaskIndex>,
}

impl Replicas {
    /// Chooses every `1 / share`-th of `n_tasks`. The first one differs between batches, so that a member that is assigned the same shards
    /// in every round is audited as often as any other.
    pub fn choose(n_tasks: usize, share: f64, batch: usize) -> Replicas {
        let so_far = |task: usize| ((batch + task) as f64 * share).floor();
        let audited = (0..n_tasks).filter(|&task| so_far(task + 1) > so_far(task));
        Replicas { n_tasks, audited: audited.map(|task| TaskIndex(task as u32)).collect() }
    }

    /// The originals of the replicas to append to the batch.
    pub fn audited(&self) -> impl Iterator<Item = TaskIndex> {
        self.audited.iter().copied()
    }

    /// Pairs of an audited task and its replica.
    pub fn pairs(&self) -> Vec<(TaskIndex, TaskIndex)> {
        let replicas = (self.n_tasks as u32..).map(TaskIndex);
        self.audited.iter().copied().zip(replicas).collect()
    }

    /// The original of a replica; the task itself otherwise.
    pub fn original(&self, task: TaskIndex) -> TaskIndex {
        let at = task.index().checked_sub(self.n_tasks);
        at.and_then(|at| self.audited.get(at)).copied().unwrap_or(task)
    }
}

/// The member that gave an answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Witness {
    pub id: MemberId,
    pub name: String,
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
        Testimony { witness, digest: digest(answer) }
    }
}

/// Hash of all bits of an answer, which tells apart all NaNs and both zeros.
pub(super) fn digest(answer: &Answer) -> blake3::Hash {
    blake3::hash(&answer.to_bytes())
}

/// Two answers to one task that differ.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Doubt {
    pub task: TaskIndex,
    /// The two testimonies.
    pub testimonies: Vec<Testimony>,
}

/// Audits of an open batch.
#[derive(Debug)]
pub(super) struct Audit {
    replicas: Replicas,
    /// First answers of pairs that wait for the second one, by original.
    awaiting: BTreeMap<TaskIndex, Testimony>,
    /// Number of pairs that two members answered.
    pub audited: usize,
    /// Number of pairs that one member answered, or one worker that reconnected under its name.
    pub unaudited: usize,
}

impl Audit {
    /// Audits of a batch without answers.
    pub fn new(replicas: Replicas) -> Audit {
        Audit { replicas, awaiting: BTreeMap::new(), audited: 0, unaudited: 0 }
    }

    /// Records the accepted answer to `task`.
    pub fn hear(&mut self, task: TaskIndex, witness: Witness, answer: &Answer) -> Result<(), Doubt> {
        let task = self.replicas.original(task);
        if self.replicas.audited.binary_search(&task).is_err() {
            return Ok(());
        }
        let second = Testimony::new(witness, answer);
        let Some(first) = self.awaiting.remove(&task) else {
            self.awaiting.insert(task, second);
            return Ok(());
        };
        let by_two = first.witness.name != second.witness.name;
        self.audited += usize::from(by_two);
        self.unaudited += usize::from(!by_two);
        if first.digest == second.digest {
            return Ok(());
        }
        Err(Doubt { task, testimonies: vec![first, second] })
    }
}

#[cfg(test)]
mod tests {
    use shared::work::task::Expectation;

    use super::*;

    fn witness(name: &str) -> Witness {
        Witness { id: MemberId(0), name: name.into(), is_remote: true }
    }

    fn answer(count: f64) -> Answer {
        Answer::Expectation(Expectation { counts: vec![count], ..Expectation::default() })
    }

    #[test]
    fn every_task_is_audited_in_time_and_as_many_in_every_batch() {
        let mut times = [0; 40];
        for batch in 0..20 {
            let replicas = Replicas::choose(40, 0.05, batch);
            assert_eq!(replicas.audited.len(), 2, "batch {batch}");
            replicas.audited.iter().for_each(|task| times[task.index()] += 1);
        }
        assert_eq!(times, [1; 40]);
        assert_eq!(Replicas::choose(40, 0.0, 3).pairs(), []);
        assert_eq!(Replicas::choose(40, 1.0, 3).pairs().len(), 40);
    }

    #[test]
    fn replicas_follow_all_tasks() {
        let replicas = Replicas::choose(6, 0.5, 0);
        let pairs = [(1, 6), (3, 7), (5, 8)].map(|(task, replica)| (TaskIndex(task), TaskIndex(replica)));
        assert_eq!(replicas.pairs(), pairs);
        assert_eq!(replicas.original(TaskIndex(7)), TaskIndex(3));
        assert_eq!(replicas.original(TaskIndex(3)), TaskIndex(3));
    }

    #[test]
    fn answers_are_compared_bit_for_bit() {
        let replicas = Replicas::choose(1, 1.0, 0);
        let compare = |first: (&str, f64), second: (&str, f64)| {
            let mut audit = Audit::new(replicas.clone());
            audit.hear(TaskIndex(1), witness(first.0), &answer(first.1)).unwrap();
            let heard = audit.hear(TaskIndex(0), witness(second.0), &answer(second.1));
            (heard.is_ok(), audit.audited, audit.unaudited)
        };
        assert_eq!(compare(("alice", f64::NAN), ("bob", f64::NAN)), (true, 1, 0));
        assert_eq!(compare(("alice", 0.0), ("bob", -0.0)), (false, 1, 0));
        assert_eq!(compare(("alice", 1.0), ("alice", 1.0)), (true, 0, 1));
        assert_eq!(compare(("alice", 1.0), ("alice", 1.0 + f64::EPSILON)), (false, 0, 1));
        assert_eq!(Audit::new(replicas).hear(TaskIndex(9), witness("alice"), &answer(1.0)), Ok(()));
    }
}
