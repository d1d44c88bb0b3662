//! Bounds on what calls may do at the same time: so many of all users together, and so many of each.
//!
//! Invariants: one user cannot take all places, so that the calls of others do not wait for theirs; of each user a bounded number waits.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Places for calls of one kind.
#[derive(Clone)]
pub struct Places {
    all: Arc<Semaphore>,
    /// Places of each user.
    each: usize,
    /// The users who hold places or wait for them.
    users: Arc<Mutex<BTreeMap<String, Arc<Semaphore>>>>,
}

/// Calls of a user that hold places or wait for them. What they have sent meanwhile takes memory.
const WAITING: usize = 64;

/// A place, held until it is dropped.
#[derive(Debug)]
pub struct Place {
    _of_all: OwnedSemaphorePermit,
    _of_user: OwnedSemaphorePermit,
}

impl Places {
    /// So many places for all users together, and so many for each.
    pub fn new([all, each]: [usize; 2]) -> Places {
        Places { all: Arc::new(Semaphore::new(all)), each, users: Arc::default() }
    }

    /// Takes a place for `user`, if there is one.
    pub fn try_take(&self, user: &str) -> Option<Place> {
        let of_user = self.of(user).try_acquire_owned().ok()?;
        Some(Place { _of_all: self.all.clone().try_acquire_owned().ok()?, _of_user: of_user })
    }

    /// Waits for a place for `user`; first for one of the user's own, so that a waiting call takes no place of other users. None if
    /// 64 calls of the user hold places or wait.
    pub async fn take(&self, user: &str) -> Option<Place> {
        let of_user = self.of(user);
        // One is kept by `users`, and each call has one.
        if Arc::strong_count(&of_user) > WAITING + 1 {
            return None;
        }
        // Semaphores that are never closed always give a permit.
        let of_user = of_user.acquire_owned().await.ok()?;
        Some(Place { _of_all: self.all.clone().acquire_owned().await.ok()?, _of_user: of_user })
    }

    /// Number of places that are free.
    #[cfg(test)]
    pub fn n_free(&self) -> usize {
        self.all.available_permits()
    }

    fn of(&self, user: &str) -> Arc<Semaphore> {
        let mut users = self.users.lock();
        // Permits and waiting calls hold their semaphore.
        users.retain(|_, semaphore| Arc::strong_count(semaphore) > 1);
        users.entry(user.to_owned()).or_insert_with(|| Arc::new(Semaphore::new(self.each))).clone()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Whatever is taken and given back: a place is given if and only if the user has fewer than theirs and all have fewer than all; users
        /// without places take no memory.
        #[test]
        fn a_user_has_a_bounded_share(steps: Vec<(u8, bool)>) {
            let places = Places::new([5, 3]);
            let mut held: Vec<(String, Place)> = Vec::new();
            for (user, takes) in steps {
                let user = (user % 4).to_string();
                let of_user = held.iter().filter(|(holder, _)| *holder == user).count();
                if takes {
                    let place = places.try_take(&user);
                    prop_assert_eq!(place.is_some(), of_user < 3 && held.len() < 5);
                    prop_assert!(places.users.lock().len() <= held.len() + 1);
                    held.extend(place.map(|place| (user, place)));
                } else if let Some(at) = held.iter().position(|(holder, _)| *holder == user) {
                    held.remove(at);
                }
            }
        }
    }

    /// However many calls a user makes: so many wait, the others are refused, and those of others are not.
    #[tokio::test]
    async fn a_bounded_number_of_calls_waits() {
        let places = Places::new([2, 1]);
        let first = places.take("ann").await.unwrap();
        let take = |user: &'static str| {
            let places = places.clone();
            tokio::spawn(async move { places.take(user).await.is_some() })
        };
        let calls: Vec<_> = (0..WAITING + 7).map(|_| take("ann")).collect();
        tokio::task::yield_now().await;
        assert!(take("bob").await.unwrap());
        let n_refused = calls.iter().filter(|call| call.is_finished()).count();
        assert_eq!(n_refused, 8, "one call holds the place");
        drop(first);
        let mut n_served = 0;
        for call in calls {
            n_served += usize::from(call.await.unwrap());
        }
        assert_eq!(n_served, WAITING - 1);
    }

    #[tokio::test]
    async fn users_who_wait_for_their_own_places_leave_those_of_others_free() {
        let places = Places::new([2, 1]);
        let first = places.take("ann").await.unwrap();
        let waiting: Vec<_> = (0..60)
            .map(|_| {
                tokio::spawn({
                    let places = places.clone();
                    async move { places.take("ann").await }
                })
            })
            .collect();
        tokio::task::yield_now().await;
        assert!(places.try_take("bob").is_some());
        drop(first);
        for waits in waiting {
            drop(waits.await.unwrap());
        }
    }
}
