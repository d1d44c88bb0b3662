//! Fair sharing: users share the slots of all members equally, and the accounts of a user, one per job, share its slots by weight.
//!
//! In: leases by account, and their durations. Out: the order in which accounts are served. Hierarchical start-time fair queueing
//! (Goyal, Vin & Cheng 1996) over slot time: the *virtual time* of a user is the slot time that its accounts used, that of an account is the
//! slot time that it used divided by its share. The user with the least virtual time is served next, and of its accounts the one with
//! the least; ties are broken by id. A *clock* is the virtual time at which the latest task was assigned: one for all users, and
//! one for the accounts of each. It differs from the paper in three ways, since the cost of a task is unknown before its answer, and jobs
//! pause between rounds:
//!
//! - A lease is charged the mean duration of the account's recent leases, and its actual duration when it ends.
//! - A user or account that had nothing to assign returns with its old virtual time, but behind the clock by at most `CREDIT` of all
//!   slots. So a pause between rounds costs a job nothing, and after a long pause it has the fleet to itself for at most that long. A new
//!   one begins at the clock.
//! - There are many slots; slot time is summed over all of them.
//!
//! Invariants (`Accounts::check`): an account's holders are the members that hold its leases. A user is known while it has an account, or is
//! ahead of the clock: closing an account pays no debt.

use std::collections::{BTreeMap, BTreeSet};
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
    /// Expected slot time.
    expected: Duration,
}

/// Virtual time of a user or an account, including estimates for leases that have not ended.
#[derive(Clone, Copy, Debug, Default)]
struct Queued {
    time: Duration,
    /// Whether it had tasks to assign when tasks were assigned last.
    waits: bool,
}

impl Queued {
    /// Updates whether it `waits`. One that did not wait before is behind the clock by at most the credit.
    fn queue(&mut self, waits: bool, clock: Duration, credit: Duration) {
        if waits && !self.waits {
            self.time = self.time.max(clock.saturating_sub(credit));
        }
        self.waits = waits;
    }

    /// Replaces an estimate.
    fn correct(&mut self, expected: Duration, used: Duration) {
        self.time = self.time.saturating_sub(expected) + used;
    }
}

/// State of a user.
#[derive(Debug)]
struct User {
    queued: Queued,
    /// Clock of its accounts.
    clock: Duration,
    n_accounts: usize,
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
    queued: Queued,
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
    users: BTreeMap<UserId, User>,
    /// Clock of the users.
    clock: Duration,
}

impl Accounts {
    /// Adds or updates the account of a new batch.
    pub fn open(&mut self, account: Account) {
        let clock = self.clock;
        self.users.retain(|_, user| user.n_accounts > 0 || user.queued.time > clock);
        let queued = |time| Queued { time, waits: false };
        let new_user = || User { queued: queued(clock), clock: Duration::ZERO, n_accounts: 0 };
        if let Some(ledger) = self.all.get_mut(&account.id) {
            // An account stays with its user.
            let user = ledger.account.user;
            (ledger.account, ledger.closed) = (Account { user, ..account }, false);
            return;
        }
        let user = self.users.entry(account.user).or_insert_with(new_user);
        user.n_accounts += 1;
        let ledger = Ledger {
            account,
            used: Duration::ZERO,
            mean: None,
            queued: queued(user.clock),
            holders: BTreeMap::new(),
            closed: false,
        };
        self.all.insert(account.id, ledger);
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
        let credit = CREDIT.saturating_mul(n_slots as u32);
        let mut users: BTreeSet<UserId> = BTreeSet::new();
        for (&id, ledger) in &mut self.all {
            let Account { user, .. } = ledger.account;
            let clock = self.users.get(&user).map_or(Duration::ZERO, |user| user.clock);
            let waits = waiting(id);
            ledger.queued.queue(waits, clock, ledger.account.virtually(credit));
            users.extend(Some(user).filter(|_| waits));
        }
        for (id, user) in &mut self.users {
            user.queued.queue(users.contains(id), self.clock, credit);
        }
    }

    /// Sort key of accounts: the least is served next.
    pub fn turn(&self, id: AccountId) -> (Duration, UserId, Duration, AccountId) {
        let Some(ledger) = self.all.get(&id) else {
            return (Duration::MAX, UserId(u64::MAX), Duration::MAX, id);
        };
        let user = ledger.account.user;
        let time = self.users.get(&user).map_or(Duration::MAX, |user| user.queued.time);
        (time, user, ledger.queued.time, id)
    }

    /// Charges the account for a task assigned to `member`.
    pub fn charge(&mut self, id: AccountId, member: MemberId) -> Charge {
        let Some(ledger) = self.all.get_mut(&id) else {
            return Charge { account: id, expected: Duration::ZERO };
        };
        let expected = ledger.estimate();
        if let Some(user) = self.users.get_mut(&ledger.account.user) {
            self.clock = self.clock.max(user.queued.time);
            user.clock = user.clock.max(ledger.queued.time);
            user.queued.time += expected;
        }
        ledger.queued.time += ledger.account.virtually(expected);
        *ledger.holders.entry(member).or_default() += 1;
        Charge { account: id, expected }
    }

    /// Replaces the charge of an ended lease of `member` by the slot time that it `used`. Only a task that `ran` to its end tells the duration of
    /// others.
    pub fn settle(&mut self, member: MemberId, charge: Charge, used: Duration, ran: bool) {
        let Charge { account: id, expected } = charge;
        let Some(ledger) = self.all.get_mut(&id) else { return };
        let Account { user, .. } = ledger.account;
        if let Some(user) = self.users.get_mut(&user) {
            user.queued.correct(expected, used);
        }
        let virtually = |time| ledger.account.virtually(time);
        let (expected, virtually_used) = (virtually(expected), virtually(used));
        ledger.queued.correct(expected, virtually_used);
        ledger.used += used;
        if ran {
            ledger.mean = Some(ledger.mean.map_or(used, |mean| mean - mean / RECENT + used / RECENT));
        }
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
        if !self.all.get(&id).is_some_and(is_over) {
            return;
        }
        let removed = self.all.remove(&id);
        if let Some(user) = removed.and_then(|ledger| self.users.get_mut(&ledger.account.user)) {
            user.n_accounts -= 1;
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
        if !self.all.iter().all(agree) {
            return Err("the holders of an account do not match the leases".into());
        }
        let mut n_accounts: BTreeMap<UserId, usize> = self.users.keys().map(|&user| (user, 0)).collect();
        self.all.values().for_each(|ledger| *n_accounts.entry(ledger.account.user).or_default() += 1);
        if self.users.iter().map(|(&id, user)| (id, user.n_accounts)).eq(n_accounts) {
            Ok(())
        } else {
            Err("the numbers of accounts of users are wrong".into())
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
            accounts.settle(MemberId(0), charge, millis(takes), true);
        }
        accounts.iter().map(|ledger| ledger.used).collect()
    }

    /// Accounts of one user with these shares.
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
    fn users_share_equally_whatever_the_number_and_the_shares_of_their_accounts() {
        let mut accounts = of(&[100; 40]);
        accounts.open(Account { id: AccountId(40), user: UserId(1), ..Account::default() });
        let tasks: Vec<(u64, u64)> = (0..=40).map(|id| (id, if id == 40 { 10 } else { 1000 })).collect();
        let used = assign(&mut accounts, &tasks, 20_000);
        let (many, one): (Duration, Duration) = (used[..40].iter().sum(), used[40]);
        let ratio = many.as_secs_f64() / one.as_secs_f64();
        assert!((0.95..1.05).contains(&ratio), "{many:?} and {one:?}");
    }

    #[test]
    fn a_user_that_closes_its_accounts_and_opens_others_remains_in_debt() {
        let mut accounts = Accounts::default();
        let (ann, bob) = (UserId(0), UserId(1));
        accounts.open(Account { id: AccountId(1000), user: bob, ..Account::default() });
        let mut used = [Duration::ZERO; 2];
        for id in 0..100 {
            // Each of her jobs is new, and takes much longer than a first charge.
            accounts.open(Account { id: AccountId(id), user: ann, ..Account::default() });
            for _ in 0..100 {
                accounts.queue(|_| true, 1);
                let [own, other] = [AccountId(id), AccountId(1000)].map(|id| accounts.turn(id));
                let (next, takes) = if own < other { (id, 10_000) } else { (1000, 100) };
                let charge = accounts.charge(AccountId(next), MemberId(0));
                accounts.settle(MemberId(0), charge, millis(takes), true);
                used[usize::from(next == 1000)] += millis(takes);
            }
            accounts.close(AccountId(id));
        }
        let ratio = used[0].as_secs_f64() / used[1].as_secs_f64();
        assert!((0.9..1.1).contains(&ratio), "{used:?}");
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
        accounts.settle(MemberId(7), charge, millis(1), true);
        assert!(accounts.get(AccountId(0)).is_none());
    }
}
