//! Sessions of browsers: a cookie holds a random number, and not the token that logged in.
//!
//! The token of a session stays in the memory of this process, is checked anew with each request, and is forgotten at the session's end:
//! after [`LIFETIME`], at logout, or when the service restarts. Numbers are kept as hashes, so that the time of a search tells nothing.

use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant};

use fleet::access::secret;
use parking_lot::Mutex;

/// Lifetime of a session.
pub const LIFETIME: Duration = Duration::from_secs(12 * 60 * 60);
/// Sessions at a time. Beyond it the oldest one ends.
const MAX_SESSIONS: usize = 10_000;

/// Open sessions, by the BLAKE3 of their numbers.
#[derive(Default)]
pub struct Sessions(Mutex<BTreeMap<[u8; 32], Session>>);

struct Session {
    token: String,
    begun: Instant,
}

impl Sessions {
    /// Opens a session for a token, and returns its number in hex digits.
    pub fn open(&self, token: &str, now: Instant) -> io::Result<String> {
        let number = secret()?;
        let mut sessions = self.0.lock();
        sessions.retain(|_, session| now.duration_since(session.begun) < LIFETIME);
        if sessions.len() >= MAX_SESSIONS
            && let Some(oldest) =
                sessions.iter().min_by_key(|(_, session)| session.begun).map(|(&key, _)| key)
        {
            sessions.remove(&oldest);
        }
        sessions.insert(key(&number), Session { token: token.to_owned(), begun: now });
        Ok(number)
    }

    /// Returns the token of a session that has not ended.
    pub fn token(&self, number: &str, now: Instant) -> Option<String> {
        let sessions = self.0.lock();
        let session = sessions.get(&key(number))?;
        (now.duration_since(session.begun) < LIFETIME).then(|| session.token.clone())
    }

    /// Ends a session.
    pub fn close(&self, number: &str) {
        self.0.lock().remove(&key(number));
    }
}

fn key(number: &str) -> [u8; 32] {
    *blake3::hash(number.as_bytes()).as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a moment to count from")]
    fn a_session_ends_with_its_time_or_at_logout() {
        let (sessions, now) = (Sessions::default(), Instant::now());
        let [one, two] = ["ann", "bob"].map(|token| sessions.open(token, now).unwrap());
        assert!(one.len() >= 32 && one != two && !one.contains("ann"));
        assert_eq!(sessions.token(&one, now).as_deref(), Some("ann"));
        assert_eq!(sessions.token(&one, now + LIFETIME), None);
        sessions.close(&two);
        assert_eq!(sessions.token(&two, now), None);
        for unknown in ["", "ann", &one[1..]] {
            assert_eq!(sessions.token(unknown, now), None);
        }
        // There are never more than so many, and the newest stay.
        let later = now + Duration::from_secs(1);
        let newest: Vec<String> = (0..MAX_SESSIONS).map(|_| sessions.open("eve", later).unwrap()).collect();
        assert_eq!(sessions.token(&one, later), None);
        assert!(newest.iter().all(|number| sessions.token(number, later).is_some()));
    }
}
