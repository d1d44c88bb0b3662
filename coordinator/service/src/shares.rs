//! Shares of users in the places for running jobs: whose job begins next, and whose is paused for it.
//!
//! A running job weighs by its priority, within a bound: a user with jobs of twice the priority may have twice as many places, if there are
//! users who wait. The next place goes to a user without one, of these to the one who was served longest ago; then to the user whose jobs weigh
//! least with it. The priority orders the user's own jobs. If all places are taken and a user waits who has less than their share, a job of the
//! user with most is paused.
//!
//! Laws: while users wait, everyone who has a job has a place before anyone has a second one; if there are more users than places, a
//! waiting user without a place gets one after a turn; no job is paused while no other user waits; each pause leaves fewer users
//! without a place, or the weights of the users closer together, so that jobs do not take turns in pausing each other.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use super::record::{JobId, Millis, PRIORITIES, Record, State};

/// Time for which a job runs before it is paused for a user who has no place, where there are more users than places.
pub const TURN: Duration = Duration::from_secs(600);

/// Number of places for running jobs, and how priority weighs between users.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Room {
    /// Jobs that run at the same time, at most.
    pub n: usize,
    /// Largest factor by which a priority above or below the default weighs between users, up to 10; 1: not at all.
    pub priority_bound: u32,
}

/// Weight of a running job of the highest priority that the largest bound allows; one of lower priority weighs more.
const LEAST: u64 = 1 << 20;

impl Room {
    /// The weight of a running job of this priority in the share of its user.
    fn weight(self, priority: u32) -> u64 {
        let (usual, bound) = (PRIORITIES[2], self.priority_bound.clamp(1, PRIORITIES[2]));
        let share = priority.clamp(usual / bound, usual * bound);
        LEAST * u64::from(usual * usual) / u64::from(share)
    }
}

/// The jobs of a user.
#[derive(Default)]
struct User<'a> {
    /// Total weight of the places that the user has, or gets.
    weight: u64,
    /// Number of these places.
    places: usize,
    /// Jobs that may be paused.
    running: Vec<&'a Record>,
    /// Jobs that wait, the next one first.
    waiting: VecDeque<&'a Record>,
    /// When the user last got a place, in the order of all such events.
    served: u64,
}

/// Place in the order of users who wait: the weight of the user's jobs with the next one, 0 for a user without a place; when the user was last
/// served; the job; the user.
type Turn<'a> = (u64, u64, JobId, &'a str);

/// The users with the jobs that wait or run.
pub struct Shares<'a> {
    room: Room,
    users: BTreeMap<&'a str, User<'a>>,
    /// Users with waiting jobs, by the order in which they get places.
    next: BTreeSet<Turn<'a>>,
    /// Room that are taken.
    taken: usize,
    /// Room that are taken, but will be free without being asked for.
    leaving: usize,
    /// The latest of the times at which users were served.
    latest: u64,
}

impl<'a> Shares<'a> {
    /// Shares in `room` of the users of `jobs`, who were last served at these times.
    pub fn new(
        room: Room,
        jobs: impl IntoIterator<Item = &'a Record>,
        served: &BTreeMap<String, u64>,
    ) -> Shares<'a> {
        let (users, next) = (BTreeMap::<&str, User>::new(), BTreeSet::new());
        let latest = served.values().copied().max().unwrap_or(0);
        let mut shares = Shares { room, users, next, taken: 0, leaving: 0, latest };
        for job in jobs {
            let user = shares.users.entry(&job.owner).or_default();
            match job.state {
                State::Queued => user.waiting.push_back(job),
                State::Running => {
                    shares.taken += 1;
                    user.places += 1;
                    user.weight += room.weight(job.priority);
                    user.running.push(job);
                }
                State::Pausing | State::Stopping => {
                    shares.taken += 1;
                    shares.leaving += 1;
                }
                State::Done { .. } | State::Failed { .. } | State::Cancelled => {}
            }
        }
        for (&name, user) in &mut shares.users {
            user.served = served.get(name).copied().unwrap_or(0);
            user.waiting.make_contiguous().sort_unstable_by_key(|job| (Reverse(job.priority), job.id));
            shares.next.extend(user.turn(name, room));
        }
        shares
    }

    /// The jobs that are to begin, and those that are to be paused, at `now`.
    pub fn decide(mut self, now: Millis) -> (Vec<&'a Record>, Vec<&'a Record>) {
        let (mut begin, mut pause) = (Vec::new(), Vec::new());
        if self.room.n == 0 {
            return (begin, pause);
        }
        let mut free = self.room.n.saturating_sub(self.taken);
        while let Some(&(.., name)) = self.next.first() {
            if free > 0 {
                free -= 1;
                begin.extend(self.serve());
                continue;
            }
            if self.leaving > 0 {
                self.leaving -= 1;
            } else if let Some(job) = self.least_deserved(name, now) {
                pause.push(job);
                self.leave(job);
            } else {
                break;
            }
            self.serve();
        }
        (begin, pause)
    }

    /// The order in which the waiting jobs get places if nothing else happens.
    pub fn order(mut self) -> impl Iterator<Item = JobId> {
        std::iter::from_fn(move || self.serve().map(|job| job.id))
    }

    /// Gives the next place.
    fn serve(&mut self) -> Option<&'a Record> {
        let (.., name) = self.next.pop_first()?;
        let user = self.users.get_mut(name)?;
        let job = user.waiting.pop_front()?;
        self.latest += 1;
        user.served = self.latest;
        user.places += 1;
        user.weight += self.room.weight(job.priority);
        self.next.extend(user.turn(name, self.room));
        Some(job)
    }

    /// Takes the place of a running job.
    fn leave(&mut self, job: &'a Record) {
        let Some(user) = self.users.get_mut(&job.owner[..]) else { return };
        user.turn(&job.owner, self.room).map(|turn| self.next.remove(&turn));
        user.running.retain(|other| other.id != job.id);
        user.places -= 1;
        user.weight -= self.room.weight(job.priority);
        self.next.extend(user.turn(&job.owner, self.room));
    }

    /// The job that is to be paused for the user `name`, if there is one.
    fn least_deserved(&self, name: &str, now: Millis) -> Option<&'a Record> {
        let weight = |job: &Record| self.room.weight(job.priority);
        let waiting = self.users.get(name)?;
        let needed = waiting.weight + weight(waiting.waiting.front()?);
        let others = || self.users.iter().filter(|(other, _)| **other != name).map(|(_, user)| user);
        let has_more = |user: &User, job: &Record| {
            let is_without = waiting.places == 0 && user.places > 1;
            is_without || needed <= user.weight - weight(job)
        };
        let least =
            others().filter_map(|user| Some((user.weight, user.least().filter(|job| has_more(user, job))?)));
        if let Some((_, job)) = least.max_by_key(|(weight, job)| (*weight, job.id)) {
            return Some(job);
        }
        let had_a_turn = |job: &&&Record| {
            job.begun.is_some_and(|begun| u128::from(now.0.saturating_sub(begun.0)) >= TURN.as_millis())
        };
        let jobs = others().flat_map(|user| &user.running).filter(had_a_turn);
        jobs.min_by_key(|job| (job.begun, job.id)).copied().filter(|_| waiting.places == 0)
    }
}

impl<'a> User<'a> {
    /// Place in the order of those who wait, if the user waits.
    fn turn(&self, name: &'a str, room: Room) -> Option<Turn<'a>> {
        let job = self.waiting.front()?;
        let weight = if self.places == 0 { 0 } else { self.weight + room.weight(job.priority) };
        Some((weight, self.served, job.id, name))
    }

    /// The job that is paused first: of the lowest priority, and of these the one that began last.
    fn least(&self) -> Option<&'a Record> {
        self.running.iter().copied().min_by_key(|job| (job.priority, Reverse((job.begun, job.id))))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::queue::{Done, Event, Most, Queue, Step, Then};
    use crate::record::tests::record;

    const TURN_MILLIS: u64 = TURN.as_millis() as u64;

    /// A queue with storage that never fails.
    struct World {
        queue: Queue,
        room: Room,
        now: u64,
        next: u64,
    }

    impl World {
        fn new(n: usize, priority_bound: u32) -> World {
            let room = Room { n, priority_bound };
            World { queue: Queue::new([], room, MOST), room, now: 0, next: 1 }
        }

        /// No job is paused while no other user waits.
        fn handle(&mut self, event: Event) -> Vec<Step> {
            let steps = self.queue.plan(Millis(self.now), event).unwrap_or_default();
            steps.iter().for_each(|step| self.queue.commit(step.record.clone()));
            assert_eq!(self.queue.check(), Ok(()), "after {steps:?}");
            for Step { record, .. } in steps.iter().filter(|step| step.record.state == State::Pausing) {
                assert!(
                    self.all(State::Queued).iter().any(|waiting| waiting.owner != record.owner),
                    "{steps:?}"
                );
            }
            steps
        }

        fn submit(&mut self, owner: &str, priority: u32) -> JobId {
            let record = Record { owner: owner.into(), priority, ..record(self.next, State::Queued) };
            self.next += 1;
            let id = record.id;
            self.handle(Event::Accepted(Box::new(record)));
            id
        }

        fn all(&self, state: State) -> Vec<Record> {
            self.queue.iter().filter(|record| record.state == state).cloned().collect()
        }

        fn places_of(&self, owner: &str) -> usize {
            self.all(State::Running).iter().filter(|record| record.owner == owner).count()
        }

        /// Ends what pauses and stops, until nothing does; returns how often.
        fn settle(&mut self) -> usize {
            for n in 0..100 {
                let leaving = self.queue.working().find(|record| record.state != State::Running);
                let Some(id) = leaving.map(|record| record.id) else { return n };
                self.handle(Event::Ended(id, Err("interrupted".into())));
            }
            panic!("jobs take turns in pausing each other: {:?}", self.queue);
        }

        /// Who waits without a place leaves no other user with two, and no user's places weigh more than those of who waits by a job or more.
        fn check_shares(&self) {
            let (running, waiting) = (self.all(State::Running), self.all(State::Queued));
            let of = |owner: &str| running.iter().filter(|record| record.owner == owner).collect::<Vec<_>>();
            let weight = |records: &[&Record]| -> u64 {
                records.iter().map(|record| self.room.weight(record.priority)).sum()
            };
            for job in &waiting {
                let own = of(&job.owner);
                let first = waiting
                    .iter()
                    .filter(|other| other.owner == job.owner)
                    .max_by_key(|other| (other.priority, Reverse(other.id)));
                for other in running.iter().filter(|record| record.owner != job.owner) {
                    let others = of(&other.owner);
                    assert!(
                        !own.is_empty() || others.len() < 2,
                        "{job:?} has no place, {} has two",
                        other.owner
                    );
                    let needed = weight(&own) + self.room.weight(first.unwrap().priority);
                    let is_first = |user: &str| {
                        self.queue
                            .ahead(&waiting.iter().map(|record| record.id).collect())
                            .iter()
                            .min_by_key(|(_, ahead)| **ahead)
                            .is_some_and(|(id, _)| self.queue.find(*id).unwrap().owner == user)
                    };
                    let least = others
                        .iter()
                        .min_by_key(|record| (record.priority, Reverse((record.begun, record.id))))
                        .unwrap();
                    let left = weight(&others) - self.room.weight(least.priority);
                    assert!(!is_first(&job.owner) || needed > left, "{} has less than its share", job.owner);
                }
            }
        }
    }

    const MOST: Most = Most { jobs: 9_999, of_user: 9_999 };

    /// A user with forty endless jobs of the highest priority, and another one with a job: it begins as soon as one of them has paused.
    #[test]
    fn endless_jobs_of_a_user_leave_places_to_another() {
        for (priority, bound) in [(10, 1), (10, 2), (1, 10), (100, 10)] {
            let mut world = World::new(16, bound);
            for _ in 0..41 {
                world.submit("eve", 100);
            }
            assert_eq!(world.places_of("eve"), 16);
            let job = world.submit("ann", priority);
            assert_eq!(world.all(State::Pausing).len(), 1);
            assert_eq!(world.settle(), 1);
            assert_eq!(world.queue.find(job).unwrap().state, State::Running);
            assert_eq!((world.places_of("eve"), world.all(State::Pausing).len()), (15, 0));
            world.handle(Event::Ended(job, Ok(Done::default())));
            assert_eq!(world.places_of("eve"), 16, "the paused job goes on");
            assert_eq!(world.queue.iter().map(|record| record.starts).max(), Some(2));
        }
    }

    /// Users with as many jobs as they like have places in proportion to the bounded priorities, to within one.
    #[test]
    fn priorities_weigh_between_users_within_the_bound() {
        for (bound, shares) in [(1, [8, 8]), (2, [11, 5]), (10, [15, 1])] {
            let mut world = World::new(16, bound);
            for _ in 0..20 {
                world.submit("eve", 100);
                world.settle();
                world.submit("ann", 10);
                world.settle();
            }
            let found = [world.places_of("eve"), world.places_of("ann")];
            assert!(found[0].abs_diff(shares[0]) <= 1, "{bound}: {found:?}");
            world.check_shares();
        }
    }

    /// With more users than places each has a turn, also if no job ever ends.
    #[test]
    fn users_without_a_place_take_turns() {
        for (n, users) in [(1, 2), (1, 5), (3, 4), (4, 11)] {
            let mut world = World::new(n, 2);
            let names: Vec<String> = (0..users).map(|user| format!("user {user}")).collect();
            for name in &names {
                world.submit(name, 10 + world.next as u32);
                world.submit(name, 10);
            }
            let (mut waited, mut longest) = (vec![0; users], 0);
            for _ in 0..40 {
                world.now += TURN_MILLIS;
                world.handle(Event::Retried);
                world.settle();
                world.check_shares();
                for (name, waited) in names.iter().zip(&mut waited) {
                    *waited = if world.places_of(name) > 0 { 0 } else { *waited + 1 };
                    longest = longest.max(*waited);
                }
            }
            assert!(longest <= users.div_ceil(n), "{n} places, {users} users: {longest} turns without one");
        }
    }

    proptest! {
        /// Whatever users submit and cancel, and whichever jobs end: shares are as the laws say, once what pauses has paused.
        #[test]
        #[ignore = "slow"]
        fn shares_hold_after_any_events(
            events in proptest::collection::vec((0u8..8, 0usize..4, 1u32..=100, 0u64..TURN_MILLIS), 1..80),
            n in 1usize..6, priority_bound in 1u32..=10,
        ) {
            let mut world = World::new(n, priority_bound);
            for (what, user, priority, later) in events {
                world.now += later;
                let running: Vec<JobId> = world.all(State::Running).iter().map(|record| record.id).collect();
                let any = running.get(priority as usize % running.len().max(1)).copied();
                match (what, any) {
                    (0, Some(id)) => drop(world.handle(Event::Ended(id, Ok(Done::default())))),
                    (1, Some(id)) => drop(world.handle(Event::Cancelled(id))),
                    (2, _) => drop(world.handle(Event::Retried)),
                    (3, _) => {
                        let records: Vec<Record> = world.queue.iter().cloned().collect();
                        world.queue = Queue::new(records, world.room, MOST);
                        world.handle(Event::Started);
                    }
                    _ => drop(world.submit(["ann", "bob", "eve", "zoe"][user], priority)),
                }
                let steps = world.handle(Event::Retried);
                prop_assert!(steps.iter().all(|step| step.then != Then::Begin), "all that can has begun");
                if what % 2 == 0 {
                    world.settle();
                    world.check_shares();
                }
            }
            // Without turns, no waiting user is passed over for ever: all jobs end, in some order.
            world.settle();
            while let Some(id) = world.all(State::Running).first().map(|record| record.id) {
                world.handle(Event::Ended(id, Ok(Done::default())));
                world.settle();
            }
            prop_assert!(world.queue.iter().all(|record| record.state.is_over()));
        }
    }
}
