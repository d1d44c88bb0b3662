//! The hello of a worker: checked, or refused with a reason.

use grammaton::work::lease::{InstanceId, LeaseId, SessionId, max_leases};
use grammaton::work::task::ContentHash;
use proto::blob;
use proto::check::Invalid;
use proto::v1::{self, refusal};
use proto::{MAX_HELD, MAX_NAME, MAX_SLOTS};

use super::printable;
use crate::blob_cache::BlobCache;

/// Refusal of a worker: the reason and its details.
pub struct Refused(pub refusal::Reason, pub String);

/// A checked hello.
pub struct Guest {
    pub name: String,
    pub instance: Option<InstanceId>,
    pub slots: u32,
    pub holds: Vec<ContentHash>,
    /// Leases that it has not reported.
    pub running: Vec<LeaseId>,
    pub blob_cache: BlobCache,
}

/// Checks a hello to the coordinator of a session.
pub fn greet(hello: v1::Hello, own: SessionId) -> Result<Guest, Refused> {
    let v1::Hello { version, name, slots, cache_bytes, held, instance, session, running } = hello;
    if version != proto::VERSION {
        let detail = format!(
            "the worker speaks version {version}, the coordinator {}; install the same release on both",
            proto::VERSION
        );
        return Err(Refused(refusal::Reason::Version, detail));
    }
    if !(1..=MAX_SLOTS).contains(&slots) || held.len() > MAX_HELD {
        let detail = format!("slots: {slots}, expected 1 to {MAX_SLOTS}; held: {}", held.len());
        return Err(Refused(refusal::Reason::Malformed, detail));
    }
    if name.len() > MAX_NAME {
        let detail =
            format!("name of {} bytes, expected at most {MAX_NAME}; choose another (--name)", name.len());
        return Err(Refused(refusal::Reason::Malformed, detail));
    }
    let instance = match <[u8; 16]>::try_from(&instance[..]) {
        _ if instance.is_empty() => None,
        Ok(instance) => Some(InstanceId(instance)),
        Err(_) => {
            let detail = format!("hello.instance: length {}, expected 16", instance.len());
            return Err(Refused(refusal::Reason::Malformed, detail));
        }
    };
    if running.len() > max_leases(slots) {
        let detail =
            format!("hello.running: length {}, expected at most {}", running.len(), max_leases(slots));
        return Err(Refused(refusal::Reason::Malformed, detail));
    }
    let malformed = |error: Invalid| Refused(refusal::Reason::Malformed, error.to_string());
    let running = blob::lease_ids_from_wire(running).map_err(malformed)?;
    if !running.is_empty() && blob::session_from_wire("hello.session", &session).map_err(malformed)? != own {
        let detail =
            format!("it still computes {} tasks of another session, which it has to stop", running.len());
        return Err(Refused(refusal::Reason::OtherSession, detail));
    }
    let entry = |held: v1::Held| Ok((blob::hash_from_wire("hello.held", &held.hash)?, held.size));
    let held: Result<Vec<_>, Invalid> = held.into_iter().map(entry).collect();
    let held = held.map_err(malformed)?;
    let holds = held.iter().map(|&(hash, _)| hash).collect();
    let (name, blob_cache) = (printable(&name, 64), BlobCache::new(cache_bytes, held));
    Ok(Guest { name, instance, slots, holds, running, blob_cache })
}

#[cfg(test)]
mod tests {
    use prost::bytes::Bytes;

    use super::*;

    fn hello() -> v1::Hello {
        v1::Hello { version: proto::VERSION, name: "a\nb".into(), slots: 2, ..v1::Hello::default() }
    }

    #[test]
    fn a_hello_is_checked_and_its_refusal_says_why() {
        let own = SessionId([7; 16]);
        let guest = greet(hello(), own).ok().unwrap();
        assert_eq!((&guest.name[..], guest.slots), ("ab", 2));

        let running = || vec![v1::LeaseId { batch: 1, task: 2, attempt: 3 }];
        let here = Bytes::from_static(&[7; 16]);
        let back = greet(v1::Hello { running: running(), session: here, ..hello() }, own).ok().unwrap();
        assert_eq!(back.running.len(), 1);
        let held = v1::Held { hash: Bytes::from_static(b"short"), size: 1 };
        let cases = [
            (v1::Hello { version: 99, ..hello() }, refusal::Reason::Version, "the worker speaks version 99"),
            (v1::Hello { slots: 0, ..hello() }, refusal::Reason::Malformed, "slots: 0"),
            (v1::Hello { slots: u32::MAX, ..hello() }, refusal::Reason::Malformed, "slots: 4294967295"),
            (
                v1::Hello { name: "n".repeat(1 << 20), ..hello() },
                refusal::Reason::Malformed,
                "name of 1048576 bytes, expected at most 256",
            ),
            (v1::Hello { held: vec![held], ..hello() }, refusal::Reason::Malformed, "hello.held: length 5"),
            (
                v1::Hello { instance: Bytes::from_static(b"short"), ..hello() },
                refusal::Reason::Malformed,
                "hello.instance: length 5, expected 16",
            ),
            (
                v1::Hello { running: vec![v1::LeaseId::default(); 34], ..hello() },
                refusal::Reason::Malformed,
                "hello.running: length 34, expected at most 33",
            ),
            (
                v1::Hello { running: running(), ..hello() },
                refusal::Reason::Malformed,
                "hello.session: length 0, expected 16",
            ),
            (
                v1::Hello { running: running(), session: Bytes::from_static(&[8; 16]), ..hello() },
                refusal::Reason::OtherSession,
                "it still computes 1 tasks of another session",
            ),
        ];
        for (hello, reason, message) in cases {
            let Refused(found, detail) = greet(hello, own).err().unwrap();
            assert!(found == reason && detail.starts_with(message), "{found:?}: {detail}");
        }
    }
}
