//! Compute threads.
//!
//! In: tasks. Out: reports: encoded answers, so that the network's threads need not encode them, failures, and confirmations that a
//! thread no longer computes a withdrawn task. A panic in a computation fails the task; the thread continues.
//!
//! Reports are passed on together, as soon as they are at least as many as the tasks that wait for a thread: a message costs as much as
//! a short task. So an answer is passed on at once while no task waits, and the coordinator's next tasks arrive while the second half of
//! a queue is computed. A confirmation is passed on at once, as the coordinator waits for the slot.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use grammaton::encoding::encode;
use grammaton::stop::{self, Stop, Stopped};
use grammaton::work::queue::{Guarded, Threads, Withdrawal};
use grammaton::work::task::Task;
use prost::bytes::Bytes;
use proto::cpu_time;
use tokio::sync::mpsc;

use crate::blobs::KeptState;
use crate::membership::SessionLease;
use crate::{Compute, RunError};

/// The end of a task on this worker.
#[derive(Clone)]
pub(crate) struct Computed {
    /// The lease that it belongs to.
    pub lease: SessionLease,
    /// What the coordinator learns.
    pub report: Report,
}

/// A report on a lease.
#[derive(Clone)]
pub(crate) enum Report {
    /// The answer.
    Answer {
        /// The encoded answer.
        bytes: Bytes,
        /// The new state of the shard, if the answer has one.
        shard_state: Option<KeptState>,
        /// CPU time.
        busy: Duration,
    },
    /// The reason why the task has no answer.
    Failure {
        /// The reason.
        detail: String,
        /// Whether the process only lacks memory.
        lacks_memory: bool,
    },
    /// The coordinator withdrew the task, which no thread computes any more.
    Withdrawn,
}

/// The threads. When it is dropped, they stop computing and end.
pub(crate) struct Pool(Arc<Threads<SessionLease, Task, Reports>>);

/// Tasks of the threads, whose number the coordinator bounds, and reports that wait for further ones.
type State = Guarded<SessionLease, Task, Reports>;

/// Reports that are not passed on; fewer than tasks that wait, or none.
type Reports = Vec<Computed>;

impl Pool {
    /// Starts `threads` threads that pass what they compute to `computed`.
    pub fn start(
        threads: u32,
        compute: Compute,
        computed: mpsc::Sender<Vec<Computed>>,
    ) -> Result<Pool, RunError> {
        let pool = Pool(Arc::default());
        for thread in 0..threads {
            let (threads, compute, computed) = (pool.0.clone(), compute.clone(), computed.clone());
            std::thread::Builder::new()
                .name(format!("compute-{thread}"))
                .spawn(move || work(&threads, &compute, &computed))
                .map_err(RunError::Thread)?;
        }
        Ok(pool)
    }

    /// Adds a task.
    pub fn push(&self, lease: SessionLease, task: Task) {
        self.0.push(lease, task);
    }

    /// Withdraws tasks: they do not begin, or their threads are asked to stop, or their answers are dropped. Returns the reports that are
    /// to be passed on now; the threads report the others.
    pub fn withdraw(&self, leases: &[SessionLease]) -> Vec<Computed> {
        withdraw(&mut self.0.lock(), leases)
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// Adds the report of a thread. Returns the reports to pass on, if it is time.
fn finish(state: &mut State, lease: SessionLease, report: Report) -> Option<Vec<Computed>> {
    let is_withdrawn = state.queue.end(lease);
    let report = if is_withdrawn { Report::Withdrawn } else { report };
    state.more.push(Computed { lease, report });
    let is_time = is_withdrawn || state.more.len() >= state.queue.n_waiting();
    is_time.then(|| std::mem::take(&mut state.more))
}

fn withdraw(state: &mut State, leases: &[SessionLease]) -> Vec<Computed> {
    for &lease in leases {
        match state.queue.withdraw(lease) {
            Withdrawal::Removed => state.more.push(Computed { lease, report: Report::Withdrawn }),
            Withdrawal::Requested => {}
            Withdrawal::Unknown => {
                let unsent = state.more.iter_mut().filter(|computed| computed.lease == lease);
                unsent.for_each(|computed| computed.report = Report::Withdrawn);
            }
        }
    }
    std::mem::take(&mut state.more)
}

fn work(
    threads: &Threads<SessionLease, Task, Reports>,
    compute: &Compute,
    computed: &mpsc::Sender<Vec<Computed>>,
) {
    while let Some((lease, task, stop)) = threads.next() {
        let report = report(compute, &task, &stop);
        // Before the report, so that a thread that is free has no more of the task.
        drop(task);
        let done = finish(&mut threads.lock(), lease, report);
        if done.is_some_and(|done| computed.blocking_send(done).is_err()) {
            return;
        }
    }
}

/// Computes a task unless it is stopped.
fn report(compute: &Compute, task: &Task, stop: &Stop) -> Report {
    let begun = cpu_time::of_thread();
    // The engine's caches hold only finished values, so a panic cannot leave them inconsistent.
    match catch_unwind(AssertUnwindSafe(|| stop::until(stop, || compute(task)))) {
        Ok(Ok(Ok(answer))) => {
            let bytes = Bytes::from(encode(&answer));
            Report::Answer {
                bytes,
                shard_state: KeptState::of(task, answer),
                busy: cpu_time::of_thread() - begun,
            }
        }
        Ok(Ok(Err(error))) => {
            Report::Failure { detail: error.to_string(), lacks_memory: error.lacks_memory() }
        }
        Ok(Err(Stopped)) => Report::Withdrawn,
        Err(_) => {
            let panicked = "the computation panicked, which is a bug; the worker's log has the message";
            Report::Failure { detail: panicked.into(), lacks_memory: false }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use grammaton::work::lease::{Attempt, BatchId, LeaseId, SessionId, TaskIndex};
    use grammaton::work::shard::Shard;
    use grammaton::work::task::{Answer, Expectation, Named, Work};
    use proptest::prelude::*;

    use super::*;

    fn lease(task: u32) -> SessionLease {
        let id = LeaseId { batch: BatchId(0), task: TaskIndex(task), attempt: Attempt(0) };
        SessionLease { session: SessionId([0; 16]), id }
    }

    fn task() -> Task {
        Task {
            language: None,
            shard: Named::new(Shard::Sentences(Vec::new())),
            work: Work::Cover,
            further: Vec::new(),
        }
    }

    fn answer() -> Report {
        Report::Answer { bytes: Bytes::new(), shard_state: None, busy: Duration::ZERO }
    }

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Push,
        /// A thread takes a task.
        Begin,
        /// The thread that began first ends its task.
        Finish,
        Withdraw(u32),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            3 => Just(Step::Push),
            2 => Just(Step::Begin),
            2 => Just(Step::Finish),
            1 => (0..30u32).prop_map(Step::Withdraw),
        ]
    }

    proptest! {
        /// Law: every task is reported once; a task that was withdrawn before its thread ended is reported as withdrawn, at once if it had
        /// not begun and when its thread is free if it had; an answer waits only for more tasks than answers.
        #[test]
        fn every_task_is_passed_on_once(steps in prop::collection::vec(step(), 0..120)) {
            let threads = Threads::default();
            let mut state = threads.lock();
            let (mut n_pushed, mut running, mut withdrawn) = (0, Vec::new(), BTreeSet::new());
            let mut passed_on: Vec<Computed> = Vec::new();
            // In the end all threads finish.
            let end = std::iter::repeat_n([Step::Begin, Step::Finish], 2 * steps.len()).flatten();
            for step in steps.iter().copied().chain(end) {
                match step {
                    Step::Push => {
                        state.queue.push(lease(n_pushed), task());
                        n_pushed += 1;
                    }
                    Step::Begin => running.extend(state.queue.begin().map(|(lease, _, stop)| (lease, stop))),
                    Step::Finish if running.is_empty() => {}
                    Step::Finish => {
                        let (lease, stop) = running.remove(0);
                        prop_assert_eq!(stop.is_requested(), withdrawn.contains(&lease));
                        let done = finish(&mut state, lease, answer());
                        prop_assert!(done.is_some() || !stop.is_requested());
                        passed_on.extend(done.into_iter().flatten());
                    }
                    Step::Withdraw(task) => {
                        let is_reported = passed_on.iter().any(|computed| computed.lease == lease(task));
                        if task < n_pushed && !is_reported {
                            withdrawn.insert(lease(task));
                        }
                        passed_on.extend(withdraw(&mut state, &[lease(task)]));
                        let is_running = running.iter().any(|(running, _)| *running == lease(task));
                        let is_reported = passed_on.iter().any(|computed| computed.lease == lease(task));
                        prop_assert!(task >= n_pushed || is_running != is_reported);
                    }
                }
                let (n_done, n_waiting) = (state.more.len(), state.queue.n_waiting());
                let holds = n_done == 0 || n_done < n_waiting || matches!(step, Step::Push | Step::Begin);
                prop_assert!(holds, "{n_done} answers wait for {n_waiting} tasks");
            }
            let reported: BTreeSet<SessionLease> = passed_on.iter().map(|computed| computed.lease).collect();
            prop_assert_eq!(passed_on.len(), reported.len());
            prop_assert_eq!(reported, (0..n_pushed).map(lease).collect::<BTreeSet<_>>());
            for Computed { lease, report } in &passed_on {
                prop_assert_eq!(matches!(report, Report::Withdrawn), withdrawn.contains(lease));
            }
        }
    }

    #[test]
    fn a_stopped_computation_is_reported_as_withdrawn_and_its_thread_goes_on() {
        let (to_test, begun) = std::sync::mpsc::channel();
        let compute: Compute = Arc::new(move |task| {
            if matches!(task.work, Work::Index) {
                to_test.send(()).unwrap();
                loop {
                    stop::check();
                    std::thread::yield_now();
                }
            }
            Ok(Answer::Expectation(Expectation::default()))
        });
        let (to_driver, mut computed) = mpsc::channel(1);
        let pool = Pool::start(1, compute, to_driver).unwrap();
        pool.push(lease(0), Task { work: Work::Index, ..task() });
        begun.recv().unwrap();
        pool.push(lease(1), task());
        pool.push(lease(2), task());
        // The thread is busy, so the second task has not begun.
        let removed = pool.withdraw(&[lease(1)]);
        assert!(
            matches!(&removed[..], [Computed { report: Report::Withdrawn, lease: of }] if *of == lease(1))
        );
        assert!(pool.withdraw(&[lease(0)]).is_empty());
        let stopped = computed.blocking_recv().unwrap();
        assert!(
            matches!(&stopped[..], [Computed { report: Report::Withdrawn, lease: of }] if *of == lease(0))
        );
        let answered = computed.blocking_recv().unwrap();
        assert!(
            matches!(&answered[..], [Computed { report: Report::Answer { .. }, lease: of }] if *of == lease(2))
        );
    }
}
