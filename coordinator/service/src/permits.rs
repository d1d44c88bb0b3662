//! Bounds on what calls may do at the same time: so many of all users together, and so many of each.
//!
//! Invariants: one user cannot take all permits, so that the calls of others do not wait for theirs; of each user a bounded number waits.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Permits for calls of one kind.
#[derive(Clone)]
pub struct CallPermits {
    all: Arc<Semaphore>,
    /// Permits of each user.
    each: usize,
    /// The users who hold permits or wait for them.
    users: Arc<Mutex<BTreeMap<String, Arc<Semaphore>>>>,
}

/// Calls of a user that hold permits or wait for them. What they have sent meanwhile takes memory.
const WAITING: usize = 64;

/// A permit, held until it is dropped.
#[derive(Debug)]
pub struct CallPermit {
    _of_all: OwnedSemaphorePermit,
    _of_user: OwnedSemaphorePermit,
}

impl CallPermits {
    /// So many permits for all users together, and so many for each.
    pub fn new([all, each]: [usize; 2]) -> CallPermits {
        CallPermits { all: Arc::new(Semaphore::new(all)), each, users: Arc::default() }
    }

    /// Takes a permit for `user`, if there is one.
    pub fn try_take(&self, user: &str) -> Option<CallPermit> {
        let of_user = self.of(user).try_acquire_owned().ok()?;
        Some(CallPermit { _of_all: self.all.clone().try_acquire_owned().ok()?, _of_user: of_user })
    }

    /// Waits for a permit for `user`; first for one of the user's own, so that a waiting call takes no permit of other users. None if
    /// 64 calls of the user hold permits or wait.
    pub async fn take(&self, user: &str) -> Option<CallPermit> {
        let of_user = self.of(user);
        // One is kept by `users`, and each call has one.
        if Arc::strong_count(&of_user) > WAITING + 1 {
            return None;
        }
        // Semaphores that are never closed always give a permit.
        let of_user = of_user.acquire_owned().await.ok()?;
        Some(CallPermit { _of_all: self.all.clone().acquire_owned().await.ok()?, _of_user: of_user })
    }

    /// Number of permits that are free.
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
        /// Whatever is taken and given back: a permit is given if and only if the user has fewer than theirs and all have fewer than all; users
        /// without permits take no memory.
        #[test]
        fn a_user_has_a_bounded_share(steps: Vec<(u8, bool)>) {
            let permits = CallPermits::new([5, 3]);
            let mut held: Vec<(String, CallPermit)> = Vec::new();
            for (user, takes) in steps {
                let user = (user % 4).to_string();
                let of_user = held.iter().filter(|(holder, _)| *holder == user).count();
                if takes {
                    let permit = permits.try_take(&user);
                    prop_assert_eq!(permit.is_some(), of_user < 3 && held.len() < 5);
                    prop_assert!(permits.users.lock().len() <= held.len() + 1);
                    held.extend(permit.map(|permit| (user, permit)));
                } else if let Some(at) = held.iter().position(|(holder, _)| *holder == user) {
                    held.remove(at);
                }
            }
        }
    }

    /// However many calls a user makes: so many wait, the others are refused, and those of others are not.
    #[tokio::test]
    async fn a_bounded_number_of_calls_waits() {
        let permits = CallPermits::new([2, 1]);
        let first = permits.take("ann").await.unwrap();
        let take = |user: &'static str| {
            let permits = permits.clone();
            tokio::spawn(async move { permits.take(user).await.is_some() })
        };
        let calls: Vec<_> = (0..WAITING + 7).map(|_| take("ann")).collect();
        tokio::task::yield_now().await;
        assert!(take("bob").await.unwrap());
        let n_refused = calls.iter().filter(|call| call.is_finished()).count();
        assert_eq!(n_refused, 8, "one call holds the permit");
        drop(first);
        let mut n_served = 0;
        for call in calls {
            n_served += usize::from(call.await.unwrap());
        }
        assert_eq!(n_served, WAITING - 1);
    }

    #[tokio::test]
    async fn users_who_wait_for_their_own_places_leave_those_of_others_free() {
        let permits = CallPermits::new([2, 1]);
        let first = permits.take("ann").await.unwrap();
        let waiting: Vec<_> = (0..60)
            .map(|_| {
                tokio::spawn({
                    let permits = permits.clone();
                    async move { permits.take("ann").await }
                })
            })
            .collect();
        tokio::task::yield_now().await;
        assert!(permits.try_take("bob").is_some());
        drop(first);
        for waits in waiting {
            drop(waits.await.unwrap());
        }
    }
}
