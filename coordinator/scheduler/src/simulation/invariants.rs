//! Independent model of members, leases and tasks, and the laws that the scheduler is checked against.
//!
//! In: every event before the scheduler handles it, and every action that it returns. Out: the law that is violated, if one is.
//!
//! At every lease and answer:
//! - An open task is accepted once, from the process that its lease was given to; no answer to a batch that has ended is accepted.
//! - No member holds more leases than its slots allow, and no account has more members than its maximum.
//! - While the backlog of answers is full, only the first open task begins.
//! - No member is assigned the replica of a task that it holds or answered while another healthy member is present.
//! - A failed task is assigned to a best candidate, and a task that is one failure short of poison goes alone.
//!
//! For each member that is checked:
//! - No healthy member is idle while a task that it may have is free, or is held by suspects alone.
//! - No member stays that was silent for `dead_after`, or has a lease as old as `lease_deadline`.
//! - At most one member is reserved for each batch with a task that waits to go alone.
//!
//! A batch is done when all its tasks are, or fails for a reason that the model confirms.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use shared::work::lease::{BatchId, LeaseId, TaskIndex, max_leases};

use crate::MemberState;
use crate::{
    Account, AccountId, Action, Broken, Cause, Event, Failure, Identity, MemberId, Needs, POISON, Presence,
    Process, Scheduler, Timeouts,
};

/// Content of a batch.
#[derive(Clone, Default)]
pub(super) struct Made {
    pub needs: Vec<Needs>,
    pub replicas: BTreeMap<TaskIndex, TaskIndex>,
    /// A task that fails on every member.
    pub impossible: Option<TaskIndex>,
    /// A task that kills every process that begins it.
    pub deadly: Option<TaskIndex>,
}

impl Made {
    /// The task itself, or the original of which it is the replica.
    pub fn original(&self, task: TaskIndex) -> TaskIndex {
        task.min(self.replica_or_itself(task))
    }

    fn replica_or_itself(&self, task: TaskIndex) -> TaskIndex {
        *self.replicas.get(&task).unwrap_or(&task)
    }
}

/// An open batch.
struct Page {
    account: Account,
    made: Made,
    /// While the backlog of answers is full, the only task that may begin.
    only: Option<TaskIndex>,
    answered_by: BTreeMap<TaskIndex, (MemberId, Process)>,
    /// Processes that leases were given to.
    given: BTreeMap<LeaseId, Process>,
    /// The first task without an answer.
    first_open: TaskIndex,
    /// Holders of each task.
    holders: Vec<BTreeSet<MemberId>>,
    /// Tasks without holder and answer.
    free: BTreeSet<TaskIndex>,
    blame: BTreeMap<TaskIndex, Vec<Blamed>>,
    /// Tasks in which threads of the coordinator's process are stuck.
    given_up: BTreeSet<TaskIndex>,
}

impl Page {
    /// Whether the task may begin if it is free.
    fn may_begin(&self, task: TaskIndex) -> bool {
        self.only.is_none_or(|only| only == task)
    }

    /// Whether the task goes alone, to a member that holds nothing else.
    fn goes_alone(&self, task: TaskIndex) -> bool {
        self.blame_of(task).len() >= POISON - 1
    }

    /// Free tasks that may begin.
    fn ready(&self) -> impl Iterator<Item = TaskIndex> {
        self.free.iter().copied().filter(|&task| self.may_begin(task))
    }

    /// Whether the member holds the replica of the task, or its process gave the replica's accepted answer.
    fn computed_replica(&self, member: MemberId, process: Process, task: TaskIndex) -> bool {
        self.made.replicas.get(&task).is_some_and(|replica| {
            let answered = self.answered_by.get(replica).is_some_and(|&(_, by)| by == process);
            answered || self.holders[replica.index()].contains(&member)
        })
    }

    fn blame_of(&self, task: TaskIndex) -> &[Blamed] {
        self.blame.get(&task).map_or(&[], |blame| &blame[..])
    }

    /// Rank of the member for a task that has failed before; the least is the best.
    fn rank(&self, id: MemberId, known: &Known, is_proven: bool, task: TaskIndex) -> u32 {
        let Identity { process, machine } = &known.identity;
        let blame = self.blame_of(task);
        let followed = |blamed: &Blamed| blamed.identity.machine == *machine && blamed.at <= known.joined;
        match () {
            () if blame.iter().any(|blamed| blamed.identity.process == *process) => 3,
            () if !is_proven && blame.iter().any(followed) => 2,
            () => u32::from(self.computed_replica(id, *process, task)),
        }
    }

    fn drop_holder(&mut self, member: MemberId, task: TaskIndex) {
        let holders = &mut self.holders[task.index()];
        holders.remove(&member);
        if holders.is_empty() && !self.answered_by.contains_key(&task) {
            self.free.insert(task);
        }
    }
}

/// A holder that failed a task.
struct Blamed {
    at: Duration,
    identity: Identity,
    is_proven: bool,
}

/// A lease of a member.
struct Held {
    since: Duration,
    account: AccountId,
    alone: bool,
}

/// State of a member as the coordinator should know it.
struct Known {
    identity: Identity,
    joined: Duration,
    slots: u32,
    watched: bool,
    /// Time at which its last message reached the coordinator.
    heard: Duration,
    held: BTreeMap<LeaseId, Held>,
}

/// Kinds of accepted answers.
pub(super) enum Accepted {
    /// The answer to a task without an answered replica.
    Task,
    /// The answer to a task whose replica was answered before; whether by another member.
    Pair { by_two: bool },
}

pub(super) struct Invariants {
    timeouts: Timeouts,
    known: BTreeMap<MemberId, Known>,
    /// Process of every member, past or present.
    processes: BTreeMap<MemberId, Process>,
    /// Processes with an accepted answer.
    proven: BTreeSet<Process>,
    /// Open batches.
    batches: BTreeMap<BatchId, Page>,
    /// Whether enough members have been present at the same time.
    assembled: bool,
    /// Whether the coordinator was ever stopped, so that its clock is behind.
    paused: bool,
}

impl Invariants {
    pub fn new(timeouts: Timeouts) -> Invariants {
        Invariants {
            timeouts,
            known: BTreeMap::new(),
            processes: BTreeMap::new(),
            proven: BTreeSet::new(),
            batches: BTreeMap::new(),
            assembled: false,
            paused: false,
        }
    }

    /// Records a submitted batch.
    pub fn open(&mut self, batch: BatchId, account: Account, made: Made) {
        let n_tasks = made.needs.len();
        let page = Page {
            account,
            made,
            only: None,
            answered_by: BTreeMap::new(),
            given: BTreeMap::new(),
            first_open: TaskIndex(0),
            holders: vec![BTreeSet::new(); n_tasks],
            free: (0..n_tasks as u32).map(TaskIndex).collect(),
            blame: BTreeMap::new(),
            given_up: BTreeSet::new(),
        };
        self.batches.insert(batch, page);
    }

    /// Records that a new scheduler without members replaces the old one.
    pub fn begin_anew(&mut self) {
        self.known.clear();
        self.processes.clear();
        self.proven.clear();
        self.batches.clear();
        self.assembled = false;
    }

    /// Records that the coordinator was stopped for `time` and received nothing.
    pub fn pause(&mut self, now: Duration, pause: Duration) {
        self.paused = true;
        for member in self.known.values_mut() {
            member.heard = now;
            member.held.values_mut().for_each(|held| held.since += pause);
        }
    }

    /// Present members.
    pub fn members(&self) -> impl ExactSizeIterator<Item = MemberId> {
        self.known.keys().copied()
    }

    /// Whether the member is present.
    pub fn knows(&self, member: MemberId) -> bool {
        self.known.contains_key(&member)
    }

    /// Open batches.
    pub fn batches(&self) -> impl Iterator<Item = BatchId> {
        self.batches.keys().copied()
    }

    /// Content of an open batch.
    pub fn made(&self, batch: BatchId) -> Option<&Made> {
        self.batches.get(&batch).map(|page| &page.made)
    }

    /// First task without an answer of an open batch, and whether the backlog of answers is full.
    pub fn first_open(&self, batch: BatchId) -> Option<(TaskIndex, bool)> {
        self.batches.get(&batch).map(|page| (page.first_open, page.only.is_some()))
    }

    /// First lease of another process, from `start` on.
    pub fn held_by_others(&self, process: Process, start: usize) -> Option<LeaseId> {
        let others = self.known.values().filter(|known| known.identity.process != process);
        let held: Vec<LeaseId> = others.flat_map(|known| known.held.keys().copied()).collect();
        held.get(start.checked_rem(held.len())?).copied()
    }

    /// Whether there is a task for that process when it joins, and other members are present.
    pub fn is_in_work(&self, process: Process) -> bool {
        let has_room = |page: &Page| {
            let most = page.account.max_members.unwrap_or(usize::MAX);
            self.n_holders(page.account.id) < most.max(1)
        };
        let is_for_all = |page: &Page, task: TaskIndex| {
            let replica = page.made.replicas.get(&task).and_then(|replica| page.answered_by.get(replica));
            page.blame_of(task).is_empty() && replica.is_none_or(|&(_, by)| by != process)
        };
        let has_task = |page: &Page| page.ready().any(|task| is_for_all(page, task));
        self.assembled && self.batches.values().any(|page| has_task(page) && has_room(page))
    }

    /// Records an event; returns the member that it concerns.
    pub fn enter(&mut self, now: Duration, event: &Event) -> Option<MemberId> {
        match event {
            Event::MemberJoined { member, identity, slots, watched, .. } => {
                let (identity, slots, watched, held) = (identity.clone(), *slots, *watched, BTreeMap::new());
                self.processes.insert(*member, identity.process);
                let known = Known { identity, joined: now, slots, watched, heard: now, held };
                self.known.insert(*member, known);
                self.assembled |= self.known.len() >= self.timeouts.min_members;
                return Some(*member);
            }
            Event::MemberLost { member, cause } => {
                self.lose(now, *member, cause);
                return Some(*member);
            }
            Event::Answered { member, lease, .. }
            | Event::Failed { member, lease, .. }
            | Event::Withdrawn { member, lease } => {
                let held = self.release(*member, *lease);
                if matches!(event, Event::Failed { .. }) && held {
                    self.blame(now, *member, *lease);
                }
                self.hear(now, *member);
                return Some(*member);
            }
            Event::Heard { member } | Event::MemberDraining { member } => {
                self.hear(now, *member);
                return Some(*member);
            }
            Event::Backlog { batch, only } => {
                if let Some(page) = self.batches.get_mut(batch) {
                    page.only = *only;
                }
            }
            Event::BatchCancelled { batch } => {
                self.batches.remove(batch);
            }
            Event::Tick => self.give_up_threads(now),
            Event::BatchSubmitted { .. } | Event::AccountClosed { .. } => {}
        }
        None
    }

    fn hear(&mut self, now: Duration, member: MemberId) {
        if let Some(known) = self.known.get_mut(&member) {
            known.heard = now;
        }
    }

    /// Removes the slots of threads of the coordinator's process that are stuck for too long.
    fn give_up_threads(&mut self, now: Duration) {
        let deadline = self.timeouts.lease_deadline;
        let threads = self.known.iter_mut().filter(|(_, known)| !known.watched);
        let mut stuck = Vec::new();
        for (&id, known) in threads {
            let overdue = known.held.iter().filter(|(_, held)| now >= held.since + deadline);
            let overdue: Vec<LeaseId> = overdue.map(|(&lease, _)| lease).take(known.slots as usize).collect();
            known.slots -= overdue.len() as u32;
            stuck.extend(overdue.into_iter().map(|lease| (id, lease)));
        }
        for (id, lease) in stuck {
            self.release(id, lease);
            if let Some(page) = self.batches.get_mut(&lease.batch) {
                page.given_up.extend([lease.task, page.made.replica_or_itself(lease.task)]);
            }
        }
    }

    /// Removes the lease from the member; returns whether it held it.
    fn release(&mut self, member: MemberId, lease: LeaseId) -> bool {
        let Some(known) = self.known.get_mut(&member) else { return false };
        let held = known.held.remove(&lease).is_some();
        if let Some(page) = self.batches.get_mut(&lease.batch).filter(|_| held) {
            page.drop_holder(member, lease.task);
        }
        held
    }

    /// Records that the holder of the lease reported a failure.
    fn blame(&mut self, at: Duration, member: MemberId, lease: LeaseId) {
        let Some(known) = self.known.get(&member) else { return };
        let (identity, is_proven) = (known.identity.clone(), self.is_proven(known));
        let page = self.batches.get_mut(&lease.batch);
        if let Some(page) = page.filter(|page| !page.answered_by.contains_key(&lease.task)) {
            page.blame.entry(lease.task).or_default().push(Blamed { at, identity, is_proven });
        }
    }

    fn is_proven(&self, known: &Known) -> bool {
        !known.watched || self.proven.contains(&known.identity.process)
    }

    /// Records that the member is gone.
    fn lose(&mut self, at: Duration, member: MemberId, cause: &Cause) {
        let Some(known) = self.known.remove(&member) else { return };
        let is_proven = self.is_proven(&known);
        for (lease, held) in known.held {
            let Some(page) = self.batches.get_mut(&lease.batch) else { continue };
            page.drop_holder(member, lease.task);
            if *cause != Cause::Left {
                let blame = page.blame.entry(lease.task).or_default();
                if held.alone || blame.len() < POISON - 1 {
                    blame.push(Blamed { at, identity: known.identity.clone(), is_proven });
                }
            }
        }
    }

    /// Checks that the coordinator had a reason to remove the member.
    pub fn forget(&mut self, now: Duration, member: MemberId, cause: &Cause) -> Result<(), Broken> {
        let known = self.known.get(&member).ok_or(format!("{member:?} is removed twice"))?;
        let since = match cause {
            Cause::Silent(_) => known.heard + self.timeouts.dead_after,
            Cause::NotHolder { lease } => {
                let given = self.batches.get(&lease.batch).and_then(|page| page.given.get(lease));
                if given == Some(&known.identity.process) {
                    return Err(format!("{member:?} is removed for {lease}, which was given to it").into());
                }
                now
            }
            // The leases of threads are given up already.
            Cause::Overdue { .. } if !known.watched => now,
            Cause::Overdue { .. } => {
                let oldest = known.held.values().map(|held| held.since).min();
                oldest.ok_or("a member without a lease is overdue")? + self.timeouts.lease_deadline
            }
            other => return Err(format!("{member:?} is forgotten, for it {other}").into()),
        };
        if now < since && !self.paused {
            return Err(format!("{member:?} is removed too early: {cause}").into());
        }
        self.lose(now, member, cause);
        Ok(())
    }

    /// Checks and records an assignment.
    pub fn assign(
        &mut self,
        now: Duration,
        member: MemberId,
        lease: LeaseId,
        scheduler: &Scheduler,
    ) -> Result<(), Broken> {
        let is_only = !self.has_other_healthy(member, scheduler);
        let page = self.batches.get(&lease.batch).ok_or(format!("{lease} is of no open batch"))?;
        let (account, alone) = (page.account, page.goes_alone(lease.task));
        let known =
            self.known.get(&member).ok_or(format!("{lease} was assigned to {member:?}, which is gone"))?;
        let process = known.identity.process;
        if !page.blame_of(lease.task).is_empty() {
            if !self.ranks_best(member, page, lease.task, scheduler) {
                return Err(format!("{member:?} is assigned {lease}, but another member ranks better").into());
            }
        } else if page.computed_replica(member, process, lease.task)
            && !is_only
            && account.max_members != Some(1)
        {
            return Err(format!("{member:?} is assigned {lease}, but holds or answered its replica").into());
        }
        if page.free.contains(&lease.task) && !page.may_begin(lease.task) {
            return Err(format!("{lease} begins while the backlog of answers is full").into());
        }
        if !self.admits(account, member) {
            return Err(format!("{lease} exceeds the number of members of its account").into());
        }
        let known = self.known.get_mut(&member);
        let known = known.ok_or(format!("{lease} was assigned to {member:?}, which is gone"))?;
        if known.held.values().any(|held| held.alone) || alone && !known.held.is_empty() {
            return Err(
                format!("{lease} does not go alone as it should, or is beside a lease that does").into()
            );
        }
        known.held.insert(lease, Held { since: now, account: account.id, alone });
        if known.held.len() > max_leases(known.slots) {
            return Err(
                format!("{member:?} holds {} leases in {} slots", known.held.len(), known.slots).into()
            );
        }
        if let Some(page) = self.batches.get_mut(&lease.batch) {
            page.free.remove(&lease.task);
            page.holders[lease.task.index()].insert(member);
            page.given.insert(lease, process);
        }
        Ok(())
    }

    /// Checks and records an accepted answer.
    pub fn accept(&mut self, member: MemberId, lease: LeaseId) -> Result<Accepted, Broken> {
        let page = self.batches.get_mut(&lease.batch);
        let Some(page) = page.filter(|page| !page.answered_by.contains_key(&lease.task)) else {
            return Err(format!("{lease} was accepted twice, or late").into());
        };
        let process = self.processes.get(&member).copied();
        let Some(process) = process.filter(|process| page.given.get(&lease) == Some(process)) else {
            return Err(format!("{lease} was answered by {member:?}, but given to another member").into());
        };
        self.proven.insert(process);
        page.answered_by.insert(lease.task, (member, process));
        page.free.remove(&lease.task);
        while page.answered_by.contains_key(&page.first_open) {
            page.first_open.0 += 1;
        }
        let replica = page.made.replicas.get(&lease.task).and_then(|replica| page.answered_by.get(replica));
        Ok(replica.map_or(Accepted::Task, |&(_, auditor)| Accepted::Pair { by_two: auditor != process }))
    }

    /// Checks a discarded answer.
    pub fn discard(&self, lease: LeaseId) -> Result<(), Broken> {
        let is_open = |page: &Page| !page.answered_by.contains_key(&lease.task);
        match self.batches.get(&lease.batch).is_some_and(is_open) {
            true => Err(format!("{lease} was discarded, but its task had no answer").into()),
            false => Ok(()),
        }
    }

    /// Checks and records the end of a batch.
    pub fn end(&mut self, action: &Action, scheduler: &Scheduler) -> Result<(), Broken> {
        match action {
            Action::BatchDone { batch } => {
                let page = self.batches.remove(batch).ok_or("a batch that is not open is done")?;
                let all = page.answered_by.len() == page.made.needs.len();
                if all { Ok(()) } else { Err("a batch is done before all its tasks".into()) }
            }
            Action::Fail { batch, failure } => {
                let page = self.batches.remove(batch).ok_or("a batch that is not open fails")?;
                let is_hopeless = |task: &TaskIndex| {
                    let replicas = [*task, page.made.replica_or_itself(*task)];
                    replicas.into_iter().any(|task| self.is_hopeless(&page, task, scheduler))
                };
                let is_confirmed = match failure {
                    Failure::Poison { task, .. } => is_hopeless(task),
                    Failure::NoMembers { .. } => self.known.is_empty(),
                    Failure::Overdue { task, .. } => page.given_up.contains(task),
                    Failure::Task { task, .. }
                        if self.has_threads() && page.made.impossible == Some(*task) =>
                    {
                        true
                    }
                    Failure::Task { task, .. } => is_hopeless(task),
                };
                if is_confirmed {
                    Ok(())
                } else {
                    Err(format!("a batch failed without reason: {failure}").into())
                }
            }
            _ => Ok(()),
        }
    }

    /// Checks a member: the scheduler's view of it, its timeouts, and that it is not idle without need.
    pub fn check_member(&self, now: Duration, id: MemberId, scheduler: &Scheduler) -> Result<(), Broken> {
        let Known { watched, heard, held, .. } = &self.known[&id];
        let presence: Presence = scheduler.member(id).ok_or(format!("{id:?} is not known"))?;
        if presence.n_leases != held.len() {
            return Err(format!("{id:?} holds {} leases, known are {}", held.len(), presence.n_leases).into());
        }
        if *watched && now > *heard + self.timeouts.dead_after {
            return Err(format!("{id:?} is kept, silent since {heard:?}").into());
        }
        let deadline = self.timeouts.lease_deadline;
        if *watched && held.values().any(|held| now > held.since + deadline) {
            return Err(format!("{id:?} is kept with a lease older than {deadline:?}").into());
        }
        if !self.has_free_slot(id, scheduler) {
            return Ok(());
        }
        for (batch, page) in &self.batches {
            if let Some(task) = page.ready().find(|&task| self.may(id, page, task, scheduler)) {
                return Err(format!("{id:?} idles while {task:?} of {batch:?} is free").into());
            }
        }
        Ok(())
    }

    /// Checks that idle members have backups of the tasks that suspects alone hold.
    pub fn check_suspects(&self, scheduler: &Scheduler) -> Result<(), Broken> {
        let is_suspect = |id: MemberId| state(id, scheduler) == Some(MemberState::Suspect);
        let suspects = self.known.iter().filter(|(id, _)| is_suspect(**id));
        let held = suspects.flat_map(|(_, known)| known.held.keys());
        let waiting = held.filter_map(|lease| Some((self.batches.get(&lease.batch)?, lease.task)));
        let lone = |(page, task): &(&Page, TaskIndex)| {
            page.holders[task.index()].len() == 1 && !page.answered_by.contains_key(task)
        };
        let lone: Vec<(&Page, TaskIndex)> = waiting.filter(lone).collect();
        if lone.is_empty() {
            return Ok(());
        }
        for id in self.members().filter(|&id| self.has_free_slot(id, scheduler)) {
            let may = |(page, task): &&(&Page, TaskIndex)| self.may(id, page, *task, scheduler);
            if let Some((_, task)) = lone.iter().find(may) {
                return Err(format!("{id:?} is idle while suspects alone hold {task:?}").into());
            }
        }
        Ok(())
    }

    /// Checks that no more members are reserved than needed; returns their number.
    pub fn check_reserved(&self, scheduler: &Scheduler) -> Result<usize, Broken> {
        let is_reserved = |id: &MemberId| scheduler.member(*id).is_some_and(|presence| presence.is_reserved);
        let reserved = self.members().filter(is_reserved).count();
        let waits = |page: &&Page| page.ready().any(|task| page.goes_alone(task));
        match reserved <= self.batches.values().filter(waits).count() {
            true => Ok(reserved),
            false => Err(format!("{reserved} members are reserved without need").into()),
        }
    }

    fn has_free_slot(&self, id: MemberId, scheduler: &Scheduler) -> bool {
        let (Some(known), Some(presence)) = (self.known.get(&id), scheduler.member(id)) else {
            return false;
        };
        let limit = match known.slots as usize {
            _ if presence.on_probation => 1,
            slots if self.is_proven(known) || self.known.len() == 1 => slots,
            slots => slots.min(2),
        };
        let excused = presence.is_reserved || known.held.values().any(|held| held.alone);
        let is_healthy = presence.state == MemberState::Healthy;
        self.assembled && known.held.len() < limit && is_healthy && !excused
    }

    /// Whether the member, which has a free slot and does not hold the task, may be assigned it.
    fn may(&self, id: MemberId, page: &Page, task: TaskIndex, scheduler: &Scheduler) -> bool {
        let to_one = page.account.max_members == Some(1) || !self.has_other_healthy(id, scheduler);
        let alone = !page.goes_alone(task) || self.known[&id].held.is_empty();
        let suits = || match page.blame_of(task) {
            [] => to_one || !page.computed_replica(id, self.known[&id].identity.process, task),
            _ => self.ranks_best(id, page, task, scheduler),
        };
        alone && self.admits(page.account, id) && suits()
    }

    /// Ids and ranks of the members that may hold the task.
    fn ranks<'a>(
        &'a self,
        page: &'a Page,
        task: TaskIndex,
        scheduler: &'a Scheduler,
    ) -> impl Iterator<Item = (MemberId, u32)> + 'a {
        let stays = |&id: &MemberId| state(id, scheduler) != Some(MemberState::Draining);
        let may =
            move |&id: &MemberId| self.admits(page.account, id) && !page.holders[task.index()].contains(&id);
        self.members().filter(stays).filter(may).map(move |id| {
            let known = &self.known[&id];
            (id, page.rank(id, known, self.is_proven(known), task))
        })
    }

    /// Whether no other member ranks better for a task that has failed before.
    fn ranks_best(&self, id: MemberId, page: &Page, task: TaskIndex, scheduler: &Scheduler) -> bool {
        let known = &self.known[&id];
        let own = page.rank(id, known, self.is_proven(known), task);
        self.ranks(page, task, scheduler).all(|(_, other)| own <= other)
    }

    /// Whether enough different workers have failed the task, or it has failed often enough and all present members are involved.
    fn is_hopeless(&self, page: &Page, task: TaskIndex, scheduler: &Scheduler) -> bool {
        let blame = page.blame_of(task);
        let proven = blame.iter().filter(|blamed| blamed.is_proven).map(|blamed| blamed.identity.process);
        let strangers =
            blame.iter().filter(|blamed| !blamed.is_proven).map(|blamed| &blamed.identity.machine);
        let n_workers = proven.collect::<BTreeSet<_>>().len() + strangers.collect::<BTreeSet<_>>().len();
        let could_try = |(_, rank)| rank < 2;
        n_workers >= POISON || blame.len() >= POISON && !self.ranks(page, task, scheduler).any(could_try)
    }

    fn has_threads(&self) -> bool {
        self.known.values().any(|known| !known.watched)
    }

    /// Whether the member may hold leases of the account.
    fn admits(&self, account: Account, id: MemberId) -> bool {
        let holds = |known: &Known| known.held.values().any(|held| held.account == account.id);
        let Some(most) = account.max_members else { return true };
        self.known.get(&id).is_some_and(holds) || self.n_holders(account.id) < most
    }

    fn n_holders(&self, account: AccountId) -> usize {
        let holds = |known: &&Known| known.held.values().any(|held| held.account == account);
        self.known.values().filter(holds).count()
    }

    fn has_other_healthy(&self, member: MemberId, scheduler: &Scheduler) -> bool {
        let is_healthy = |id| state(id, scheduler) == Some(MemberState::Healthy);
        self.members().any(|other| other != member && is_healthy(other))
    }
}

fn state(member: MemberId, scheduler: &Scheduler) -> Option<MemberState> {
    scheduler.member(member).map(|presence| presence.state)
}
