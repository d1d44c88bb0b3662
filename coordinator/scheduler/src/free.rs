//! Free tasks of a batch, by preferred member.

use std::collections::{BTreeMap, BTreeSet};

use grammaton::work::lease::TaskIndex;
use rustc_hash::FxHashMap;

use super::MemberId;
use super::broken::Broken;

/// The preferred member of a task, if there is one.
pub(super) type Preferred = Option<MemberId>;

/// The free tasks that are offered to a member.
#[derive(Clone, Copy, Debug)]
pub(super) enum Offer {
    /// Tasks that prefer it.
    Own,
    /// Tasks without a preferred member.
    Unowned,
    /// Any task, from the member that most tasks prefer.
    Others,
}

/// Free tasks.
#[derive(Debug, Default)]
pub(super) struct Free {
    preferred: FxHashMap<TaskIndex, Preferred>,
    /// Free tasks by preferred member; no set is empty.
    by_preferred: BTreeMap<Preferred, BTreeSet<TaskIndex>>,
    /// Number of tasks in each of these sets.
    sizes: BTreeSet<(usize, Preferred)>,
}

impl Free {
    /// Number of free tasks.
    pub fn len(&self) -> usize {
        self.preferred.len()
    }

    /// Whether `task` is free.
    pub fn contains(&self, task: TaskIndex) -> bool {
        self.preferred.contains_key(&task)
    }

    /// All free tasks.
    pub fn iter(&self) -> impl Iterator<Item = TaskIndex> {
        self.by_preferred.values().flatten().copied()
    }

    /// Adds a free task.
    pub fn insert(&mut self, task: TaskIndex, preferred: Preferred) {
        self.remove(task);
        self.preferred.insert(task, preferred);
        self.resize(preferred, |tasks| tasks.insert(task));
    }

    /// Removes `task`, if it is free.
    pub fn remove(&mut self, task: TaskIndex) {
        if let Some(preferred) = self.preferred.remove(&task) {
            self.resize(preferred, |tasks| tasks.remove(&task));
        }
    }

    /// Tasks without a preferred member.
    pub fn unowned(&self) -> impl Iterator<Item = TaskIndex> {
        self.by_preferred.get(&None).into_iter().flatten().copied()
    }

    /// Tasks with a preferred member.
    pub fn owned(&self) -> impl Iterator<Item = (TaskIndex, MemberId)> {
        let owned = self.by_preferred.iter().filter_map(|(preferred, tasks)| Some(((*preferred)?, tasks)));
        owned.flat_map(|(member, tasks)| tasks.iter().map(move |&task| (task, member)))
    }

    /// Clears the preference of the tasks that prefer `member`.
    pub fn disown(&mut self, member: MemberId) {
        for task in self.by_preferred.get(&Some(member)).cloned().unwrap_or_default() {
            self.insert(task, None);
        }
    }

    /// The first task of the offer to `member` that it `may` take.
    pub fn offer(
        &self,
        member: MemberId,
        offer: Offer,
        may: impl Fn(TaskIndex) -> bool,
    ) -> Option<TaskIndex> {
        let first =
            |preferred: &Preferred| self.by_preferred.get(preferred)?.iter().copied().find(|&task| may(task));
        match offer {
            Offer::Own => first(&Some(member)),
            Offer::Unowned => first(&None),
            Offer::Others => self.sizes.iter().rev().find_map(|(_, preferred)| first(preferred)),
        }
    }

    fn resize<R>(&mut self, preferred: Preferred, change: impl FnOnce(&mut BTreeSet<TaskIndex>) -> R) {
        let tasks = self.by_preferred.entry(preferred).or_default();
        self.sizes.remove(&(tasks.len(), preferred));
        change(tasks);
        if tasks.is_empty() {
            self.by_preferred.remove(&preferred);
        } else {
            self.sizes.insert((tasks.len(), preferred));
        }
    }

    /// Checks that the three indexes agree.
    pub fn check(&self) -> Result<(), Broken> {
        let sizes = self.by_preferred.iter().map(|(&preferred, tasks)| (tasks.len(), preferred));
        let of_task = |(&preferred, tasks): (&Preferred, &BTreeSet<TaskIndex>)| {
            tasks.iter().all(|task| self.preferred.get(task) == Some(&preferred))
        };
        let counted = self.by_preferred.values().map(BTreeSet::len).sum::<usize>() == self.preferred.len();
        let filled = self.by_preferred.values().all(|tasks| !tasks.is_empty());
        let agree = filled && counted && self.by_preferred.iter().all(of_task);
        if agree && self.sizes == sizes.collect() {
            return Ok(());
        }
        Err("the numbers of free tasks are wrong, or a task is in two sets".into())
    }
}
