//! Connections by their peers: of unknown peers there are at most [`MAX_UNKNOWN`], and of a user at most [`MAX_OF_USER`]. Beyond that the oldest gives way
//! to the new one, so that peers who open connections and say nothing, and users who open many, keep no others out. An address that shows
//! many wrong tokens is not listened to for a while (`addresses`).

mod addresses;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use basics::clock;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::oneshot;
use tracing::{info, warn};

use self::addresses::{Addresses, MAX_WRONG};
use crate::access::{Denied, Identity};

/// Maximum number of connections of unknown peers: enough for a large cluster that starts at once.
pub const MAX_UNKNOWN: usize = 256;
/// Maximum number of connections of a user: enough for hundreds of open pages.
pub const MAX_OF_USER: usize = 1024;

/// All connections, in the order of their arrival.
#[derive(Clone, Default)]
pub struct ConnectionLimits(Arc<Connections>);

#[derive(Default)]
struct Connections {
    next: AtomicU64,
    places: Mutex<ConnectionSlots>,
    addresses: Mutex<Addresses>,
}

#[derive(Default)]
struct ConnectionSlots {
    unknown: BTreeMap<u64, Weak<ConnectionSlot>>,
    /// Connections by user; only users with connections.
    users: BTreeMap<String, BTreeMap<u64, Weak<ConnectionSlot>>>,
}

/// The place of a connection, which can be closed through it at any time.
pub struct ConnectionSlot {
    number: u64,
    /// Address of the peer.
    address: IpAddr,
    limits: ConnectionLimits,
    /// The user, once one is known.
    user: OnceLock<String>,
    evict: Mutex<Option<oneshot::Sender<()>>>,
}

impl ConnectionLimits {
    /// Returns a place for a new connection from this address, and what tells it to close.
    pub fn enter(&self, address: IpAddr) -> (Arc<ConnectionSlot>, oneshot::Receiver<()>) {
        let (evict, eviction) = oneshot::channel();
        let number = self.0.next.fetch_add(1, Ordering::Relaxed);
        let (limits, user, evict) = (self.clone(), OnceLock::new(), Mutex::new(Some(evict)));
        let place = Arc::new(ConnectionSlot { number, address, limits, user, evict });
        let mut places = self.places();
        places.unknown.insert(number, Arc::downgrade(&place));
        let oldest = if places.unknown.len() > MAX_UNKNOWN { places.unknown.pop_first() } else { None };
        // Not under the lock, which a place takes when it is dropped.
        drop(places);
        if let Some(oldest) = oldest.and_then(|(_, place)| place.upgrade()) {
            info!("the oldest connection of an unknown peer gives way to a new one");
            oldest.evict();
        }
        (place, eviction)
    }

    fn places(&self) -> MutexGuard<'_, ConnectionSlots> {
        self.0.places.lock()
    }

    fn addresses(&self) -> MutexGuard<'_, Addresses> {
        self.0.addresses.lock()
    }
}

impl ConnectionSlot {
    /// Marks the peer as known, without a user. Returns whether the connection was there.
    pub fn leave(&self) -> bool {
        self.limits.places().unknown.remove(&self.number).is_some()
    }

    /// Assigns the connection to a user, for good: a later user of the same connection changes nothing.
    pub fn admit(self: &Arc<Self>, user: &str) {
        if self.user.get().is_some() || self.user.set(user.to_owned()).is_err() {
            return;
        }
        let mut places = self.limits.places();
        places.unknown.remove(&self.number);
        let of_user = places.users.entry(user.to_owned()).or_default();
        of_user.insert(self.number, Arc::downgrade(self));
        let oldest = if of_user.len() > MAX_OF_USER { of_user.pop_first() } else { None };
        drop(places);
        if let Some(oldest) = oldest.and_then(|(_, place)| place.upgrade()) {
            info!(user, "the oldest connection of a user gives way to a new one");
            oldest.evict();
        }
    }

    /// Returns what `admit` says of a token, unless too many wrong ones came from the address.
    pub fn admit_token(
        &self,
        header: Option<&str>,
        admit: impl FnOnce() -> Result<Identity, Denied>,
    ) -> Result<Identity, Denied> {
        let Some(header) = header else { return admit() };
        let (token, now) = (blake3::hash(header.as_bytes()), clock::now());
        self.limits.addresses().check(self.address, token, now)?;
        let admitted = admit();
        let mut addresses = self.limits.addresses();
        match admitted {
            Err(Denied::Unknown) => {
                let n = addresses.wrong(self.address, now);
                drop(addresses);
                if n == 1 || n == MAX_WRONG {
                    warn!(address = %self.address, "{n} wrong tokens within a minute; from {MAX_WRONG} on no more are looked at");
                }
            }
            _ => addresses.right(token),
        }
        admitted
    }

    /// Whether a line about the peer may go into the log: each address has a few a minute.
    pub fn may_log(&self) -> bool {
        self.limits.addresses().may_log(self.address, clock::now())
    }

    /// Closes the connection.
    pub fn evict(&self) {
        self.evict.lock().take();
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let mut places = self.limits.places();
        places.unknown.remove(&self.number);
        if let Some(user) = self.user.get()
            && let Some(of_user) = places.users.get_mut(user)
        {
            of_user.remove(&self.number);
            if of_user.is_empty() {
                places.users.remove(user);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    type Entered = (Arc<ConnectionSlot>, oneshot::Receiver<()>);

    fn is_evicted(entered: &mut Entered) -> bool {
        matches!(entered.1.try_recv(), Err(oneshot::error::TryRecvError::Closed))
    }

    #[test]
    fn the_oldest_unknown_peer_gives_way_and_known_ones_do_not() {
        let limits = ConnectionLimits::default();
        let mut places: Vec<_> = (0..MAX_UNKNOWN).map(|_| limits.enter(HERE)).collect();
        places[0].0.leave();
        places[3].0.admit("ann");
        let _late = [limits.enter(HERE), limits.enter(HERE), limits.enter(HERE)];
        let evicted: Vec<bool> = places[..5].iter_mut().map(is_evicted).collect();
        assert_eq!(evicted, [false, true, false, false, false]);
        drop(places);
        let left = limits.places();
        assert_eq!((left.unknown.len(), left.users.len()), (3, 0));
        drop(left);
    }

    /// However many connections a user opens: the user's own oldest ones give way, and those of others stay.
    #[test]
    fn the_oldest_connection_of_a_user_gives_way_to_their_newest() {
        let limits = ConnectionLimits::default();
        let admit = |user: &str| {
            let entered = limits.enter(HERE);
            entered.0.admit(user);
            entered.0.admit("another user of the same connection");
            entered
        };
        let mut of_bob = admit("bob");
        let mut of_ann: Vec<_> = (0..MAX_OF_USER + 3).map(|_| admit("ann")).collect();
        let evicted: Vec<bool> = of_ann.iter_mut().map(is_evicted).collect();
        assert!(evicted.iter().enumerate().all(|(at, &is_evicted)| is_evicted == (at < 3)));
        assert!(!is_evicted(&mut of_bob));
        drop((of_ann, of_bob));
        assert!(limits.places().users.is_empty());
    }
}
