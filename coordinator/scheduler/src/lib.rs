//! The scheduler: assigns tasks to members, as a pure state machine.
//!
//! In: [`Event`]s with the time at which they happened. Out: [`Action`]s for the driver. Several *batches* of tasks may be open at the
//! same time, each on the *account* of a job; [`accounts`] shares the slots fairly. No clock, no channels, no values: tasks are
//! identified by index, shards by hash.
//!
//! A task:
//!
//! ```text
//!                 Assign                        Answered: Accept
//!     free ─────────────────> assigned ─────────────────────────────────> done
//!      ^                      │  ^                                      │ Answered again: Discard
//!      │ last holder failed it │  │ Assign to another (holder suspect or   │
//!      └──────────────────────┘  └ slow, and that other one idle)       v
//!                 given up: Fail                                 all done: BatchDone
//! ```
//!
//! A member *fails* a task if it is lost while it holds the task, reports that the task cannot be computed, or computes it for
//! [`Timeouts::lease_deadline`]. Each may be the member's fault, so the task goes to a machine that has not failed it, if there is one
//! (`blame`). The task is given up when [`POISON`] machines were lost or overdue with it, when it has failed [`POISON`] times and no
//! member is present that is not involved, or when it has failed [`MOST_FAILURES`] times. Machines are counted, not processes
//! ([`Identity`]). A task that fails in this process is given up at once.
//!
//! So a task has at most [`MOST_ATTEMPTS`] attempts: each ends with an answer or a failure, except those that are still going on when the
//! task ends, and those that are lost beside other tasks when it is one failure short of [`POISON`]. The latter were assigned before. A
//! task has at most two holders at a time.
//!
//! Neither a failure nor a loss in one batch ends another batch. A member that dies may hold tasks of several jobs, of which at most one
//! killed it. So a task that is one failure short of [`POISON`] is assigned only *alone*: to a member that holds nothing else, and is
//! assigned nothing else until that lease ends. If every member holds something, one is *reserved*: it is assigned nothing until it
//! holds nothing. A loss proves a task to be poison only if the member held it alone. A task that goes alone has no backup.
//!
//! A lease is *withdrawn* ([`Action::Withdraw`]) when its answer is not needed any more, because its batch ends or another member answers its
//! task, and when it is overdue. It occupies its slot until the member confirms that its thread is free: by [`Event::Withdrawn`], an
//! answer or a failure. A member that does not confirm within [`Timeouts::stop_grace`] is removed; a thread of this process is given
//! up, and its slot with it. A process that connects again says which leases it still computes, and holds them again. A process
//! has one member at a time.
//!
//! Only the holder of a lease may answer it. An answer or a failure counts only if it comes from the member that the lease was given to, or
//! from the same process under a new connection. Any other member that sends one breaks the protocol, and is removed.
//!
//! A reported failure of a task that another process answers is *refuted*. After three of them without an accepted answer in between, of a process or a
//! machine, the reporter is named with the answer ([`Action::Accept`]), so that the caller judges it by the job's own process; so are the
//! reporters of a task that is given up ([`Action::Fail`]). A report that the member lacks memory is not judged, as others may have more.
//!
//! An audited task has a *replica*, a task with the same answer. The two are computed on different machines if there are several, else by
//! different processes, unless there is only one healthy member, or only one that has not failed it.
//!
//! An answer may *claim* something that would end, repeat or restart the job. If its task has no replica, the scheduler appends one
//! ([`Action::Confirm`]). An answer that claims something and that no other process can confirm is accepted, and
//! the caller confirms it. Answers of this process need no confirmation.
//!
//! A member:
//!
//! ```text
//!     joined ──> healthy ──suspect_after──> suspect ──dead_after──> gone (Forget)
//!                 │   ^                        │
//!                 │   └────── any message ─────┘
//!                 ├ MemberDraining ──> draining ── MemberLost ──> gone
//!                 ├ a withdrawn lease is not confirmed within stop_grace ──> gone (Forget)
//!                 └ its process connects again ──> gone (Forget)
//! ```
//!
//! A member is on probation, and is assigned one task at a time, if workers of its name were lost repeatedly, or repeatedly reported
//! failures of tasks that others answered. A member without an accepted answer is assigned few tasks, unless it is the only member.
//!
//! Invariants ([`Scheduler::check`], after each event):
//! - A task is free, assigned or done.
//! - A member holds at most [`max_leases`] leases, withdrawn ones included. No process has two members.
//! - The leases that are not withdrawn are those of open tasks of open batches.
//! - No task is free while a healthy member that may have it has a free slot. Exceptions: tasks that may not begin while the caller has a
//!   backlog of answers ([`Event::Backlog`]), and slots of members that are reserved or hold a task alone.
//! - At most `max_members` members hold leases of an account.
//!
//! A result depends on the task alone, so the first of several answers counts.
//!
//! Placement (`assignment`): the next account is served with its best pair of task and member. A shard goes to the member that computed it
//! last, which has its forests and its state, or to a member that joined with its state; but no slot is left idle for that. Each member
//! may hold one lease beyond its slots, so that the next task is there when one ends. Such a lease is given only while more tasks are
//! free, in all batches, than there are slots: at the end, tasks would queue behind a busy member. Ties are broken by id.
//!
//! Short tasks are assigned several at a time, since each message costs as much as such a task: a queue of some milliseconds, and at first
//! half of the tasks, so that the other half goes to the members that are ready first (guided self-scheduling, Polychronopoulos & Kuck
//! 1987).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use grammaton::work::lease::{BatchId, LeaseId, TaskIndex, max_leases};
use grammaton::work::task::ContentHash;

use self::accounts::Accounts;
use self::batch::{Affinity, Batch, Claim, Home};
use self::members::{FREE, Lease, Member, Members};
use self::record::Records;

pub use self::accounts::{Account, AccountId, UserId};
pub use self::broken::Broken;
pub use self::event::{Action, Cause, Event, FailedAttempt, Failure, Fault, Needs, Reporter};
pub use self::identity::{Identity, Machine, Process};

pub mod accounts;

mod assignment;
mod balance;
mod batch;
mod blame;
mod broken;
mod event;
mod free;
mod identity;
mod loss;
mod members;
mod record;

#[cfg(test)]
mod scenarios;
#[cfg(test)]
mod simulation;

/// Number of machines that must be lost or overdue with a task before it is given up; with fewer machines, number of failures. One machine
/// may have too little memory, and two may share a fault.
pub const POISON: usize = 3;

/// Number of failures of a task at which it is given up even if there are members that could try it.
pub const MOST_FAILURES: usize = 8;

/// Maximum number of attempts at a task: its failures, two that are going on when it ends, and two that were lost beside other tasks.
pub const MOST_ATTEMPTS: usize = MOST_FAILURES + 4;

/// Id of a connection of a worker, from joining to leaving; a worker that reconnects is a new member.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct MemberId(pub u64);

/// Numbers of tasks by state; an audited task counts twice.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Shards {
    /// Number of free tasks.
    pub free: usize,
    /// Number of assigned tasks without an answer.
    pub assigned: usize,
    /// Number of answered tasks.
    pub done: usize,
}

impl std::ops::AddAssign for Shards {
    fn add_assign(&mut self, other: Shards) {
        self.free += other.free;
        self.assigned += other.assigned;
        self.done += other.done;
    }
}

/// State of a member.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MemberState {
    /// Heard from recently.
    Healthy,
    /// Suspect: silent for [`Timeouts::suspect_after`].
    Suspect,
    /// Accepts no more leases.
    Draining,
    /// Removed, for this cause.
    Gone(Cause),
}

/// Timeouts of members, leases and batches.
#[derive(Clone, Debug)]
pub struct Timeouts {
    /// Number of members to wait for before the first task is assigned; at least 1.
    pub min_members: usize,
    /// Time that a batch waits without members, after there were enough, before it fails.
    pub no_workers_grace: Duration,
    /// Heartbeat timeout after which a member is assigned nothing more.
    pub suspect_after: Duration,
    /// Heartbeat timeout after which a member is removed.
    pub dead_after: Duration,
    /// Time of computing after which a lease is withdrawn, and its holder has failed the task.
    pub lease_deadline: Duration,
    /// Time within which a member must confirm that a withdrawn lease is no longer computed, before it is removed.
    pub stop_grace: Duration,
    /// Interval between reports of waiting for members.
    pub report_waiting: Duration,
    /// Minimum age of a lease before an idle member may compute its task as a backup; [`Timeouts::backup_factor`] must
    /// hold as well.
    pub backup_after: Duration,
    /// Minimum age of that lease, as a multiple of the mean age of answered leases.
    pub backup_factor: u32,
}

impl Default for Timeouts {
    fn default() -> Timeouts {
        Timeouts {
            min_members: 1,
            no_workers_grace: Duration::from_secs(30),
            suspect_after: Duration::from_secs(5),
            dead_after: Duration::from_secs(15),
            lease_deadline: Duration::from_secs(30 * 60),
            stop_grace: Duration::from_secs(10),
            report_waiting: Duration::from_secs(10),
            backup_after: Duration::from_secs(2),
            backup_factor: 3,
        }
    }
}

/// A present member at a point in time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Presence {
    /// State of the member.
    pub state: MemberState,
    /// Whether it is assigned one task at a time, because of losses and failures under its name.
    pub on_probation: bool,
    /// Time of its last message.
    pub heard: Duration,
    /// Whether it is reserved: assigned nothing until it holds nothing, for a task that goes alone.
    pub is_reserved: bool,
    /// Number of leases that it holds, of open and earlier batches.
    pub n_leases: usize,
    /// Time at which the oldest of them was assigned.
    pub oldest_lease: Option<Duration>,
}

/// An account at a point in time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AccountState {
    /// The account as its latest batch declared it.
    pub account: Account,
    /// Its oldest open batch.
    pub batch: Option<BatchId>,
    /// Tasks of all its open batches.
    pub shards: Shards,
    /// Oldest lease of an unanswered task: when it was assigned, and to which member.
    pub oldest: Option<(Duration, MemberId, LeaseId)>,
    /// Slot time of its ended leases.
    pub slot_time: Duration,
    /// Number of members that hold its leases.
    pub n_members: usize,
}

/// Fewer members than it takes to go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shortage {
    /// Members that count: before the start those that are there, later those that may be assigned tasks.
    pub members: usize,
    /// Members that it takes.
    pub wanted: usize,
}

/// The state machine.
#[derive(Debug)]
pub struct Scheduler {
    timeouts: Timeouts,
    members: Members,
    records: Records,
    accounts: Accounts,
    /// Open batches.
    batches: BTreeMap<BatchId, Batch>,
    /// Last member of each shard; only present members.
    affinity: Affinity,
    /// Whether `min_members` members have been present at the same time.
    assembled: bool,
    /// Time since which there is no member, once assembled.
    empty_since: Option<Duration>,
    /// Time of the next report, while a batch waits for members.
    report_at: Option<Duration>,
}

impl Scheduler {
    /// A scheduler without members or tasks.
    pub fn new(timeouts: Timeouts) -> Scheduler {
        Scheduler {
            members: Members::new(&timeouts),
            timeouts,
            records: Records::default(),
            accounts: Accounts::default(),
            batches: BTreeMap::new(),
            affinity: Affinity::default(),
            assembled: false,
            empty_since: None,
            report_at: None,
        }
    }

    /// Updates the state and returns the actions.
    pub fn handle(&mut self, now: Duration, event: Event) -> Vec<Action> {
        let actions = self.decide(now, event);
        debug_assert_eq!(self.check(), Ok(()), "after {actions:?}");
        actions
    }

    /// [`Scheduler::handle`] without the check of the invariants.
    fn decide(&mut self, now: Duration, event: Event) -> Vec<Action> {
        let mut actions = Vec::new();
        match event {
            Event::MemberJoined { member, name, identity, slots, holds, running, watched } => {
                self.replace(now, identity.process, &running, &mut actions);
                let joins = Member {
                    on_probation: self.records.is_on_probation(&name),
                    is_proven: !watched || self.records.is_proven(identity.process),
                    is_sole: false,
                    name,
                    identity,
                    joined: now,
                    slots: slots.max(1),
                    watched,
                    heard: now,
                    suspect: false,
                    draining: false,
                    reserved: false,
                    leases: BTreeMap::new(),
                };
                self.join(member, joins, holds);
                let most = self.members.get(member).map_or(0, |member| max_leases(member.slots));
                running.into_iter().take(most).for_each(|lease| self.adopt(now, member, lease, &mut actions));
            }
            Event::MemberDraining { member } => {
                self.hear(now, member);
                self.members.change(member, |member| member.draining = true);
            }
            Event::MemberLost { member, cause } => self.lose(now, member, &cause, &[], &mut actions),
            Event::Heard { member } => self.hear(now, member),
            Event::Answered { member, lease, claims } => {
                self.answer(now, member, lease, claims, &mut actions)
            }
            Event::Withdrawn { member, lease } => {
                let detail = "it stopped without being asked to".to_owned();
                self.report(now, member, lease, Fault::Reported(detail), false, &mut actions)
            }
            Event::Failed { member, lease, detail, lacks_memory, is_certain } => {
                let fault = if lacks_memory { Fault::LacksMemory } else { Fault::Reported };
                self.report(now, member, lease, fault(detail), is_certain, &mut actions)
            }
            Event::BatchSubmitted { batch, account, needs, replicas } => {
                self.submit(now, batch, account, needs, replicas, &mut actions)
            }
            Event::BatchCancelled { batch } => self.close(now, batch, &mut actions),
            Event::AccountClosed { account } => {
                self.accounts.close(account);
                self.affinity.retain(|_, home| home.account != Some(account));
            }
            Event::Backlog { batch, only } => {
                if let Some(batch) = self.batches.get_mut(&batch) {
                    batch.only = only;
                }
            }
            Event::Tick => self.tick(now, &mut actions),
        }
        self.await_members(now, &mut actions);
        self.assign(now, &mut actions);
        actions
    }

    /// Time at which [`Event::Tick`] is due, if no other event happens before.
    pub fn next_deadline(&self) -> Option<Duration> {
        let heartbeat = self.members.next_timeout().map(|(at, _)| at);
        let overdue = self.members.longest().map(|(begun, ..)| begun + self.timeouts.lease_deadline);
        let stuck =
            self.members.first_withdrawn().map(|(withdrawn, ..)| withdrawn + self.timeouts.stop_grace);
        let grace = self.empty_since.filter(|_| !self.batches.is_empty());
        let grace = grace.map(|since| since + self.timeouts.no_workers_grace);
        [heartbeat, overdue, stuck, grace, self.report_at, self.next_backup()].into_iter().flatten().min()
    }

    /// State of a present member.
    pub fn member(&self, id: MemberId) -> Option<Presence> {
        let member = self.members.get(id)?;
        let state = match (member.draining, member.suspect) {
            (true, _) => MemberState::Draining,
            (false, true) => MemberState::Suspect,
            (false, false) => MemberState::Healthy,
        };
        let oldest_lease = member.leases.values().map(|lease| lease.assigned_at).min();
        let Member { on_probation, heard, reserved: is_reserved, .. } = *member;
        Some(Presence {
            state,
            on_probation,
            heard,
            is_reserved,
            n_leases: member.leases.len(),
            oldest_lease,
        })
    }

    /// Number of losses of workers of that name.
    pub fn losses(&self, name: &str) -> u32 {
        self.records.losses(name)
    }

    /// Number of tasks that workers of that name failed and others answered.
    pub fn failures(&self, name: &str) -> u32 {
        self.records.failures(name)
    }

    /// All accounts that have open tasks or are not closed, by id.
    pub fn accounts(&self) -> Vec<AccountState> {
        let state = |ledger: &accounts::Ledger| AccountState {
            account: ledger.account,
            batch: None,
            shards: Shards::default(),
            oldest: None,
            slot_time: ledger.used,
            n_members: ledger.holders().len(),
        };
        let mut states: BTreeMap<AccountId, AccountState> =
            self.accounts.iter().map(|ledger| (ledger.account.id, state(ledger))).collect();
        for (&id, batch) in &self.batches {
            let Some(state) = states.get_mut(&batch.account) else { continue };
            state.batch.get_or_insert(id);
            let (free, done) = (batch.n_free(), batch.n_done);
            state.shards += Shards { free, assigned: batch.tasks.len() - free - done, done };
        }
        for &(assigned_at, member, lease) in self.members.assigned() {
            let batch = self.batches.get(&lease.batch).filter(|batch| batch.is_open(lease));
            if let Some(state) = batch.and_then(|batch| states.get_mut(&batch.account)) {
                state.oldest.get_or_insert((assigned_at, member, lease));
            }
        }
        states.into_values().collect()
    }

    /// The shortage for which the account's open batches wait: too few members joined so far, or none that is there computes for the account or
    /// could. A member that is suspect does not count, nor does one beyond those that the account may have. Constant time while there is a
    /// healthy member, unless the account has all the members that it may have.
    pub fn shortage(&self, account: AccountId) -> Option<Shortage> {
        let is_healthy = |id| self.members.get(id).is_some_and(Member::is_healthy);
        let could_compute = match self.accounts.get(account).filter(|ledger| ledger.is_full()) {
            Some(ledger) => ledger.holders().any(is_healthy),
            None => self.members.n_healthy() > 0,
        };
        if self.assembled && could_compute {
            return None;
        }
        let is_own = |batch: &Batch| batch.account == account;
        if !self.batches.values().any(is_own) {
            return None;
        }
        if !self.assembled {
            return Some(Shortage { members: self.members.len(), wanted: self.timeouts.min_members.max(1) });
        }
        let computes = |&(_, member, lease): &(Duration, MemberId, LeaseId)| {
            self.members.get(member).is_some_and(|member| member.draining && !member.suspect)
                && self.batches.get(&lease.batch).is_some_and(|batch| is_own(batch) && batch.is_open(lease))
        };
        let computed = self.members.assigned().iter().any(computes);
        (!computed).then_some(Shortage { members: 0, wanted: 1 })
    }

    /// Removes the earlier member of a process that connects again and still computes the `running` leases.
    fn replace(&mut self, now: Duration, process: Process, running: &[LeaseId], actions: &mut Vec<Action>) {
        let earlier = self.members.iter().find(|(_, member)| member.identity.process == process);
        if let Some(earlier) = earlier.map(|(id, _)| id) {
            let cause = Cause::Disconnected("its worker connected again".into());
            actions.push(Action::Forget { member: earlier, cause: cause.clone() });
            self.lose(now, earlier, &cause, running, actions);
        }
    }

    /// Makes the new member hold a lease that its process was given earlier. If the answer is not needed any more, the lease is withdrawn.
    fn adopt(&mut self, now: Duration, id: MemberId, lease: LeaseId, actions: &mut Vec<Action>) {
        let Some(member) = self.members.get(id).filter(|member| !member.leases.contains_key(&lease)) else {
            return;
        };
        let process = member.identity.process;
        let Some(batch) = self.batches.get_mut(&lease.batch) else {
            // Any batch that is not open has ended.
            return self.adopt_withdrawn(now, id, lease, actions);
        };
        let assigned_at = batch.assignee(lease).map_or(now, |assignee| assignee.at);
        let is_overdue = now.saturating_sub(assigned_at) >= self.timeouts.lease_deadline;
        let admits = self.accounts.get(batch.account).is_some_and(|ledger| ledger.admits(id));
        match batch.claim(lease, id, Some(process)) {
            Claim::Foreign => {}
            Claim::Open if !is_overdue && admits && !batch.is_held_by(id, lease.task) => {
                batch.adopt(id, lease, assigned_at);
                let charge = self.accounts.charge(batch.account, id);
                self.members.adopt(now, id, lease, assigned_at, Some(charge));
            }
            Claim::Open | Claim::Over => self.adopt_withdrawn(now, id, lease, actions),
        }
    }

    fn adopt_withdrawn(
        &mut self,
        now: Duration,
        member: MemberId,
        lease: LeaseId,
        actions: &mut Vec<Action>,
    ) {
        self.members.adopt(now, member, lease, now, None);
        actions.push(Action::Withdraw { member, lease });
    }

    fn join(&mut self, id: MemberId, member: Member, holds: Vec<ContentHash>) {
        self.members.insert(id, member);
        self.assembled |= self.members.len() >= self.timeouts.min_members;
        self.empty_since = None;
        if holds.is_empty() {
            return;
        }
        for held in holds {
            self.affinity.entry(held).or_insert(Home { member: id, account: None });
        }
        for batch in self.batches.values_mut() {
            batch.prefer_affinity(&self.affinity);
        }
    }

    fn hear(&mut self, now: Duration, id: MemberId) {
        self.members.change(id, |member| {
            member.heard = now;
            member.suspect = false;
        });
    }

    /// Returns the member's claim to the lease. A member that answers a lease of another member is removed.
    fn claim(&mut self, now: Duration, member: MemberId, lease: LeaseId, actions: &mut Vec<Action>) -> Claim {
        self.hear(now, member);
        let process = self.members.get(member).map(|member| member.identity.process);
        let batch = self.batches.get(&lease.batch);
        let claim = batch.map_or(Claim::Over, |batch| batch.claim(lease, member, process));
        if claim == Claim::Foreign && process.is_some() {
            self.forget(now, member, Cause::NotHolder { lease }, actions);
        }
        claim
    }

    fn answer(
        &mut self,
        now: Duration,
        id: MemberId,
        lease: LeaseId,
        claims: bool,
        actions: &mut Vec<Action>,
    ) {
        let claim = self.claim(now, id, lease, actions);
        if claim == Claim::Foreign {
            return;
        }
        let held = self.give_back(now, id, lease);
        if held.is_some() || claim == Claim::Open {
            self.count_answer(id);
        }
        if claim == Claim::Open && claims {
            self.confirm(id, lease, actions);
        }
        let open = self.batches.get_mut(&lease.batch).filter(|_| claim == Claim::Open);
        let by = open.as_ref().and_then(|batch| Some(batch.assignee(lease)?.worker.clone()));
        let (Some(batch), Some(by)) = (open, by) else {
            actions.push(Action::Discard { member: id, lease });
            return;
        };
        let age = held.map_or(Duration::ZERO, |held| now.saturating_sub(held.assigned_at));
        let task = &batch.tasks[lease.task.index()];
        let wrong: Vec<String> = task.blame.accused().map(str::to_owned).collect();
        if !task.audits && self.members.get(id).is_some() {
            let home = Home { member: id, account: Some(batch.account) };
            self.affinity.insert(task.needs.shard, home);
        }
        let others: Vec<(MemberId, LeaseId)> = batch.held(lease.task).collect();
        let mut refuted = if claims { Vec::new() } else { task.blame.reporters() };
        refuted.retain(|reporter| reporter.identity.process != by.process);
        batch.accept(by.clone(), lease.task, age);
        let is_done = batch.n_done == batch.tasks.len();
        self.prove(&by);
        refuted.retain(|reporter| self.records.refute(&reporter.identity));
        for name in wrong {
            self.records.failed(now, &name);
            self.review(&name);
        }
        actions.push(Action::Accept { member: id, lease, refuted });
        others.into_iter().for_each(|(member, lease)| self.withdraw(now, member, lease, actions));
        if is_done {
            actions.push(Action::BatchDone { batch: lease.batch });
            self.close(now, lease.batch, actions);
        }
    }

    /// Has another member confirm the answer of that member, which claims something, unless its task has a replica already, or the member is
    /// of this process.
    fn confirm(&mut self, id: MemberId, lease: LeaseId, actions: &mut Vec<Action>) {
        let is_local = self.members.get(id).is_some_and(|member| !member.watched);
        let Some(batch) = self.batches.get(&lease.batch) else { return };
        let has_replica = batch.tasks[lease.task.index()].replica.is_some();
        if is_local || has_replica || !self.could_confirm(id, batch.account) {
            return;
        }
        let Some(batch) = self.batches.get_mut(&lease.batch) else { return };
        let replica = batch.add_replica(lease.task);
        actions.push(Action::Confirm { batch: lease.batch, task: lease.task, replica });
    }

    /// Records that an answer of that worker was accepted.
    fn prove(&mut self, worker: &Identity) {
        if !self.records.prove(worker) {
            return;
        }
        let of_process = self.members.iter().filter(|(_, member)| member.identity.process == worker.process);
        for id in of_process.map(|(id, _)| id).collect::<Vec<MemberId>>() {
            self.members.change(id, |member| member.is_proven = true);
        }
    }

    /// Counts an answer towards the end of the member's probation.
    fn count_answer(&mut self, id: MemberId) {
        let Some(member) = self.members.get(id).filter(|member| member.on_probation) else { return };
        let name = member.name.clone();
        self.records.answered(&name);
        self.review(&name);
    }

    /// Updates the probation of members of that name from their record.
    fn review(&mut self, name: &str) {
        let on_probation = self.records.is_on_probation(name);
        let namesakes = self.members.iter().filter(|(_, member)| member.name == name);
        let ids: Vec<MemberId> = namesakes.map(|(id, _)| id).collect();
        for id in ids {
            self.members.change(id, |member| member.on_probation = on_probation);
        }
    }

    fn submit(
        &mut self,
        now: Duration,
        id: BatchId,
        account: Account,
        needs: Vec<Needs>,
        replicas: Vec<(TaskIndex, TaskIndex)>,
        actions: &mut Vec<Action>,
    ) {
        if needs.is_empty() {
            actions.push(Action::BatchDone { batch: id });
            return;
        }
        let mut batch = Batch::new(id, account.id, needs, replicas);
        batch.prefer_affinity(&self.affinity);
        batch.balance(&self.members.slots());
        self.batches.insert(id, batch);
        self.accounts.open(account);
        self.empty_since = self.empty_since.map(|_| now);
    }

    /// Reports waiting for members, and fails the batches when the grace period is over.
    fn await_members(&mut self, now: Duration, actions: &mut Vec<Action>) {
        if self.batches.is_empty() {
            return;
        }
        if let Some(since) = self.empty_since {
            let waited = now.saturating_sub(since);
            if waited >= self.timeouts.no_workers_grace {
                for id in self.batches.keys().copied().collect::<Vec<_>>() {
                    self.fail(now, id, Failure::NoMembers { waited }, Vec::new(), actions);
                }
                return;
            }
        }
        if self.assembled && !self.members.is_empty() {
            self.report_at = None;
        } else if self.report_at.is_none_or(|at| at <= now) {
            let just_begun = !self.assembled && self.report_at.is_none();
            self.report_at = Some(now + self.timeouts.report_waiting);
            let wanted = if self.assembled { 1 } else { self.timeouts.min_members.max(1) };
            actions.push(Action::ReportWaiting { members: self.members.len(), wanted, just_begun });
        }
    }

    /// The task under its index without audits: an audit's copy is mapped to its original.
    fn original(&self, lease: LeaseId) -> TaskIndex {
        let task = self.batches.get(&lease.batch).and_then(|batch| batch.tasks.get(lease.task.index()));
        task.filter(|task| task.audits).and_then(|task| task.replica).unwrap_or(lease.task)
    }

    /// Removes the lease from the member; returns it if the member held it.
    fn give_back(&mut self, now: Duration, id: MemberId, lease: LeaseId) -> Option<Lease> {
        let held = self.members.give_back(now, id, lease)?;
        self.settle(now, id, &held);
        if let Some(batch) = self.batches.get_mut(&lease.batch).filter(|_| held.withdrawn.is_none()) {
            batch.give_back(id, lease.task);
        }
        Some(held)
    }

    /// Replaces the charge of an ended lease of the member by the slot time that it used.
    fn settle(&mut self, now: Duration, id: MemberId, held: &Lease) {
        if let Some(charge) = held.charge {
            self.accounts.settle(id, charge, held.slot_time(now), held.withdrawn.is_none());
        }
    }

    /// Removes a batch, and withdraws its leases.
    fn close(&mut self, now: Duration, batch: BatchId, actions: &mut Vec<Action>) {
        let Some(batch) = self.batches.remove(&batch) else { return };
        if let Some(reserved) = batch.reserved {
            self.members.change(reserved, |member| member.reserved = false);
        }
        batch.all_held().for_each(|(member, lease)| self.withdraw(now, member, lease, actions));
        if self.batches.is_empty() {
            self.report_at = None;
        }
    }

    /// Checks the invariants; an error names the one that fails.
    pub fn check(&self) -> Result<(), Broken> {
        let ensure = |holds: bool, what: &str| if holds { Ok(()) } else { Err(what.into()) };
        self.members.check()?;
        for (id, member) in self.members.iter() {
            let within = member.leases.len() <= max_leases(member.slots);
            ensure(within, &format!("{id:?} holds more leases than its slots allow"))?;
            let is_alone = !member.is_alone() || member.leases.len() == 1;
            ensure(is_alone, &format!("{id:?} holds another lease beside a task that goes alone"))?;
            let on_probation = self.records.is_on_probation(&member.name);
            ensure(
                member.on_probation == on_probation,
                &format!("the probation of {id:?} differs from its record"),
            )?;
            let is_proven = !member.watched || self.records.is_proven(member.identity.process);
            ensure(member.is_proven == is_proven, &format!("is_proven of {id:?} differs from the records"))?;
        }
        let is_there = |home: &Home| self.members.get(home.member).is_some();
        ensure(self.affinity.values().all(is_there), "affinity to a lost member")?;
        let charges = |(id, member): (MemberId, &'_ Member)| {
            member.leases.values().filter_map(|lease| Some((id, lease.charge?))).collect::<Vec<_>>()
        };
        self.accounts.check(self.members.iter().flat_map(charges))?;
        self.batches.values().try_for_each(Batch::check)?;
        let processes: BTreeSet<Process> =
            self.members.iter().map(|(_, member)| member.identity.process).collect();
        ensure(processes.len() == self.members.len(), "a process has two members")?;
        let held = self.members.assigned().iter().map(|&(_, member, lease)| (member, lease));
        let holders = self.batches.values().flat_map(Batch::all_held);
        let (held, holders): (BTreeSet<_>, BTreeSet<_>) = (held.collect(), holders.collect());
        ensure(held == holders, "leases of members and holders of tasks differ")?;
        let reserved = self.members.iter().filter(|(_, member)| member.reserved).map(|(id, _)| id);
        let reserved_by = self.batches.values().filter_map(|batch| batch.reserved);
        let (reserved, mut reserved_by): (Vec<_>, Vec<_>) = (reserved.collect(), reserved_by.collect());
        reserved_by.sort_unstable();
        ensure(reserved == reserved_by, "members are reserved without need, or twice")?;
        let idle = self.assembled && self.members.with(FREE).any(|id| self.could_begin(id));
        ensure(!idle, "a slot is idle while its member may have a free task")
    }
}
