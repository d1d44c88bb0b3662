//! Tasks of compute threads: tasks that wait for a thread, and tasks that threads compute.
//!
//! In: tasks in the order of their assignment, and withdrawals. Out: each task once, to a thread or to the caller that withdraws it
//! before. [`Threads`] is a queue behind a lock, for which threads wait.
//!
//! ```text
//!     push ──> waiting ──begin──> running ──end──> gone
//!                 └──withdraw──> gone  └withdraw: its Stop is requested
//! ```

use std::collections::{BTreeMap, VecDeque};

use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::stop::Stop;

/// A queue of tasks `T`, by their key `K`.
#[derive(Debug)]
pub struct Queue<K, T> {
    waiting: VecDeque<(K, T)>,
    /// Tasks that threads compute, with the requests that end them.
    running: BTreeMap<K, Stop>,
}

/// Effect of a withdrawal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Withdrawal {
    /// The task waited, and is removed.
    Removed,
    /// A thread computes the task, and was asked to stop; [`Queue::end`] follows.
    Requested,
    /// The queue does not have the task.
    Unknown,
}

impl<K, T> Default for Queue<K, T> {
    fn default() -> Queue<K, T> {
        Queue { waiting: VecDeque::new(), running: BTreeMap::new() }
    }
}

impl<K: Ord + Copy, T> Queue<K, T> {
    /// Adds a task.
    pub fn push(&mut self, key: K, task: T) {
        self.waiting.push_back((key, task));
    }

    /// Takes the next task, with the request that ends its computation.
    pub fn begin(&mut self) -> Option<(K, T, Stop)> {
        let (key, task) = self.waiting.pop_front()?;
        let stop = Stop::default();
        self.running.insert(key, stop.clone());
        Some((key, task, stop))
    }

    /// Records that a thread no longer computes the task. Returns whether it was asked to stop.
    pub fn end(&mut self, key: K) -> bool {
        self.running.remove(&key).is_some_and(|stop| stop.is_requested())
    }

    /// Removes a task that waits, or asks the thread that computes it to stop.
    pub fn withdraw(&mut self, key: K) -> Withdrawal {
        if let Some(stop) = self.running.get(&key) {
            stop.request();
            return Withdrawal::Requested;
        }
        match self.waiting.iter().position(|(waiting, _)| *waiting == key) {
            Some(at) => {
                self.waiting.remove(at);
                Withdrawal::Removed
            }
            None => Withdrawal::Unknown,
        }
    }

    /// Removes all tasks that wait, and asks all threads to stop.
    pub fn clear(&mut self) {
        self.waiting.clear();
        self.running.values().for_each(Stop::request);
    }

    /// Number of tasks that wait.
    pub fn n_waiting(&self) -> usize {
        self.waiting.len()
    }
}

/// A queue that threads wait for, and what else `M` its lock guards.
#[derive(Debug)]
pub struct Threads<K, T, M = ()> {
    guarded: Mutex<Guarded<K, T, M>>,
    /// Notified of a new task, and of the end.
    changed: Condvar,
}

/// What the lock of [`Threads`] guards.
#[derive(Debug)]
pub struct Guarded<K, T, M> {
    /// The queue.
    pub queue: Queue<K, T>,
    /// The rest.
    pub more: M,
    closed: bool,
}

impl<K, T, M: Default> Default for Threads<K, T, M> {
    fn default() -> Threads<K, T, M> {
        let guarded = Guarded { queue: Queue::default(), more: M::default(), closed: false };
        Threads { guarded: Mutex::new(guarded), changed: Condvar::new() }
    }
}

impl<K: Ord + Copy, T, M> Threads<K, T, M> {
    /// Adds a task, and wakes a thread.
    pub fn push(&self, key: K, task: T) {
        self.lock().queue.push(key, task);
        self.changed.notify_one();
    }

    /// Waits for the next task; `None` at the end.
    pub fn next(&self) -> Option<(K, T, Stop)> {
        let waits = |guarded: &mut Guarded<K, T, M>| guarded.queue.n_waiting() == 0 && !guarded.closed;
        let mut guarded = self.lock();
        self.changed.wait_while(&mut guarded, waits);
        guarded.queue.begin()
    }

    /// Lets the threads end once no task waits.
    pub fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }

    /// Lets the threads end at once: tasks that wait do not begin, and the others are asked to stop.
    pub fn stop(&self) {
        self.lock().queue.clear();
        self.close();
    }

    /// The queue and the rest. A thread that panicked under the lock has left nothing half-done.
    pub fn lock(&self) -> MutexGuard<'_, Guarded<K, T, M>> {
        self.guarded.lock()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Push,
        Next,
        End,
        Withdraw(u32),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            3 => Just(Step::Push),
            2 => Just(Step::Next),
            2 => Just(Step::End),
            2 => (0..20u32).prop_map(Step::Withdraw),
        ]
    }

    proptest! {
        /// Law: tasks begin in the order of their assignment; a withdrawn task either never begins, or its thread is asked to stop; no
        /// other thread is.
        #[test]
        fn a_withdrawn_task_never_begins_or_is_asked_to_stop(steps in prop::collection::vec(step(), 0..80)) {
            let mut queue = Queue::default();
            let (mut n_pushed, mut waiting, mut running) = (0, BTreeSet::new(), Vec::new());
            let mut withdrawn = BTreeSet::new();
            for step in steps {
                match step {
                    Step::Push => {
                        queue.push(n_pushed, ());
                        waiting.insert(n_pushed);
                        n_pushed += 1;
                    }
                    Step::Next => {
                        let next = queue.begin();
                        prop_assert_eq!(next.as_ref().map(|(key, ..)| *key), waiting.pop_first());
                        running.extend(next.map(|(key, (), stop)| (key, stop)));
                    }
                    Step::End if running.is_empty() => {}
                    Step::End => {
                        let (key, _) = running.remove(0);
                        prop_assert_eq!(queue.end(key), withdrawn.contains(&key));
                    }
                    Step::Withdraw(key) => {
                        let expected = if waiting.remove(&key) {
                            Withdrawal::Removed
                        } else if running.iter().any(|(running, _)| *running == key) {
                            Withdrawal::Requested
                        } else {
                            Withdrawal::Unknown
                        };
                        prop_assert_eq!(queue.withdraw(key), expected);
                        withdrawn.extend((expected == Withdrawal::Requested).then_some(key));
                    }
                }
                for (key, stop) in &running {
                    prop_assert!(!stop.is_requested() || withdrawn.contains(key));
                    prop_assert!(stop.is_requested() || queue.running.contains_key(key));
                }
                prop_assert_eq!((queue.n_waiting(), queue.running.len()), (waiting.len(), running.len()));
            }
            queue.clear();
            prop_assert!(queue.begin().is_none() && running.iter().all(|(_, stop)| stop.is_requested()));
        }
    }

    #[test]
    fn threads_end_after_the_tasks_that_wait_or_at_once() {
        for at_once in [false, true] {
            let threads = Threads::<u32, ()>::default();
            let computed = std::thread::scope(|scope| {
                (0..3).for_each(|key| threads.push(key, ()));
                let (_, (), stop) = threads.next().unwrap();
                if at_once {
                    threads.stop()
                } else {
                    threads.close()
                }
                let ended =
                    scope.spawn(|| std::iter::from_fn(|| threads.next()).map(|(key, ..)| key).collect());
                let computed: Vec<u32> = ended.join().unwrap();
                assert_eq!((stop.is_requested(), threads.lock().queue.end(0)), (at_once, at_once));
                computed
            });
            assert_eq!(computed, if at_once { vec![] } else { vec![1, 2] });
        }
    }
}
