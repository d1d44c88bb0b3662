//! Answers on their way to the caller of a batch: those that it has yet to take, or that wait for others before them.
//!
//! They are in memory, and there may be as many as there are tasks: more members than the caller can keep up with, or a first task that
//! is late. Beyond so many bytes no task is begun but the one that the caller waits for ([`scheduler::Event::Backlog`]).

use std::sync::{Mutex, MutexGuard, PoisonError};

use shared::work::lease::TaskIndex;

/// What waits.
pub struct Backlog {
    /// Bytes beyond which there is no room.
    room: usize,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    bytes: usize,
    full: bool,
    /// The task whose answer is taken next.
    next: u32,
}

impl Backlog {
    /// Of nothing, with room for so many bytes.
    pub fn new(room: usize) -> Backlog {
        Backlog { room, held: Mutex::default() }
    }

    /// One more answer, of that size; whether there is no room for others now, and was before.
    pub fn add(&self, size: usize) -> bool {
        let mut held = self.held();
        held.bytes += size;
        let before = held.full;
        held.full |= held.bytes > self.room;
        held.full && !before
    }

    /// An answer of that size was taken, and the next one is that to `next`; whether there was no room for others.
    pub fn take(&self, size: usize, next: TaskIndex) -> bool {
        let mut held = self.held();
        held.bytes -= size;
        held.next = next.0;
        let was_full = held.full;
        held.full &= held.bytes > self.room / 2;
        was_full
    }

    /// While there is no room for others, the task whose answer is taken next.
    pub fn only(&self) -> Option<TaskIndex> {
        let held = self.held();
        held.full.then_some(TaskIndex(held.next))
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_full_until_half_of_it_was_taken() {
        let backlog = Backlog::new(100);
        assert_eq!([0; 4].map(|_| backlog.add(40)), [false, false, true, false]);
        assert_eq!(backlog.only(), Some(TaskIndex(0)));
        assert_eq!([1, 2, 3, 4].map(|next| backlog.take(40, TaskIndex(next))), [true, true, true, false]);
        assert_eq!(backlog.only(), None);
    }
}
