//! The world's own invariants of who holds what, and the laws that hold by these invariants alone.
//!
//! In: every event before the scheduler hears it, every action that it answers. Out: the law that was broken, if one was. At every lease
//! and answer: an open task is accepted once, and from the process that its lease was given to, no answer to a batch that is over counts, no member holds more than its slots and one, nothing
//! but the first open task is begun while there is no room for answers, no member is assigned the replica of a task that it holds or answered while
//! another healthy member is there, a failed task is assigned to no worse member than another candidate, no account has more members than it may, and a task that is nearly poison goes alone. For each worker that is
//! asked about: no healthy member idles while a task of any batch that it may have is free, or is held by a suspect alone; nobody is kept
//! who was silent for `dead_after` or whose lease is as old as `lease_deadline`; as many are set aside as there are batches with a
//! task that waits to go alone, at most. A batch is done when all its tasks are, or fails for a reason of its own that the invariants confirm.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use shared::work::lease::{BatchId, LeaseId, TaskIndex};

use crate::MemberState;
use crate::{
    Account, AccountId, Action, Cause, Event, Failure, Identity, MemberId, Needs, POISON, Presence, Process,
    Scheduler, Timeouts,
};

/// What a batch is made of.
#[derive(Clone, Default)]
pub(super) struct Made {
    pub needs: Vec<Needs>,
    pub replicas: BTreeMap<TaskIndex, TaskIndex>,
    /// A task that nobody can compute.
    pub impossible: Option<TaskIndex>,
    /// A task that ends the process of whoever begins it.
    pub deadly: Option<TaskIndex>,
}

impl Made {
    /// The task itself, or the one whose replica it is.
    pub fn original(&self, task: TaskIndex) -> TaskIndex {
        task.min(self.twin_or_itself(task))
    }

    fn twin_or_itself(&self, task: TaskIndex) -> TaskIndex {
        *self.replicas.get(&task).unwrap_or(&task)
    }
}

/// An open batch.
struct Page {
    account: Account,
    made: Made,
    /// While there is no room for answers, the only task that may be begun, as the scheduler was told last.
    only: Option<TaskIndex>,
    answered_by: BTreeMap<TaskIndex, (MemberId, Process)>,
    /// The processes that leases were given to.
    given: BTreeMap<LeaseId, Process>,
    /// The first task without an answer.
    first_open: TaskIndex,
    /// Of each task.
    holders: Vec<BTreeSet<MemberId>>,
    /// Tasks without holder and answer.
    free: BTreeSet<TaskIndex>,
    blame: BTreeMap<TaskIndex, Vec<Blamed>>,
    /// Tasks in which threads of the coordinator's process are stuck.
    given_up: BTreeSet<TaskIndex>,
}

impl Page {
    /// Whether the task, if it is free, may be begun.
    fn may_begin(&self, task: TaskIndex) -> bool {
        self.only.is_none_or(|only| only == task)
    }

    /// Whether the task goes to a member that holds nothing else.
    fn goes_alone(&self, task: TaskIndex) -> bool {
        self.blame_of(task).len() >= POISON - 1
    }

    /// Free tasks that may be begun.
    fn ready(&self) -> impl Iterator<Item = TaskIndex> {
        self.free.iter().copied().filter(|&task| self.may_begin(task))
    }

    /// Whether the member holds the replica of the task, or its process gave the answer to it that counted.
    fn computed_replica(&self, member: MemberId, process: Process, task: TaskIndex) -> bool {
        self.made.replicas.get(&task).is_some_and(|replica| {
            let answered = self.answered_by.get(replica).is_some_and(|&(_, by)| by == process);
            answered || self.holders[replica.index()].contains(&member)
        })
    }

    fn blame_of(&self, task: TaskIndex) -> &[Blamed] {
        self.blame.get(&task).map_or(&[], |blame| &blame[..])
    }

    /// How badly the member suits the task, which was failed before.
    fn misfit(&self, id: MemberId, known: &Known, is_proven: bool, task: TaskIndex) -> u32 {
        let Identity { process, origin } = &known.identity;
        let blame = self.blame_of(task);
        let followed = |blamed: &Blamed| blamed.identity.origin == *origin && blamed.at <= known.joined;
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

/// A lease, as its holder has it.
struct Held {
    since: Duration,
    account: AccountId,
    alone: bool,
}

/// A member as the coordinator should know it.
struct Known {
    identity: Identity,
    joined: Duration,
    slots: u32,
    watched: bool,
    /// When the last of its messages reached the coordinator.
    heard: Duration,
    held: BTreeMap<LeaseId, Held>,
}

/// What an answer that counts means.
pub(super) enum Accepted {
    /// Nothing more.
    Task,
    /// Its replica was answered before: whether by another member.
    Pair { by_two: bool },
}

pub(super) struct Invariants {
    timeouts: Timeouts,
    known: BTreeMap<MemberId, Known>,
    /// Of all members that there ever were.
    processes: BTreeMap<MemberId, Process>,
    /// Those of which an answer counted.
    proven: BTreeSet<Process>,
    /// Those that are open.
    batches: BTreeMap<BatchId, Page>,
    /// Whether enough members were there once.
    assembled: bool,
    /// Whether the coordinator was ever stopped: its clock is behind then.
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

    /// A batch is submitted.
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

    /// Another scheduler, which knows of nobody, takes the place of the one before.
    pub fn begin_anew(&mut self) {
        self.known.clear();
        self.processes.clear();
        self.proven.clear();
        self.batches.clear();
        self.assembled = false;
    }

    /// The coordinator was stopped for so long, and heard nobody.
    pub fn pause(&mut self, now: Duration, pause: Duration) {
        self.paused = true;
        for member in self.known.values_mut() {
            member.heard = now;
            member.held.values_mut().for_each(|held| held.since += pause);
        }
    }

    /// Members that are there.
    pub fn members(&self) -> impl ExactSizeIterator<Item = MemberId> {
        self.known.keys().copied()
    }

    /// Whether that one is.
    pub fn knows(&self, member: MemberId) -> bool {
        self.known.contains_key(&member)
    }

    /// Batches that are open.
    pub fn batches(&self) -> impl Iterator<Item = BatchId> {
        self.batches.keys().copied()
    }

    /// What an open batch is made of.
    pub fn made(&self, batch: BatchId) -> Option<&Made> {
        self.batches.get(&batch).map(|page| &page.made)
    }

    /// The first task without an answer of an open batch; whether the scheduler was told that there is no room for others.
    pub fn first_open(&self, batch: BatchId) -> Option<(TaskIndex, bool)> {
        self.batches.get(&batch).map(|page| (page.first_open, page.only.is_some()))
    }

    /// A lease that another process holds, the first from a `start` on.
    pub fn held_by_others(&self, process: Process, start: usize) -> Option<LeaseId> {
        let others = self.known.values().filter(|known| known.identity.process != process);
        let held: Vec<LeaseId> = others.flat_map(|known| known.held.keys().copied()).collect();
        held.get(start.checked_rem(held.len())?).copied()
    }

    /// Whether there is something to assign to that process when it comes, and others were there before.
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

    /// Enters what an event says; whom it concerns.
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
            Event::Answered { member, lease } | Event::Failed { member, lease, .. } => {
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

    /// Threads of the coordinator's process that are stuck for too long are not counted with any more.
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
                page.given_up.extend([lease.task, page.made.twin_or_itself(lease.task)]);
            }
        }
    }

    /// The member no longer holds the lease; whether it did.
    fn release(&mut self, member: MemberId, lease: LeaseId) -> bool {
        let Some(known) = self.known.get_mut(&member) else { return false };
        let held = known.held.remove(&lease).is_some();
        if let Some(page) = self.batches.get_mut(&lease.batch).filter(|_| held) {
            page.drop_holder(member, lease.task);
        }
        held
    }

    /// The member, which held the lease, says that its task cannot be computed.
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

    /// The member is gone.
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

    /// The coordinator gave up on the member: it should have had a reason.
    pub fn forget(&mut self, now: Duration, member: MemberId, cause: &Cause) -> Result<(), String> {
        let known = self.known.get(&member).ok_or(format!("{member:?} is forgotten twice"))?;
        let since = match cause {
            Cause::Silent(_) => known.heard + self.timeouts.dead_after,
            Cause::NotHolder { lease } => {
                let given = self.batches.get(&lease.batch).and_then(|page| page.given.get(lease));
                if given == Some(&known.identity.process) {
                    return Err(format!("{member:?} is forgotten for {lease}, which was given to it"));
                }
                now
            }
            // The leases of threads were given up before.
            Cause::Overdue { .. } if !known.watched => now,
            Cause::Overdue { .. } => {
                let oldest = known.held.values().map(|held| held.since).min();
                oldest.ok_or("one without a lease is overdue")? + self.timeouts.lease_deadline
            }
            other => return Err(format!("{member:?} is forgotten, for it {other}")),
        };
        if now < since && !self.paused {
            return Err(format!("{member:?} is forgotten before its time, for it is {cause}"));
        }
        self.lose(now, member, cause);
        Ok(())
    }

    /// The member is assigned a task.
    pub fn assign(
        &mut self,
        now: Duration,
        member: MemberId,
        lease: LeaseId,
        scheduler: &Scheduler,
    ) -> Result<(), String> {
        let is_only = !self.has_other_healthy(member, scheduler);
        let page = self.batches.get(&lease.batch).ok_or(format!("{lease} is assigned of no open batch"))?;
        let (account, alone) = (page.account, page.goes_alone(lease.task));
        let known =
            self.known.get(&member).ok_or(format!("{lease} was assigned to {member:?}, who is gone"))?;
        let process = known.identity.process;
        if !page.blame_of(lease.task).is_empty() {
            if !self.suits_best(member, page, lease.task, scheduler) {
                return Err(format!("{member:?} is assigned {lease}, and another one is a better choice"));
            }
        } else if page.computed_replica(member, process, lease.task)
            && !is_only
            && account.max_members != Some(1)
        {
            return Err(format!("{member:?} is assigned {lease}, and had to do with its replica"));
        }
        if page.free.contains(&lease.task) && !page.may_begin(lease.task) {
            return Err(format!("{lease} is begun while there is no room for its answer"));
        }
        if !self.admits(account, member) {
            return Err(format!("{lease} is assigned to one member too many"));
        }
        let known = self.known.get_mut(&member);
        let known = known.ok_or(format!("{lease} was assigned to {member:?}, who is gone"))?;
        if known.held.values().any(|held| held.alone) || alone && !known.held.is_empty() {
            return Err(format!("{lease} does not go alone, or beside one that does"));
        }
        known.held.insert(lease, Held { since: now, account: account.id, alone });
        if known.held.len() > known.slots as usize + 1 {
            return Err(format!("{member:?} holds {} leases in {} slots", known.held.len(), known.slots));
        }
        if let Some(page) = self.batches.get_mut(&lease.batch) {
            page.free.remove(&lease.task);
            page.holders[lease.task.index()].insert(member);
            page.given.insert(lease, process);
        }
        Ok(())
    }

    /// An answer counts.
    pub fn accept(&mut self, member: MemberId, lease: LeaseId) -> Result<Accepted, String> {
        let page = self.batches.get_mut(&lease.batch);
        let Some(page) = page.filter(|page| !page.answered_by.contains_key(&lease.task)) else {
            return Err(format!("{lease} was accepted twice, or late"));
        };
        let process = self.processes.get(&member).copied();
        let Some(process) = process.filter(|process| page.given.get(&lease) == Some(process)) else {
            return Err(format!("{lease} was answered by {member:?}, and given to another one"));
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

    /// An answer does not count.
    pub fn discard(&self, lease: LeaseId) -> Result<(), String> {
        let is_open = |page: &Page| !page.answered_by.contains_key(&lease.task);
        match self.batches.get(&lease.batch).is_some_and(is_open) {
            true => Err(format!("{lease} was discarded, and had no answer")),
            false => Ok(()),
        }
    }

    /// A batch is over.
    pub fn end(&mut self, action: &Action, scheduler: &Scheduler) -> Result<(), String> {
        match action {
            Action::BatchDone { batch } => {
                let page = self.batches.remove(batch).ok_or("one that is not open is done")?;
                let all = page.answered_by.len() == page.made.needs.len();
                if all { Ok(()) } else { Err("done before all tasks were".into()) }
            }
            Action::Fail { batch, failure } => {
                let page = self.batches.remove(batch).ok_or("one that is not open fails")?;
                let is_hopeless = |task: &TaskIndex| {
                    let replicas = [*task, page.made.twin_or_itself(*task)];
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
                if is_confirmed { Ok(()) } else { Err(format!("failed for no reason: {failure}")) }
            }
            _ => Ok(()),
        }
    }

    /// Whether the scheduler knows what the invariants say, the member is not kept for too long, and does not idle.
    pub fn check_member(&self, now: Duration, id: MemberId, scheduler: &Scheduler) -> Result<(), String> {
        let Known { watched, heard, held, .. } = &self.known[&id];
        let presence: Presence = scheduler.member(id).ok_or(format!("{id:?} is not known"))?;
        if presence.n_leases != held.len() {
            return Err(format!("{id:?} holds {} leases, known are {}", held.len(), presence.n_leases));
        }
        if *watched && now > *heard + self.timeouts.dead_after {
            return Err(format!("{id:?} is kept, silent since {heard:?}"));
        }
        let deadline = self.timeouts.lease_deadline;
        if *watched && held.values().any(|held| now > held.since + deadline) {
            return Err(format!("{id:?} is kept with a lease older than {deadline:?}"));
        }
        if !self.has_free_slot(id, scheduler) {
            return Ok(());
        }
        for (batch, page) in &self.batches {
            if let Some(task) = page.ready().find(|&task| self.may(id, page, task, scheduler)) {
                return Err(format!("{id:?} idles while {task:?} of {batch:?} is free"));
            }
        }
        Ok(())
    }

    /// Whether those who idle have what suspects alone hold.
    pub fn check_suspects(&self, scheduler: &Scheduler) -> Result<(), String> {
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
                return Err(format!("{id:?} idles while a suspect alone holds {task:?}"));
            }
        }
        Ok(())
    }

    /// Whether no more members are set aside than are needed; how many are.
    pub fn check_aside(&self, scheduler: &Scheduler) -> Result<usize, String> {
        let is_aside = |id: &MemberId| scheduler.member(*id).is_some_and(|presence| presence.is_aside);
        let aside = self.members().filter(is_aside).count();
        let waits = |page: &&Page| page.ready().any(|task| page.goes_alone(task));
        match aside <= self.batches.values().filter(waits).count() {
            true => Ok(aside),
            false => Err(format!("{aside} members are set aside, and idle for nothing")),
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
        let excused = presence.is_aside || known.held.values().any(|held| held.alone);
        let is_healthy = presence.state == MemberState::Healthy;
        self.assembled && known.held.len() < limit && is_healthy && !excused
    }

    /// Whether the member, which has a free slot, may be assigned the task, which it does not hold.
    fn may(&self, id: MemberId, page: &Page, task: TaskIndex, scheduler: &Scheduler) -> bool {
        let to_one = page.account.max_members == Some(1) || !self.has_other_healthy(id, scheduler);
        let alone = !page.goes_alone(task) || self.known[&id].held.is_empty();
        let suits = || match page.blame_of(task) {
            [] => to_one || !page.computed_replica(id, self.known[&id].identity.process, task),
            _ => self.suits_best(id, page, task, scheduler),
        };
        alone && self.admits(page.account, id) && suits()
    }

    /// How badly those that stay and may hold the task suit it, each with its id.
    fn misfits<'a>(
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
            (id, page.misfit(id, known, self.is_proven(known), task))
        })
    }

    /// Whether no other member suits the task, which was failed before, better.
    fn suits_best(&self, id: MemberId, page: &Page, task: TaskIndex, scheduler: &Scheduler) -> bool {
        let known = &self.known[&id];
        let own = page.misfit(id, known, self.is_proven(known), task);
        self.misfits(page, task, scheduler).all(|(_, other)| own <= other)
    }

    /// Whether enough different workers failed the task, or it failed often enough and those that are left all had to do with it.
    fn is_hopeless(&self, page: &Page, task: TaskIndex, scheduler: &Scheduler) -> bool {
        let blame = page.blame_of(task);
        let proven = blame.iter().filter(|blamed| blamed.is_proven).map(|blamed| blamed.identity.process);
        let strangers = blame.iter().filter(|blamed| !blamed.is_proven).map(|blamed| &blamed.identity.origin);
        let n_workers = proven.collect::<BTreeSet<_>>().len() + strangers.collect::<BTreeSet<_>>().len();
        let could_try = |(_, misfit)| misfit < 2;
        n_workers >= POISON || blame.len() >= POISON && !self.misfits(page, task, scheduler).any(could_try)
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
