//! Fair sharing: accounts, one per job, that share the slots of all members by weight.
//!
//! In: leases by account, and their durations. Out: the order in which accounts are served. Start-time fair queueing
//! (Goyal, Vin & Cheng 1996) over slot time: an account's *virtual time* is the slot time that it used, divided by its share, and the
//! account with the least virtual time is served next; ties are broken by id. The *clock* is the virtual time at which the latest task
//! was assigned. It differs from the paper in three ways, since the cost of a task is unknown before its answer, and jobs pause between
//! rounds:
//!
//! - A lease is charged the mean duration of the account's recent leases, and its actual duration when it ends.
//! - An account that had nothing to assign returns with its old virtual time, but behind the clock by at most `CREDIT` of all slots. So
//!   a pause between rounds costs a job nothing, and after a long pause it has the fleet to itself for at most that long. A new account
//!   begins at the clock.
//! - There are many slots; slot time is summed over all of them.
//!
//! Invariant (`Accounts::check`): an account's holders are the members that hold its leases.

use std::collections::BTreeMap;
use std::time::Duration;

use super::MemberId;
use super::broken::Broken;

/// Maximum time of the whole fleet that an account may catch up on.
const CREDIT: Duration = Duration::from_secs(2);

/// Charge of a lease before any lease of its account has ended.
const FIRST_CHARGE: Duration = Duration::from_millis(100);

/// Number of leases that the mean duration of recent leases is about.
const RECENT: u32 = 16;

/// Id of an account, chosen by the caller.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct AccountId(pub u64);

/// Id of a user, chosen by the caller. Users share the slots equally, however many accounts each of them has.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct UserId(pub u64);

/// An account: one job, on whose behalf batches are computed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Account {
    /// Its id.
    pub id: AccountId,
    /// The user whose job it is.
    pub user: UserId,
    /// Weight among the accounts that have tasks to assign; at least 1.
    pub share: u32,
    /// Maximum number of members that may hold its leases at the same time, at least 1; `None`: unlimited.
    pub max_members: Option<usize>,
}

impl Default for Account {
    fn default() -> Account {
        Account { id: AccountId::default(), user: UserId::default(), share: 1, max_members: None }
    }
}

impl Account {
    /// Whether only one member at a time may compute for it.
    pub(super) fn is_for_one(&self) -> bool {
        self.max_members.is_some_and(|most| most <= 1)
    }

    /// Converts slot time to virtual time.
    fn virtually(&self, time: Duration) -> Duration {
        time / self.share.max(1)
    }
}

/// Charge of a lease.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Charge {
    account: AccountId,
    /// Virtual time.
    amount: Duration,
}

/// State of an account.
#[derive(Debug)]
pub(super) struct Ledger {
    /// The account as its latest batch declared it.
    pub account: Account,
    /// Slot time of ended leases.
    pub used: Duration,
    /// Mean slot time of the recent leases, the latest with a weight of 1 / [`RECENT`]; `None` before the first has ended.
    mean: Option<Duration>,
    /// Virtual time, including estimates for leases that have not ended.
    time: Duration,
    /// Whether it had tasks to assign when tasks were assigned last.
    waits: bool,
    /// Number of its leases by member.
    holders: BTreeMap<MemberId, usize>,
    /// Whether it is removed when its last lease ends.
    closed: bool,
}

impl Ledger {
    /// Members that hold its leases.
    pub fn holders(&self) -> impl ExactSizeIterator<Item = MemberId> {
        self.holders.keys().copied()
    }

    /// Whether it has reached its maximum number of members.
    pub fn is_full(&self) -> bool {
        self.account.max_members.is_some_and(|most| self.holders.len() >= most.max(1))
    }

    /// Whether `member` may hold leases of it.
    pub fn admits(&self, member: MemberId) -> bool {
        !self.is_full() || self.holders.contains_key(&member)
    }

    /// Expected slot time of the next lease.
    pub fn estimate(&self) -> Duration {
        self.mean.unwrap_or(FIRST_CHARGE)
    }
}

/// All accounts.
#[derive(Debug, Default)]
pub(super) struct Accounts {
    all: BTreeMap<AccountId, Ledger>,
    clock: Duration,
}

impl Accounts {
    /// Adds or updates the account of a new batch.
    pub fn open(&mut self, account: Account) {
        let ledger = self.all.entry(account.id).or_insert(Ledger {
            account,
            used: Duration::ZERO,
            mean: None,
            time: self.clock,
            waits: false,
            holders: BTreeMap::new(),
            closed: false,
        });
        (ledger.account, ledger.closed) = (account, false);
    }

    /// Closes an account that has no more batches.
    pub fn close(&mut self, id: AccountId) {
        if let Some(ledger) = self.all.get_mut(&id) {
            ledger.closed = true;
            self.forget(id);
        }
    }

    /// State of an account.
    pub fn get(&self, id: AccountId) -> Option<&Ledger> {
        self.all.get(&id)
    }

    /// All accounts, by id.
    pub fn iter(&self) -> impl Iterator<Item = &Ledger> {
        self.all.values()
    }

    /// Updates which accounts are `waiting` with tasks to assign, given the number of slots.
    pub fn queue(&mut self, waiting: impl Fn(AccountId) -> bool, n_slots: usize) {
        for (&id, ledger) in &mut self.all {
            let waited = std::mem::replace(&mut ledger.waits, waiting(id));
            if ledger.waits && !waited {
                let credit = ledger.account.virtually(CREDIT.saturating_mul(n_slots as u32));
                ledger.time = ledger.time.max(self.clock.saturating_sub(credit));
            }
        }
    }

    /// Sort key of accounts: the least is served next.
    pub fn turn(&self, id: AccountId) -> (Duration, AccountId) {
        (self.all.get(&id).map_or(Duration::MAX, |ledger| ledger.time), id)
    }

    /// Charges the account for a task assigned to `member`.
    pub fn charge(&mut self, id: AccountId, member: MemberId) -> Charge {
        let Some(ledger) = self.all.get_mut(&id) else {
            return Charge { account: id, amount: Duration::ZERO };
        };
        let amount = ledger.account.virtually(ledger.estimate());
        self.clock = self.clock.max(ledger.time);
        ledger.time += amount;
        *ledger.holders.entry(member).or_default() += 1;
        Charge { account: id, amount }
    }

    /// Replaces the charge of an ended lease of `member` by the slot time that it used.
    pub fn settle(&mut self, member: MemberId, charge: Charge, used: Duration) {
        let Charge { account: id, amount } = charge;
        let Some(ledger) = self.all.get_mut(&id) else { return };
        ledger.time = ledger.time.saturating_sub(amount) + ledger.account.virtually(used);
        ledger.used += used;
        ledger.mean = Some(ledger.mean.map_or(used, |mean| mean - mean / RECENT + used / RECENT));
        if let Some(held) = ledger.holders.get_mut(&member) {
            *held -= 1;
            if *held == 0 {
                ledger.holders.remove(&member);
            }
        }
        self.forget(id);
    }

    fn forget(&mut self, id: AccountId) {
        let is_over = |ledger: &Ledger| ledger.closed && ledger.holders.is_empty();
        if self.all.get(&id).is_some_and(is_over) {
            self.all.remove(&id);
        }
    }

    /// Checks the holders of all accounts against the leases held.
    pub fn check(&self, held: impl Iterator<Item = (MemberId, Charge)>) -> Result<(), Broken> {
        let mut holders: BTreeMap<AccountId, BTreeMap<MemberId, usize>> = BTreeMap::new();
        for (member, charge) in held {
            *holders.entry(charge.account).or_default().entry(member).or_default() += 1;
        }
        let agree = |(id, ledger): (&AccountId, &Ledger)| match holders.get(id) {
            Some(holders) => *holders == ledger.holders,
            None => ledger.holders.is_empty(),
        };
        if self.all.iter().all(agree) {
            Ok(())
        } else {
            Err("the holders of an account do not match the leases".into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLOTS: usize = 10;

    fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// Assigns `n` tasks, each to the next account; returns the slot time that each account used.
    fn assign(accounts: &mut Accounts, tasks: &[(u64, u64)], n: usize) -> Vec<Duration> {
        for _ in 0..n {
            accounts.queue(|id| tasks.iter().any(|&(account, _)| id.0 == account), SLOTS);
            let next = tasks.iter().min_by_key(|&&(account, _)| accounts.turn(AccountId(account)));
            let &(account, takes) = next.expect("there are tasks");
            let charge = accounts.charge(AccountId(account), MemberId(0));
            accounts.settle(MemberId(0), charge, millis(takes));
        }
        accounts.iter().map(|ledger| ledger.used).collect()
    }

    fn of(shares: &[u32]) -> Accounts {
        let mut accounts = Accounts::default();
        for (id, &share) in (0..).zip(shares) {
            accounts.open(Account { id: AccountId(id), share, ..Account::default() });
        }
        accounts
    }

    #[test]
    fn slot_time_is_shared_by_weight_for_tasks_of_any_duration() {
        let used = assign(&mut of(&[1, 3]), &[(0, 1000), (1, 10)], 10_000);
        let ratio = used[1].as_secs_f64() / used[0].as_secs_f64();
        assert!((2.9..3.1).contains(&ratio), "{used:?}");
    }

    #[test]
    fn an_account_catches_up_on_a_pause_by_at_most_the_credit() {
        for (paused, caught_up) in [(100, millis(10_000)), (10_000, CREDIT * SLOTS as u32)] {
            let mut accounts = of(&[1, 1]);
            assign(&mut accounts, &[(0, 100), (1, 100)], 1000);
            assign(&mut accounts, &[(0, 100)], paused);
            let before = accounts.get(AccountId(1)).unwrap().used;
            // Number of tasks that are assigned to this account alone.
            let mut n = 0;
            while accounts.turn(AccountId(1)) < accounts.turn(AccountId(0)) {
                assign(&mut accounts, &[(0, 100), (1, 100)], 1);
                n += 1;
                assert!(n < 1000, "it hoarded");
            }
            let alone = accounts.get(AccountId(1)).unwrap().used - before;
            assert!(alone.abs_diff(caught_up) <= millis(200), "{alone:?} after {paused} tasks");
        }
    }

    #[test]
    fn a_new_account_begins_at_the_clock() {
        let mut accounts = of(&[1]);
        assign(&mut accounts, &[(0, 100)], 1000);
        accounts.open(Account { id: AccountId(1), ..Account::default() });
        let used = assign(&mut accounts, &[(0, 100), (1, 100)], 100);
        assert!(used[1] <= millis(5100), "{used:?}");
    }

    #[test]
    fn a_closed_account_is_removed_when_its_last_lease_ends() {
        let mut accounts = of(&[1]);
        let charge = accounts.charge(AccountId(0), MemberId(7));
        accounts.close(AccountId(0));
        assert!(accounts.get(AccountId(0)).is_some());
        accounts.settle(MemberId(7), charge, millis(1));
        assert!(accounts.get(AccountId(0)).is_none());
    }
}
