//! The backlog of a batch: accepted answers that its caller has not processed yet.
//!
//! They are kept in memory, and may be as many as the tasks if members are faster than the caller, or if the first task is late. Beyond a
//! number of bytes, only the task that the caller waits for is begun ([`scheduler::Event::Backlog`]).

use grammaton::work::lease::TaskIndex;
use parking_lot::{Mutex, MutexGuard};

/// Answers that wait.
pub struct Backlog {
    /// Maximum number of bytes before the backlog is full.
    room: usize,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    bytes: usize,
    full: bool,
    /// The task whose answer is processed next.
    next: u32,
}

impl Backlog {
    /// An empty backlog with room for that many bytes.
    pub fn new(room: usize) -> Backlog {
        Backlog { room, held: Mutex::default() }
    }

    /// Adds an answer of that size. Returns whether this made the backlog full.
    pub fn add(&self, size: usize) -> bool {
        let mut held = self.held();
        held.bytes += size;
        let before = held.full;
        held.full |= held.bytes > self.room;
        held.full && !before
    }

    /// Removes a processed answer of that size; `next` is the task whose answer follows. Returns whether the backlog was full before.
    pub fn take(&self, size: usize, next: TaskIndex) -> bool {
        let mut held = self.held();
        held.bytes -= size;
        held.next = next.0;
        let was_full = held.full;
        held.full &= held.bytes > self.room / 2;
        was_full
    }

    /// While the backlog is full, the task whose answer is processed next.
    pub fn only(&self) -> Option<TaskIndex> {
        let held = self.held();
        held.full.then_some(TaskIndex(held.next))
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_backlog_is_full_until_it_is_half_empty() {
        let backlog = Backlog::new(100);
        assert_eq!([0; 4].map(|_| backlog.add(40)), [false, false, true, false]);
        assert_eq!(backlog.only(), Some(TaskIndex(0)));
        assert_eq!([1, 2, 3, 4].map(|next| backlog.take(40, TaskIndex(next))), [true, true, true, false]);
        assert_eq!(backlog.only(), None);
    }
}
