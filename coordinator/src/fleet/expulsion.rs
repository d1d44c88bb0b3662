//! Expelled workers: they gave a wrong answer and may not rejoin.
//!
//! A worker is known by the secret id of its process, and by the names in its certificate if it has one: only a peer with another certificate is
//! another worker. Without certificates a restarted process counts as another worker.

use std::collections::BTreeMap;

use scheduler::Machine;
use shared::work::lease::InstanceId;

/// Maximum number of expulsions; beyond it an old one is dropped for each new one.
const MOST: usize = 4096;

/// A key under which an expelled worker is recognised.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Key {
    /// The id of its process.
    Process([u8; 16]),
    /// The names in its certificate.
    Certificate(Machine),
}

/// The keys of a worker.
pub(super) fn keys(instance: Option<InstanceId>, machine: &Machine, has_certificate: bool) -> Vec<Key> {
    let process = instance.map(|InstanceId(id)| Key::Process(id));
    let certificate = has_certificate.then(|| Key::Certificate(machine.clone()));
    process.into_iter().chain(certificate).collect()
}

/// Expelled workers with their reasons.
#[derive(Default)]
pub(super) struct Expelled(BTreeMap<Key, String>);

impl Expelled {
    /// Expels the worker with these keys.
    pub fn add(&mut self, keys: &[Key], reason: &str) {
        for key in keys {
            if self.0.len() >= MOST {
                self.0.pop_first();
            }
            self.0.insert(key.clone(), reason.to_owned());
        }
    }

    /// Why the worker with these keys was expelled, if it was.
    pub fn reason(&self, keys: &[Key]) -> Option<&str> {
        keys.iter().find_map(|key| self.0.get(key)).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expelled_worker_is_known_by_its_process_and_its_certificate() {
        let (machine, other) = (Machine("certificate w1".into()), Machine("certificate w2".into()));
        let (first, second) = (InstanceId([1; 16]), InstanceId([2; 16]));
        let mut expelled = Expelled::default();
        expelled.add(&keys(Some(first), &machine, true), "wrong");
        assert_eq!(expelled.reason(&keys(Some(second), &machine, true)), Some("wrong"), "another process");
        assert_eq!(expelled.reason(&keys(Some(first), &other, true)), Some("wrong"), "another certificate");
        assert_eq!(expelled.reason(&keys(Some(second), &other, true)), None);
        assert_eq!(expelled.reason(&keys(None, &machine, false)), None, "an address proves nothing");
        for id in 0..2 * MOST as u128 {
            expelled.add(&keys(Some(InstanceId(id.to_le_bytes())), &other, false), "wrong");
        }
        assert_eq!(expelled.0.len(), MOST);
    }
}
