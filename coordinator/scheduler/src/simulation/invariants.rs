//! Independent model of members, leases and tasks, and the laws that the scheduler is checked against.
//!
//! In: every event before the scheduler handles it, and every action that it returns. Out: the law that is violated, if one is.
//!
//! At every lease and answer:
//! - An open task is accepted once, from the process that its lease was given to; no answer to a batch that has ended is accepted.
//! - No member holds more leases than its slots allow, and no account has more members than its maximum.
//! - While the backlog of answers is full, only the first open task begins.
//! - A task and its replica go to different machines while there are several, and to different processes while there are several.
//! - An answer of a worker that claims something has a replica if another worker could confirm it.
//! - Workers are named to be judged if and only if three of their reports in a row were refuted, or a task is given up that they reported.
//! - A failed task is assigned to a best candidate, and a task that is one failure short of poison goes alone.
//! - A task has at most [`MOST_ATTEMPTS`] attempts.
//!
//! After every event:
//! - A lease is withdrawn if and only if its batch has ended, its task is answered, it is overdue, or a reconnected process need not go on with it.
//! - A lease that an honest worker computes, or has an answer to, occupies a slot of its member.
//! - A process has one member at a time.
//!
//! For each member that is checked:
//! - No healthy member is idle while a task that it may have is free, or is held by suspects alone.
//! - No member stays that was silent for `dead_after`, computes a lease for `lease_deadline`, or does not confirm one for `stop_grace`.
//! - At most one member is reserved for each batch with a task that waits to go alone.
//!
//! A batch is done when all its tasks are, or fails for a reason that the model confirms. A batch whose tasks are sound fails only if three
//! machines failed a task, or every worker that is present is involved. The failure that ends it is never that of another task.

mod members;
mod model;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use grammaton::work::lease::{BatchId, LeaseId, TaskIndex, max_leases};

pub(super) use self::model::{Accepted, Made};
use self::model::{Blamed, Held, How, Known, Page};
use crate::{
    Account, Action, Broken, Cause, Event, Failure, Identity, MOST_ATTEMPTS, MemberId, MemberState, POISON,
    Process, Reporter, Scheduler, Timeouts,
};

pub(super) struct Invariants {
    timeouts: Timeouts,
    known: BTreeMap<MemberId, Known>,
    /// Worker of every member, past or present.
    workers: BTreeMap<MemberId, Identity>,
    /// The member that joins in this event, and the earlier one of its process.
    joining: Option<(MemberId, Option<MemberId>)>,
    /// Leases of earlier connections that this member holds again.
    adopted: Vec<LeaseId>,
    /// Whether the answer of this event claims something.
    claims: bool,
    /// Processes with an accepted answer.
    proven: BTreeSet<Process>,
    /// What became of the tasks that workers reported or answered, in the order of the answers; whether the worker was refuted.
    verdicts: Vec<(Identity, bool)>,
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
            workers: BTreeMap::new(),
            joining: None,
            adopted: Vec::new(),
            claims: false,
            proven: BTreeSet::new(),
            verdicts: Vec::new(),
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
            holders: vec![BTreeMap::new(); n_tasks],
            free: (0..n_tasks as u32).map(TaskIndex).collect(),
            blame: BTreeMap::new(),
        };
        self.batches.insert(batch, page);
    }

    /// Records that a new scheduler without members replaces the old one.
    pub fn begin_anew(&mut self) {
        self.known.clear();
        self.workers.clear();
        self.proven.clear();
        self.verdicts.clear();
        self.batches.clear();
        self.assembled = false;
    }

    /// Records that the coordinator was stopped for `time` and received nothing.
    pub fn pause(&mut self, now: Duration, pause: Duration) {
        self.paused = true;
        for member in self.known.values_mut() {
            member.heard = now;
            for held in member.held.values_mut() {
                held.since += pause;
                (held.begun, held.withdrawn) =
                    (held.begun.map(|at| at + pause), held.withdrawn.map(|at| at + pause));
            }
        }
    }

    /// Leases of a present member.
    pub fn held_by(&self, member: MemberId) -> Option<BTreeSet<LeaseId>> {
        Some(self.known.get(&member)?.held.keys().copied().collect())
    }

    /// Whether the coordinator was ever stopped.
    pub fn is_paused(&self) -> bool {
        self.paused
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

    /// Whether there is a task for that worker when it joins, and other members are present.
    pub fn is_in_work(&self, worker: &Identity) -> bool {
        let has_room = |page: &Page| {
            let most = page.account.max_members.unwrap_or(usize::MAX);
            self.n_holders(page.account.id) < most.max(1)
        };
        let is_for_all =
            |page: &Page, task: TaskIndex| page.blame_of(task).is_empty() && page.kinship(worker, task) == 0;
        let has_task = |page: &Page| page.ready().any(|task| is_for_all(page, task));
        self.assembled && self.batches.values().any(|page| has_task(page) && has_room(page))
    }

    /// Records an event; returns the member that it concerns.
    pub fn enter(&mut self, now: Duration, event: &Event) -> Option<MemberId> {
        (self.joining, self.claims) = (None, false);
        self.adopted.clear();
        match event {
            Event::MemberJoined { member, identity, slots, watched, running, .. } => {
                let mut others =
                    self.known.iter().filter(|(_, known)| known.identity.process == identity.process);
                let earlier = others.next().map(|(&id, _)| id);
                self.joining = Some((*member, earlier));
                if let Some(earlier) = earlier {
                    self.lose(now, earlier, running);
                }
                let (identity, slots, watched, held) = (identity.clone(), *slots, *watched, BTreeMap::new());
                self.workers.insert(*member, identity.clone());
                let known = Known { identity, joined: now, slots, watched, heard: now, held };
                self.known.insert(*member, known);
                self.assembled |= self.known.len() >= self.timeouts.min_members;
                running.iter().take(max_leases(slots)).for_each(|&lease| self.adopt(now, *member, lease));
                return Some(*member);
            }
            Event::MemberLost { member, .. } => {
                self.lose(now, *member, &[]);
                return Some(*member);
            }
            Event::Answered { member, lease, .. }
            | Event::Failed { member, lease, .. }
            | Event::Withdrawn { member, lease } => {
                self.claims = matches!(event, Event::Answered { claims: true, .. });
                let held = self.release(now, *member, *lease);
                if !matches!(event, Event::Answered { .. })
                    && let Some(held) = held.filter(|held| held.withdrawn.is_none())
                {
                    let how = match event {
                        Event::Failed { lacks_memory: true, .. } => How::LacksMemory,
                        _ => How::Reported,
                    };
                    self.blame(now, *member, *lease, &held, how);
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

    /// Removes the slots of threads of the coordinator's process that do not stop.
    fn give_up_threads(&mut self, now: Duration) {
        let grace = self.timeouts.stop_grace;
        let mut stuck = Vec::new();
        for (&id, known) in self.known.iter_mut().filter(|(_, known)| !known.watched) {
            let is_stuck = |held: &Held| held.withdrawn.is_some_and(|withdrawn| now >= withdrawn + grace);
            let leases = known.held.iter().filter(|(_, held)| is_stuck(held)).map(|(&lease, _)| lease);
            let leases: Vec<LeaseId> = leases.take(known.slots as usize).collect();
            known.slots -= leases.len() as u32;
            stuck.extend(leases.into_iter().map(|lease| (id, lease)));
        }
        for (id, lease) in stuck {
            self.release(now, id, lease);
        }
    }

    /// Adds a lease that the worker of a new member was given earlier.
    fn adopt(&mut self, now: Duration, member: MemberId, lease: LeaseId) {
        let admits = self.batches.get(&lease.batch).is_some_and(|page| self.admits(page.account, member));
        let Some(known) = self.known.get_mut(&member).filter(|known| !known.held.contains_key(&lease)) else {
            return;
        };
        let mut held = Held { since: now, begun: None, account: None, alone: false, withdrawn: None };
        if let Some(page) = self.batches.get_mut(&lease.batch) {
            let given = page.given.get(&lease).filter(|(worker, _)| worker.process == known.identity.process);
            let Some(&(_, at)) = given else { return };
            let is_open = !page.answered_by.contains_key(&lease.task);
            let is_young = now < at + self.timeouts.lease_deadline;
            let holders = &mut page.holders[lease.task.index()];
            if is_open && is_young && admits && !holders.contains_key(&member) {
                (held.since, held.account) = (at, Some(page.account.id));
                holders.insert(member, known.identity.clone());
                page.free.remove(&lease.task);
            }
        }
        known.held.insert(lease, held);
        self.adopted.push(lease);
    }

    /// Records which of the adopted leases of a new member a thread computes.
    pub fn begin_adopted(&mut self, member: MemberId, on_probation: bool) {
        let limit = self.limit(member, on_probation);
        let Some(known) = self.known.get_mut(&member) else { return };
        for lease in self.adopted.drain(..).take(limit) {
            known.held.entry(lease).and_modify(|held| held.begun = Some(held.since));
        }
    }

    /// Removes the lease from the member; returns it if it held it.
    fn release(&mut self, now: Duration, member: MemberId, lease: LeaseId) -> Option<Held> {
        let known = self.known.get_mut(&member)?;
        let held = known.held.remove(&lease)?;
        if let Some(next) =
            known.held.values_mut().find(|held| held.begun.is_none()).filter(|_| held.begun.is_some())
        {
            next.begun = Some(now);
        }
        if let Some(page) = self.batches.get_mut(&lease.batch).filter(|_| held.withdrawn.is_none()) {
            page.drop_holder(member, lease.task);
        }
        Some(held)
    }

    /// Records that the holder of the lease failed its task.
    fn blame(&mut self, at: Duration, member: MemberId, lease: LeaseId, held: &Held, how: How) {
        let Some(known) = self.known.get(&member) else { return };
        let identity = known.identity.clone();
        let page = self.batches.get_mut(&lease.batch).filter(|_| held.withdrawn.is_none());
        if let Some(page) = page.filter(|page| !page.answered_by.contains_key(&lease.task)) {
            let blamed = Blamed { at, identity, how, is_doubtful: false };
            page.blame.entry(lease.task).or_default().push(blamed);
        }
    }

    /// Checks and records that a lease is withdrawn.
    pub fn withdraw(&mut self, now: Duration, member: MemberId, lease: LeaseId) -> Result<(), Broken> {
        let Some(held) = self.known.get_mut(&member).and_then(|known| known.held.get_mut(&lease)) else {
            return Err(format!("{lease} is withdrawn from {member:?}, which does not hold it").into());
        };
        let before = held.clone();
        if held.withdrawn.replace(now).is_some() {
            return Err(format!("{lease} is withdrawn twice").into());
        }
        let is_void = before.account.is_none() && self.joining.is_some_and(|(joining, _)| joining == member);
        let Some(page) = self.batches.get_mut(&lease.batch) else { return Ok(()) };
        if is_void || page.answered_by.contains_key(&lease.task) {
            return Ok(());
        }
        if !self.paused && before.begun.is_none_or(|begun| now < begun + self.timeouts.lease_deadline) {
            return Err(format!("{lease} is withdrawn without reason").into());
        }
        page.drop_holder(member, lease.task);
        self.blame(now, member, lease, &before, How::Lost);
        Ok(())
    }

    /// Checks that each lease is withdrawn whose answer is not needed.
    pub fn check_withdrawn(&self) -> Result<(), Broken> {
        for (id, known) in &self.known {
            for (lease, held) in known.held.iter().filter(|(_, held)| held.withdrawn.is_none()) {
                let is_open = |page: &Page| !page.answered_by.contains_key(&lease.task);
                if held.account.is_none() || !self.batches.get(&lease.batch).is_some_and(is_open) {
                    return Err(format!("{id:?} still computes {lease}, which is not needed").into());
                }
            }
        }
        Ok(())
    }

    fn is_proven(&self, known: &Known) -> bool {
        !known.watched || self.proven.contains(&known.identity.process)
    }

    /// Records that the member is gone; its process still computes the `running` leases if it has connected again.
    fn lose(&mut self, at: Duration, member: MemberId, running: &[LeaseId]) {
        let Some(known) = self.known.remove(&member) else { return };
        let n_held = known.held.len();
        for (lease, held) in known.held {
            let Some(page) = self.batches.get_mut(&lease.batch).filter(|_| held.withdrawn.is_none()) else {
                continue;
            };
            page.drop_holder(member, lease.task);
            let is_young = at < held.since + self.timeouts.lease_deadline;
            let goes_on = running.contains(&lease) && is_young && !held.alone;
            let blame = page.blame.entry(lease.task).or_default();
            if !goes_on && (held.alone || blame.len() < POISON - 1) {
                let (identity, is_doubtful) = (known.identity.clone(), n_held > 1);
                blame.push(Blamed { at, identity, how: How::Lost, is_doubtful });
            }
        }
    }

    /// Checks that the coordinator had a reason to remove the member.
    pub fn forget(&mut self, now: Duration, member: MemberId, cause: &Cause) -> Result<(), Broken> {
        if self.joining.is_some_and(|(_, earlier)| earlier == Some(member)) {
            return Ok(());
        }
        let known = self.known.get(&member).ok_or(format!("{member:?} is removed twice"))?;
        let since = match cause {
            Cause::Silent(_) => known.heard + self.timeouts.dead_after,
            Cause::NotHolder { lease } => {
                let given = self.batches.get(&lease.batch).and_then(|page| page.given.get(lease));
                if given.is_some_and(|(worker, _)| worker.process == known.identity.process) {
                    return Err(format!("{member:?} is removed for {lease}, which was given to it").into());
                }
                now
            }
            // The leases of threads are given up already.
            Cause::Stuck { .. } if !known.watched => now,
            Cause::Stuck { .. } => {
                let first = known.held.values().filter_map(|held| held.withdrawn).min();
                first.ok_or("a member without a withdrawn lease is stuck")? + self.timeouts.stop_grace
            }
            other => return Err(format!("{member:?} is forgotten, for it {other}").into()),
        };
        if now < since && !self.paused {
            return Err(format!("{member:?} is removed too early: {cause}").into());
        }
        self.lose(now, member, &[]);
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
        let limit =
            self.limit(member, scheduler.member(member).is_some_and(|presence| presence.on_probation));
        let page = self.batches.get(&lease.batch).ok_or(format!("{lease} is of no open batch"))?;
        let (account, alone) = (page.account, page.goes_alone(lease.task));
        let known =
            self.known.get(&member).ok_or(format!("{lease} was assigned to {member:?}, which is gone"))?;
        let worker = known.identity.clone();
        if lease.attempt.0 as usize >= MOST_ATTEMPTS {
            return Err(format!("{lease} is one attempt too many").into());
        }
        if !page.blame_of(lease.task).is_empty() {
            if !self.ranks_best(member, page, lease.task, scheduler) {
                return Err(format!("{member:?} is assigned {lease}, but another member ranks better").into());
            }
        } else if !self.is_kin_enough(member, page, lease.task, scheduler) {
            return Err(
                format!("{member:?} is assigned {lease}, but it or its machine has the replica").into()
            );
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
        let held = Held { since: now, begun: None, account: Some(account.id), alone, withdrawn: None };
        known.add(lease, held, limit);
        if known.held.len() > max_leases(known.slots) {
            return Err(
                format!("{member:?} holds {} leases in {} slots", known.held.len(), known.slots).into()
            );
        }
        if let Some(page) = self.batches.get_mut(&lease.batch) {
            page.free.remove(&lease.task);
            page.holders[lease.task.index()].insert(member, worker.clone());
            page.given.insert(lease, (worker, now));
        }
        Ok(())
    }

    /// Checks and records that a replica of the task of a claiming answer is appended.
    pub fn confirm(&mut self, batch: BatchId, task: TaskIndex, replica: TaskIndex) -> Result<(), Broken> {
        let page = self.batches.get_mut(&batch).ok_or("a batch that is not open is confirmed")?;
        let is_right = self.claims
            && replica.index() == page.made.needs.len()
            && !page.made.replicas.contains_key(&task)
            && !page.answered_by.contains_key(&task);
        if !is_right {
            return Err(format!("{task:?} of {batch:?} is confirmed without need").into());
        }
        page.made.replicas.extend([(task, replica), (replica, task)]);
        page.made.needs.push(page.made.needs[task.index()]);
        page.holders.push(BTreeMap::new());
        page.free.insert(replica);
        Ok(())
    }

    /// Checks and records an accepted answer.
    pub fn accept(
        &mut self,
        member: MemberId,
        lease: LeaseId,
        refuted: &[Reporter],
        scheduler: &Scheduler,
    ) -> Result<Accepted, Broken> {
        let has_other = self.has_other_healthy(member, scheduler);
        let is_local = self.known.get(&member).is_some_and(|known| !known.watched);
        let claims = self.claims && !is_local;
        let page = self.batches.get_mut(&lease.batch);
        let Some(page) = page.filter(|page| !page.answered_by.contains_key(&lease.task)) else {
            return Err(format!("{lease} was accepted twice, or late").into());
        };
        let given = page.given.get(&lease).map(|(worker, _)| worker.process);
        let worker = self.workers.get(&member).filter(|worker| given == Some(worker.process)).cloned();
        let Some(worker) = worker else {
            return Err(format!("{lease} was answered by {member:?}, but given to another member").into());
        };
        let process = worker.process;
        let is_lone = claims && !page.made.replicas.contains_key(&lease.task);
        if is_lone && has_other && page.account.max_members != Some(1) {
            return Err(format!("{lease} claims something, and no other worker is asked").into());
        }
        self.proven.insert(process);
        self.verdicts.push((worker.clone(), false));
        let reporters = if self.claims { Vec::new() } else { page.reporters(lease.task) };
        let mut to_judge = BTreeSet::new();
        for reporter in reporters.into_iter().filter(|reporter| reporter.process != process) {
            self.verdicts.push((reporter.clone(), true));
            let is_own = |own: fn(&Identity, &Identity) -> bool| {
                let own = self.verdicts.iter().rev().filter(|(worker, _)| own(worker, reporter));
                own.take_while(|(_, is_refuted)| *is_refuted).count() >= 3
            };
            if is_own(|one, other| one.process == other.process)
                || is_own(|one, other| one.machine == other.machine)
            {
                to_judge.insert(reporter.process);
                // A judgement counts as an answer, whatever comes of it.
                self.verdicts.push((reporter.clone(), false));
            }
        }
        let named: BTreeSet<Process> = refuted.iter().map(|reporter| reporter.identity.process).collect();
        if named != to_judge {
            return Err(
                format!("{lease} is answered against {named:?}, to be judged are {to_judge:?}").into()
            );
        }
        page.answered_by.insert(lease.task, worker);
        page.free.remove(&lease.task);
        page.holders[lease.task.index()].clear();
        while page.answered_by.contains_key(&page.first_open) {
            page.first_open.0 += 1;
        }
        let replica = page.made.replicas.get(&lease.task).and_then(|replica| page.answered_by.get(replica));
        Ok(match replica {
            Some(auditor) => Accepted::Pair { by_two: auditor.process != process },
            None if is_lone => Accepted::Lone,
            None => Accepted::Task,
        })
    }

    /// Checks a discarded answer.
    pub fn discard(&self, lease: LeaseId) -> Result<(), Broken> {
        let is_open = |page: &Page| !page.answered_by.contains_key(&lease.task);
        if self.batches.get(&lease.batch).is_some_and(is_open) {
            Err(format!("{lease} was discarded, but its task had no answer").into())
        } else {
            Ok(())
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
            Action::Fail { batch, failure, reporters } => {
                let page = self.batches.remove(batch).ok_or("a batch that is not open fails")?;
                let named: BTreeSet<Process> =
                    reporters.iter().map(|reporter| reporter.identity.process).collect();
                let reported = |task: TaskIndex| {
                    page.reporters(task).iter().map(|by| by.process).collect::<BTreeSet<_>>() == named
                };
                let is_right = match failure {
                    Failure::GivenUp { task, .. } => {
                        reported(*task) || reported(page.made.replica_or_itself(*task))
                    }
                    _ => named.is_empty(),
                };
                if !is_right {
                    return Err(format!("{batch:?} fails by other reports than those of {named:?}").into());
                }
                let is_hopeless = |task: &TaskIndex| {
                    let replicas = [*task, page.made.replica_or_itself(*task)];
                    replicas.into_iter().any(|task| self.is_hopeless(&page, task, scheduler))
                };
                let is_confirmed = match failure {
                    Failure::GivenUp { task, .. } => is_hopeless(task),
                    Failure::NoMembers { .. } => self.known.is_empty(),
                    Failure::Task { task, .. } => self.has_threads() && page.made.impossible == Some(*task),
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
}

/// Whether the worker is the threads of the coordinator's process.
fn is_thread(worker: &Identity) -> bool {
    matches!(worker.process, Process::Unnamed(_))
}

fn state(member: MemberId, scheduler: &Scheduler) -> Option<MemberState> {
    scheduler.member(member).map(|presence| presence.state)
}
