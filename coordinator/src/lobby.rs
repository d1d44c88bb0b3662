//! Connections whose peers are not known yet. There is room for [`LOBBY`], and the oldest gives way to a new one, so that peers who open connections
//! and say nothing keep no others out.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::oneshot;
use tracing::info;

/// Connections of unknown peers: enough for a large cluster that starts at once.
pub const LOBBY: usize = 256;

/// Connections of unknown peers, in the order in which they came.
#[derive(Clone, Default)]
pub struct Lobby(Arc<Waiting>);

#[derive(Default)]
struct Waiting {
    next: AtomicU64,
    places: Mutex<BTreeMap<u64, Weak<Place>>>,
}

/// The place of a connection, which can be closed through it also after it has left the lobby.
pub struct Place {
    number: u64,
    lobby: Lobby,
    evict: Mutex<Option<oneshot::Sender<()>>>,
}

impl Lobby {
    /// Returns a place for a new connection, and what tells it to close. The oldest connection is closed if there are more than [`LOBBY`].
    pub fn enter(&self) -> (Arc<Place>, oneshot::Receiver<()>) {
        let (evict, eviction) = oneshot::channel();
        let number = self.0.next.fetch_add(1, Ordering::Relaxed);
        let place = Arc::new(Place { number, lobby: self.clone(), evict: Mutex::new(Some(evict)) });
        let mut places = self.0.places.lock().unwrap_or_else(PoisonError::into_inner);
        places.insert(number, Arc::downgrade(&place));
        let oldest = if places.len() > LOBBY { places.pop_first() } else { None };
        // Not under the lock, which a place takes when it is dropped.
        drop(places);
        if let Some(oldest) = oldest.and_then(|(_, place)| place.upgrade()) {
            info!("the oldest connection of an unknown peer gives way to a new one");
            oldest.evict();
        }
        (place, eviction)
    }
}

impl Place {
    /// Leaves the lobby: the peer is known. Returns whether the connection was there.
    pub fn leave(&self) -> bool {
        let mut places = self.lobby.0.places.lock().unwrap_or_else(PoisonError::into_inner);
        places.remove(&self.number).is_some()
    }

    /// Closes the connection.
    pub fn evict(&self) {
        self.evict.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_unknown_peer_gives_way_and_known_ones_do_not() {
        let lobby = Lobby::default();
        let mut places: Vec<_> = (0..LOBBY).map(|_| lobby.enter()).collect();
        places[0].0.leave();
        let evicted = |place: &mut (Arc<Place>, oneshot::Receiver<()>)| {
            matches!(place.1.try_recv(), Err(oneshot::error::TryRecvError::Closed))
        };
        let _late = [lobby.enter(), lobby.enter()];
        assert!(!evicted(&mut places[0]) && evicted(&mut places[1]) && !evicted(&mut places[2]));
        drop(places);
        assert_eq!(lobby.0.places.lock().unwrap().len(), 2);
    }
}
