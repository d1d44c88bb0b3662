//! Fair-share simulation: worlds without failures, in which slot time is measured by job.
//!
//! Members compute their tasks in the order in which they are assigned; the tasks of each job have a duration of their own. Slot time is
//! measured from the start of a task to its answer.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::time::Duration;

use grammaton::work::lease::{BatchId, LeaseId};
use grammaton::work::task::ContentHash;

use crate::{
    Account, AccountId, Action, Event, Identity, Machine, MemberId, Needs, Process, Scheduler, Timeouts,
    UserId,
};

const MEMBERS: u64 = 25;
const SLOTS: u32 = 4;

/// A job that repeatedly submits a batch, waits for its end, and pauses.
#[derive(Clone)]
struct Job {
    user: u64,
    share: u32,
    max_members: Option<usize>,
    n_tasks: usize,
    /// Approximate duration of each task.
    takes: Duration,
    /// Pauses before the first batch, the second, and so on; the last pause repeats.
    pauses: Vec<Duration>,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Coming {
    Submission(usize),
    Answer(MemberId, LeaseId),
    Heartbeat,
}

struct World {
    jobs: Vec<Job>,
    now: Duration,
    scheduler: Scheduler,
    coming: BinaryHeap<Reverse<(Duration, Coming)>>,
    /// Job of each batch.
    batches: Vec<usize>,
    /// Number of batches of each job.
    n_batches: Vec<usize>,
    /// Waiting leases and number of busy threads of each member.
    members: BTreeMap<MemberId, (VecDeque<LeaseId>, u32)>,
    /// Slot time used by each job.
    used: Vec<Duration>,
    /// Unused slot time.
    idle: Duration,
}

impl World {
    fn new(jobs: &[Job]) -> World {
        let mut world = World {
            jobs: jobs.to_vec(),
            now: Duration::ZERO,
            scheduler: Scheduler::new(Timeouts::default()),
            coming: BinaryHeap::new(),
            batches: Vec::new(),
            n_batches: vec![0; jobs.len()],
            members: BTreeMap::new(),
            used: vec![Duration::ZERO; jobs.len()],
            idle: Duration::ZERO,
        };
        for id in 0..MEMBERS {
            let member = MemberId(id);
            world.members.insert(member, (VecDeque::new(), 0));
            let (name, holds) = (format!("w{id}"), Vec::new());
            let identity =
                Identity { process: Process::Unnamed(member), machine: Machine(name.as_str().into()) };
            world.happen(Event::MemberJoined {
                member,
                name,
                identity,
                slots: SLOTS,
                holds,
                running: vec![],
                watched: true,
            });
        }
        for (at, job) in jobs.iter().enumerate() {
            world.plan(job.pauses[0], Coming::Submission(at));
        }
        world.plan(Duration::ZERO, Coming::Heartbeat);
        world
    }

    fn plan(&mut self, after: Duration, coming: Coming) {
        self.coming.push(Reverse((self.now + after, coming)));
    }

    /// Advances the world by `time`; returns the slot time that each job used, in seconds.
    fn run(&mut self, time: Duration) -> Vec<f64> {
        let (until, before) = (self.now + time, self.used.clone());
        self.idle = Duration::ZERO;
        while let Some(Reverse((at, _))) = self.coming.peek()
            && *at < until
        {
            let Some(Reverse((at, coming))) = self.coming.pop() else { break };
            let n_idle: u32 = self.members.values().map(|(_, running)| SLOTS - running).sum();
            self.idle += (at - self.now) * n_idle;
            self.now = at;
            match coming {
                Coming::Heartbeat => {
                    self.plan(Duration::from_secs(1), Coming::Heartbeat);
                    (0..MEMBERS).for_each(|id| self.happen(Event::Heard { member: MemberId(id) }));
                }
                Coming::Submission(job) => self.submit(job),
                Coming::Answer(member, lease) => {
                    let state = self.members.get_mut(&member).expect("members stay");
                    state.1 -= 1;
                    self.compute(member);
                    self.happen(Event::Answered { member, lease, claims: false });
                }
            }
        }
        self.now = until;
        let used = self.used.iter().zip(before);
        used.map(|(used, before)| (*used - before).as_secs_f64()).collect()
    }

    fn submit(&mut self, at: usize) {
        let Job { user, share, max_members, n_tasks, .. } = self.jobs[at];
        let batch = BatchId(self.batches.len() as u64);
        self.batches.push(at);
        self.n_batches[at] += 1;
        let account = Account { id: AccountId(at as u64), user: UserId(user), share, max_members };
        let shard = |task: usize| ContentHash([at as u8 + 1; 32].map(|byte| byte ^ task as u8));
        let needs = (0..n_tasks).map(|task| Needs::shard(shard(task))).collect();
        self.happen(Event::BatchSubmitted { batch, account, needs, replicas: Vec::new() });
    }

    fn happen(&mut self, event: Event) {
        for action in self.scheduler.decide(self.now, event) {
            match action {
                Action::Assign { member, lease } => {
                    self.members.get_mut(&member).expect("members stay").0.push_back(lease);
                    self.compute(member);
                }
                Action::BatchDone { batch } => {
                    let job = self.batches[batch.0 as usize];
                    let pauses = &self.jobs[job].pauses;
                    let pause = pauses.get(self.n_batches[job]).or(pauses.last());
                    self.plan(*pause.expect("there is one"), Coming::Submission(job));
                }
                Action::Fail { failure, .. } => panic!("{failure}"),
                _ => {}
            }
        }
    }

    /// Starts waiting leases on the member's idle threads.
    fn compute(&mut self, member: MemberId) {
        let state = self.members.get_mut(&member).expect("members stay");
        let mut begun = Vec::new();
        while state.1 < SLOTS
            && let Some(lease) = state.0.pop_front()
        {
            state.1 += 1;
            begun.push(lease);
        }
        for lease in begun {
            let job = self.batches[lease.batch.0 as usize];
            // Between 0.5 and 1.5 times the duration.
            let spread = (lease.task.0 * 37 + lease.batch.0 as u32 * 11) % 101;
            let takes = self.jobs[job].takes * (50 + spread) / 100;
            self.used[job] += takes;
            self.plan(takes, Coming::Answer(member, lease));
        }
    }
}

fn job(share: u32, n_tasks: usize, millis: u64) -> Job {
    let (takes, pauses) = (Duration::from_millis(millis), vec![Duration::ZERO]);
    Job { user: 0, share, max_members: None, n_tasks, takes, pauses }
}

#[test]
#[ignore = "slow"]
fn a_user_with_forty_jobs_of_high_priority_gets_no_more_than_one_with_a_single_job() {
    let time = Duration::from_secs(60);
    for (n_users, millis) in [(2, 2000), (3, 400)] {
        let mut jobs = vec![job(100, 2000, millis); 40];
        jobs.extend((1..n_users).map(|user| Job { user, ..job(1, 20_000, 200) }));
        let mut world = World::new(&jobs);
        world.run(Duration::from_secs(20));
        // One lease in each slot, and one that waits; a task takes at most 1.5 times as long as the mean.
        let longest = Duration::from_millis(millis.max(200)) * 3 / 2;
        let slack = 2.0 * all(longest);
        let (mut by_user, step) = (vec![0.0; n_users as usize], Duration::from_millis(100));
        for _ in 0..time.as_millis() / step.as_millis() {
            for (job, used) in jobs.iter().zip(world.run(step)) {
                by_user[job.user as usize] += used;
            }
            let fair = by_user.iter().sum::<f64>() / n_users as f64;
            assert!(by_user[0] <= fair + slack, "{millis} ms: {by_user:?}, fair {fair}");
        }
        let fair = all(time) / n_users as f64;
        assert!((0.9..1.1).contains(&(by_user[0] / fair)), "{millis} ms: {by_user:?}, fair {fair}");
    }
}

/// Slot time of the whole fleet in `time`, in seconds.
fn all(time: Duration) -> f64 {
    time.as_secs_f64() * MEMBERS as f64 * f64::from(SLOTS)
}

const LONG: Duration = Duration::from_secs(200);

#[test]
fn jobs_that_always_have_tasks_share_slot_time_by_weight() {
    let cases: [&[Job]; 3] = [
        &[job(1, 2000, 2000), job(1, 20_000, 200)],
        &[job(3, 20_000, 200), job(1, 2000, 2000)],
        &[job(1, 3000, 500), job(2, 20_000, 100), job(3, 4000, 1000), job(4, 20_000, 250)],
    ];
    for (case, jobs) in cases.iter().enumerate() {
        let mut world = World::new(jobs);
        world.run(Duration::from_secs(60));
        let used = world.run(LONG);
        let shares: u32 = jobs.iter().map(|job| job.share).sum();
        for (at, (job, used)) in jobs.iter().zip(&used).enumerate() {
            let fair = all(LONG) * f64::from(job.share) / f64::from(shares);
            assert!((0.9..1.1).contains(&(used / fair)), "case {case}, job {at}: {used} of {fair} s");
        }
        let idle = world.idle.as_secs_f64() / all(LONG);
        assert!(idle < 0.01, "case {case}: {idle} of all slots idle");
    }
}

#[test]
fn a_job_that_pauses_between_rounds_loses_little_and_gains_little() {
    let steady = job(1, 1000, 300);
    let rounds = Job { pauses: vec![Duration::from_millis(500)], ..job(1, 1000, 300) };
    let used = {
        let mut world = World::new(&[steady.clone(), rounds]);
        world.run(Duration::from_secs(60));
        world.run(LONG)
    };
    let fair = all(LONG) / 2.0;
    assert!((0.85..1.05).contains(&(used[1] / fair)), "it used {} of {fair} s", used[1]);
    // After a long pause: it has the fleet to itself for a short while, and then its share.
    let pauses = vec![Duration::ZERO, Duration::from_secs(300)];
    let mut world = World::new(&[steady, Job { pauses, ..job(1, 20_000, 300) }]);
    while world.n_batches[1] < 2 {
        world.run(Duration::from_millis(100));
    }
    let soon = world.run(Duration::from_secs(20))[1] / all(Duration::from_secs(20));
    assert!((0.5..0.65).contains(&soon), "it used {soon} of all at once");
}

#[test]
fn a_job_of_few_members_takes_nothing_from_others_and_uses_its_members_alone() {
    let bounded = Job { max_members: Some(5), ..job(1, 1000, 300) };
    let mut world = World::new(&[bounded, job(1, 1000, 300)]);
    world.run(Duration::from_secs(60));
    let used = world.run(LONG);
    let [bounded, other] = [0, 1].map(|job| used[job] / all(LONG));
    assert!((0.17..=0.2).contains(&bounded), "it used {bounded} of all, and may have a fifth");
    // A job that waits for the last tasks of each batch leaves some slots idle.
    assert!((0.7..=0.83).contains(&other), "the other one used {other} of all");
}
